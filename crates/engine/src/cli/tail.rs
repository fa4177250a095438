use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::failed;
use crate::EngineError;

/// A longer line is skipped: no message that matters here is that long.
const LONGEST_LINE: usize = 1 << 20;

/// So much is read at one go, so that a flood leaves time for other work.
const AT_ONCE: usize = 8 << 20;

/// What has been read is given back to the disk in pieces of this size.
const GIVE_BACK: u64 = 4 << 20;

/// The end of a stream is kept for people to read.
const END_KEPT: usize = 8 << 10;

/// Reads a growing file. What was read is punched out of it, so that however much is written, the disk holds little.
pub(super) struct Tail {
    file: File,
    path: PathBuf,
    partial: Vec<u8>,
    skipping: bool,
    read: u64,
    given_back: u64,
}

impl Tail {
    pub fn open(path: &Path) -> Result<Tail, EngineError> {
        let file = File::options().read(true).write(true).open(path).map_err(|e| failed(path, e))?;
        Ok(Tail { file, path: path.to_owned(), partial: Vec::new(), skipping: false, read: 0, given_back: 0 })
    }

    /// Hands on the lines that are complete. True: there may be more at once.
    pub fn lines(&mut self, on_line: &mut impl FnMut(&[u8])) -> Result<bool, EngineError> {
        self.read_on(|tail, chunk| {
            let mut rest = chunk;
            while let Some(end) = rest.iter().position(|b| *b == b'\n') {
                tail.take(&rest[..end]);
                if !std::mem::take(&mut tail.skipping) {
                    on_line(&tail.partial);
                }
                tail.partial.clear();
                rest = &rest[end + 1..];
            }
            tail.take(rest);
        })
    }

    /// Reads without looking, but for the end. True: there may be more at once.
    pub fn skip(&mut self) -> Result<bool, EngineError> {
        self.read_on(|tail, chunk| {
            tail.partial.extend_from_slice(chunk);
            let surplus = tail.partial.len().saturating_sub(END_KEPT);
            tail.partial.drain(..surplus);
        })
    }

    /// Whether what was skipped so far ends like this.
    pub fn ends_with(&self, bytes: &[u8]) -> bool {
        self.partial.ends_with(bytes)
    }

    /// The end of what was skipped.
    pub fn end(&self) -> String {
        String::from_utf8_lossy(&self.partial).trim().to_owned()
    }

    fn read_on(&mut self, mut each: impl FnMut(&mut Tail, &[u8])) -> Result<bool, EngineError> {
        let mut chunk = vec![0; 64 << 10];
        let mut total = 0;
        while total < AT_ONCE {
            let read = self.file.read(&mut chunk).map_err(|e| failed(&self.path, e))?;
            if read == 0 {
                return Ok(false);
            }
            total += read;
            self.read += read as u64;
            each(self, &chunk[..read]);
            if self.read - self.given_back >= GIVE_BACK {
                self.give_back();
            }
        }
        Ok(true)
    }

    /// A file system that cannot do this keeps everything until the run ends; nothing else is different there.
    fn give_back(&mut self) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, flags, self.given_back, self.read - self.given_back);
        self.given_back = self.read;
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.partial.len() + bytes.len() > LONGEST_LINE {
            self.skipping = true;
            self.partial.clear();
        } else if !self.skipping {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_arrive_whole_and_an_endless_one_is_skipped() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = Tail::open(file.path()).unwrap();
        let mut seen = Vec::new();
        let mut look = |tail: &mut Tail| {
            tail.lines(&mut |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned())).unwrap();
            std::mem::take(&mut seen)
        };
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(look(&mut tail), ["one"]);
        file.write_all(b"o\n").unwrap();
        file.write_all(&vec![b'x'; LONGEST_LINE + 1]).unwrap();
        assert_eq!(look(&mut tail), ["two"]);
        file.write_all(b"still the same\nthree\n").unwrap();
        assert_eq!(look(&mut tail), ["three"]);
    }
}
