//! Finding out what a dead attempt has done.

use landform_domain::recovery::{self, IntentAction, ObjectKey, Objects, OpenIntent};
use landform_domain::{Code, Problem};
use landform_engine::state::{Settled, State, StateError, replay};
use landform_engine::{Intent, Settlement};
use landform_store::{JournalEntry, Resolution};

/// Decides from the journal, the state that the attempt began with, and the one that its engine left behind, if any.
/// Without one, the journal's settlements are folded into the first.
pub(crate) fn resolve(
    journal: &[JournalEntry],
    before: Option<&[u8]>,
    salvaged: Option<Vec<u8>>,
) -> Result<Resolution, Problem> {
    let (mut open, mut settled) = (Vec::new(), Vec::new());
    for entry in journal {
        let intent: Intent = decode(&entry.intent)?;
        match &entry.settlement {
            None => open.push(open_intent(entry.id, intent)),
            Some(bytes) => settled.push(Settled {
                address: intent.address,
                deposed: intent.deposed,
                settlement: decode::<Settlement>(bytes)?,
            }),
        }
    }
    let after = match salvaged {
        Some(state) => Some(state),
        None if settled.iter().all(|entry| matches!(entry.settlement, Settlement::Untouched)) => {
            before.map(<[u8]>::to_vec)
        }
        None => Some(replay(before, &settled).map_err(broken)?),
    };
    let verdict = recovery::decide(&open, &objects(before)?, &objects(after.as_deref())?);
    Ok(Resolution { verdict, state: after.filter(|state| before != Some(state.as_slice())) })
}

fn open_intent(id: i64, intent: Intent) -> OpenIntent {
    let action = match intent.action {
        landform_engine::IntentAction::Create => IntentAction::Create,
        landform_engine::IntentAction::Update => IntentAction::Update,
        landform_engine::IntentAction::Delete => IntentAction::Delete,
        landform_engine::IntentAction::Import => IntentAction::Import,
    };
    let object = ObjectKey { address: intent.address, deposed: intent.deposed };
    OpenIntent { id, object, action, type_name: intent.type_name }
}

/// What a state holds. An object is told from another at its address by its id; a refresh changes the rest.
fn objects(state: Option<&[u8]>) -> Result<Objects, Problem> {
    let Some(state) = state else { return Ok(Objects::new()) };
    let state = State::read(state).map_err(broken)?;
    let mut objects = Objects::new();
    for resource in state.resources() {
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone()).to_string();
            let attributes = instance.attributes.as_ref().map_or("", |raw| raw.get());
            let id = serde_json::from_str::<serde_json::Value>(attributes)
                .ok()
                .and_then(|attributes| attributes.get("id")?.as_str().map(str::to_owned));
            let key = ObjectKey { address, deposed: instance.deposed.clone() };
            objects.insert(key, id.unwrap_or_else(|| attributes.to_owned()));
        }
    }
    Ok(objects)
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Code::Internal, format!("the journal cannot be read: {error}")))
}

fn broken(error: StateError) -> Problem {
    Problem::new(Code::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(serial: u64, objects: &[(&str, &str)]) -> Vec<u8> {
        let resource = |(name, id): &(&str, &str)| {
            json!({"mode": "managed", "type": "thing", "name": name, "provider": "provider[\"x/y/z\"]",
                   "instances": [{"schema_version": 0, "attributes": {"id": id}}]})
        };
        let resources: Vec<_> = objects.iter().map(resource).collect();
        serde_json::to_vec(&json!({"version": 4, "terraform_version": "1.0.0", "serial": serial, "lineage": "l",
            "outputs": {}, "resources": resources, "check_results": null}))
        .unwrap()
    }

    fn entry(id: i64, action: &str, name: &str, settlement: Option<Settlement>) -> JournalEntry {
        let intent = json!({"address": format!("thing.{name}"), "action": action, "type_name": "thing",
                            "provider": "provider[\"x/y/z\"]"});
        JournalEntry {
            id,
            intent: serde_json::to_vec(&intent).unwrap(),
            settlement: settlement.map(|settlement| serde_json::to_vec(&settlement).unwrap()),
        }
    }

    fn made(name: &str, id: &str) -> Option<Settlement> {
        Some(Settlement::Object(json!({"mode": "managed", "type": "thing", "name": name,
            "provider": "provider[\"x/y/z\"]", "instances": [{"schema_version": 0, "attributes": {"id": id}}]})))
    }

    #[test]
    fn settlements_become_the_state_and_an_open_create_is_in_doubt() {
        let journal = [entry(1, "create", "a", made("a", "1")), entry(2, "create", "b", None)];
        let resolution = resolve(&journal, None, None).unwrap();
        assert_eq!(resolution.verdict.doubts.len(), 1);
        assert_eq!(resolution.verdict.doubts[0].address, "thing.b");
        let after = objects(resolution.state.as_deref()).unwrap();
        assert_eq!(after.keys().map(|key| key.address.as_str()).collect::<Vec<_>>(), ["thing.a"]);
    }

    #[test]
    fn a_salvaged_state_settles_what_it_has() {
        let before = state(1, &[("old", "0")]);
        let journal = [entry(1, "create", "a", None), entry(2, "create", "b", None), entry(3, "delete", "old", None)];
        let salvaged = state(2, &[("a", "1"), ("old", "0")]);
        let resolution = resolve(&journal, Some(&before), Some(salvaged.clone())).unwrap();
        assert_eq!(resolution.verdict.doubts.iter().map(|doubt| doubt.intent).collect::<Vec<_>>(), [2]);
        assert_eq!(resolution.state, Some(salvaged));
    }

    #[test]
    fn nothing_done_leaves_the_state_alone() {
        let before = state(1, &[("old", "0")]);
        let journal = [entry(1, "create", "a", Some(Settlement::Untouched)), entry(2, "update", "old", None)];
        let resolution = resolve(&journal, Some(&before), None).unwrap();
        assert!(resolution.verdict.doubts.is_empty());
        assert!(resolution.state.is_none());
    }
}
