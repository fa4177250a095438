//! Taking over one object by name, without a plan: `import ADDRESS ID`.

use super::config::{self, Config};
use super::eval::Eval;
use super::object::{ImportTarget, Outcome, at};
use super::session::Session;
use super::{Native, clock, encode, parse_address, unreadable};
use crate::state::State;
use crate::{Address, Diagnostic, EngineError, Workspace};

impl Native {
    /// The state with one object more: the one that the provider knows by this id. Nothing but the state changes.
    pub async fn import(&self, workspace: &Workspace, address: &str, id: &str) -> Result<Vec<u8>, EngineError> {
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::of_tree(tree, workspace).map_err(config::failure)?;
        let address = parse_address(address)?;
        let base = workspace.state.as_deref().map(State::read).transpose().map_err(unreadable)?;
        let mut state = base.clone().unwrap_or_else(|| State::new(uuid::Uuid::new_v4().to_string()));
        let session = Session::new(&*self.providers, workspace);
        take_over(&config, &session, &mut state, &address, id).await.map_err(config::failure)?;
        state.follow(base.as_ref());
        Ok(state.write())
    }
}

async fn take_over(
    config: &Config,
    session: &Session<'_>,
    state: &mut State,
    address: &Address,
    id: &str,
) -> Outcome<()> {
    let wrong = |summary: &str, detail: String| vec![at(address, Diagnostic::error(summary, detail))];
    let Some(resource) = config.resource(address).filter(|resource| !resource.data) else {
        let summary = format!("resource address \"{address}\" does not exist in the configuration.");
        return Err(wrong(&summary, "Before importing this resource, write its configuration.".to_owned()));
    };
    let eval = Eval::planning(config, &clock::now());
    eval.prepare_providers()?;
    // OpenTofu takes the other objects from the state first.
    for stored in state.resources().iter().filter(|stored| stored.mode != "data") {
        for instance in stored.instances.iter().filter(|instance| instance.deposed.is_none()) {
            let other = stored.address(instance.index_key.clone());
            if config.resource(&other).is_some() && other != *address {
                session.bound(&stored.provider, &eval).await?.read_state(&other, instance).await?;
            }
        }
    }
    let bound = session.bound(&resource.provider, &eval).await?;
    let target = ImportTarget::Id(id.to_owned());
    if state.current(address).is_some() {
        bound.ask_import(address, &target).await?;
        let detail = format!(
            "OpenTofu is already managing a remote object for {address}. To import to this address you must first remove the \
             existing object from the state."
        );
        return Err(wrong("Resource already managed by OpenTofu", detail));
    }
    let object = bound.import(address, &target).await?;
    let instance = encode::instance(bound.resource(address)?, address, &object)
        .map_err(|detail| wrong("Failed to encode object in state", detail))?;
    state.put(address, &resource.provider, instance);
    Ok(())
}
