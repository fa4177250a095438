use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::settings::{Fault, parse};
use crate::source::Source;
use crate::version::Version;

/// The versions that `.terraform.lock.hcl` has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    versions: BTreeMap<Source, Version>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}, line {line}, is not a lock file: {detail}", path.display())]
    Malformed { path: PathBuf, line: usize, detail: String },
}

impl LockFile {
    /// A folder without a lock file has chosen nothing.
    pub fn of_folder(folder: &Path) -> Result<LockFile, LockError> {
        let path = folder.join(".terraform.lock.hcl");
        match std::fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text).map_err(|(line, detail)| LockError::Malformed { path, line, detail }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockFile::default()),
            Err(source) => Err(LockError::Io { path, source }),
        }
    }

    pub fn version(&self, source: &Source) -> Option<&Version> {
        self.versions.get(source)
    }

    fn parse(text: &str) -> Result<LockFile, Fault> {
        let mut versions = BTreeMap::new();
        for provider in parse(text)?.into_iter().filter(|item| item.key == "provider") {
            let line = provider.line;
            let [address] = &provider.labels[..] else {
                return Err((line, "a provider has exactly one address".into()));
            };
            let source: Source = address.parse().map_err(|error| (line, format!("{error}")))?;
            let version = provider.block()?.into_iter().find(|item| item.key == "version");
            let version = version.ok_or_else(|| (line, format!("{source} has no version")))?.text()?;
            versions.insert(source, version.parse().map_err(|error| (line, format!("{error}")))?);
        }
        Ok(LockFile { versions })
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
