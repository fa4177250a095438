//! `landform tf taint` and `untaint`: whether the next plan replaces an object. Providers are asked for nothing.

use std::path::Path;
use std::process::ExitCode;

use landform_engine::state::State;
use landform_engine::{Address, Diagnostic, EngineError, Severity};

use super::Failure;
use super::diagnostics;
use super::options::TaintOptions;
use super::sound;
use super::state_file::StateFile;

const NOWHERE: &str = "No such resource instance";

/// Marks an object, or takes the mark away.
pub fn run(folder: &Path, options: &TaintOptions, taint: bool) -> Result<ExitCode, Failure> {
    let address = read_address(&options.address, taint)?;
    if taint {
        sound::whole(folder)?
    } else {
        sound::files(folder)?
    }
    let operation = if taint { "taint" } else { "untaint" };
    let mut file = StateFile::open(&options.state, operation, &options.locking()?)?;
    let base = match file.read()? {
        Some(bytes) => Some(State::read(&bytes).map_err(anyhow::Error::from)?),
        None => None,
    };
    let state = match marked(base.as_ref(), &address, taint) {
        Ok(state) => state,
        Err(Refused::Missing(_)) if options.allow_missing => {
            let detail = format!(
                "Resource instance {address} was not found, but this is not an error because -allow-missing was set."
            );
            let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::error(NOWHERE, detail) };
            diagnostics::diagnostics(&[warning], false, false);
            return Ok(ExitCode::SUCCESS);
        }
        Err(Refused::Missing(problem) | Refused::Unsuitable(problem)) => return Err(failed(*problem)),
    };
    file.write(&state.write())?;
    let done = if taint { "marked as tainted" } else { "successfully untainted" };
    println!("Resource instance {address} has been {done}.");
    Ok(ExitCode::SUCCESS)
}

fn failed(problem: Diagnostic) -> Failure {
    EngineError::Diagnostics(vec![problem]).into()
}

fn read_address(text: &str, taint: bool) -> Result<Address, Failure> {
    let Some(address) = Address::parse(text) else {
        return Err(failed(super::state::no_address()));
    };
    if address.data && taint {
        let detail = format!("Resource instance {address} cannot be tainted");
        return Err(failed(Diagnostic::error("Invalid resource address", detail)));
    }
    Ok(address)
}

/// Why an object is not marked.
enum Refused {
    /// The state does not have it, which may be allowed.
    Missing(Box<Diagnostic>),
    Unsuitable(Box<Diagnostic>),
}

/// The state with the mark as it is wanted.
fn marked(base: Option<&State>, address: &Address, taint: bool) -> Result<State, Refused> {
    let nowhere = |detail: String| Box::new(Diagnostic::error(NOWHERE, detail));
    let Some(base) = base.filter(|base| base.objects().next().is_some() || !base.outputs.is_empty()) else {
        return Err(Refused::Missing(nowhere(
            "The state currently contains no resource instances whatsoever. This may occur if the configuration has never \
             been applied or if it has recently been destroyed."
                .to_owned(),
        )));
    };
    let Some((provider, instance)) = base.current(address) else {
        let deposed = base.objects().any(|object| object.address == *address);
        return Err(match deposed {
            true => Refused::Unsuitable(nowhere(format!(
                "Resource instance {address} is currently part-way through a create_before_destroy replacement action. Run \
                 \"tofu apply\" to complete its replacement before tainting it."
            ))),
            false => Refused::Missing(nowhere(format!(
                "There is no resource instance in the state with the address {address}. If the resource configuration has \
                 just been added, you must run \"tofu apply\" once to create the corresponding instance(s) before they can \
                 be tainted."
            ))),
        });
    };
    if !taint && !instance.tainted() {
        let detail = format!("Resource instance {address} is not currently tainted, and so it cannot be untainted.");
        return Err(Refused::Unsuitable(Box::new(Diagnostic::error("Resource instance is not tainted", detail))));
    }
    let (provider, mut instance) = (provider.to_owned(), instance.clone());
    instance.set_tainted(taint);
    let mut state = base.clone();
    state.put(address, &provider, instance);
    state.follow(Some(base));
    Ok(state)
}
