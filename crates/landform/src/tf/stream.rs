//! What programs that read `-json` are told, a line for each event, in the shapes of OpenTofu.

use std::sync::Once;

use landform_engine::{Action, Address, Diagnostic, Key, Moment, Plan, Severity, Stage, Work};
use serde_json::{Map, Value, json};

use super::diagnostics::names_its_object;
use super::messages;
use super::snippet::Place;

/// One line; `fields` are its own beside those that all lines have. Who speaks is said before the first one, and not before:
/// what is handed over to OpenTofu begins with a line of its own.
fn emit(level: &str, message: &str, kind: &str, fields: Value) {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(version);
    print(level, message, kind, fields);
}

fn print(level: &str, message: &str, kind: &str, fields: Value) {
    let mut event = Map::new();
    event.insert("@level".into(), level.into());
    event.insert("@message".into(), message.into());
    event.insert("@module".into(), "tofu.ui".into());
    event.insert("@timestamp".into(), landform_engine::native::now().into());
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    event.insert("type".into(), kind.into());
    println!("{}", Value::Object(event));
}

/// The first line of a stream: who speaks, and as which version of OpenTofu.
fn version() {
    let tofu = landform_engine::state::TERRAFORM_VERSION;
    let message = format!("Landform {} as OpenTofu {tofu}", env!("CARGO_PKG_VERSION"));
    print("info", &message, "version", json!({ "tofu": tofu, "ui": "1.2" }));
}

pub fn diagnostic(diagnostic: &Diagnostic) {
    let (level, kind) = match diagnostic.severity {
        Severity::Error => ("error", "Error"),
        Severity::Warning => ("warn", "Warning"),
    };
    let fields = json!({ "diagnostic": diagnostic_json(diagnostic) });
    emit(level, &format!("{kind}: {}", diagnostic.summary), "diagnostic", fields);
}

/// A diagnostic as `validate -json` and the streams have it.
pub fn diagnostic_json(diagnostic: &Diagnostic) -> Value {
    let mut json = Map::new();
    json.insert("severity".into(), json!(diagnostic.severity));
    json.insert("summary".into(), json!(diagnostic.summary));
    json.insert("detail".into(), json!(diagnostic.detail));
    if let Some(address) = diagnostic.address.as_ref().filter(|_| names_its_object(diagnostic)) {
        json.insert("address".into(), json!(address));
    }
    if let Some((range, snippet)) = Place::of(diagnostic).map(|place| place.json(diagnostic)) {
        json.insert("range".into(), range);
        json.extend(snippet.map(|snippet| ("snippet".to_owned(), snippet)));
    }
    if let Some(difference) = &diagnostic.seen.difference {
        json.insert("difference".into(), difference.clone());
    }
    Value::Object(json)
}

/// How many objects a plan or an apply is about.
#[derive(Default)]
pub struct Totals {
    pub import: usize,
    pub add: usize,
    pub change: usize,
    pub remove: usize,
    pub forget: usize,
}

impl Totals {
    fn summary(&self, message: &str, operation: &str) {
        let Totals { import, add, change, remove, forget } = self;
        let changes = json!({
            "add": add, "change": change, "import": import, "remove": remove, "forget": forget, "operation": operation,
        });
        emit("info", message, "change_summary", json!({ "changes": changes }));
    }

    fn imported(&self, what: &str) -> String {
        if self.import > 0 { format!("{} {what}, ", self.import) } else { String::new() }
    }

    fn forgotten(&self, what: &str) -> String {
        if self.forget > 0 { format!(", {} {what}", self.forget) } else { String::new() }
    }
}

pub fn planned(plan: &Plan, totals: &Totals) {
    for drift in plan.json["resource_drift"].as_array().into_iter().flatten() {
        let Some((address, action)) = about(drift) else { continue };
        let change = json!({ "resource": resource(&address), "action": action });
        emit("info", &format!("{address}: Drift detected ({action})"), "resource_drift", json!({ "change": change }));
    }
    changes(plan, true);
    let message = format!(
        "Plan: {}{} to add, {} to change, {} to destroy{}.",
        totals.imported("to import"),
        totals.add,
        totals.change,
        totals.remove,
        totals.forgotten("to forget")
    );
    totals.summary(&message, "plan");
    let outputs: Map<String, Value> = parts(&plan.json["output_changes"]).map(planned_output).collect();
    if !outputs.is_empty() {
        emit("info", &format!("Outputs: {}", outputs.len()), "outputs", json!({ "outputs": outputs }));
    }
}

/// What a saved plan, too, is begun with.
pub fn planned_changes(plan: &Plan) {
    changes(plan, false);
}

/// `settled`: those too that nothing is done for but to write them down.
fn changes(plan: &Plan, settled: bool) {
    for change in plan.json["resource_changes"].as_array().into_iter().flatten() {
        let Some((address, action)) = about(change) else { continue };
        let previous = change["previous_address"].as_str();
        let importing = change["change"].get("importing");
        let action = match action {
            "noop" if !settled => continue,
            "noop" if importing.is_some() => "import",
            "noop" if previous.is_some() => "move",
            "noop" => continue,
            other => other,
        };
        let mut shown = Map::from_iter([("resource".to_owned(), resource(&address))]);
        if let Some(previous) = previous {
            shown.insert("previous_resource".into(), resource(previous));
        }
        shown.insert("action".into(), action.into());
        if let Some(reason) = change["action_reason"].as_str() {
            shown.insert("reason".into(), reason_word(reason).into());
        }
        if let Some(importing) = importing {
            shown.insert("importing".into(), importing.clone());
        }
        emit("info", &format!("{address}: Plan to {action}"), "planned_change", json!({ "change": shown }));
    }
}

fn parts(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn planned_output((name, change): (&String, &Value)) -> (String, Value) {
    let sensitive = |part: &str| change[part] == Value::Bool(true);
    let shown = json!({
        "sensitive": sensitive("before_sensitive") || sensitive("after_sensitive"),
        "action": action_word(&change["actions"]),
    });
    (name.clone(), shown)
}

fn about(change: &Value) -> Option<(String, &'static str)> {
    Some((change["address"].as_str()?.to_owned(), action_word(&change["change"]["actions"])))
}

fn action_word(actions: &Value) -> &'static str {
    let actions: Vec<&str> = actions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match actions[..] {
        ["create"] => "create",
        ["update"] => "update",
        ["delete"] => "delete",
        ["read"] => "read",
        ["forget"] => "remove",
        ["no-op"] | [] => "noop",
        _ => "replace",
    }
}

fn reason_word(reason: &str) -> &str {
    match reason {
        "replace_because_tainted" => "tainted",
        "replace_because_cannot_update" => "cannot_update",
        "replace_by_request" => "requested",
        "replace_by_triggers" => "replace_triggered_by",
        other => other,
    }
}

/// An object in the parts of its address.
fn resource(address: &str) -> Value {
    let Some(parsed) = Address::parse(address) else { return json!({ "addr": address }) };
    let key = match &parsed.key {
        None => Value::Null,
        Some(Key::Index(index)) => json!(index),
        Some(Key::Name(name)) => json!(name),
    };
    let inside = Address { module: String::new(), ..parsed.clone() };
    json!({
        "addr": address,
        "module": parsed.module,
        "resource": inside.to_string(),
        "implied_provider": parsed.type_name.split('_').next(),
        "resource_type": parsed.type_name,
        "resource_name": parsed.name,
        "resource_key": key,
    })
}

/// What happens to one object.
pub fn moment(moment: &Moment<'_>) {
    let (kind, action, text) = match (moment.work, moment.stage) {
        (Work::Refresh, Stage::Started) => ("refresh_start", None, "Refreshing state...".to_owned()),
        (Work::Refresh, Stage::Done) => ("refresh_complete", None, "Refresh complete".to_owned()),
        (Work::Change(action), stage) => {
            let (doing, done, word) = match action {
                Action::Create => ("Creating", "Creation", "create"),
                Action::Update => ("Modifying", "Modifications", "update"),
                Action::Delete => ("Destroying", "Destruction", "delete"),
                Action::Read => ("Refreshing", "Refresh", "read"),
                _ => ("Applying", "Apply", "noop"),
            };
            let after = messages::duration(moment.millis);
            match stage {
                Stage::Started | Stage::Planned => ("apply_start", Some(word), format!("{doing}...")),
                Stage::Done => ("apply_complete", Some(word), format!("{done} complete after {after}")),
                Stage::Failed => ("apply_errored", Some(word), format!("{done} errored after {after}")),
            }
        }
        _ => return,
    };
    let address = moment.address.to_string();
    let mut hook = Map::from_iter([("resource".to_owned(), resource(&address))]);
    hook.extend(action.map(|word| ("action".to_owned(), word.into())));
    if !moment.id.1.is_empty() {
        hook.insert("id_key".into(), moment.id.0.into());
        hook.insert("id_value".into(), moment.id.1.clone().into());
    }
    if kind == "apply_complete" || kind == "apply_errored" {
        hook.insert("elapsed_seconds".into(), (moment.millis / 1000).into());
    }
    emit("info", &format!("{address}: {text}{}", messages::id(moment)), kind, json!({ "hook": hook }));
}

pub fn applied(totals: &Totals, outputs: &Value, destroying: bool) {
    if destroying {
        totals.summary(&format!("Destroy complete! Resources: {} destroyed.", totals.remove), "destroy");
    } else {
        let message = format!(
            "Apply complete! Resources: {}{} added, {} changed, {} destroyed{}.",
            totals.imported("imported"),
            totals.add,
            totals.change,
            totals.remove,
            totals.forgotten("forgotten")
        );
        totals.summary(&message, "apply");
    }
    let mut outputs = outputs.clone();
    let all = outputs.as_object_mut().into_iter().flat_map(|outputs| outputs.values_mut());
    for output in all.filter_map(Value::as_object_mut) {
        // What is secret stays out of streams.
        if output.get("sensitive") == Some(&Value::Bool(true)) {
            output.remove("value");
        }
    }
    if let Some(count) = outputs.as_object().map(Map::len) {
        emit("info", &format!("Outputs: {count}"), "outputs", json!({ "outputs": outputs }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_in_parts() {
        let named = resource("module.m[\"k\"].probe_object.b[1]");
        assert_eq!(named["module"], "module.m[\"k\"]");
        assert_eq!(named["resource"], "probe_object.b[1]");
        assert_eq!(named["implied_provider"], "probe");
        assert_eq!(named["resource_key"], 1);
    }

    #[test]
    fn a_reason_is_said_in_the_words_of_a_stream() {
        assert_eq!(reason_word("replace_because_cannot_update"), "cannot_update");
        assert_eq!(reason_word("delete_because_no_resource_config"), "delete_because_no_resource_config");
        assert_eq!(action_word(&json!(["delete", "create"])), "replace");
    }
}
