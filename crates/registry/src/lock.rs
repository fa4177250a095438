use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::find::Found;
use crate::settings::{Fault, parse};
use crate::source::Source;
use crate::version::Version;

/// The name of the file in a folder of `.tf` files.
const FILE: &str = ".terraform.lock.hcl";

/// What `.terraform.lock.hcl` has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    providers: BTreeMap<Source, Locked>,
}

/// The choice for one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    pub version: Version,
    /// As the configuration wrote them when the choice was made.
    pub constraints: String,
    /// `h1:…` and `zh:…`; a package must have one of them. None at all: any package will do.
    pub hashes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}, line {line}, is not a lock file: {detail}", path.display())]
    Malformed { path: PathBuf, line: usize, detail: String },
    #[error(
        "the package of {source_address} in {} has none of the checksums in the lock file: it is {}",
        package.display(),
        has.join(" ")
    )]
    OtherPackage { source_address: Box<Source>, package: PathBuf, has: Vec<String> },
}

impl LockFile {
    /// A folder without a lock file has chosen nothing.
    pub fn of_folder(folder: &Path) -> Result<LockFile, LockError> {
        let path = folder.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text).map_err(|(line, detail)| LockError::Malformed { path, line, detail }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockFile::default()),
            Err(source) => Err(LockError::Io { path, source }),
        }
    }

    pub fn version(&self, source: &Source) -> Option<&Version> {
        self.providers.get(source).map(|locked| &locked.version)
    }

    /// All choices.
    pub fn selections(&self) -> impl Iterator<Item = (&Source, &Locked)> {
        self.providers.iter()
    }

    pub fn locked(&self, source: &Source) -> Option<&Locked> {
        self.providers.get(source)
    }

    /// Makes a choice, or another one. Returns whether anything changed.
    pub fn choose(&mut self, source: Source, locked: Locked) -> bool {
        self.providers.get(&source) != Some(&locked) && self.providers.insert(source, locked).is_none_or(|_| true)
    }

    /// Whether what was found is a package that the lock file allows.
    pub fn check(&self, found: &Found) -> Result<(), LockError> {
        let (Some(locked), Some(package)) = (self.providers.get(&found.source), &found.package) else { return Ok(()) };
        if locked.hashes.is_empty() {
            return Ok(());
        }
        let failed = |source| LockError::Io { path: package.path().to_owned(), source };
        let has = package.known_hashes().map_err(failed)?.list();
        if has.iter().any(|hash| locked.hashes.contains(hash)) {
            return Ok(());
        }
        let source_address = Box::new(found.source.clone());
        Err(LockError::OtherPackage { source_address, package: package.path().to_owned(), has })
    }

    /// Writes it as `tofu init` does: complete, or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), LockError> {
        let path = folder.join(FILE);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(self.text().as_bytes())?;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| LockError::Io { path: path.clone(), source })
    }

    fn text(&self) -> String {
        let mut text = "# This file is maintained automatically by \"tofu init\".\n\
                        # Manual edits may be lost in future updates.\n"
            .to_owned();
        for (source, locked) in &self.providers {
            text += &format!("\nprovider \"{source}\" {{\n");
            if locked.constraints.is_empty() {
                text += &format!("  version = \"{}\"\n", locked.version);
            } else {
                text +=
                    &format!("  version     = \"{}\"\n  constraints = \"{}\"\n", locked.version, locked.constraints);
            }
            let mut hashes = locked.hashes.clone();
            hashes.sort();
            if !hashes.is_empty() {
                text += "  hashes = [\n";
                text.extend(hashes.iter().map(|hash| format!("    \"{hash}\",\n")));
                text += "  ]\n";
            }
            text += "}\n";
        }
        text
    }

    fn parse(text: &str) -> Result<LockFile, Fault> {
        let mut providers = BTreeMap::new();
        for provider in parse(text)?.into_iter().filter(|item| item.key == "provider") {
            let line = provider.line;
            let [address] = &provider.labels[..] else {
                return Err((line, "a provider has exactly one address".into()));
            };
            let source: Source = address.parse().map_err(|error| (line, format!("{error}")))?;
            let (mut version, mut constraints, mut hashes) = (None, String::new(), Vec::new());
            for item in provider.block()? {
                match item.key.as_str() {
                    "version" => version = Some(item.text()?),
                    "constraints" => constraints = item.text()?,
                    "hashes" => hashes = item.texts()?,
                    _ => {}
                }
            }
            let version = version.ok_or_else(|| (line, format!("{source} has no version")))?;
            let version = version.parse().map_err(|error| (line, format!("{error}")))?;
            providers.insert(source, Locked { version, constraints, hashes });
        }
        Ok(LockFile { providers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_chosen_versions() {
        let lock = LockFile::parse(
            "# made by tofu\nprovider \"registry.opentofu.org/hashicorp/time\" {\n  version     = \"0.14.2\"\n  \
             constraints = \"~> 0.14\"\n  hashes = [\n    \"h1:abc=\",\n  ]\n}\n",
        )
        .unwrap();
        let version = lock.version(&"hashicorp/time".parse().unwrap()).map(ToString::to_string);
        assert_eq!(version.as_deref(), Some("0.14.2"));
        assert_eq!(lock.version(&"registry.terraform.io/hashicorp/time".parse().unwrap()), None);
    }

    #[test]
    fn a_broken_lock_file_is_an_error_and_a_missing_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LockFile::of_folder(folder.path()).unwrap(), LockFile::default());
        let deep = "a {".repeat(100_000);
        for wrong in [
            deep.as_str(),
            "provider {",
            "provider \"a/b\" {}",
            "provider \"a/b\" {\n version = \"x\"\n}\n",
            "provider \"a/b/c/d\" {}",
        ] {
            std::fs::write(folder.path().join(".terraform.lock.hcl"), wrong).unwrap();
            let error = LockFile::of_folder(folder.path()).unwrap_err();
            assert!(error.to_string().contains("is not a lock file"), "{error}");
        }
    }
}
