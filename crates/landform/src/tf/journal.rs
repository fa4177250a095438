//! The journal of `landform tf`: a file beside the state that exists only while an apply is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use landform_engine::state::{Settled, replay};
use landform_engine::{Doubted, Intent, IntentAction, IntentId, Journal, Refused, Settlement};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Intend { id: IntentId, intent: Intent },
    Settle { id: IntentId, settlement: Settlement },
}

/// One line an entry, on the disk before the call is made.
pub struct FolderJournal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    next: i64,
}

impl FolderJournal {
    pub fn create(path: &Path) -> std::io::Result<FolderJournal> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(FolderJournal { path: path.to_owned(), inner: Mutex::new(Inner { file, next: 1 }) })
    }

    /// The state says everything that the journal said.
    pub fn close(self) -> std::io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    fn write(&self, lines: impl FnOnce(&mut i64) -> Vec<Line>) -> Result<(), Refused> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for line in lines(&mut inner.next) {
            text += &serde_json::to_string(&line).map_err(unavailable)?;
            text.push('\n');
        }
        inner.file.write_all(text.as_bytes()).map_err(unavailable)?;
        inner.file.sync_data().map_err(unavailable)
    }
}

fn unavailable(error: impl std::fmt::Display) -> Refused {
    Refused::Unavailable(error.to_string())
}

#[async_trait]
impl Journal for FolderJournal {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        let mut ids = Vec::new();
        self.write(|next| {
            let line = |intent| {
                let id = IntentId(*next);
                *next += 1;
                ids.push(id);
                Line::Intend { id, intent }
            };
            intents.into_iter().map(line).collect()
        })?;
        Ok(ids)
    }

    async fn settle(&self, id: IntentId, settlement: Settlement) -> Result<(), Refused> {
        self.write(|_| vec![Line::Settle { id, settlement }])
    }
}

/// What an apply that did not end left behind.
pub struct Leftover {
    /// The state with everything that is known to have happened.
    pub state: Vec<u8>,
    /// Changes of which nobody knows whether they were made.
    pub doubts: Vec<Intent>,
}

impl Leftover {
    /// Adds the doubts to a list that outlives the journal: until an apply has come to its end, plans are told of them.
    pub fn keep_doubts(self, path: &Path) -> std::io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let list = FolderJournal { path: path.to_owned(), inner: Mutex::new(Inner { file, next: 1 }) };
        let line = |intent| Line::Intend { id: IntentId(0), intent };
        list.write(|_| self.doubts.into_iter().map(line).collect()).map_err(std::io::Error::other)
    }
}

/// The interrupted updates of such a list.
pub fn doubted(path: &Path) -> std::io::Result<Vec<Doubted>> {
    Ok(list_of_doubts(path)?.iter().filter_map(Doubted::of).collect())
}

/// The addresses of such a list where an object may have been made that nobody has the id of.
pub fn made_perhaps(path: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut all = list_of_doubts(path)?;
    all.retain(|intent| intent.action == IntentAction::Create);
    Ok(all.into_iter().map(|intent| intent.address).collect())
}

/// Somebody has looked: there is nothing at these addresses. Returns those that were in doubt.
pub fn not_made(path: &Path, addresses: &[String]) -> std::io::Result<Vec<String>> {
    let (absent, doubts): (Vec<Intent>, Vec<Intent>) = list_of_doubts(path)?
        .into_iter()
        .partition(|intent| intent.action == IntentAction::Create && addresses.contains(&intent.address));
    if !absent.is_empty() {
        // Beside it until it is whole: a list that is torn says that nothing is in doubt.
        let next = path.with_extension("doubts.next");
        let _ = std::fs::remove_file(&next);
        Leftover { state: Vec::new(), doubts }.keep_doubts(&next)?;
        std::fs::rename(&next, path)?;
    }
    Ok(absent.into_iter().map(|intent| intent.address).collect())
}

fn list_of_doubts(path: &Path) -> std::io::Result<Vec<Intent>> {
    let Ok(file) = File::open(path) else { return Ok(Vec::new()) };
    let mut list = Vec::new();
    for line in BufReader::new(file).lines() {
        if let Ok(Line::Intend { intent, .. }) = serde_json::from_str(&line?) {
            list.push(intent);
        }
    }
    Ok(list)
}

/// Reads the journal of an apply that did not end. A half-written last line was never promised to anybody.
pub fn leftover(path: &Path, base: Option<&[u8]>) -> anyhow::Result<Option<Leftover>> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let mut open: BTreeMap<IntentId, Intent> = BTreeMap::new();
    let mut settled = Vec::new();
    for line in BufReader::new(file).lines() {
        let Ok(line) = serde_json::from_str::<Line>(&line?) else { break };
        match line {
            Line::Intend { id, intent } => drop(open.insert(id, intent)),
            Line::Settle { id, settlement } => {
                if let Some(intent) = open.remove(&id) {
                    settled.push(Settled { address: intent.address, deposed: intent.deposed, settlement });
                }
            }
        }
    }
    let state = replay(base, &settled)?;
    Ok(Some(Leftover { state, doubts: open.into_values().collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(address: &str) -> Intent {
        Intent {
            address: address.to_owned(),
            deposed: None,
            action: IntentAction::Create,
            type_name: "terraform_data".to_owned(),
            provider: "provider[\"terraform.io/builtin/terraform\"]".to_owned(),
            prior: None,
            planned: None,
            private: Vec::new(),
        }
    }

    #[tokio::test]
    async fn what_was_settled_is_kept_and_what_was_not_is_in_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = FolderJournal::create(&path).unwrap();
        let ids = journal.intend(vec![intent("terraform_data.a"), intent("terraform_data.b")]).await.unwrap();
        let entry = serde_json::json!({
            "mode": "managed", "type": "terraform_data", "name": "a",
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{"schema_version": 0, "attributes": {"id": "1"}}],
        });
        journal.settle(ids[0], Settlement::Object(entry)).await.unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"settle\":{\"id\"").unwrap();
        let leftover = leftover(&path, None).unwrap().unwrap();
        assert_eq!(
            leftover.doubts.iter().map(|intent| intent.address.as_str()).collect::<Vec<_>>(),
            ["terraform_data.b"]
        );
        assert!(landform_engine::state::has_object(&leftover.state, "terraform_data.a", None).unwrap());
        assert!(FolderJournal::create(&path).is_err(), "a journal is never overwritten");
    }

    #[test]
    fn doubts_add_up_and_updates_are_told_to_plans() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("doubts");
        assert!(doubted(&path).unwrap().is_empty());
        let update = |key: &str| Intent {
            action: IntentAction::Update,
            prior: Some(serde_json::json!({"key": "old"})),
            planned: Some(serde_json::json!({"key": key})),
            ..intent("thing.a")
        };
        for key in ["one", "two"] {
            let doubts = vec![update(key), intent("thing.b")];
            Leftover { state: Vec::new(), doubts }.keep_doubts(&path).unwrap();
        }
        let either = doubted(&path).unwrap().into_iter().map(|doubt| (doubt.address, doubt.either[1]["key"].clone()));
        assert_eq!(either.collect::<Vec<_>>(), [("thing.a".into(), "one".into()), ("thing.a".into(), "two".into())]);
    }
}
