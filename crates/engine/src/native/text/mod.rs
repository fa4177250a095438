//! What people read: plans, states and values, in the words of OpenTofu.

mod diff;
mod place;
mod render;
mod sequence;
mod state;
mod words;

use std::fmt::{self, Write};

use landform_cty::{Type, Value};
use serde_json::Value as Json;

use super::content::Content;
use super::object::{ImportTarget, Planned, Reason};
use super::show::{Schemas, order, output_change, resource_change, schema_of};
use crate::{Action, Key, Mode};
use diff::{Act, Diff, of_any, of_block};
use place::{Paths, Place};
use render::Look;
pub use state::state_text;
use words::{WIDTH, attribute_name};
pub use words::{quoted, rule, wrapped};

/// A plan, and what is needed to write it for people.
pub struct Readable<'a> {
    pub content: &'a Content,
    pub schemas: &'a Schemas,
    /// What decided about the changes, as a plan's JSON has it.
    pub relevant: &'a [Json],
    /// The plan came to no good end: what there is of it is shown all the same.
    pub failed: bool,
}

/// Why an object is in a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Drift,
    Plan,
}

impl Readable<'_> {
    /// Written piece by piece: the whole of a large plan would take as much memory again as the plan.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let mode = self.content.mode;
        let mut changes: Vec<&Planned> = self.content.changes.iter().collect();
        changes.sort_by(|a, b| order(a).cmp(&order(b)));
        let outputs = self.outputs();
        let told = !outputs.is_empty() || changes.iter().any(|planned| self.tells(planned));
        let drifted = (told || mode == Mode::RefreshOnly) && self.write_drift(out)?;
        changes.retain(|planned| planned.effective() && !(planned.action == Action::Delete && planned.address.data));
        if changes.is_empty() && outputs.is_empty() {
            if self.failed {
                if drifted {
                    writeln!(out, "{}", rule())?;
                }
                out.write_str("\nPlanning failed. OpenTofu encountered an error while generating this plan.\n\n")?;
            } else if mode == Mode::RefreshOnly && drifted {
                return Ok(());
            } else {
                return self.write_nothing(drifted, out);
            }
        }
        if drifted {
            writeln!(out, "{}", rule())?;
        }
        self.write_changes(&changes, out)?;
        if !outputs.is_empty() {
            write!(out, "\nChanges to Outputs:\n{}\n", outputs.join("\n"))?;
            if changes.iter().all(|planned| planned.action == Action::NoOp) {
                paragraph(
                    out,
                    "\nYou can apply this plan to save these new output values to the OpenTofu state, without changing any \
                     real infrastructure.",
                )?;
            }
        }
        Ok(())
    }

    fn write_nothing(&self, drifted: bool, out: &mut dyn Write) -> fmt::Result {
        if drifted {
            writeln!(out, "{}", rule())?;
        }
        let (short, long) = match self.content.mode {
            Mode::RefreshOnly => (
                "Your infrastructure still matches the configuration.",
                "OpenTofu has checked that the real remote objects still match the result of your most recent changes, and \
                 found no differences.",
            ),
            Mode::Destroy => (
                "No objects need to be destroyed.",
                "Either you have not created any objects yet or the existing objects were already deleted outside of \
                 OpenTofu.",
            ),
            Mode::Normal => (
                "Your infrastructure matches the configuration.",
                "OpenTofu has compared your real infrastructure against your configuration and found no differences, so no \
                 changes are needed.",
            ),
        };
        write!(out, "\nNo changes. {short}\n\n")?;
        paragraph(out, long)
    }

    fn write_changes(&self, changes: &[&Planned], out: &mut dyn Write) -> fmt::Result {
        let count = |actions: &[Action]| changes.iter().filter(|planned| actions.contains(&planned.action)).count();
        if changes.iter().any(|planned| planned.action != Action::NoOp) {
            paragraph(
                out,
                "\nOpenTofu used the selected providers to generate the following execution plan. Resource actions are \
                 indicated with the following symbols:",
            )?;
            for (action, legend) in LEGEND {
                if count(&[action]) > 0 {
                    writeln!(out, "{legend}")?;
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        out.write_str(match self.failed {
            true => "\nOpenTofu planned the following actions, but then encountered a problem:\n",
            false => "\nOpenTofu will perform the following actions:\n",
        })?;
        for planned in changes {
            write!(out, "\n{}\n", self.change(planned, Cause::Plan))?;
        }
        let imports = changes.iter().filter(|planned| planned.importing.is_some()).count();
        out.write_str("\nPlan: ")?;
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
            0 => out.write_str(".\n"),
            forgotten => writeln!(out, ", {forgotten} to forget."),
        }
    }

    /// What has changed behind the plan's back and has to do with it. Says whether there was something.
    fn write_drift(&self, out: &mut dyn Write) -> Result<bool, fmt::Error> {
        let mut shown = Vec::new();
        for planned in &self.content.drift {
            let refresh_only = self.content.mode == Mode::RefreshOnly;
            let diff = self.diff(planned, Cause::Drift);
            if diff.is_some_and(|diff| refresh_only || diff.act != Act::Stays) {
                shown.push(planned);
            }
        }
        if shown.is_empty() {
            return Ok(false);
        }
        out.write_str("\nNote: Objects have changed outside of OpenTofu\n\n")?;
        paragraph(
            out,
            "OpenTofu detected the following changes made outside of OpenTofu since the last \"tofu apply\" which may have \
             affected this plan:",
        )?;
        for planned in shown.iter().filter(|planned| planned.effective()) {
            write!(out, "\n{}\n", self.change(planned, Cause::Drift))?;
        }
        paragraph(
            out,
            match self.content.mode {
                Mode::RefreshOnly => {
                    "\n\nThis is a refresh-only plan, so OpenTofu will not take any actions to undo these. If you were \
                     expecting these changes then you can apply this plan to record the updated values in the OpenTofu state \
                     without changing any remote objects."
                }
                _ => {
                    "\n\nUnless you have made equivalent changes to your configuration, or ignored the relevant attributes \
                     using ignore_changes, the following plan may include actions to undo or respond to these changes."
                }
            },
        )?;
        Ok(true)
    }

    /// Whether there is anything to be said of an object, other than that it is there.
    fn tells(&self, planned: &Planned) -> bool {
        planned.previous.is_some() || self.diff(planned, Cause::Plan).is_some_and(|diff| diff.act != Act::Stays)
    }

    /// `None`: the drift of an object that has nothing to do with the plan.
    fn diff(&self, planned: &Planned, cause: Cause) -> Option<Diff> {
        let json = resource_change(planned);
        let attributes: Vec<&Json>;
        let relevant = if cause == Cause::Plan || self.content.mode == Mode::RefreshOnly {
            Paths::Everywhere
        } else {
            let of_object = |relevant: &&Json| relevant["resource"] == json["address"];
            attributes = self.relevant.iter().filter(of_object).map(|relevant| &relevant["attribute"]).collect();
            let paths = attributes.iter().filter_map(|path| path.as_array().map(Vec::as_slice)).collect();
            Paths::At { paths, inherited: true }
        };
        if !relevant.within() {
            return None;
        }
        let place = Place::of_change(&json["change"], relevant);
        Some(match schema_of(self.schemas, &planned.provider, &planned.address) {
            Some(schema) => of_block(&place, &schema.block),
            None => of_any(&place),
        })
    }

    fn change(&self, planned: &Planned, cause: Cause) -> String {
        let mut out = comment(planned, cause);
        let kind = if planned.address.data { "data" } else { "resource" };
        let (type_name, name) = (&planned.address.type_name, &planned.address.name);
        let forgotten = planned.action == Action::Forget;
        let look =
            Look { without_null: forgotten, bare: forgotten, all: planned.importing.is_some(), ..Look::default() };
        let body = self.diff(planned, cause).map(|diff| diff.written(0, look)).unwrap_or_default();
        let _ = write!(out, "{} {kind} \"{type_name}\" \"{name}\" {body}", symbol(planned.action));
        out
    }

    fn outputs(&self) -> Vec<String> {
        let outputs = &self.content.outputs;
        let width = outputs.keys().map(|name| attribute_name(name).len()).max().unwrap_or(0);
        let line = |(name, output): (&String, &super::content::PlannedOutput)| {
            let json = output_change(output);
            let diff = of_any(&Place::of_change(&json, Paths::Everywhere));
            let symbol = match diff.act {
                Act::Stays => return None,
                Act::Comes => "  +",
                Act::Goes => "  -",
                Act::Changes => "  ~",
            };
            let value = diff.written(0, Look::default());
            Some(format!("{symbol} {:width$} = {value}", attribute_name(name)))
        };
        outputs.iter().filter_map(line).collect()
    }
}

const LEGEND: [(Action, &str); 8] = [
    (Action::Create, "  + create"),
    (Action::Update, "  ~ update in-place (current -> planned)"),
    (Action::Delete, "  - destroy"),
    (Action::Replace, "-/+ destroy and then create replacement"),
    (Action::CreateBeforeDestroy, "+/- create replacement and then destroy"),
    (Action::Read, " <= read (data resources)"),
    (Action::ForgetThenCreate, "./+ forget and then create replacement"),
    (Action::Forget, "  . forget"),
];

fn symbol(action: Action) -> &'static str {
    match action {
        Action::Create => "  +",
        Action::Update => "  ~",
        Action::Delete => "  -",
        Action::Replace => "-/+",
        Action::CreateBeforeDestroy => "+/-",
        Action::Read => " <=",
        Action::Forget => "  .",
        Action::ForgetThenCreate => "  ./+",
        Action::NoOp => "   ",
    }
}

fn paragraph(out: &mut dyn Write, text: &str) -> fmt::Result {
    writeln!(out, "{}", wrapped(text, WIDTH))
}

/// What is said above an object.
fn comment(planned: &Planned, cause: Cause) -> String {
    let address = &planned.address;
    let deposed = planned.deposed.as_ref().map(|key| format!(" (deposed object {key})")).unwrap_or_default();
    let shown = format!("{address}{deposed}");
    let mut out = match (&planned.previous, planned.action) {
        (Some(previous), Action::NoOp) => format!("  # {previous} has moved to {shown}"),
        _ => format!("  # {shown} {}", headline(planned, cause)),
    };
    if let Some(because) = because(planned) {
        out.push_str(&because);
    }
    if planned.deposed.is_some() && matches!(planned.action, Action::Delete | Action::Forget | Action::ForgetThenCreate)
    {
        out.push_str("\n  # (left over from a partially-failed replacement of this instance)");
    }
    out.push('\n');
    if let Some(previous) = planned.previous.as_ref().filter(|_| planned.action != Action::NoOp) {
        let _ = writeln!(out, "  # (moved from {previous})");
    }
    match &planned.importing {
        Some(ImportTarget::Id(id)) if id.is_empty() => out.push_str("  # (will be imported first)\n"),
        Some(ImportTarget::Id(id)) => drop(writeln!(out, "  # (imported from \"{id}\")")),
        Some(ImportTarget::Identity(identity)) => {
            let json = identity.to_plain_json().unwrap_or_default();
            let json = serde_json::to_string_pretty(&json).unwrap_or_default().replace('\n', "\n  # ");
            let _ = writeln!(out, "  # imported using resource identity: {json}");
        }
        None => {}
    }
    if planned.importing.is_some() && planned.replaces() {
        out.push_str("  # Warning: this will destroy the imported resource\n");
    }
    out
}

fn headline(planned: &Planned, cause: Cause) -> String {
    let text = match (planned.action, planned.reason) {
        (Action::Create, _) => "will be created",
        (Action::Update, _) if cause == Cause::Drift => "has changed",
        (Action::Update, _) => "will be updated in-place",
        (Action::Delete, _) if cause == Cause::Drift => "has been deleted",
        (Action::Delete, _) => "will be destroyed",
        (Action::Read, _) => "will be read during apply",
        (Action::Forget, _) => "will be removed from the OpenTofu state but will not be destroyed",
        (Action::NoOp, _) => "will be imported",
        (Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate, reason) => match reason {
            Some(Reason::ReplaceBecauseTainted) => "is tainted, so it must be replaced",
            Some(Reason::ReplaceByRequest) => "will be replaced, as requested",
            Some(Reason::ReplaceByTriggers) => "will be replaced due to changes in replace_triggered_by",
            _ => "must be replaced",
        },
    };
    let kept = match planned.action {
        Action::ForgetThenCreate => " - older instance will not be destroyed (lifecycle.destroy = false)",
        _ => "",
    };
    format!("{text}{kept}")
}

/// Why it is so, in a line of its own.
fn because(planned: &Planned) -> Option<String> {
    let address = &planned.address;
    let key = match &address.key {
        Some(Key::Name(name)) => serde_json::Value::from(name.as_str()).to_string(),
        Some(Key::Index(index)) => index.to_string(),
        None => String::new(),
    };
    let reason = planned.reason.filter(|_| matches!(planned.action, Action::Delete | Action::Read | Action::Forget))?;
    let text = match reason {
        Reason::ReadBecauseConfigUnknown => "config refers to values not yet known".to_owned(),
        Reason::ReadBecauseDependencyPending => "depends on a resource or a module with changes pending".to_owned(),
        Reason::ReadBecauseCheckNested => "config will be reloaded to verify a check block".to_owned(),
        Reason::ForgotBecauseLifecycleDestroyInConfig => {
            return Some(" \n (because lifecycle.destroy = false is set in the configuration)".to_owned());
        }
        Reason::ForgotBecauseLifecycleDestroyInState => {
            let text = " \n (because lifecycle.destroy = false was configured before this resource was removed from the \
                        configuration)";
            return Some(text.to_owned());
        }
        _ if planned.action == Action::Forget => return None,
        Reason::DeleteBecauseNoModule => format!("because {} is not in configuration", address.module),
        Reason::DeleteBecauseNoMoveTarget => {
            let previous = planned.previous.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("because {previous} was moved to {address}, which is not in configuration")
        }
        Reason::DeleteBecauseEnabledFalse => "because enabled is false".to_owned(),
        Reason::DeleteBecauseEachKey => format!("because key [{key}] is not in for_each map"),
        Reason::DeleteBecauseNoResourceConfig => {
            format!("because {}.{} is not in configuration", address.type_name, address.name)
        }
        Reason::DeleteBecauseCountIndex => format!("because index [{key}] is out of range for count"),
        Reason::DeleteBecauseWrongRepetition => match address.key {
            None => "because resource uses count or for_each".to_owned(),
            Some(Key::Index(_)) => "because resource does not use count".to_owned(),
            Some(Key::Name(_)) => "because resource does not use for_each".to_owned(),
        },
        _ => return None,
    };
    Some(format!("\n  # ({text})"))
}

/// What becomes of a value, as a change in a plan's JSON has it.
pub fn difference_text(change: &Json) -> String {
    of_any(&Place::of_change(change, Paths::Everywhere)).written(0, Look::default())
}

/// The value of an output as the `output` command writes it.
pub fn output_text(output: &crate::Output) -> String {
    let value = Type::from_json(&output.ty).ok().and_then(|ty| Value::from_json(&output.value, &ty).ok());
    value.map_or_else(|| output.value.to_string(), |value| landform_lang::render_value(&value))
}

/// Of which type an output is, as people call it.
pub fn output_type(output: &crate::Output) -> String {
    Type::from_json(&output.ty).map_or_else(|_| output.ty.to_string(), |ty| ty.friendly_name())
}
