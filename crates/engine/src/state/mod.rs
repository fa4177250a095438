//! State format 4: the file that OpenTofu and Landform hand to each other. What is written here is, byte for byte,
//! what OpenTofu would write; what is read and not understood is refused, never dropped.

mod file;
mod replay;
#[cfg(test)]
mod tests;
mod text;

pub use file::{Instance, Resource, State, StateOutput, TERRAFORM_VERSION};
pub use replay::{Settled, replay};

use crate::Address;

/// Why bytes are no state that can be worked with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the state cannot be read: {0}")]
    Malformed(String),
    #[error("the state is of format {0}; only format 4 is known here. Let OpenTofu upgrade it first")]
    Format(u64),
    #[error("the state is encrypted by the client that wrote it")]
    Encrypted,
}

/// One object that a state knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub address: Address,
    /// Set: the object was replaced and waits for its end.
    pub deposed: Option<String>,
    pub tainted: bool,
}

/// The objects that a state holds, in the order of the file.
pub fn objects(state: &[u8]) -> Result<Vec<Object>, StateError> {
    Ok(State::read(state)?.objects().collect())
}

/// Whether a state holds the object at `address`, in the form of [`Address`].
pub fn has_object(state: &[u8], address: &str, deposed: Option<&str>) -> Result<bool, StateError> {
    let found = |object: Object| object.address.to_string() == address && object.deposed.as_deref() == deposed;
    Ok(State::read(state)?.objects().any(found))
}
