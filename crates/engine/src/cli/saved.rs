use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::{EngineError, Intent};

/// What [`crate::Plan::bytes`] hold: the CLI's plan file and all that it was made from.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedPlan {
    pub version: String,
    pub folder: String,
    pub lock: String,
    pub state: StateStamp,
    /// Over the variables that are part of the plan, which ephemeral ones are not.
    pub variables: String,
    pub ephemeral: Vec<String>,
    pub intents: Vec<Intent>,
    /// Strings to take out of what people read while the plan is applied.
    pub secrets: Vec<String>,
    #[serde(with = "base64_bytes")]
    pub file: Vec<u8>,
}

/// The state that a plan was made from. Serial and lineage are for people, the digest decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateStamp {
    pub serial: u64,
    pub lineage: String,
    pub digest: String,
}

impl SavedPlan {
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a plan is plain data")
    }

    pub fn decode(bytes: &[u8]) -> Result<SavedPlan, EngineError> {
        serde_json::from_slice(bytes).map_err(|e| EngineError::Stale(format!("not a plan of this engine: {e}")))
    }

    /// Says what differs from what the plan was made from.
    pub fn check(&self, now: &Circumstances) -> Result<(), EngineError> {
        let differs = |what: &str| Err(EngineError::Stale(what.to_owned()));
        if self.version != now.version {
            return differs(&format!("it was made by {}, this is {}", self.version, now.version));
        }
        if self.folder != now.folder {
            return differs("the configuration has changed");
        }
        if self.state != now.state {
            let (then, now) = (self.state.serial, now.state.serial);
            return differs(&format!("it was made from serial {then} of the state, which is now at {now}"));
        }
        if self.variables != now.variables {
            return differs("the variables have changed");
        }
        if self.lock != now.lock {
            return differs("the providers have changed");
        }
        Ok(())
    }
}

pub(super) struct Circumstances {
    pub version: String,
    pub folder: String,
    pub lock: String,
    pub state: StateStamp,
    pub variables: String,
}

mod base64_bytes {
    use super::*;

    pub fn serialize<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(serial: u64) -> StateStamp {
        StateStamp { serial, lineage: "l".to_owned(), digest: serial.to_string() }
    }

    fn plan() -> SavedPlan {
        SavedPlan {
            version: "opentofu 1".to_owned(),
            folder: "f".to_owned(),
            lock: "l".to_owned(),
            state: stamp(3),
            variables: "v".to_owned(),
            ephemeral: Vec::new(),
            intents: Vec::new(),
            secrets: Vec::new(),
            file: b"\x00plan\xff".to_vec(),
        }
    }

    fn now() -> Circumstances {
        let plan = plan();
        Circumstances {
            version: plan.version,
            folder: plan.folder,
            lock: plan.lock,
            state: plan.state,
            variables: plan.variables,
        }
    }

    #[test]
    fn bytes_survive_and_anything_else_is_stale() {
        assert_eq!(SavedPlan::decode(&plan().encode()).unwrap().file, b"\x00plan\xff");
        assert!(matches!(SavedPlan::decode(b"PK\x03\x04"), Err(EngineError::Stale(_))));
    }

    #[test]
    fn each_difference_makes_it_stale() {
        assert!(plan().check(&now()).is_ok());
        let differing = [
            Circumstances { version: "opentofu 2".to_owned(), ..now() },
            Circumstances { folder: "g".to_owned(), ..now() },
            Circumstances { lock: "m".to_owned(), ..now() },
            Circumstances { state: stamp(4), ..now() },
            Circumstances { variables: "w".to_owned(), ..now() },
        ];
        for circumstances in differing {
            assert!(matches!(plan().check(&circumstances), Err(EngineError::Stale(_))));
        }
    }
}
