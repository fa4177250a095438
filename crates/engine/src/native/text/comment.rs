//! What is said above an object of a plan: what becomes of it, and why.

use std::fmt::Write as _;

use super::Cause;
use super::ink::Ink;
use crate::native::object::{ImportTarget, Planned, Reason};
use crate::{Action, Key};

/// What is said above an object.
pub fn comment(planned: &Planned, cause: Cause, ink: Ink) -> String {
    let address = &planned.address;
    let deposed = planned.deposed.as_ref().map(|key| format!(" (deposed object {key})")).unwrap_or_default();
    let shown = format!("{address}{deposed}");
    let mut out = match (&planned.previous, planned.action) {
        (Some(previous), Action::NoOp) => format!("[bold]  # {previous}[reset] has moved to [bold]{shown}[reset]"),
        _ => format!("[bold]  # {shown}[reset] {}", headline(planned, cause)),
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
        let _ = writeln!(out, "  # [reset](moved from {previous})");
    }
    match &planned.importing {
        Some(ImportTarget::Id(id)) if id.is_empty() => out.push_str("  # [reset](will be imported first)\n"),
        Some(ImportTarget::Id(id)) => drop(writeln!(out, "  # [reset](imported from \"{id}\")")),
        Some(ImportTarget::Identity(identity)) => {
            let json = identity.to_plain_json().unwrap_or_default();
            let json = serde_json::to_string_pretty(&json).unwrap_or_default().replace('\n', "\n  # ");
            let _ = writeln!(out, "  # [reset]imported using resource identity: {json}");
        }
        None => {}
    }
    if planned.importing.is_some() && planned.replaces() {
        out.push_str("  # [reset][yellow]Warning: this will destroy the imported resource[reset]\n");
    }
    ink.say(&out)
}

fn headline(planned: &Planned, cause: Cause) -> String {
    let text = match (planned.action, planned.reason) {
        (Action::Create, _) => "will be created",
        (Action::Update, _) if cause == Cause::Drift => "has changed",
        (Action::Update, _) => "will be updated in-place",
        (Action::Delete, _) if cause == Cause::Drift => "has been deleted",
        (Action::Delete, _) => "will be [bold][red]destroyed[reset]",
        (Action::Read, _) => "will be read during apply",
        (Action::Forget, _) => "will be removed from the OpenTofu state [bold][red]but will not be destroyed[reset]",
        (Action::NoOp, _) => "will be imported",
        (Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate, reason) => match reason {
            Some(Reason::ReplaceBecauseTainted) => "is tainted, so it must be [bold][red]replaced[reset]",
            Some(Reason::ReplaceByRequest) => "will be [bold][red]replaced[reset], as requested",
            Some(Reason::ReplaceByTriggers) => {
                "will be [bold][red]replaced[reset] due to changes in replace_triggered_by"
            }
            _ => "must be [bold][red]replaced[reset]",
        },
    };
    let kept = match planned.action {
        Action::ForgetThenCreate => {
            " - [yellow]older instance will [bold]not[reset][yellow] be destroyed [reset]([bold]lifecycle.destroy = \
                                      false[reset])"
        }
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
            return Some(" \n (because [bold]lifecycle.destroy = false[reset] is set in the configuration)".to_owned());
        }
        Reason::ForgotBecauseLifecycleDestroyInState => {
            let text = " \n (because [bold]lifecycle.destroy = false[reset] was configured before this resource was removed from the \
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
