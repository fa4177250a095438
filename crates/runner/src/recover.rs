//! Finding out what a dead attempt has done.

use std::collections::BTreeMap;

use landform_domain::recovery::{self, IntentAction, ObjectKey, Objects, OpenIntent};
use landform_domain::{Code, Problem};
use landform_engine::state::{Settled, State, StateError, replay};
use landform_engine::{Doubted, Intent, Settlement};
use landform_store::{Adoption, JournalEntry, Resolution};
use serde_json::Value as Json;

/// Decides from the journal, the state that the attempt began with, and the one that its engine left behind, if any.
/// Without one, the journal's settlements are folded into the first.
pub(crate) fn resolve(
    journal: &[JournalEntry],
    before: Option<&[u8]>,
    salvaged: Option<Vec<u8>>,
    adopt: &[Adoption],
) -> Result<Resolution, Problem> {
    let (mut open, mut settled) = (Vec::new(), Vec::new());
    for entry in journal {
        let intent: Intent = decode(&entry.intent)?;
        match &entry.settlement {
            None => open.push((entry.id, intent)),
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
    let (was, is) = (attributes(before)?, attributes(after.as_deref())?);
    let open: Vec<OpenIntent> = open.into_iter().map(|(id, intent)| open_intent(id, intent, &was, &is)).collect();
    let (was, is) = (objects(&was), objects(&is));
    let verdict = recovery::decide(&open, &was, &is);
    // The attempt was told of the adoptions: what is new at such an address has come from one, also by another name. And what
    // a state had and has no more is over: whatever took its place must not make room for it.
    let arrived = |key: &ObjectKey| is.get(key).is_some_and(|now| was.get(key) != Some(now));
    let adopted = |entry: &&Adoption| has(&was, entry) || has(&is, entry) || arrived(&key_of(entry));
    let adopted = adopt.iter().filter(adopted).map(|adoption| adoption.address.clone()).collect();
    Ok(Resolution { verdict, state: after.filter(|state| before != Some(state.as_slice())), adopted })
}

/// Whether a state has the very object that is to be adopted.
pub(crate) fn is_adopted(adoption: &Adoption, state: Option<&[u8]>) -> Result<bool, Problem> {
    Ok(has(&objects(&attributes(state)?), adoption))
}

fn has(objects: &Objects, adoption: &Adoption) -> bool {
    objects.get(&key_of(adoption)) == Some(&adoption.id)
}

fn key_of(adoption: &Adoption) -> ObjectKey {
    ObjectKey { address: adoption.address.clone(), deposed: None }
}

/// The interrupted updates among these intents, as an engine is told of them.
pub(crate) fn doubted(intents: &[Vec<u8>]) -> Result<Vec<Doubted>, Problem> {
    let intents: Vec<Intent> = intents.iter().map(|bytes| decode(bytes)).collect::<Result<_, _>>()?;
    Ok(intents.iter().filter_map(Doubted::of).collect())
}

fn open_intent(id: i64, intent: Intent, was: &Attributes, is: &Attributes) -> OpenIntent {
    let action = match intent.action {
        landform_engine::IntentAction::Create => IntentAction::Create,
        landform_engine::IntentAction::Update => IntentAction::Update,
        landform_engine::IntentAction::Delete => IntentAction::Delete,
        landform_engine::IntentAction::Import => IntentAction::Import,
    };
    let object = ObjectKey { address: intent.address, deposed: intent.deposed };
    let in_state = match (&intent.planned, is.get(&object)) {
        (Some(Json::Object(planned)), Some(now)) => planned.iter().all(|(name, value)| now.get(name) == Some(value)),
        // An engine that does not say what it plans saves what comes of it.
        (None, now) => now != was.get(&object),
        _ => false,
    };
    OpenIntent { id, object, action, type_name: intent.type_name, in_state }
}

type Attributes = BTreeMap<ObjectKey, Json>;

/// What a state holds.
fn attributes(state: Option<&[u8]>) -> Result<Attributes, Problem> {
    let Some(state) = state else { return Ok(Attributes::new()) };
    let state = State::read(state).map_err(broken)?;
    let mut all = Attributes::new();
    for resource in state.resources() {
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone()).to_string();
            let attributes = instance.attributes.as_ref().map_or("null", |raw| raw.get());
            let key = ObjectKey { address, deposed: instance.deposed.clone() };
            all.insert(key, serde_json::from_str(attributes).unwrap_or_default());
        }
    }
    Ok(all)
}

/// An object is told from another at its address by its id; a refresh changes the rest.
fn objects(attributes: &Attributes) -> Objects {
    let identity = |attributes: &Json| match &attributes["id"] {
        Json::String(id) => id.clone(),
        _ => attributes.to_string(),
    };
    attributes.iter().map(|(key, attributes)| (key.clone(), identity(attributes))).collect()
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
            epoch: 1,
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
        let resolution = resolve(&journal, None, None, &[]).unwrap();
        assert_eq!(resolution.verdict.doubts.len(), 1);
        assert_eq!(resolution.verdict.doubts[0].address, "thing.b");
        let after = attributes(resolution.state.as_deref()).unwrap();
        assert_eq!(after.keys().map(|key| key.address.as_str()).collect::<Vec<_>>(), ["thing.a"]);
    }

    #[test]
    fn a_salvaged_state_settles_what_it_has() {
        let before = state(1, &[("old", "0")]);
        let journal = [entry(1, "create", "a", None), entry(2, "create", "b", None), entry(3, "delete", "old", None)];
        let salvaged = state(2, &[("a", "1"), ("old", "0")]);
        let resolution = resolve(&journal, Some(&before), Some(salvaged.clone()), &[]).unwrap();
        assert_eq!(resolution.verdict.doubts.iter().map(|doubt| doubt.intent).collect::<Vec<_>>(), [2]);
        assert_eq!(resolution.state, Some(salvaged));
    }

    #[test]
    fn an_object_that_came_into_a_state_is_adopted_no_more() {
        let adopt =
            |name: &str, id: &str| Adoption { address: format!("thing.{name}"), id: id.to_owned(), after_doubt: true };
        let wishes = [adopt("a", "1"), adopt("b", "2"), adopt("c", "3"), adopt("d", "4"), adopt("e", "place/5")];
        let before = state(1, &[("b", "2"), ("c", "old")]);
        let salvaged = state(2, &[("a", "1"), ("b", "new"), ("c", "old"), ("e", "5")]);
        let journal = [entry(1, "import", "a", None)];
        let resolution = resolve(&journal, Some(&before), Some(salvaged), &wishes).unwrap();
        assert_eq!(resolution.adopted, ["thing.a", "thing.b", "thing.e"], "c has still to make room, d is nowhere");
        assert!(is_adopted(&wishes[1], Some(&before)).unwrap() && !is_adopted(&wishes[0], Some(&before)).unwrap());
    }

    #[test]
    fn nothing_done_leaves_the_state_alone() {
        let before = state(1, &[("old", "0")]);
        let journal = [entry(1, "create", "a", Some(Settlement::Untouched)), entry(2, "update", "old", None)];
        let resolution = resolve(&journal, Some(&before), None, &[]).unwrap();
        assert!(resolution.verdict.doubts.is_empty());
        assert!(resolution.state.is_none());
    }

    #[test]
    fn an_update_is_in_doubt_unless_the_state_has_what_was_planned() {
        let before = state(1, &[("a", "1"), ("b", "2")]);
        let entry = |id, name: &str, planned: serde_json::Value| {
            let intent = json!({"address": format!("thing.{name}"), "action": "update", "type_name": "thing",
                                "provider": "provider[\"x/y/z\"]", "planned": planned});
            JournalEntry { id, epoch: 1, intent: serde_json::to_vec(&intent).unwrap(), settlement: None }
        };
        let journal = [entry(1, "a", json!({"id": "1", "key": "new"})), entry(2, "b", json!({"id": "2"}))];
        let verdict = resolve(&journal, Some(&before), None, &[]).unwrap().verdict;
        assert_eq!((verdict.updates, verdict.resolved), (vec![1], vec![2]));
        let told = doubted(&[journal[0].intent.clone()]).unwrap();
        assert_eq!(told, [Doubted { address: "thing.a".into(), either: vec![json!({"id": "1", "key": "new"})] }]);
    }
}
