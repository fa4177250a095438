use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};

/// A provider's executable, known by its content: schemas and spares belong to the content, not to the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    pub path: PathBuf,
    /// In lower-case hexadecimal.
    pub sha256: String,
}

impl Binary {
    /// Reads the whole file, the first time. Providers have up to hundreds of megabytes: do not call this on a thread
    /// that others wait for.
    pub fn at(path: &Path) -> io::Result<Binary> {
        let known = known().lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        // Links in the path may lead elsewhere by now: then it is another file, and its stamp says so.
        if let Some((of, binary)) = known
            && of == Stamp::of(&path.metadata()?)
            && binary.path.metadata().is_ok_and(|real| of == Stamp::of(&real))
        {
            return Ok(binary);
        }
        let real = path.canonicalize()?;
        let file = File::open(&real)?;
        let stamp = Stamp::of(&file.metadata()?);
        let binary = Binary { path: real, sha256: hash(file)? };
        let mut known = self::known().lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(path.to_owned(), (stamp, binary.clone()));
        Ok(binary)
    }
}

/// What tells that a file is the one that was read before, without reading it again.
#[derive(Clone, PartialEq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// By the path that was asked for.
type Known = HashMap<PathBuf, (Stamp, Binary)>;

fn known() -> &'static Mutex<Known> {
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    KNOWN.get_or_init(Mutex::default)
}

fn hash(mut file: File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_known_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provider");
        std::fs::write(&path, "abc").unwrap();
        let first = Binary::at(&path).unwrap();
        assert_eq!(first.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Binary::at(&path).unwrap(), first);
        std::fs::write(&path, "abcd").unwrap();
        assert_ne!(Binary::at(&path).unwrap().sha256, first.sha256);
        assert!(Binary::at(&folder.path().join("missing")).is_err());
        let (other, link) = (folder.path().join("other"), folder.path().join("link"));
        std::fs::write(&other, "abc").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(Binary::at(&link).unwrap(), Binary::at(&path).unwrap(), "a link is what it leads to");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(Binary::at(&link).unwrap(), Binary::at(&other).unwrap());
    }
}
