//! The judge of the kill tests: what the provider `landform/ledger` has really done, told by a file.
//!
//! Each create, update and delete is one line of JSON, appended and synced before the provider answers. The provider
//! dies at any moment, so a line may be torn; a torn line is an operation that did not happen.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{lines, parts, programs};

/// The source address of the provider.
pub const SOURCE: &str = "landform/ledger";
pub const VERSION: &str = "1.0.0";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub id: String,
    pub name: String,
    /// As written in the configuration, digit by digit.
    pub size: Option<String>,
    pub kind: Option<String>,
    /// Nobody is ever told: the provider only writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    Create(Object),
    Update(Object),
    Delete(String),
}

/// All that was done, in order, and what exists now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub operations: Vec<Operation>,
    pub objects: BTreeMap<String, Object>,
    pub torn: usize,
}

impl Ledger {
    /// How many objects of that name exist. Only a judge may look by name; the provider cannot.
    pub fn named(&self, name: &str) -> Vec<&Object> {
        self.objects.values().filter(|object| object.name == name).collect()
    }
}

/// A ledger that does not exist yet is empty.
pub fn read(path: &Path) -> io::Result<Ledger> {
    let (operations, torn) = lines::read(path)?;
    let mut ledger = Ledger { torn, ..Ledger::default() };
    for operation in operations {
        match &operation {
            Operation::Create(object) | Operation::Update(object) => {
                ledger.objects.insert(object.id.clone(), object.clone());
            }
            Operation::Delete(id) => {
                ledger.objects.remove(id);
            }
        }
        ledger.operations.push(operation);
    }
    Ok(ledger)
}

/// Safe against a kill at any moment.
pub fn append(path: &Path, operation: &Operation) -> io::Result<()> {
    lines::append(path, operation)
}

/// Which change of a ledger kills whoever asked for it, and when. Armed by a judge, fired once by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// How many changes go well before.
    pub spared: usize,
    /// The change is made, but nobody hears of it; otherwise it is not even made.
    pub after: bool,
}

impl Kill {
    fn path(ledger: &Path) -> PathBuf {
        ledger.with_extension("kill")
    }

    pub fn arm(self, ledger: &Path) -> io::Result<()> {
        std::fs::write(Kill::path(ledger), serde_json::to_vec(&self)?)
    }

    /// True once it has fired, or was never armed.
    pub fn is_over(ledger: &Path) -> bool {
        !Kill::path(ledger).exists()
    }

    pub fn disarm(ledger: &Path) -> io::Result<()> {
        std::fs::remove_file(Kill::path(ledger))
    }

    /// The kill that is due with the next change, if any. One that is not due yet is counted down.
    pub fn due(ledger: &Path) -> io::Result<Option<Kill>> {
        let path = Kill::path(ledger);
        let Ok(text) = std::fs::read(&path) else { return Ok(None) };
        let kill: Kill = serde_json::from_slice(&text)?;
        match kill.spared.checked_sub(1) {
            Some(spared) => Kill { spared, ..kill }.arm(ledger).map(|()| None),
            None => std::fs::remove_file(&path).map(|()| Some(kill)),
        }
    }
}

/// Puts the provider into a filesystem mirror, unpacked. Returns the executable's path there.
pub fn install(mirror: &Path) -> io::Result<PathBuf> {
    let folder = mirror.join("registry.opentofu.org").join(SOURCE).join(VERSION).join(parts::platform());
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("terraform-provider-ledger");
    programs::link(&programs::path("terraform-provider-ledger"), &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(id: &str, name: &str) -> Object {
        Object { id: id.into(), name: name.into(), size: Some("1.50".into()), kind: None, key: None }
    }

    #[test]
    fn the_content_is_the_fold_of_the_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        assert_eq!(read(&path).unwrap(), Ledger::default());
        let operations = [
            Operation::Create(object("1", "a")),
            Operation::Create(object("2", "a")),
            Operation::Update(object("2", "b")),
            Operation::Delete("1".into()),
        ];
        for operation in &operations {
            append(&path, operation).unwrap();
        }
        let ledger = read(&path).unwrap();
        assert_eq!(ledger.operations, operations);
        assert_eq!(ledger.objects, BTreeMap::from([("2".into(), object("2", "b"))]));
        assert_eq!((ledger.named("a").len(), ledger.named("b").len()), (0, 1));
    }

    #[test]
    fn a_torn_line_did_not_happen_and_hurts_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        append(&path, &Operation::Create(object("1", "a"))).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..whole.len() - 1 {
            std::fs::write(&path, &whole[..cut]).unwrap();
            append(&path, &Operation::Create(object("2", "b"))).unwrap();
            let ledger = read(&path).unwrap();
            assert_eq!(ledger.objects.keys().collect::<Vec<_>>(), ["2"], "cut at {cut}");
            assert_eq!(ledger.torn, usize::from(cut > 1));
        }
    }
}
