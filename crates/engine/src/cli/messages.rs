//! The stream of messages that `-json` asks for: one JSON object on each line.

use serde_json::Value;

use crate::{Action, Diagnostic, ProgressEvent, Severity, SourceRange, Stage};

/// More diagnostics than this help nobody; the rest is counted.
const DIAGNOSTICS_KEPT: usize = 100;

/// What is remembered of a stream.
#[derive(Default)]
pub(super) struct Heard {
    pub diagnostics: Vec<Diagnostic>,
    /// A provider was asked to change something.
    pub touched: bool,
    dropped: usize,
}

impl Heard {
    /// Takes in one line and returns what a watcher may want to see of it. A line that is no message is ignored: a
    /// provisioner can write anything.
    pub fn line(&mut self, line: &[u8]) -> Option<ProgressEvent> {
        let message: Value = serde_json::from_slice(line).ok()?;
        match message["type"].as_str()? {
            "diagnostic" => {
                let diagnostic = diagnostic(&message["diagnostic"]);
                if self.diagnostics.len() < DIAGNOSTICS_KEPT {
                    self.diagnostics.push(diagnostic.clone());
                } else {
                    self.dropped += 1;
                }
                Some(ProgressEvent::Diagnostic { diagnostic })
            }
            "apply_start" => {
                let event = object(&message["hook"], Stage::Started);
                self.touched |= !matches!(event, Some(ProgressEvent::Object { action: Action::Read, .. }));
                event
            }
            "apply_complete" => object(&message["hook"], Stage::Done),
            "apply_errored" => object(&message["hook"], Stage::Failed),
            "apply_progress" => {
                let hook = &message["hook"];
                let (address, seconds) = (hook["resource"]["addr"].as_str()?, hook["elapsed_seconds"].as_u64()?);
                Some(ProgressEvent::Note { text: format!("{address}: still at work after {seconds} s") })
            }
            _ => None,
        }
    }

    /// The diagnostics, with a last one that tells how many were left out.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            self.diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                summary: format!("{} more diagnostics were left out", self.dropped),
                detail: String::new(),
                address: None,
                range: None,
            });
        }
        self.diagnostics
    }
}

fn diagnostic(message: &Value) -> Diagnostic {
    let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
    let range = &message["range"];
    let number = |field: &str| range["start"][field].as_u64().unwrap_or(1) as usize;
    Diagnostic {
        severity: if message["severity"] == "warning" { Severity::Warning } else { Severity::Error },
        summary: text("summary"),
        detail: text("detail"),
        address: message["address"].as_str().map(str::to_owned),
        range: range["filename"].as_str().map(|file| SourceRange {
            file: file.to_owned(),
            line: number("line"),
            column: number("column"),
        }),
    }
}

fn object(hook: &Value, stage: Stage) -> Option<ProgressEvent> {
    let action = match hook["action"].as_str()? {
        "create" => Action::Create,
        "read" => Action::Read,
        "update" => Action::Update,
        "delete" => Action::Delete,
        "replace" => Action::Replace,
        "forget" | "remove" => Action::Forget,
        _ => Action::NoOp,
    };
    // Whole seconds are all that is told; none of them says nothing.
    let millis = hook["elapsed_seconds"].as_u64().filter(|seconds| *seconds > 0).map(|seconds| seconds * 1000);
    Some(ProgressEvent::Object { address: hook["resource"]["addr"].as_str()?.to_owned(), action, stage, millis })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_ignored_and_a_flood_of_diagnostics_is_counted() {
        let mut heard = Heard::default();
        assert_eq!(heard.line(b"not json"), None);
        assert_eq!(heard.line(br#"{"type":7}"#), None);
        let error = br#"{"type":"diagnostic","diagnostic":{"severity":"error","summary":"no",
            "range":{"filename":"main.tf","start":{"line":3,"column":9}}}}"#;
        for _ in 0..DIAGNOSTICS_KEPT + 7 {
            assert!(heard.line(error).is_some());
        }
        let range = heard.diagnostics[0].range.clone();
        assert_eq!(range, Some(SourceRange { file: "main.tf".to_owned(), line: 3, column: 9 }));
        let all = heard.into_diagnostics();
        assert_eq!(all.len(), DIAGNOSTICS_KEPT + 1);
        assert_eq!(all.last().unwrap().summary, "7 more diagnostics were left out");
    }

    #[test]
    fn only_a_call_that_changes_something_counts_as_touched() {
        let mut heard = Heard::default();
        heard.line(br#"{"type":"apply_start","hook":{"action":"read","resource":{"addr":"data.x.y"}}}"#);
        assert!(!heard.touched);
        heard.line(br#"{"type":"apply_start","hook":{"action":"create","resource":{"addr":"x.y"}}}"#);
        assert!(heard.touched);
    }
}
