//! Templates that are ready to be run: looked at, and unpacked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use landform_domain::TemplateName;
use landform_domain::template::Files;

/// More than this come and go: then they are made ready again.
const MOST: usize = 100;

/// A template that a run may use.
pub(crate) struct Ready {
    pub(crate) files: Files,
    pub(crate) folder: PathBuf,
}

/// A version of a template never changes, and neither does what a worker allows: both are looked at once.
#[derive(Default)]
pub(crate) struct Prepared {
    versions: Mutex<HashMap<(TemplateName, i64), Arc<Ready>>>,
}

impl Prepared {
    pub(crate) fn get(&self, template: &TemplateName, version: i64) -> Option<Arc<Ready>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have tidied up.
        versions.get(&(template.clone(), version)).filter(|ready| ready.folder.exists()).cloned()
    }

    pub(crate) fn keep(&self, template: &TemplateName, version: i64, ready: Ready) -> Arc<Ready> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.len() >= MOST {
            versions.clear();
        }
        let ready = Arc::new(ready);
        versions.insert((template.clone(), version), ready.clone());
        ready
    }
}
