use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use landform_protocol::ProviderSchema;
use landform_protocol::wire::{Types, Version, identities_from_wire, schema_from_wire};

/// A schema with the types that it implies.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub schema: Arc<ProviderSchema>,
    pub types: Types,
}

impl Loaded {
    pub fn new(schema: ProviderSchema) -> Loaded {
        Loaded { types: Types::new(&schema), schema: Arc::new(schema) }
    }
}

/// Schemas by the content of the provider's binary, in memory and, where there is a folder, on disk.
///
/// On disk is the provider's own answer, so a new version of this program reads more out of it, not something else.
/// What cannot be read is as good as missing: the provider is asked again.
#[derive(Debug, Default)]
pub struct Schemas {
    folder: Option<PathBuf>,
    memory: Mutex<HashMap<String, Arc<Loaded>>>,
}

impl Schemas {
    pub fn in_memory() -> Schemas {
        Schemas::default()
    }

    pub fn in_folder(folder: impl Into<PathBuf>) -> Schemas {
        Schemas { folder: Some(folder.into()), memory: Mutex::default() }
    }

    pub(crate) fn get(&self, sha256: &str, version: Version) -> Option<Arc<Loaded>> {
        if let Some(loaded) = self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(sha256) {
            return Some(loaded.clone());
        }
        let [whole, identities] = self.paths(sha256, version)?;
        let (mut schema, _) = schema_from_wire(version, &std::fs::read(whole).ok()?).ok()?;
        (schema.identities, _) = identities_from_wire(&std::fs::read(identities).ok()?).ok()?;
        Some(self.remember(sha256, schema))
    }

    /// `answers` are what `schema` was read from: about everything, and about identities (empty if there are none).
    pub(crate) fn put(
        &self,
        sha256: &str,
        version: Version,
        answers: [&[u8]; 2],
        schema: ProviderSchema,
    ) -> Arc<Loaded> {
        for (path, bytes) in self.paths(sha256, version).into_iter().flatten().zip(answers) {
            if let Err(error) = write_whole(&path, bytes) {
                tracing::warn!(path = %path.display(), %error, "a provider's schema could not be cached");
            }
        }
        self.remember(sha256, schema)
    }

    fn remember(&self, sha256: &str, schema: ProviderSchema) -> Arc<Loaded> {
        let loaded = Arc::new(Loaded::new(schema));
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(sha256.to_owned(), loaded.clone());
        loaded
    }

    fn paths(&self, sha256: &str, version: Version) -> Option<[PathBuf; 2]> {
        let path = |folder: &PathBuf, kind: &str| folder.join(format!("{sha256}.v{version}.{kind}"));
        self.folder.as_ref().map(|folder| [path(folder, "schema"), path(folder, "identities")])
    }
}

/// Under its name the file is complete or not there: a truncated message can look like a smaller schema.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
