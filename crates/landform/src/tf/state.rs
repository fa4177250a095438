//! `landform tf state`: looking at the state, and changing what it calls things. Providers are asked for nothing but their
//! schemas.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use landform_engine::state::State;
use landform_engine::{Address, Diagnostic, EngineError, SourceRange};

use super::Failure;
use super::commands::{engine, open, read_state};
use super::journal::not_made;
use super::options::{Common, StateCommand};
use super::sound;
use super::state_file::StateFile;

pub async fn run(folder: &Path, command: &StateCommand) -> Result<ExitCode, Failure> {
    match command {
        StateCommand::List { .. } => sound::files(folder)?,
        // It reads the configuration itself.
        StateCommand::Show { .. } => {}
        StateCommand::Pull { .. } | StateCommand::Rm { .. } | StateCommand::Mv { .. } => sound::whole(folder)?,
    }
    match command {
        StateCommand::List { state, addresses, id, .. } => list(state, addresses, id.as_deref())?,
        StateCommand::Pull { state } => pull(state)?,
        StateCommand::Show { state, address, .. } => show(folder, state, address).await?,
        StateCommand::Rm { state, addresses, dry_run, .. } => remove(state, addresses, *dry_run)?,
        StateCommand::Mv { state, from, to, dry_run, .. } => rename(state, from, to, *dry_run)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Hands the state on, in today's form.
fn pull(path: &Path) -> Result<(), Failure> {
    if let Some(bytes) = read_state(path)? {
        println!("{}", State::read(&bytes).map_err(anyhow::Error::from)?.write_in_one_line());
    }
    Ok(())
}

fn failed(summary: impl Into<String>, detail: &str) -> Failure {
    EngineError::Diagnostics(vec![Diagnostic::error(summary, detail)]).into()
}

fn parse(bytes: Option<Vec<u8>>) -> Result<State, Failure> {
    let Some(bytes) = bytes else {
        let detail = "State management commands require a state file. Run this command in a directory where OpenTofu has been \
                      run or use the -state flag to point the command to a specific state location.";
        return Err(failed("No state file was found", detail));
    };
    Ok(State::read(&bytes).map_err(anyhow::Error::from)?)
}

fn list(path: &Path, wanted: &[String], id: Option<&str>) -> Result<(), Failure> {
    let state = read(path)?;
    let missing = |wanted: &&String| !state.objects().any(|object| object.address.is_within(wanted));
    if let Some(nowhere) = wanted.iter().find(missing) {
        return Err(EngineError::Diagnostics(vec![not_there(nowhere)]).into());
    }
    let mut objects: Vec<_> = state.objects().filter(|object| object.deposed.is_none()).collect();
    objects.sort_by_cached_key(|object| object.address.order());
    let is_meant = |address: &Address| wanted.is_empty() || wanted.iter().any(|wanted| address.is_within(wanted));
    let has_id = |address: &Address| id.is_none_or(|id| id_of(&state, address).is_some_and(|own| own == id));
    for object in objects {
        if is_meant(&object.address) && has_id(&object.address) {
            println!("{}", object.address);
        }
    }
    Ok(())
}

fn id_of(state: &State, address: &Address) -> Option<String> {
    let (_, instance) = state.current(address)?;
    let attributes: serde_json::Value = serde_json::from_str(instance.attributes.as_ref()?.get()).ok()?;
    attributes["id"].as_str().map(str::to_owned)
}

/// What to say of what is no address. It is read as if it stood in a file, which has no name.
pub fn no_address() -> Diagnostic {
    let range = SourceRange { file: String::new(), line: 1, column: 1, end: None };
    let detail = "Resource specification must include a resource type and name.";
    Diagnostic { range: Some(range), ..Diagnostic::error("Invalid address", detail) }
}

/// What to say of an address that the state does not have.
fn not_there(wanted: &str) -> Diagnostic {
    match Address::parse(wanted) {
        Some(Address { key: Some(_), .. }) => Diagnostic::error(
            "Unknown resource instance",
            format!(
                "The current state contains no resource instance {wanted}. If you've just added its resource to the \
                 configuration or have changed the count or for_each arguments, you must run \"tofu apply\" first to update \
                 the resource's entry in the state."
            ),
        ),
        Some(_) => Diagnostic::error(
            "Unknown resource",
            format!(
                "The current state contains no resource {wanted}. If you've just added this resource to the configuration, \
                 you must run \"tofu apply\" first to create the resource's entry in the state."
            ),
        ),
        None if wanted.starts_with("module.") => Diagnostic::error(
            "Unknown module",
            format!(
                "The current state contains no module at {wanted}. If you've just added this module to the configuration, \
                 you must run \"tofu apply\" first to create the module's entry in the state."
            ),
        ),
        None => no_address(),
    }
}

async fn show(folder: &Path, state: &Path, address: &str) -> Result<(), Failure> {
    const ONE: &str = "This command requires that the address references one specific instance. To view the available \
                       instances, use \"tofu state list\". Please modify the address to reference a specific instance.";
    if Address::parse(address).is_none() {
        return Err(failed(format!("Error parsing instance address {address:?}"), ONE));
    }
    let stored = read_state(state)?;
    if stored.is_none() {
        parse(None)?;
    }
    let opened = open(folder, BTreeMap::new(), stored)?;
    match engine(folder, &Common::default()).object_text(&opened.workspace, address, super::screen::ink()).await? {
        Some(text) => print!("{text}"),
        None => return Err(failed("No instance found for the given address", ONE)),
    }
    Ok(())
}

/// Changes the state under its lock. The serial rises as for any other change.
fn edit(path: &Path, change: impl FnOnce(&mut State) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut file = StateFile::lock(path, "OperationTypeInvalid")?;
    let base = parse(file.read()?)?;
    let mut state = base.clone();
    change(&mut state)?;
    state.follow(Some(&base));
    Ok(file.write_edited(&state.write())?)
}

/// The state as it is. To look at it needs no lock.
fn read(path: &Path) -> Result<State, Failure> {
    parse(read_state(path)?)
}

fn remove(path: &Path, wanted: &[String], dry_run: bool) -> Result<(), Failure> {
    if dry_run {
        let removed = read(path)?.remove_within(wanted);
        if removed.is_empty() {
            return Err(nothing_to_remove());
        }
        removed.iter().for_each(|object| println!("Would remove {}", object.address));
        return Ok(());
    }
    let doubts = StateFile::lock(path, "OperationTypeInvalid")?.doubts_path();
    let absent = not_made(&doubts, wanted)?;
    if !absent.is_empty() {
        absent.iter().for_each(|address| println!("{address} is no longer in doubt: the next apply may create it."));
        return Ok(());
    }
    let mut removed = Vec::new();
    edit(path, |state| {
        removed = state.remove_within(wanted);
        if removed.is_empty() {
            return Err(nothing_to_remove());
        }
        Ok(())
    })?;
    for object in &removed {
        println!("Removed {}", object.address);
    }
    println!("Successfully removed {} resource instance(s).", removed.len());
    Ok(())
}

fn rename(path: &Path, from: &str, to: &str, dry_run: bool) -> Result<(), Failure> {
    let quoted = landform_cty::quote_as_go;
    if dry_run {
        for moved in read(path)?.rename(from, to).map_err(EngineError::Diagnostics)? {
            println!("Would move {} to {}", quoted(&moved.from), quoted(&moved.to));
        }
        return Ok(());
    }
    edit(path, |state| {
        let all = state.rename(from, to).map_err(EngineError::Diagnostics)?;
        for moved in &all {
            println!("Move {} to {}", quoted(&moved.from), quoted(&moved.to));
        }
        println!("Successfully moved {} object(s).", all.len());
        Ok(())
    })
}

fn nothing_to_remove() -> Failure {
    let detail = "No matching objects found. To view the available instances, use \"tofu state list\". Please modify the \
                  address to reference a specific instance.";
    failed("Invalid target address", detail)
}

#[cfg(test)]
mod tests {
    use landform_engine::Address;

    #[test]
    fn addresses_are_within_what_contains_them() {
        let address = Address::parse("module.m[0].a.b[\"x\"]").unwrap();
        for outer in ["module.m", "module.m[0]", "module.m[0].a.b", "module.m[0].a.b[\"x\"]"] {
            assert!(address.is_within(outer), "{outer}");
        }
        for other in ["a.b", "module.m[1]", "module.m[0].a.bc", "module.m[0].a.b[\"y\"]"] {
            assert!(!address.is_within(other), "{other}");
        }
    }
}
