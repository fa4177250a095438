//! Ids that cannot be confused with each other. They sort by the time they were made at.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Code, Problem};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $unknown:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, format = "uuid")]
        pub struct $name(Uuid);

        impl $name {
            /// Time and randomness come from the caller: this crate has neither.
            pub fn from_parts(unix_millis: u64, random: &[u8; 10]) -> $name {
                $name(uuid::Builder::from_unix_timestamp_millis(unix_millis, random).into_uuid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Problem;

            fn from_str(text: &str) -> Result<$name, Problem> {
                Uuid::try_parse(text)
                    .map($name)
                    .map_err(|_| Problem::new(Code::$unknown, format!("`{text}` is no id")))
            }
        }
    )*};
}

ids! {
    RunId, RunUnknown;
    /// One row of a deployment; a deployment that is created again after its destroy has a new one.
    DeploymentId, DeploymentUnknown;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_survive_text() {
        let (early, late) = (RunId::from_parts(1_000, &[255; 10]), RunId::from_parts(1_001, &[0; 10]));
        assert!(early < late && early.to_string() < late.to_string());
        assert_eq!(early.to_string().parse::<RunId>().unwrap(), early);
        assert_eq!("x".parse::<RunId>().unwrap_err().code, Code::RunUnknown);
    }
}
