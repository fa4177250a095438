//! What the probe's objects are made of: one line a change, appended before the provider answers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::sync::Mutex;

use crate::lines;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Create { id: String, kind: String, attributes: Json },
    Update { id: String, attributes: Json },
    Delete { id: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The resource type.
    pub kind: String,
    /// As a state has them.
    pub attributes: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    Random,
    Counted,
}

/// The file as the provider sees it, with what its configuration says.
pub struct World {
    ledger: PathBuf,
    ids: Ids,
    pub region: String,
    /// Counting and writing must not be interrupted by another create of the same name.
    writing: Mutex<()>,
}

impl World {
    pub fn new(ledger: PathBuf, ids: Ids, region: String) -> World {
        World { ledger, ids, region, writing: Mutex::default() }
    }

    pub fn find(&self, id: &str) -> io::Result<Option<Object>> {
        Ok(objects(&self.ledger)?.remove(id))
    }

    pub fn count(&self) -> io::Result<usize> {
        Ok(objects(&self.ledger)?.len())
    }

    /// `attributes` gets the new object's id.
    pub async fn create(
        &self,
        kind: &str,
        name: &str,
        attributes: impl FnOnce(&str) -> Result<Json, String>,
    ) -> io::Result<()> {
        let _writing = self.writing.lock().await;
        let id = match self.ids {
            Ids::Random => format!("{:032x}", rand::random::<u128>()),
            Ids::Counted => {
                let begins = format!("{name}-");
                let counts = |id: &str| id.strip_prefix(&begins).is_some_and(|rest| rest.parse::<usize>().is_ok());
                let made = changes(&self.ledger)?.into_iter();
                let made = made.filter(|change| matches!(change, Change::Create { id, .. } if counts(id))).count();
                format!("{name}-{}", made + 1)
            }
        };
        let attributes = attributes(&id).map_err(io::Error::other)?;
        lines::append(&self.ledger, &Change::Create { id, kind: kind.into(), attributes })
    }

    pub fn update(&self, id: &str, attributes: Json) -> io::Result<()> {
        lines::append(&self.ledger, &Change::Update { id: id.into(), attributes })
    }

    pub fn delete(&self, id: &str) -> io::Result<()> {
        lines::append(&self.ledger, &Change::Delete { id: id.into() })
    }
}

/// All that was done, in order. A ledger that does not exist yet is empty.
pub fn changes(ledger: &Path) -> io::Result<Vec<Change>> {
    Ok(lines::read(ledger)?.0)
}

/// What exists, by id.
pub fn objects(ledger: &Path) -> io::Result<BTreeMap<String, Object>> {
    let mut objects = BTreeMap::new();
    for change in changes(ledger)? {
        match change {
            Change::Create { id, kind, attributes } => {
                objects.insert(id, Object { kind, attributes });
            }
            Change::Update { id, attributes } => {
                if let Some(object) = objects.get_mut(&id) {
                    object.attributes = attributes;
                }
            }
            Change::Delete { id } => {
                objects.remove(&id);
            }
        }
    }
    Ok(objects)
}
