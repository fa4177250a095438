//! The native engine's providers: found on this machine, run by a pool of processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use landform_engine::native::{Located, Providers, Requirement};
use landform_plugin::{Binary, Pool, Surroundings};
use landform_protocol::Provider;
use landform_registry::{CliConfig, Constraints, Found, LockFile, Places, Source};

use crate::built_in::BuiltIn;
use crate::known::KnownProviders;

/// Providers that are installed on this machine, run as processes: on what terms, the known providers say.
#[derive(Clone)]
pub struct LocalProviders {
    places: Option<Places>,
    known: KnownProviders,
    /// The folder that providers work in; by default each has one of its own.
    folder: Option<PathBuf>,
    pool: Pool,
    built_in: BuiltIn,
}

impl LocalProviders {
    /// From these places alone, whatever the folder of a configuration or the user's settings say.
    pub fn in_places(places: Places, known: KnownProviders, pool: Pool) -> LocalProviders {
        LocalProviders { places: Some(places), known, folder: None, pool, built_in: BuiltIn::default() }
    }

    /// As OpenTofu finds and runs them in a user's folder: by the settings of the user, in the folder itself.
    pub fn of_user(folder: &Path, pool: Pool) -> LocalProviders {
        let (known, folder) = (KnownProviders::listed(), Some(folder.to_owned()));
        LocalProviders { places: None, known, folder, pool, built_in: BuiltIn::default() }
    }

    /// With these inside of the program, which come before anything that is installed.
    pub fn with(self, built_in: BuiltIn) -> LocalProviders {
        LocalProviders { built_in, ..self }
    }

    /// The provider inside of the program, if it is asked for in the version that it has.
    fn inside(&self, requirement: &Requirement) -> Option<Located> {
        let version = self.built_in.version(&requirement.source)?;
        let constraints: Constraints = requirement.version.parse().ok()?;
        let fits = constraints.allow(&version.parse().ok()?);
        let (source, digest) = (requirement.source.clone(), format!("built in, {version}"));
        fits.then(|| Located { source, version: version.to_owned(), digest, path: PathBuf::new() })
    }

    fn find(&self, folder: &Path, requirement: &Requirement) -> Result<Found, String> {
        let source: Source = requirement.source.parse().map_err(text)?;
        let constraints: Constraints = requirement.version.parse().map_err(text)?;
        let places = match &self.places {
            Some(places) => places.clone(),
            None => CliConfig::of_user().map_err(text)?.places(folder),
        };
        let lock = LockFile::of_folder(folder).map_err(text)?;
        let found = places.find(&source, &constraints, lock.version(&source)).map_err(text)?;
        lock.check(&found).map_err(text)?;
        Ok(found)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[async_trait]
impl Providers for LocalProviders {
    async fn locate(&self, folder: &Path, requirement: &Requirement) -> Result<Located, landform_engine::Diagnostic> {
        if let Some(inside) = self.inside(requirement) {
            return Ok(inside);
        }
        // A provider may have hundreds of megabytes, and they are read to know it by its content.
        let (this, folder, wanted) = (self.clone(), folder.to_owned(), requirement.clone());
        const MISSING: &str = "Provider not found";
        let looked = tokio::task::spawn_blocking(move || {
            let found = this.find(&folder, &wanted).map_err(|error| (MISSING, error))?;
            let binary = Binary::at(&found.binary).map_err(|error| ("Provider cannot be read", text(error)))?;
            Ok((found.version, binary))
        });
        let looked = looked.await.unwrap_or_else(|error| Err((MISSING, text(error))));
        let (version, binary) = looked.map_err(|(summary, error)| failed(summary, error))?;
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        Ok(Located { source: requirement.source.clone(), version, digest: binary.sha256, path: binary.path })
    }

    async fn start(
        &self,
        located: &Located,
        environment: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Provider>, landform_engine::Diagnostic> {
        if located.path.as_os_str().is_empty()
            && let Some(provider) = self.built_in.start(&located.source)
        {
            return Ok(provider);
        }
        let binary = Binary { path: located.path.clone(), sha256: located.digest.clone() };
        let surroundings = Surroundings { environment: environment.clone(), folder: self.folder.clone() };
        let mut terms = self.known.terms(&located.source, &located.version);
        // In a user's own folder there is one run, and its processes end with it.
        terms.shared &= self.folder.is_none();
        let process = self.pool.lease(&binary, &surroundings, terms).await;
        let process = process.map_err(|error| failed("Failed to start a provider", error.to_string()))?;
        Ok(Arc::new(process))
    }
}

fn failed(summary: &str, detail: impl Into<String>) -> landform_engine::Diagnostic {
    landform_engine::Diagnostic::error(summary, detail)
}
