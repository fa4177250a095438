use serde::{Deserialize, Serialize};

use crate::Refused;

/// What went wrong (or might), where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<SourceRange>,
    /// For whoever stands by; not kept, because nobody has looked whether all of it may be.
    #[serde(skip)]
    pub seen: Box<Seen>,
}

/// What was seen of what a diagnostic is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The names in an expression, with what they stand for.
    pub values: Vec<(String, String)>,
    /// The sides of a comparison that does not hold, as a change in a plan's JSON.
    pub difference: Option<serde_json::Value>,
    /// The argument that a provider speaks of, as the places inside of the object's block; empty if it is the whole.
    pub argument: Option<landform_protocol::Path>,
    /// It was found by the data source of a `check`: each of these is told of.
    pub of_check: bool,
    /// What is shown around the range, where that is more.
    pub around: Option<SourceRange>,
    /// The function that was called when it went wrong.
    pub call: Option<landform_lang::FunctionCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRange {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// Where it ends, if that is known: line, and the column behind the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<(usize, usize)>,
}

impl Diagnostic {
    pub fn error(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            summary: summary.into(),
            detail: detail.into(),
            address: None,
            range: None,
            seen: Box::default(),
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A construct that this engine leaves to the other one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupported {
    pub construct: String,
    pub range: Option<SourceRange>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("outside of what this engine does exactly as OpenTofu: {}", .0.iter().map(|u| u.construct.as_str()).collect::<Vec<_>>().join(", "))]
    Unsupported(Vec<Unsupported>),
    /// The configuration, a provider or the CLI said no; nothing was changed.
    #[error("{}", .0.iter().map(|d| d.summary.as_str()).collect::<Vec<_>>().join("; "))]
    Diagnostics(Vec<Diagnostic>),
    #[error("the plan was made from another state, configuration or engine: {0}")]
    Stale(String),
    #[error("stopped before anything was changed")]
    Stopped,
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A child process ended in the middle of an apply, or could not be waited for: open intents are in doubt.
    #[error("lost in the middle of an apply: {0}")]
    Lost(String),
    #[error("{context}: {source}")]
    Io { context: String, source: std::io::Error },
}
