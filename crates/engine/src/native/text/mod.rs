//! What people read: plans, states and values, in the words of OpenTofu.

mod comment;
mod diff;
mod ink;
mod place;
mod render;
mod sequence;
mod state;
mod words;

use std::fmt::{self, Write};

use landform_cty::{Type, Value};
use serde_json::Value as Json;

use super::content::Content;
use super::object::Planned;
use super::show::{Schemas, order, output_change, resource_change, schema_of};
use crate::{Action, Mode};
use comment::comment;
use diff::{Act, Diff, of_any, of_block};
pub use ink::{Ink, Sheet};
use place::{Paths, Place};
use render::Look;
pub use state::state_text;
use words::attribute_name;
pub use words::{quoted, wrapped};

/// A plan, and what is needed to write it for people.
pub struct Readable<'a> {
    pub content: &'a Content,
    pub schemas: &'a Schemas,
    /// What decided about the changes, as a plan's JSON has it.
    pub relevant: &'a [Json],
    /// The plan came to no good end: what there is of it is shown all the same.
    pub failed: bool,
    pub sheet: Sheet,
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
        changes.sort_by_cached_key(|change| order(change));
        let outputs = self.outputs();
        let told = !outputs.is_empty() || changes.iter().any(|planned| self.tells(planned));
        let drifted = (told || mode == Mode::RefreshOnly) && self.write_drift(out)?;
        changes.retain(|planned| planned.effective() && !(planned.action == Action::Delete && planned.address.data));
        if changes.is_empty() && outputs.is_empty() {
            if self.failed {
                if drifted {
                    writeln!(out, "{}", self.sheet.rule())?;
                }
                let failed = "\n[reset][bold][red]Planning failed.[reset][bold] OpenTofu encountered an error while generating this \
                              plan.[reset]\n\n";
                out.write_str(&self.sheet.ink.say(failed))?;
            } else if mode == Mode::RefreshOnly && drifted {
                return Ok(());
            } else {
                return self.write_nothing(drifted, out);
            }
        }
        if drifted {
            writeln!(out, "{}", self.sheet.rule())?;
        }
        self.write_changes(&changes, out)?;
        if !outputs.is_empty() {
            write!(out, "\nChanges to Outputs:\n{}\n", outputs.join("\n"))?;
            if changes.iter().all(|planned| planned.action == Action::NoOp) {
                self.paragraph(
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
            writeln!(out, "{}", self.sheet.rule())?;
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
        let headline = format!("\n[reset][bold][green]No changes.[reset][bold] {short}[reset]\n\n");
        out.write_str(&self.sheet.ink.say(&headline))?;
        self.paragraph(out, long)
    }

    fn write_changes(&self, changes: &[&Planned], out: &mut dyn Write) -> fmt::Result {
        let count = |actions: &[Action]| changes.iter().filter(|planned| actions.contains(&planned.action)).count();
        if changes.iter().any(|planned| planned.action != Action::NoOp) {
            self.paragraph(
                out,
                "\nOpenTofu used the selected providers to generate the following execution plan. Resource actions are \
                 indicated with the following symbols:",
            )?;
            for (action, legend) in LEGEND {
                if count(&[action]) > 0 {
                    writeln!(out, "{}", self.sheet.ink.say(legend))?;
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
        let mut total = "\n[bold]Plan:[reset] ".to_owned();
        if imports > 0 {
            let _ = write!(total, "{imports} to import, ");
        }
        let _ = write!(
            total,
            "{} to add, {} to change, {} to destroy",
            count(&[Action::Create, Action::Replace, Action::CreateBeforeDestroy, Action::ForgetThenCreate]),
            count(&[Action::Update]),
            count(&[Action::Delete, Action::Replace, Action::CreateBeforeDestroy]),
        );
        match count(&[Action::Forget, Action::ForgetThenCreate]) {
            0 => total.push_str(".\n"),
            forgotten => drop(writeln!(total, ", {forgotten} to forget.")),
        }
        out.write_str(&self.sheet.ink.say(&total))
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
        let note = "\n[bold][cyan]Note:[reset][bold] Objects have changed outside of OpenTofu\n";
        writeln!(out, "{}", self.sheet.ink.say(note))?;
        self.paragraph(
            out,
            "OpenTofu detected the following changes made outside of OpenTofu since the last \"tofu apply\" which may have \
             affected this plan:",
        )?;
        for planned in shown.iter().filter(|planned| planned.effective()) {
            write!(out, "\n{}\n", self.change(planned, Cause::Drift))?;
        }
        self.paragraph(
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
        let ink = self.sheet.ink;
        let mut out = comment(planned, cause, ink);
        let kind = if planned.address.data { "data" } else { "resource" };
        let (type_name, name) = (&planned.address.type_name, &planned.address.name);
        let forgotten = planned.action == Action::Forget;
        let look = Look { without_null: forgotten, bare: forgotten, all: planned.importing.is_some(), ..Look::of(ink) };
        let body = self.diff(planned, cause).map(|diff| diff.written(0, look)).unwrap_or_default();
        let _ = write!(out, "{} {kind} \"{type_name}\" \"{name}\" {body}", ink.say(symbol(planned.action)));
        out
    }

    fn paragraph(&self, out: &mut dyn Write, text: &str) -> fmt::Result {
        writeln!(out, "{}", self.sheet.wrapped(text))
    }

    fn outputs(&self) -> Vec<String> {
        let outputs = &self.content.outputs;
        let width = outputs.keys().map(|name| attribute_name(name).len()).max().unwrap_or(0);
        let line = |(name, output): (&String, &super::content::PlannedOutput)| {
            let json = output_change(output);
            let diff = of_any(&Place::of_change(&json, Paths::Everywhere));
            let action = match diff.act {
                Act::Stays => return None,
                Act::Comes => Action::Create,
                Act::Goes => Action::Delete,
                Act::Changes => Action::Update,
            };
            let symbol = self.sheet.ink.say(symbol(action));
            let value = diff.written(0, Look::of(self.sheet.ink));
            Some(format!("{symbol} {:width$} = {value}", attribute_name(name)))
        };
        outputs.iter().filter_map(line).collect()
    }
}

const LEGEND: [(Action, &str); 8] = [
    (Action::Create, "  [green]+[reset] create"),
    (Action::Update, "  [yellow]~[reset] update in-place (current -> planned)"),
    (Action::Delete, "  [red]-[reset] destroy"),
    (Action::Replace, "[red]-[reset]/[green]+[reset] destroy and then create replacement"),
    (Action::CreateBeforeDestroy, "[green]+[reset]/[red]-[reset] create replacement and then destroy"),
    (Action::Read, " [cyan]<=[reset] read (data resources)"),
    (Action::ForgetThenCreate, "[red].[reset]/[green]+[reset] forget and then create replacement"),
    (Action::Forget, "  [red].[reset] forget"),
];

fn symbol(action: Action) -> &'static str {
    match action {
        Action::Create => "  [green]+[reset]",
        Action::Update => "  [yellow]~[reset]",
        Action::Delete => "  [red]-[reset]",
        Action::Replace => "[red]-[reset]/[green]+[reset]",
        Action::CreateBeforeDestroy => "[green]+[reset]/[red]-[reset]",
        Action::Read => " [cyan]<=[reset]",
        Action::Forget => "  [red].[reset]",
        Action::ForgetThenCreate => "  [red].[reset]/[green]+[reset]",
        Action::NoOp => "   ",
    }
}

/// What becomes of a value, as a change in a plan's JSON has it.
pub fn difference_text(change: &Json, ink: Ink) -> String {
    of_any(&Place::of_change(change, Paths::Everywhere)).written(0, Look::of(ink))
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
