//! The stream of messages that `-json` asks for: one JSON object on each line.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Action, Change, Diagnostic, Intent, IntentAction, Outline, ProgressEvent, Severity, SourceRange, Stage};

/// More diagnostics than this help nobody; the rest is counted.
const DIAGNOSTICS_KEPT: usize = 100;

/// What is remembered of a stream.
#[derive(Default)]
pub(super) struct Heard {
    pub diagnostics: Vec<Diagnostic>,
    /// A provider was asked to change something.
    pub touched: bool,
    /// A provider was asked to change something and died before it had answered.
    pub unanswered: bool,
    /// Addresses at which a provider was asked to make something.
    pub begun: BTreeSet<String>,
    /// All of the plan has been told.
    pub planned: bool,
    /// The plan holds something of which the stream does not tell enough for the journal.
    pub unclear: bool,
    changes: Vec<Change>,
    intents: Vec<Intent>,
    outputs_change: bool,
    dropped: usize,
}

impl Heard {
    /// Takes in one line and returns what a watcher may want to see of it. A line that is no message is ignored: a
    /// provisioner can write anything.
    pub fn line(&mut self, line: &[u8]) -> Option<ProgressEvent> {
        if !line.starts_with(b"{\"@level\"") {
            return None;
        }
        let message: Value = serde_json::from_slice(line).ok()?;
        match message["type"].as_str()? {
            "diagnostic" => {
                let diagnostic = diagnostic(&message["diagnostic"]);
                self.unanswered |= is_no_answer(&diagnostic);
                if self.diagnostics.len() < DIAGNOSTICS_KEPT {
                    self.diagnostics.push(diagnostic.clone());
                } else {
                    self.dropped += 1;
                }
                Some(ProgressEvent::Diagnostic { diagnostic })
            }
            "planned_change" => {
                self.planned_change(&message["change"]);
                None
            }
            "change_summary" => {
                self.planned |= message["changes"]["operation"] == "plan";
                None
            }
            "outputs" => {
                let outputs = message["outputs"].as_object().into_iter().flatten();
                let mut actions = outputs.filter_map(|(_, output)| output["action"].as_str());
                self.outputs_change |= actions.any(|action| action != "noop");
                None
            }
            "apply_start" => {
                let event = object(&message["hook"], Stage::Started);
                self.touched |= !matches!(event, Some(ProgressEvent::Object { action: Action::Read, .. }));
                if let Some(ProgressEvent::Object { action: Action::Create | Action::Replace, address, .. }) = &event {
                    self.begun.insert(address.clone());
                }
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

    /// One object of the plan. Values are not told, so an intent has none, and a deposed object is told like the current
    /// one: to delete it is repeated by planning again, whichever of the two it was.
    fn planned_change(&mut self, change: &Value) {
        let resource = &change["resource"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let address = text(&resource["addr"]);
        let plain = change["importing"].is_null() && change["previous_resource"].is_null() && !address.is_empty();
        let (action, calls): (Action, &[IntentAction]) = match change["action"].as_str() {
            Some("create") if plain => (Action::Create, &[IntentAction::Create]),
            Some("read") if plain => (Action::Read, &[]),
            Some("update") if plain => (Action::Update, &[IntentAction::Update]),
            Some("delete") if plain => (Action::Delete, &[IntentAction::Delete]),
            Some("replace") if plain => (Action::Replace, &[IntentAction::Delete, IntentAction::Create]),
            _ => {
                self.unclear = true;
                return;
            }
        };
        self.intents.extend(calls.iter().map(|action| Intent {
            address: address.clone(),
            deposed: None,
            action: *action,
            type_name: text(&resource["resource_type"]),
            provider: text(&resource["implied_provider"]),
            prior: None,
            planned: None,
            private: Vec::new(),
        }));
        self.changes.push(Change { address, deposed: None, action, importing: None });
    }

    /// What the stream has told of the plan, once all of it has been told.
    pub fn outline(&self, warnings: Vec<Diagnostic>) -> Outline {
        let mut changes = self.changes.clone();
        changes.sort_by(|a, b| a.address.cmp(&b.address));
        let changing = changes.iter().any(|change| change.action != Action::Read);
        let effective = changing || self.outputs_change;
        Outline { changes, outputs_change: self.outputs_change, effective, warnings, json: None }
    }

    pub fn take_intents(&mut self) -> Vec<Intent> {
        std::mem::take(&mut self.intents)
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
                seen: Default::default(),
            });
        }
        self.diagnostics
    }
}

/// What the CLI says in place of a provider that ended, or broke off, in the middle of a change. A provider that answers
/// says itself what went wrong, and then nothing was made.
fn is_no_answer(diagnostic: &Diagnostic) -> bool {
    let about_the_plugin = ["Plugin did not respond", "Plugin error", "Request cancelled"];
    about_the_plugin.contains(&diagnostic.summary.as_str()) && diagnostic.detail.contains("ApplyResourceChange")
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
            end: None,
        }),
        seen: Default::default(),
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
        assert_eq!(heard.line(br#"{"@level":"info","type":7}"#), None);
        let error = br#"{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"no",
            "range":{"filename":"main.tf","start":{"line":3,"column":9}}}}"#;
        for _ in 0..DIAGNOSTICS_KEPT + 7 {
            assert!(heard.line(error).is_some());
        }
        let range = heard.diagnostics[0].range.clone();
        assert_eq!(range, Some(SourceRange { file: "main.tf".to_owned(), line: 3, column: 9, end: None }));
        let all = heard.into_diagnostics();
        assert_eq!(all.len(), DIAGNOSTICS_KEPT + 1);
        assert_eq!(all.last().unwrap().summary, "7 more diagnostics were left out");
    }

    #[test]
    fn only_a_call_that_changes_something_counts_as_touched() {
        let mut heard = Heard::default();
        heard
            .line(br#"{"@level":"info","type":"apply_start","hook":{"action":"read","resource":{"addr":"data.x.y"}}}"#);
        assert!(!heard.touched);
        heard.line(br#"{"@level":"info","type":"apply_start","hook":{"action":"create","resource":{"addr":"x.y"}}}"#);
        assert!(heard.touched);
    }

    #[test]
    fn a_provider_that_died_in_mid_change_is_told_from_one_that_failed() {
        let heard = |summary: &str, detail: &str| {
            let mut heard = Heard::default();
            let diagnostic = serde_json::json!({"severity": "error", "summary": summary, "detail": detail});
            let line = serde_json::json!({"@level": "error", "type": "diagnostic", "diagnostic": diagnostic});
            heard.line(line.to_string().as_bytes());
            heard.unanswered
        };
        let call = "failed to respond to the plugin6.(*GRPCProvider).ApplyResourceChange call.";
        assert!(heard("Plugin did not respond", call));
        assert!(!heard("Plugin did not respond", &call.replace("Apply", "Plan")));
        assert!(!heard("no such site", "ApplyResourceChange"));
    }

    #[test]
    fn a_plan_is_outlined_and_what_the_stream_keeps_to_itself_is_unclear() {
        let change = |heard: &mut Heard, change: &str| {
            heard.line(format!(r#"{{"@level":"info","type":"planned_change","change":{change}}}"#).as_bytes());
        };
        let mut heard = Heard::default();
        change(&mut heard, r#"{"resource":{"addr":"x.b","resource_type":"x"},"action":"replace"}"#);
        change(&mut heard, r#"{"resource":{"addr":"x.a","resource_type":"x"},"action":"read"}"#);
        assert!(!heard.planned && !heard.unclear);
        heard.line(br#"{"@level":"info","type":"change_summary","changes":{"operation":"plan"}}"#);
        assert!(heard.planned);
        let outline = heard.outline(Vec::new());
        let seen: Vec<_> = outline.changes.iter().map(|c| (c.address.as_str(), c.action)).collect();
        assert_eq!(seen, [("x.a", Action::Read), ("x.b", Action::Replace)]);
        assert!(outline.effective && !outline.outputs_change);
        let actions: Vec<_> = heard.take_intents().iter().map(|intent| intent.action).collect();
        assert_eq!(actions, [IntentAction::Delete, IntentAction::Create]);

        for unclear in [
            r#"{"resource":{"addr":"x.b"},"action":"transmogrify"}"#,
            r#"{"resource":{"addr":"x.b"},"action":"update","importing":{"id":"7"}}"#,
            r#"{"resource":{"addr":"x.b"},"action":"noop","previous_resource":{"addr":"x.c"}}"#,
            r#"{"action":"create"}"#,
        ] {
            let mut heard = Heard::default();
            change(&mut heard, unclear);
            assert!(heard.unclear, "{unclear}");
        }
    }
}
