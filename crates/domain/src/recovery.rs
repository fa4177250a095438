//! What a crash leaves in doubt, and what may be done about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A change that a provider was, or was about to be, asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntentAction {
    Create,
    Update,
    Delete,
    Import,
}

/// An intent of which the journal does not say what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenIntent {
    pub id: i64,
    pub object: ObjectKey,
    pub action: IntentAction,
    pub type_name: String,
    /// The recovered state has what was to come of it.
    pub in_state: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    pub address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
}

/// What tells two objects at the same address apart: the id, or all attributes where there is none.
pub type Identity = String;
pub type Objects = BTreeMap<ObjectKey, Identity>;

/// An object that may exist although no state has it. Only a person (or the vendor's API) can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Doubt {
    pub intent: i64,
    pub address: String,
    pub type_name: String,
}

/// How a doubt is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It exists and has this id: import it.
    Adopt(String),
    /// Somebody looked: it does not exist.
    Absent,
    /// Nobody knows, and a second object would be no harm: create it again.
    Retry,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub doubts: Vec<Doubt>,
    /// Updates that may or may not have been made. No person is asked, but every plan is told of them until one was
    /// carried out: what a vendor never tells again (a key) cannot be seen by reading.
    pub updates: Vec<i64>,
    /// Intents that need no answer: their result is in the recovered state, or the next plan finds out by reading.
    pub resolved: Vec<i64>,
}

/// Decides about the intents of a dead attempt. `before` is the state that the attempt began with, `after` the one that
/// could be recovered.
///
/// A create is never repeated on our own account: the protocol has no way to find what was just made. It is settled
/// only if the recovered state has another object at its address than before. A delete or an import is planned again after
/// a refresh, which shows how far it came; of an update a refresh shows only what the vendor tells.
pub fn decide(open: &[OpenIntent], before: &Objects, after: &Objects) -> Verdict {
    let mut verdict = Verdict::default();
    for intent in open {
        let has_new_object = after.get(&intent.object).is_some_and(|now| before.get(&intent.object) != Some(now));
        if intent.action == IntentAction::Create && !has_new_object {
            verdict.doubts.push(Doubt {
                intent: intent.id,
                address: intent.object.address.clone(),
                type_name: intent.type_name.clone(),
            });
        } else if intent.action == IntentAction::Update && !intent.in_state {
            verdict.updates.push(intent.id);
        } else {
            verdict.resolved.push(intent.id);
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(id: i64, action: IntentAction, address: &str) -> OpenIntent {
        OpenIntent { id, action, object: key(address), type_name: "thing".into(), in_state: false }
    }

    fn key(address: &str) -> ObjectKey {
        ObjectKey { address: address.into(), deposed: None }
    }

    fn objects(list: &[(&str, &str)]) -> Objects {
        list.iter().map(|(address, identity)| (key(address), identity.to_string())).collect()
    }

    fn doubts(open: &[OpenIntent], before: &Objects, after: &Objects) -> Vec<i64> {
        decide(open, before, after).doubts.iter().map(|doubt| doubt.intent).collect()
    }

    #[test]
    fn only_a_create_without_its_object_is_in_doubt() {
        use IntentAction::*;
        let open = [
            intent(1, Create, "thing.a"),
            intent(2, Create, "thing.b"),
            intent(3, Update, "thing.c"),
            intent(4, Delete, "thing.d"),
            intent(5, Import, "thing.e"),
            OpenIntent { in_state: true, ..intent(6, Update, "thing.f") },
        ];
        let before = objects(&[("thing.c", "3"), ("thing.d", "4")]);
        let after = objects(&[("thing.b", "2"), ("thing.c", "3"), ("thing.d", "4")]);
        let verdict = decide(&open, &before, &after);
        assert_eq!(doubts(&open, &before, &after), [1]);
        assert_eq!(verdict.resolved, [2, 4, 5, 6]);
        assert_eq!(verdict.updates, [3], "reading may not show it");
    }

    #[test]
    fn the_create_of_a_replace_is_not_settled_by_the_old_object() {
        let open = [intent(1, IntentAction::Delete, "thing.a"), intent(2, IntentAction::Create, "thing.a")];
        let old = objects(&[("thing.a", "old")]);
        assert_eq!(doubts(&open, &old, &old), [2], "the old object is still there");
        assert_eq!(doubts(&open, &old, &objects(&[])), [2], "it is gone, and the new one is not known");
        assert_eq!(doubts(&open, &old, &objects(&[("thing.a", "new")])), [0; 0]);
    }
}
