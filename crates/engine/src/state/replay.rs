use sha2::{Digest, Sha256};

use super::{Resource, State, StateError};
use crate::{Address, Settlement};

/// What the journal says became of one object.
#[derive(Clone)]
pub struct Settled {
    pub address: String,
    pub deposed: Option<String>,
    pub settlement: Settlement,
}

/// Folds the journal's settlements, oldest first, over the state that an apply began with: the state that the apply
/// would have written had it ended right after the last of them. Outputs stay as they were in `base`.
///
/// The same arguments give the same bytes, so a recovery that is itself interrupted can be repeated: also the lineage
/// of a deployment that had no state yet is derived from the settlements.
pub fn replay(base: Option<&[u8]>, settlements: &[Settled]) -> Result<Vec<u8>, StateError> {
    let base = base.map(State::read).transpose()?;
    let mut state = base.clone().unwrap_or_else(|| State::new(derived_lineage(settlements)));
    for settled in settlements {
        let address = Address::parse(&settled.address)
            .ok_or_else(|| StateError::Malformed(format!("the journal names {:?}", settled.address)))?;
        match &settled.settlement {
            Settlement::Untouched => {}
            Settlement::Gone => state.remove(&address, settled.deposed.as_deref()),
            Settlement::Object(entry) => put_entry(&mut state, entry)?,
        }
    }
    state.follow(base.as_ref());
    Ok(state.write())
}

fn put_entry(state: &mut State, entry: &serde_json::Value) -> Result<(), StateError> {
    let malformed = |error: serde_json::Error| StateError::Malformed(format!("a settlement: {error}"));
    // Through text, since raw attributes can only be taken from text.
    let text = serde_json::to_string(entry).map_err(malformed)?;
    let resource: Resource = serde_json::from_str(&text).map_err(malformed)?;
    for instance in &resource.instances {
        let address = resource.address(instance.index_key.clone());
        state.put(&address, &resource.provider, instance.clone());
    }
    Ok(())
}

fn derived_lineage(settlements: &[Settled]) -> String {
    let mut hasher = Sha256::new();
    for settled in settlements {
        hasher.update(settled.address.as_bytes());
        if let Settlement::Object(entry) = &settled.settlement {
            hasher.update(entry.to_string().as_bytes());
        }
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
