use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use landform_base::child::{self, OnParentDeath, Spec, Stream};

use super::failed;
use crate::{EngineError, Stop};

/// How often new output is looked for. It only delays what people watch: the end of the child is noticed at once.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A longer line is skipped: no message that matters here is that long.
const LONGEST_LINE: usize = 1 << 20;

const STDERR_KEPT: u64 = 8 << 10;

/// One run of the CLI.
pub(super) struct Invocation {
    pub binary: PathBuf,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    /// Output goes to files here, and the child is registered here while it lives.
    pub scratch: PathBuf,
    pub environment: BTreeMap<OsString, OsString>,
}

pub(super) struct Ended {
    pub status: ExitStatus,
    pub asked_to_stop: bool,
    /// The end of what was written to standard error.
    pub stderr: String,
    pub stdout: PathBuf,
}

impl Invocation {
    /// Runs the CLI to its end and hands each line of its output to `on_line`. When `stop` fires it is asked once to
    /// stop and then waited for, however long it takes: it is saving its state.
    ///
    /// Output goes through files. A pipe would break when this process dies, and the CLI, asked by the kernel to stop
    /// in that moment, would die of its first message instead of saving its state.
    pub async fn run(self, stop: &Stop, mut on_line: impl FnMut(&[u8]) + Send) -> Result<Ended, EngineError> {
        let stdout = self.scratch.join("cli.stdout");
        let stderr = self.scratch.join("cli.stderr");
        let create = |path: &Path| File::create(path).map_err(|e| failed(path, e));
        let spec = Spec {
            args: self.args,
            environment: self.environment,
            folder: Some(self.folder),
            stdout: Stream::File(create(&stdout)?),
            stderr: Stream::File(create(&stderr)?),
            on_parent_death: OnParentDeath::Terminate,
            register: Some(self.scratch),
            ..Spec::new(&self.binary)
        };
        let mut tail = Tail::open(&stdout)?;
        let mut child = child::spawn(spec).await.map_err(|e| failed(&self.binary, e))?;
        let mut asked_to_stop = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                () = stop.cancelled(), if !asked_to_stop => {
                    asked_to_stop = true;
                    // It may have ended in this moment, which the next turn notices.
                    let _ = child.stop();
                }
                () = tokio::time::sleep(LOOK_EVERY) => tail.lines(&mut on_line)?,
            }
        };
        let status = status.map_err(|e| EngineError::Lost(format!("the CLI could not be waited for: {e}")))?;
        tail.lines(&mut on_line)?;
        Ok(Ended { status, asked_to_stop, stderr: end_of(&stderr).unwrap_or_default(), stdout })
    }
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Reads a growing file line by line.
struct Tail {
    file: File,
    path: PathBuf,
    partial: Vec<u8>,
    skipping: bool,
}

impl Tail {
    fn open(path: &Path) -> Result<Tail, EngineError> {
        let file = File::open(path).map_err(|e| failed(path, e))?;
        Ok(Tail { file, path: path.to_owned(), partial: Vec::new(), skipping: false })
    }

    fn lines(&mut self, on_line: &mut impl FnMut(&[u8])) -> Result<(), EngineError> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = self.file.read(&mut chunk).map_err(|e| failed(&self.path, e))?;
            if read == 0 {
                return Ok(());
            }
            let mut rest = &chunk[..read];
            while let Some(end) = rest.iter().position(|b| *b == b'\n') {
                self.take(&rest[..end]);
                if !std::mem::take(&mut self.skipping) {
                    on_line(&self.partial);
                }
                self.partial.clear();
                rest = &rest[end + 1..];
            }
            self.take(rest);
        }
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

    #[tokio::test]
    async fn a_stop_is_asked_for_once_and_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let script =
            "trap 'n=$((n+1)); sleep 0.2; echo stopped $n; exit 1' TERM; echo ready; while :; do sleep 0.01; done";
        let invocation = Invocation {
            binary: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            folder: scratch.path().to_owned(),
            scratch: scratch.path().to_owned(),
            environment: BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]),
        };
        let stop = Stop::new();
        let mut seen = Vec::new();
        let ended = invocation
            .run(&stop, |line| {
                stop.cancel();
                seen.push(String::from_utf8_lossy(line).into_owned());
            })
            .await
            .unwrap();
        assert_eq!(seen, ["ready", "stopped 1"]);
        assert!(ended.asked_to_stop);
        assert_eq!(ended.status.code(), Some(1));
    }
}
