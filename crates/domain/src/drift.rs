//! Drift: what is different at a vendor from what the state says. It is a fact about a deployment, found by a check that
//! changes nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is known about a deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriftStatus {
    /// Nobody has looked yet, or what was found is about another state.
    #[default]
    Unknown,
    None,
    Drifted,
}

impl DriftStatus {
    pub const WORDS: [&str; 3] = ["unknown", "none", "drifted"];

    pub fn as_str(self) -> &'static str {
        match self {
            DriftStatus::Unknown => "unknown",
            DriftStatus::None => "none",
            DriftStatus::Drifted => "drifted",
        }
    }

    pub fn of_word(word: &str) -> Option<DriftStatus> {
        [DriftStatus::Unknown, DriftStatus::None, DriftStatus::Drifted].into_iter().find(|it| it.as_str() == word)
    }
}

/// How many objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftSummary {
    /// Objects that are not as the state has them.
    pub changed: u64,
    /// Objects that do not exist any more.
    pub gone: u64,
}

impl DriftSummary {
    pub fn is_none(&self) -> bool {
        self.changed == 0 && self.gone == 0
    }
}

/// An object that is not as the state has it. What is sensitive in it is masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftedObject {
    pub address: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// It does not exist any more.
    pub gone: bool,
    /// In the order of their paths; none if it is gone.
    #[serde(default)]
    pub changes: Vec<DriftedAttribute>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DriftedAttribute {
    /// Such as `tags.owner` or `rules[0].port`.
    pub path: String,
    /// As the state has it.
    #[serde(default)]
    pub before: Value,
    /// As it is.
    #[serde(default)]
    pub after: Value,
    /// Both are masked.
    #[serde(default)]
    pub sensitive: bool,
}

/// All that a check has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    pub summary: DriftSummary,
    /// The first of them, in the order of address.
    pub objects: Vec<DriftedObject>,
}

impl DriftedObject {
    /// The attributes at the object's top that differ: where many objects share them, they share a cause.
    pub fn attributes(&self) -> Vec<&str> {
        let top = |change: &'_ DriftedAttribute| change.path.find(['.', '[']).unwrap_or(change.path.len());
        let mut names: Vec<&str> = self.changes.iter().map(|change| &change.path[..top(change)]).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_apart_by_what_is_different_at_their_top() {
        let change = |path: &str| DriftedAttribute {
            path: path.to_owned(),
            before: Value::Null,
            after: Value::Null,
            sensitive: false,
        };
        let changes = ["rules[0].port", "name", "rules[1]", "tags.a"].map(change).to_vec();
        let object = DriftedObject { address: "a.b".into(), kind: "a".into(), gone: false, changes };
        assert_eq!(object.attributes(), ["name", "rules", "tags"]);
    }

    #[test]
    fn words_and_statuses_are_the_same() {
        for word in DriftStatus::WORDS {
            assert_eq!(DriftStatus::of_word(word).map(DriftStatus::as_str), Some(word));
        }
        assert_eq!(DriftStatus::of_word("healed"), None);
    }
}
