//! Names that people give. One rule for all of them, so that a name fits a URL, a folder and a DNS label.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Code, Problem};

const LONGEST: usize = 63;

fn check(kind: &str, text: &str) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    let valid = (1..=LONGEST).contains(&bytes.len())
        && bytes[0].is_ascii_lowercase()
        && bytes.last() != Some(&b'-')
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    if valid {
        return Ok(());
    }
    let shown: String = text.chars().take(LONGEST).collect();
    let rule = "lower-case letters, digits and `-`, beginning with a letter";
    Err(Problem::new(Code::NameInvalid, format!("{shown:?} is no name for a {kind}: {rule}")))
}

macro_rules! names {
    ($($name:ident, $kind:literal;)*) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schema(value_type = String, pattern = "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Problem;

            fn from_str(text: &str) -> Result<$name, Problem> {
                check($kind, text)?;
                Ok($name(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Problem;

            fn try_from(text: String) -> Result<$name, Problem> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    TenantName, "tenant";
    TemplateName, "template";
    DeploymentName, "deployment";
    ConnectionName, "connection";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_labels_and_refuses_the_rest() {
        for good in ["a", "site-1", &"x".repeat(63)] {
            assert_eq!(good.parse::<TenantName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "1a", "A", "a_b", "a.b", "a/b", "ä", "a b", "..", &"x".repeat(64)] {
            assert_eq!(bad.parse::<TenantName>().unwrap_err().code, Code::NameInvalid, "{bad:?}");
        }
        assert!(serde_json::from_str::<DeploymentName>("\"NO\"").is_err());
    }
}
