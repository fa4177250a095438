use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Code, Problem};

/// What a deployment asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    Native,
    Cli,
    /// Native where it does exactly what OpenTofu would, otherwise the CLI.
    #[default]
    Auto,
}

/// What a run is carried out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    Native,
    Cli,
}

impl EngineChoice {
    pub fn as_str(self) -> &'static str {
        match self {
            EngineChoice::Native => "native",
            EngineChoice::Cli => "cli",
            EngineChoice::Auto => "auto",
        }
    }
}

impl EngineName {
    pub fn as_str(self) -> &'static str {
        match self {
            EngineName::Native => "native",
            EngineName::Cli => "cli",
        }
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EngineChoice {
    type Err = Problem;

    fn from_str(text: &str) -> Result<EngineChoice, Problem> {
        [EngineChoice::Native, EngineChoice::Cli, EngineChoice::Auto]
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| Problem::new(Code::EngineUnknown, format!("there is no engine `{text}`")))
    }
}

impl FromStr for EngineName {
    type Err = Problem;

    fn from_str(text: &str) -> Result<EngineName, Problem> {
        [EngineName::Native, EngineName::Cli]
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| Problem::new(Code::EngineUnknown, format!("there is no engine `{text}`")))
    }
}
