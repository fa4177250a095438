use serde::{Deserialize, Serialize};

/// A change of a state that a person asks for, and that no provider hears of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateEdit {
    /// Forget these objects, resources or modules; what they stand for stays where it is.
    Remove { addresses: Vec<String> },
    /// Give an object, a resource or a module another address.
    Move { from: String, to: String },
}
