//! A provider's package, packed or not, and what it is known by in a lock file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

/// No provider comes near this, and an archive that claims more is no provider.
const MAX_UNPACKED_BYTES: u64 = 4 << 30;

/// Where a provider's files are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Package {
    Folder(PathBuf),
    Archive(PathBuf),
}

/// How a lock file knows a package: by its content, packed or not, or by its archive alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// `h1:…`, of all files.
    pub content: String,
    /// `zh:…`, of the archive; a folder has none.
    pub archive: Option<String>,
}

impl Hashes {
    /// All that a lock file may know it by. From a mirror, `tofu init` writes down the content's alone; those of
    /// archives come from registries.
    pub fn list(&self) -> Vec<String> {
        [Some(self.content.clone()), self.archive.clone()].into_iter().flatten().collect()
    }
}

impl Package {
    pub fn path(&self) -> &Path {
        match self {
            Package::Folder(path) | Package::Archive(path) => path,
        }
    }

    pub fn hashes(&self) -> io::Result<Hashes> {
        match self {
            Package::Folder(path) => {
                let mut files = Vec::new();
                collect(path, "", &mut files)?;
                let mut sums = Vec::new();
                for name in files {
                    sums.push((hex(&hash(File::open(path.join(&name))?)?), name));
                }
                Ok(Hashes { content: content_hash(sums), archive: None })
            }
            Package::Archive(path) => {
                let mut file = File::open(path)?;
                let archive = format!("zh:{}", hex(&hash(&mut file)?));
                file.rewind()?;
                let mut zip = ZipArchive::new(file)?;
                let mut sums = Vec::new();
                for at in 0..zip.len() {
                    let entry = zip.by_index(at)?;
                    if !entry.is_dir() {
                        let name = entry.name()?.into_owned();
                        sums.push((hex(&hash(entry.take(MAX_UNPACKED_BYTES))?), name));
                    }
                }
                Ok(Hashes { content: content_hash(sums), archive: Some(archive) })
            }
        }
    }

    /// The same, read only once for as long as the package stays as it is.
    pub fn known_hashes(&self) -> io::Result<Hashes> {
        type Known = Mutex<HashMap<Package, (Stamp, Hashes)>>;
        static KNOWN: OnceLock<Known> = OnceLock::new();
        let stamp = Stamp::of(self)?;
        let known = KNOWN.get_or_init(Known::default);
        let remembered = known.lock().unwrap_or_else(PoisonError::into_inner).get(self).cloned();
        if let Some((of, hashes)) = remembered
            && of == stamp
        {
            return Ok(hashes);
        }
        let hashes = self.hashes()?;
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(self.clone(), (stamp, hashes.clone()));
        Ok(hashes)
    }
}

/// Unpacks an archive into a folder of the cache that is named by the archive's content. However many do it at once, the
/// folder is complete or not there.
pub fn unpack(archive: &Path, cache: &Path) -> io::Result<PathBuf> {
    let hashes = Package::Archive(archive.to_owned()).known_hashes()?;
    let name = hashes.archive.unwrap_or_default().replace(':', "-");
    let place = cache.join(name);
    if place.is_dir() {
        return Ok(place);
    }
    std::fs::create_dir_all(cache)?;
    let made = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(cache)?;
    extract(archive, made.path())?;
    std::fs::set_permissions(made.path(), std::fs::Permissions::from_mode(0o755))?;
    match std::fs::rename(made.path(), &place) {
        Ok(()) => drop(made.keep()),
        // Another was first, with the same content.
        Err(_) if place.is_dir() => {}
        Err(error) => return Err(error),
    }
    Ok(place)
}

fn extract(archive: &Path, into: &Path) -> io::Result<()> {
    let wrong = |detail: String| io::Error::new(io::ErrorKind::InvalidData, detail);
    let mut zip = ZipArchive::new(File::open(archive)?)?;
    let mut left = MAX_UNPACKED_BYTES;
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at)?;
        let called = entry.name()?.into_owned();
        let name = entry.enclosed_name().ok_or_else(|| wrong(format!("{called:?} is outside of the package")))?;
        let path = into.join(name);
        if entry.is_dir() {
            std::fs::create_dir_all(&path)?;
            continue;
        }
        if entry.is_symlink() {
            return Err(wrong(format!("{called:?} is a symbolic link")));
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mode = if entry.unix_mode().is_none_or(|mode| mode & 0o111 != 0) { 0o755 } else { 0o644 };
        let mut file = File::create_new(&path)?;
        left -= io::copy(&mut (&mut entry).take(left), &mut file)?;
        if left == 0 {
            return Err(wrong("the package is too large".into()));
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
    }
    Ok(())
}

/// The names of all files below, with `/` between their parts.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| io::Error::other(format!("the name {name:?}")))?;
        let name = format!("{prefix}{name}");
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.push(name);
        }
    }
    Ok(())
}

fn content_hash(mut sums: Vec<(String, String)>) -> String {
    sums.sort_by(|one, other| one.1.cmp(&other.1));
    let mut whole = Sha256::new();
    for (sum, name) in sums {
        whole.update(format!("{sum}  {name}\n"));
    }
    format!("h1:{}", STANDARD.encode(whole.finalize()))
}

fn hash(mut read: impl Read) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match read.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What tells that no file of a package has changed, without reading it.
#[derive(Clone, PartialEq, Eq)]
struct Stamp(Vec<(String, u64, u64, i64, i64)>);

impl Stamp {
    fn of(package: &Package) -> io::Result<Stamp> {
        let mut names = Vec::new();
        match package {
            Package::Folder(path) => collect(path, "", &mut names)?,
            Package::Archive(_) => names.push(String::new()),
        }
        names.sort();
        let stamp = |name: String| {
            let path = if name.is_empty() { package.path().to_owned() } else { package.path().join(&name) };
            let meta = path.metadata()?;
            Ok((name, meta.ino(), meta.size(), meta.mtime_nsec() ^ meta.mtime(), meta.ctime_nsec() ^ meta.ctime()))
        };
        Ok(Stamp(names.into_iter().map(stamp).collect::<io::Result<_>>()?))
    }
}
