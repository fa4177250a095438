//! A plan as people read it. Nested blocks are written as the lists that they are; everything else looks as it does in
//! OpenTofu.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use landform_cty::{Data, Mark, Path, Step, Type, Value};

use super::content::Content;
use super::object::{ImportTarget, Planned, Reason, bare};
use crate::{Action, Mode};

/// Written piece by piece: the whole of a large plan would take as much memory again as the plan.
pub fn write_plan(content: &Content, out: &mut dyn Write) -> fmt::Result {
    let changes: Vec<&Planned> = content.changes.iter().filter(|planned| planned.effective()).collect();
    let outputs = outputs_text(content);
    let drifted = content.mode == Mode::RefreshOnly && !content.drift.is_empty();
    if changes.is_empty() && outputs.is_empty() && !drifted {
        return out.write_str("\nNo changes. Your infrastructure matches the configuration.\n");
    }
    if drifted {
        out.write_str("\nNote: Objects have changed outside of Landform\n\n")?;
        for planned in &content.drift {
            out.write_str(&change_text(planned, "has changed"))?;
        }
    }
    if !changes.is_empty() {
        out.write_str("\nLandform used the selected providers to generate the following execution\nplan. ")?;
        out.write_str("Resource actions are indicated with the following symbols:\n")?;
        for (action, legend) in [
            (Action::Create, "  + create"),
            (Action::Update, "  ~ update in-place (current -> planned)"),
            (Action::Delete, "  - destroy"),
            (Action::Replace, "-/+ destroy and then create replacement"),
            (Action::CreateBeforeDestroy, "+/- create replacement and then destroy"),
            (Action::Read, " <= read (data resources)"),
            (Action::ForgetThenCreate, "./+ forget and then create replacement"),
            (Action::Forget, "  . forget"),
        ] {
            if changes.iter().any(|planned| planned.action == action) {
                writeln!(out, "{legend}")?;
            }
        }
        out.write_str("\nLandform will perform the following actions:\n\n")?;
        for planned in &changes {
            out.write_str(&change_text(planned, &headline(planned)))?;
        }
        let count = |actions: &[Action]| changes.iter().filter(|planned| actions.contains(&planned.action)).count();
        let imports = changes.iter().filter(|planned| planned.importing.is_some()).count();
        out.write_str("Plan: ")?;
        if imports > 0 {
            write!(out, "{imports} to import, ")?;
        }
        write!(
            out,
            "{} to add, {} to change, {} to destroy",
            count(&[Action::Create, Action::Replace, Action::CreateBeforeDestroy, Action::ForgetThenCreate]),
            count(&[Action::Update]),
            count(&[Action::Delete, Action::Replace, Action::CreateBeforeDestroy]),
        )?;
        match count(&[Action::Forget, Action::ForgetThenCreate]) {
            0 => out.write_str(".\n")?,
            forgotten => writeln!(out, ", {forgotten} to forget.")?,
        }
    }
    if !outputs.is_empty() {
        write!(out, "\nChanges to Outputs:\n{outputs}")?;
    }
    Ok(())
}

fn headline(planned: &Planned) -> String {
    let text = match (planned.action, planned.reason) {
        (Action::Create, _) => "will be created",
        (Action::Update, _) => "will be updated in-place",
        (Action::Delete, _) => "will be destroyed",
        (Action::Read, _) => "will be read during apply",
        (Action::Forget, _) => "will be removed from the OpenTofu state but will not be destroyed",
        (Action::NoOp, _) if planned.importing.is_none() => "has moved",
        (Action::NoOp, _) => "will be imported",
        (Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate, reason) => match reason {
            Some(Reason::ReplaceBecauseTainted) => "is tainted, so must be replaced",
            Some(Reason::ReplaceByRequest) => "will be replaced, as requested",
            Some(Reason::ReplaceByTriggers) => "will be replaced due to changes in replace_triggered_by",
            _ => "must be replaced",
        },
    };
    let kept = if planned.action == Action::ForgetThenCreate {
        " - older instance will not be destroyed (lifecycle.destroy = false)"
    } else {
        ""
    };
    format!("{text}{kept}")
}

fn change_text(planned: &Planned, headline: &str) -> String {
    let mut out = String::new();
    let address = &planned.address;
    match (&planned.deposed, &planned.previous) {
        (Some(key), _) => drop(writeln!(out, "  # {address} (deposed object {key}) {headline}")),
        (None, Some(previous)) if planned.action == Action::NoOp => {
            let _ = writeln!(out, "  # {previous} has moved to {address}");
        }
        (None, previous) => {
            let _ = writeln!(out, "  # {address} {headline}");
            if let Some(previous) = previous {
                let _ = writeln!(out, "  # (moved from {previous})");
            }
        }
    }
    let because = match planned.reason {
        Some(Reason::ReadBecauseConfigUnknown) => "configuration or dependencies are not known yet".to_owned(),
        Some(Reason::ReadBecauseDependencyPending) => "depends on a resource with changes pending".to_owned(),
        Some(Reason::ForgotBecauseLifecycleDestroyInConfig) => {
            "lifecycle.destroy = false is set in the configuration".to_owned()
        }
        Some(Reason::ForgotBecauseLifecycleDestroyInState) => {
            "lifecycle.destroy = false was configured before this resource was removed from the configuration"
                .to_owned()
        }
        Some(Reason::DeleteBecauseNoModule) => format!("{} is not in configuration", address.module),
        Some(Reason::DeleteBecauseEnabledFalse) => "enabled is false".to_owned(),
        Some(Reason::DeleteBecauseEachKey) => "its key is not in the for_each map".to_owned(),
        Some(Reason::DeleteBecauseNoResourceConfig) => format!("{} is not in configuration", address.resource()),
        Some(Reason::DeleteBecauseCountIndex) => "its index is out of range for count".to_owned(),
        Some(Reason::DeleteBecauseWrongRepetition) => "the resource is not repeated in this way".to_owned(),
        _ => String::new(),
    };
    if !because.is_empty() {
        let _ = writeln!(out, "  # (because {because})");
    }
    match &planned.importing {
        Some(ImportTarget::Id(id)) => drop(writeln!(out, "  # (imported from {id:?})")),
        Some(identity) => drop(writeln!(out, "  # (imported by the identity {identity})")),
        None => {}
    }
    let symbol = match planned.action {
        Action::Create => "  +",
        Action::Update => "  ~",
        Action::Delete => "  -",
        Action::Replace => "-/+",
        Action::CreateBeforeDestroy => "+/-",
        Action::Read => " <=",
        Action::Forget => "  .",
        Action::ForgetThenCreate => "./+",
        Action::NoOp => "   ",
    };
    let kind = if address.data { "data" } else { "resource" };
    let _ = writeln!(out, "{symbol} {kind} \"{}\" \"{}\" {{", address.type_name, address.name);
    let diff = Diff { replace_paths: &planned.replace_paths };
    let fields = fields_of(&planned.before, &planned.after);
    diff.fields(&fields, &Path::new(), 6, true, &mut out);
    out.push_str("    }\n\n");
    out
}

fn outputs_text(content: &Content) -> String {
    let mut out = String::new();
    let changed: Vec<_> = content.outputs.iter().filter(|(_, output)| output.action() != Action::NoOp).collect();
    let width = changed.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let diff = Diff { replace_paths: &[] };
    for (name, output) in changed {
        let secret = output.sensitive || output.was_sensitive;
        let side = |value: &Value, there: bool| {
            there.then(|| if secret { value.clone().with_mark(Mark::Sensitive) } else { value.clone() })
        };
        let (before, after) = (side(&output.before, output.existed), side(&output.after, !output.removed));
        let pair = (before.as_ref(), after.as_ref());
        diff.field(&format!("{name:width$} = "), pair, &Path::new(), 2, "", &mut out);
    }
    out
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// The fields of both sides; a side that is null or not known has none.
fn fields_of<'a>(before: &'a Value, after: &'a Value) -> BTreeMap<&'a str, Pair<'a>> {
    let mut fields: BTreeMap<&str, Pair<'_>> = BTreeMap::new();
    for (name, value) in before.as_mapping().into_iter().flatten() {
        fields.entry(name).or_default().0 = Some(value);
    }
    for (name, value) in after.as_mapping().into_iter().flatten() {
        fields.entry(name).or_default().1 = Some(value);
    }
    fields
}

struct Diff<'a> {
    replace_paths: &'a [Path],
}

impl Diff<'_> {
    fn fields(&self, fields: &BTreeMap<&str, Pair<'_>>, path: &Path, indent: usize, top: bool, out: &mut String) {
        let shown = |(name, pair): (&&str, &Pair<'_>)| {
            let nothing = [pair.0, pair.1].iter().flatten().all(|value| value.is_null());
            let kept = !same(*pair) || (top && matches!(*name, "id" | "name" | "tags"));
            !nothing && kept
        };
        let width = fields.iter().filter(|field| shown(*field)).map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut hidden = 0;
        for (name, pair) in fields {
            if shown((name, pair)) {
                let mut path = path.clone();
                path.push(Step::Attribute((*name).to_owned()));
                self.field(&format!("{name:width$} = "), *pair, &path, indent, "", out);
            } else if same(*pair) && !pair.0.is_none_or(Value::is_null) {
                hidden += 1;
            }
        }
        if hidden > 0 {
            let plural = if hidden == 1 { "attribute" } else { "attributes" };
            let _ = writeln!(out, "{:indent$}  # ({hidden} unchanged {plural} hidden)", "");
        }
    }

    /// One field or element: a symbol, its name, and what becomes of its value.
    fn field(&self, label: &str, pair: Pair<'_>, path: &Path, indent: usize, end: &str, out: &mut String) {
        // An element has the path of its container, which says it already.
        let forced = end.is_empty() && self.replace_paths.contains(path);
        let present = |side: Option<&Value>| side.is_some_and(|value| !value.is_null());
        let (symbol, text) = match pair {
            (before, Some(after)) if !present(before) => ("+", self.nested(None, after, path, indent)),
            (Some(before), after) if !present(after) => {
                let text = match whole(before) {
                    Some(text) => text,
                    None => self.container(Some(before), None, path, indent),
                };
                ("-", if end.is_empty() { format!("{text} -> null") } else { text })
            }
            (Some(before), Some(after)) if same(pair) => (" ", self.nested(Some(before), after, path, indent)),
            (Some(before), Some(after)) => ("~", self.nested(Some(before), after, path, indent)),
            _ => return,
        };
        let text = match text.split_once('\n') {
            _ if !forced => text,
            Some((opening, rest)) => format!("{opening} # forces replacement\n{rest}"),
            None => format!("{text} # forces replacement"),
        };
        let _ = writeln!(out, "{:indent$}{symbol} {label}{text}{end}", "");
    }

    fn nested(&self, before: Option<&Value>, after: &Value, path: &Path, indent: usize) -> String {
        match (before, whole(after)) {
            (None, Some(text)) => text,
            (Some(before), _) if bare(before) == bare(after) && whole(after).is_some() => {
                whole(after).unwrap_or_default()
            }
            (Some(before), Some(text)) => {
                let old = whole(before).unwrap_or_else(|| self.container(Some(before), None, path, indent));
                format!("{old} -> {text}")
            }
            (Some(before), None) if whole(before).is_some() => {
                let new = self.container(None, Some(after), path, indent);
                format!("{} -> {new}", whole(before).unwrap_or_default())
            }
            (before, None) => self.container(before, Some(after), path, indent),
        }
    }

    fn container(&self, before: Option<&Value>, after: Option<&Value>, path: &Path, indent: usize) -> String {
        let sample = after.or(before);
        let mut out = String::new();
        if sample.is_some_and(|value| value.as_mapping().is_some()) {
            let nothing = Value::null(Type::Dynamic);
            let fields = fields_of(before.unwrap_or(&nothing), after.unwrap_or(&nothing));
            out.push_str("{\n");
            self.fields(&fields, path, indent + 4, false, &mut out);
            let _ = write!(out, "{:indent$}  }}", "");
            return out;
        }
        out.push_str("[\n");
        for pair in elements(before, after) {
            self.field("", pair, path, indent + 4, ",", &mut out);
        }
        let _ = write!(out, "{:indent$}  ]", "");
        out
    }
}

/// Which elements stay, which go and which come. Both ends are matched first, so that an insertion reads as one.
fn elements<'a>(before: Option<&'a Value>, after: Option<&'a Value>) -> Vec<Pair<'a>> {
    let side = |value: Option<&'a Value>| value.and_then(Value::as_sequence).unwrap_or_default();
    let (before, after) = (side(before), side(after));
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[start..], &after[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut pairs: Vec<Pair<'_>> = before[..start].iter().zip(after).map(|(a, b)| (Some(a), Some(b))).collect();
    pairs.extend(old[..old.len() - end].iter().map(|value| (Some(value), None)));
    pairs.extend(new[..new.len() - end].iter().map(|value| (None, Some(value))));
    let tail = &new[new.len() - end..];
    pairs.extend(tail.iter().map(|value| (Some(value), Some(value))));
    pairs
}

fn same(pair: Pair<'_>) -> bool {
    match pair {
        (Some(before), Some(after)) => before == after && after.is_wholly_known(),
        _ => false,
    }
}

/// The text of a value that fits on one line; `None` for one that is written over several.
fn whole(value: &Value) -> Option<String> {
    if value.has_mark(Mark::Sensitive) {
        return Some("(sensitive value)".to_owned());
    }
    match &value.data {
        Data::Null => Some("null".to_owned()),
        Data::Unknown(_) => Some("(known after apply)".to_owned()),
        Data::Bool(value) => Some(value.to_string()),
        Data::Number(value) => Some(value.to_string()),
        Data::String(text) => Some(serde_json::Value::from(&**text).to_string()),
        Data::Sequence(elements) if elements.is_empty() => Some("[]".to_owned()),
        Data::Mapping(fields) if fields.is_empty() => Some("{}".to_owned()),
        Data::Sequence(_) | Data::Mapping(_) => None,
    }
}

/// A JSON value as the `output` command writes it.
pub fn value_text(value: &serde_json::Value, indent: usize) -> String {
    let mut out = String::new();
    match value {
        serde_json::Value::Array(elements) if !elements.is_empty() => {
            out.push_str("[\n");
            for element in elements {
                let _ = writeln!(out, "{:indent$}  {},", "", value_text(element, indent + 2));
            }
            let _ = write!(out, "{:indent$}]", "");
        }
        serde_json::Value::Object(fields) if !fields.is_empty() => {
            out.push_str("{\n");
            for (name, field) in fields {
                let name = serde_json::Value::from(name.as_str());
                let _ = writeln!(out, "{:indent$}  {name} = {}", "", value_text(field, indent + 2));
            }
            let _ = write!(out, "{:indent$}}}", "");
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
    out
}
