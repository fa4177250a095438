//! A template's archive, read with distrust.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use landform_domain::template::{Files, LARGEST_FILE, LARGEST_TOTAL, MOST_FILES};
use landform_domain::{Code, Problem};
use tar::EntryType;

/// The most that an archive may have as it is sent. Configuration is text: it is smaller packed than unpacked.
pub(crate) const LARGEST_ARCHIVE: usize = LARGEST_TOTAL;

/// Headers and padding come on top of the files.
const LARGEST_UNPACKED: u64 = LARGEST_TOTAL as u64 + 4 * 1024 * MOST_FILES as u64;

/// Folders are allowed and not kept; more of them than this is no template.
const MOST_ENTRIES: usize = 2 * MOST_FILES;

/// Reads a gzipped tar file. Nothing in it is trusted: neither its sizes nor its paths nor its kinds of entries.
pub(crate) fn read(archive: &[u8]) -> Result<Files, Problem> {
    let unpacked = Bounded { inner: MultiGzDecoder::new(archive), left: LARGEST_UNPACKED };
    let mut tar = tar::Archive::new(unpacked);
    let mut files = Vec::new();
    let mut total = 0;
    for (number, entry) in tar.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if number >= MOST_ENTRIES || files.len() >= MOST_FILES {
            return Err(Problem::new(Code::TemplateTooLarge, format!("more than {MOST_FILES} files")));
        }
        let path = String::from_utf8(entry.path_bytes().into_owned());
        let path = path.map_err(|_| invalid("a path in the archive is not UTF-8"))?;
        let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory => continue,
            // Comments of the archiver, `git archive` writes one.
            EntryType::XGlobalHeader => continue,
            other => {
                let shown: String = path.chars().take(80).collect();
                return Err(invalid(format!("{shown:?} is neither a file nor a folder but {}", kind(other))));
            }
        }
        let mut content = Vec::new();
        let most = LARGEST_FILE.min(LARGEST_TOTAL - total) as u64;
        entry.by_ref().take(most + 1).read_to_end(&mut content).map_err(broken)?;
        if content.len() as u64 > most {
            return Err(Problem::new(
                Code::TemplateTooLarge,
                format!("a file may have {LARGEST_FILE} bytes, all of them together {LARGEST_TOTAL}"),
            ));
        }
        total += content.len();
        files.push((path, content));
    }
    Files::new(files)
}

fn kind(entry: EntryType) -> &'static str {
    match entry {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Fifo => "a named pipe",
        EntryType::Block | EntryType::Char => "a device",
        _ => "something else",
    }
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(Code::TemplateInvalid, message)
}

fn broken(error: std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => Problem::new(Code::TemplateTooLarge, error.to_string()),
        _ => invalid(format!("not a gzipped tar file: {error}")),
    }
}

/// Gives out so many bytes and then an error: a bomb unpacks to no more than this.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            std::io::Error::new(
                std::io::ErrorKind::FileTooLarge,
                "the archive unpacks to more than a template may have",
            )
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Builds an archive as an attacker would: header fields are set without any check.
    fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    fn refused(archive: &[u8]) -> Code {
        read(archive).unwrap_err().code
    }

    const MAIN: (&str, EntryType, &[u8]) = ("./main.tf", EntryType::Regular, b"# it");

    #[test]
    fn an_honest_archive_is_read() {
        let archive = archive(&[("./", EntryType::Directory, b""), MAIN, ("m/a.tf", EntryType::Regular, b"")]);
        let files = read(&archive).unwrap();
        assert_eq!(files.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["m/a.tf", "main.tf"]);
    }

    #[test]
    fn links_devices_and_ways_out_are_refused() {
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::Block] {
            assert_eq!(refused(&archive(&[MAIN, ("x.tf", kind, b"")])), Code::TemplateInvalid);
        }
        for path in ["../x.tf", "/etc/x.tf", "a/../../x.tf", "././x.tf", "a//x.tf"] {
            assert_eq!(refused(&archive(&[MAIN, (path, EntryType::Regular, b"")])), Code::TemplateInvalid, "{path}");
        }
    }

    #[test]
    fn bombs_are_cut_off() {
        let large = vec![0; LARGEST_FILE + 1];
        assert_eq!(refused(&archive(&[MAIN, ("x", EntryType::Regular, &large)])), Code::TemplateTooLarge);
        let part = vec![0; LARGEST_FILE];
        let parts: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| (name, EntryType::Regular, part.as_slice())).into();
        assert_eq!(refused(&archive(&[&[MAIN], parts.as_slice()].concat())), Code::TemplateTooLarge);
        let many: Vec<String> = (0..=MOST_FILES).map(|n| format!("{n}.tf")).collect();
        let many: Vec<_> = many.iter().map(|path| (path.as_str(), EntryType::Regular, b"".as_slice())).collect();
        assert_eq!(refused(&archive(&many)), Code::TemplateTooLarge);
        let folders = vec![("d/", EntryType::Directory, b"".as_slice()); MOST_ENTRIES + 1];
        assert_eq!(refused(&archive(&folders)), Code::TemplateTooLarge);
        // A gzip stream that goes on and on in one entry that nobody reads: a long name.
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(1 << 40);
        header.set_cksum();
        bomb.write_all(header.as_bytes()).unwrap();
        for _ in 0..64 {
            bomb.write_all(&vec![b'a'; 1 << 20]).unwrap();
        }
        assert_eq!(refused(&bomb.finish().unwrap()), Code::TemplateTooLarge);
    }

    #[test]
    fn garbage_is_refused() {
        assert_eq!(refused(b""), Code::TemplateInvalid);
        assert_eq!(refused(b"PK\x03\x04"), Code::TemplateInvalid);
        let whole = archive(&[MAIN, ("x", EntryType::Regular, &[7; 4000])]);
        assert_eq!(refused(&whole[..whole.len() - 30]), Code::TemplateInvalid);
        assert_eq!(refused(&archive(&[("readme", EntryType::Regular, b"")])), Code::TemplateInvalid);
    }
}
