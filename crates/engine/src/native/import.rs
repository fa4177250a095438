//! Taking over one object by name, without a plan: `import ADDRESS ID`.

use super::config::{self, Config, ResourceConfig, module_path};
use super::object::{ImportTarget, Outcome};
use super::plan::Planner;
use super::session::Session;
use super::{Native, PARALLELISM, clock, parse_address, unreadable};
use crate::state::State;
use crate::{Address, Diagnostic, EngineError, Progress, Stop, Workspace};

impl Native {
    /// The state with one object more: the one that the provider knows by this id. Nothing but the state changes.
    pub async fn import(
        &self,
        workspace: &Workspace,
        address: &str,
        id: &str,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, EngineError> {
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::of_tree(tree, workspace).map_err(config::failure)?;
        let address = parse_address(address)?;
        let base = workspace.state.as_deref().map(State::read).transpose().map_err(unreadable)?;
        let start = base.clone().unwrap_or_else(|| State::new(uuid::Uuid::new_v4().to_string()));
        let session = Session::new(&*self.providers, workspace);
        let mut state = take_over(&config, &session, &start, (&address, id), progress).await?;
        state.follow(base.as_ref());
        Ok(state.write())
    }
}

async fn take_over(
    config: &Config,
    session: &Session<'_>,
    state: &State,
    (address, id): (&Address, &str),
    progress: &dyn Progress,
) -> Result<State, EngineError> {
    wanted(config, address).map_err(config::failure)?;
    let target = ImportTarget::Id(id.to_owned());
    let stop = Stop::default();
    let planner = Planner::new(config, session, state, (progress, &stop), PARALLELISM, &clock::now());
    planner.import(address, target).await
}

/// The resource that an object is to be taken over by.
fn wanted<'a>(config: &'a Config, address: &Address) -> Outcome<&'a ResourceConfig> {
    if address.data {
        let detail = "A managed resource address is required. Importing into a data resource is not allowed.";
        return Err(vec![Diagnostic::error("Invalid target resource address", detail)]);
    }
    let path = module_path(&address.module);
    if !config.modules.iter().any(|node| node.path == path) {
        let detail = format!(
            "{path} is not defined in the configuration. Please add configuration for this module before importing into it."
        );
        return Err(vec![Diagnostic::error("Import to non-existent module", detail)]);
    }
    config.resource(address).ok_or_else(|| {
        let place = if address.module.is_empty() { "the root module" } else { &address.module };
        let detail = format!(
            "Before importing this resource, please create its configuration in {place}. For example:\n\nresource {:?} {:?} \
             {{\n  # (resource arguments)\n}}",
            address.type_name, address.name
        );
        let summary = format!("resource address \"{address}\" does not exist in the configuration.");
        vec![Diagnostic::error(summary, detail)]
    })
}
