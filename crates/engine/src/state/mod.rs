//! State format 4: the file that OpenTofu and Landform hand to each other. What is written here is, byte for byte,
//! what OpenTofu would write; what is read and not understood is refused, never dropped.

mod edit;
mod file;
mod rename;
mod replay;
#[cfg(test)]
mod tests;
mod text;

pub use file::{Instance, Resource, State, StateOutput, TERRAFORM_VERSION, split_provider};
pub use replay::{Settled, replay};

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

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

/// Moves the object at `address` out of the way of another one, with the id `id`, that is to be imported there; nothing if
/// there is no object, or it has that id. Its new address is in no configuration, so a plan reads it and destroys it if
/// it still exists. (As a deposed object it would be in the way of the import still: OpenTofu then creates.) The same
/// state always becomes the same, so that a plan made from it fits when it is applied.
pub fn make_room(state: &[u8], address: &str, id: &str) -> Result<Option<Vec<u8>>, StateError> {
    let mut state = State::read(state)?;
    let Some(address) = Address::parse(address) else { return Ok(None) };
    let Some((provider, instance)) = state.current(&address) else { return Ok(None) };
    let (provider, mut instance) = (provider.to_owned(), instance.clone());
    let attributes = instance.attributes.as_deref().map(RawValue::get).unwrap_or("{}");
    let attributes: serde_json::Value =
        serde_json::from_str(attributes).map_err(|error| StateError::Malformed(error.to_string()))?;
    if attributes["id"] == id {
        return Ok(None);
    }
    let key = address.key.as_ref().map(|key| key.to_string()).unwrap_or_default();
    let digest = Sha256::digest(format!("{key}\0{}\0{id}", attributes["id"]));
    let name =
        format!("{}_replaced_{:02x}{:02x}{:02x}{:02x}", address.name, digest[0], digest[1], digest[2], digest[3]);
    state.remove(&address, None);
    instance.index_key = None;
    state.put(&Address { name, key: None, ..address }, &provider, instance);
    Ok(Some(state.write()))
}

/// Whether a state holds the object at `address`, in the form of [`Address`].
pub fn has_object(state: &[u8], address: &str, deposed: Option<&str>) -> Result<bool, StateError> {
    let found = |object: Object| object.address.to_string() == address && object.deposed.as_deref() == deposed;
    Ok(State::read(state)?.objects().any(found))
}
