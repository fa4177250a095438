//! The native engine: plans and applies with real providers, without the CLI.
//!
//! It does what OpenTofu 1.12.6 does, call by call, for the part of the language that `lang` has; what it does not do
//! exactly so it names in [`Engine::unsupported`], before anything is started. The measure is the transcript of calls
//! that a provider sees from the real CLI.
//! Absent on purpose: provisioners and remote modules.

mod answers;
mod apply;
mod builtin;
mod change;
mod clock;
mod config;
mod console;
mod content;
mod encode;
mod eval;
mod import;
mod object;
mod outputs;
mod plan;
mod ports;
mod session;
mod show;
mod sound;
mod straight;
mod text;
mod trees;
mod walk;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

pub use clock::now;
pub use config::{
    Missing, backends, check_files, check_variable_files, collect_variables, missing_variables, read_root,
    unkept_variables,
};
pub use console::Console;
pub use landform_lang::VariableFlag;
pub use landform_lang::{block_around, did_you_mean};
pub use ports::{Located, Providers, Requirement};
use text::Readable;
pub use text::{Ink, Sheet, difference_text, quoted, wrapped};
pub use text::{output_text, output_type};

use config::Config;
use content::{Content, Origin};
use object::ImportTarget;
use session::Session;
use sound::Sound;
use straight::{Drawn, MadeFrom};
use trees::Trees;

use crate::state::{State, StateError, TERRAFORM_VERSION};
use crate::{
    Address, Applied, ApplyRequest, Change, Diagnostic, Engine, EngineError, EngineKind, Intent, IntentAction, Journal,
    Outline, Output, Plan, PlanRequest, Progress, Settlement, Stop, Straight, Unsupported, Workspace,
};

/// How many objects are worked on at one time, as in OpenTofu.
const PARALLELISM: usize = 10;

pub struct Native {
    providers: Arc<dyn Providers>,
    refresh: bool,
    parallelism: usize,
    trees: Trees,
    sound: Sound,
}

impl Native {
    pub fn new(providers: Arc<dyn Providers>) -> Native {
        Native { providers, refresh: true, parallelism: PARALLELISM, trees: Trees::default(), sound: Sound::default() }
    }

    /// An engine for folders that never change: what they hold is read once.
    pub fn of_fixed_folders(self) -> Native {
        Native { trees: Trees::of_fixed_folders(), ..self }
    }

    /// An engine that trusts the state and does not ask how objects are now.
    pub fn without_refresh(self) -> Native {
        Native { refresh: false, ..self }
    }

    /// An engine that works on so many objects at one time.
    pub fn with_parallelism(self, parallelism: usize) -> Native {
        Native { parallelism: parallelism.max(1), ..self }
    }

    /// A state in the JSON of `tofu show -json`. Providers are started for their schemas.
    pub async fn show_state(&self, workspace: &Workspace) -> Result<serde_json::Value, EngineError> {
        match self.stored(workspace).await? {
            Some((state, schemas)) if !state.is_empty() => Ok(show::state(&state, &schemas)),
            _ => Ok(serde_json::json!({ "format_version": "1.0" })),
        }
    }

    /// A state as people read it.
    pub async fn state_text(&self, workspace: &Workspace, ink: Ink) -> Result<String, EngineError> {
        let stored = self.stored(workspace).await?;
        let text = stored.map(|(state, schemas)| text::state_text(&state, &schemas, None, ink));
        Ok(text.unwrap_or_else(|| "No state.\n".to_owned()))
    }

    /// One object of the state, likewise; `None` if it is not there.
    pub async fn object_text(
        &self,
        workspace: &Workspace,
        address: &str,
        ink: Ink,
    ) -> Result<Option<String>, EngineError> {
        let address = parse_address(address)?;
        let Some((state, schemas)) = self.stored(workspace).await? else { return Ok(None) };
        Ok(state.current(&address).map(|_| text::state_text(&state, &schemas, Some(&address), ink)))
    }

    /// The state with the schemas of all that is in it.
    async fn stored(&self, workspace: &Workspace) -> Result<Option<(State, show::Schemas)>, EngineError> {
        let Some(bytes) = &workspace.state else { return Ok(None) };
        let state = State::read(bytes).map_err(unreadable)?;
        // What the inputs are does not matter: nothing is evaluated.
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::without_inputs(tree, workspace).map_err(config::failure)?;
        let session = Session::new(&*self.providers, workspace);
        for resource in state.resources() {
            session.started(&resource.provider, &config).await.map_err(EngineError::Diagnostics)?;
        }
        let schemas = session.schemas();
        Ok(Some((state, schemas)))
    }

    /// The providers that a folder needs, by source address, with what it wants of their versions; and its modules.
    pub fn requirements(&self, workspace: &Workspace) -> Result<Requirements, EngineError> {
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::unconnected(tree, workspace).map_err(config::failure)?;
        Ok(Requirements { providers: config.requirements(), modules: config.module_places() })
    }

    /// Whether a configuration can be read, with its modules: nothing in it is evaluated, and nothing is connected.
    pub fn check_configuration(&self, workspace: &Workspace) -> Result<(), EngineError> {
        match config::unsupported(workspace, &self.trees)? {
            Ok(tree) => Config::unconnected(tree, workspace).map(drop).map_err(config::failure),
            // Only OpenTofu can tell, and it is not asked for that.
            Err(_) => Ok(()),
        }
    }

    /// Whether a configuration is sound, whatever its inputs are. Providers are started, but not configured.
    pub async fn validate(&self, workspace: &Workspace) -> Result<Vec<Diagnostic>, EngineError> {
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::without_inputs(tree, workspace).map_err(config::failure)?;
        let session = Session::new(&*self.providers, workspace);
        let mut found = plan::validate(&config, &session).await;
        config.locate(&mut found);
        let mut warnings = [config.warnings(), session.warnings.take()].concat();
        config.locate(&mut warnings);
        if found.is_empty() { Ok(warnings) } else { Err(config::failure([found, warnings].concat())) }
    }

    /// A plan for reading: neither its bytes nor its JSON are made yet, which take more memory than the plan itself.
    pub async fn draft<'a>(
        &'a self,
        request: PlanRequest<'a>,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Draft<'a>, EngineError> {
        let session = Session::new(&*self.providers, request.workspace);
        Ok(Draft { workspace: request.workspace, drawn: self.draw(request, session, progress, stop).await? })
    }

    /// Whether these bytes are a plan of this engine.
    pub fn check_plan(&self, plan: &[u8]) -> Result<(), EngineError> {
        Content::read(plan, &self.version()).map(drop).map_err(EngineError::Stale)
    }

    async fn finished(&self, drawn: &Drawn<'_>, workspace: &Workspace) -> Plan {
        let Outline { changes, outputs_change, effective, warnings, .. } = drawn.outline();
        Plan {
            engine: EngineKind::Native,
            version: self.version(),
            bytes: drawn.content.write(),
            effective,
            changes,
            outputs_change,
            json: drawn.json(workspace).await,
            warnings,
        }
    }
}

/// A plan for reading; its text is what it displays.
pub struct Draft<'a> {
    workspace: &'a Workspace,
    drawn: Drawn<'a>,
}

impl Draft<'_> {
    /// What went wrong: there is something to be read, and nothing to be applied.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.drawn.problems
    }

    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.drawn.outline().warnings
    }

    /// False: applying would leave state and outputs as they are.
    pub fn effective(&self) -> bool {
        self.drawn.outline().effective
    }

    /// The plan itself.
    pub async fn plan(&self, engine: &Native) -> Plan {
        engine.finished(&self.drawn, self.workspace).await
    }
}

impl Draft<'_> {
    /// As people read it. Written piece by piece.
    pub fn on(&self, sheet: Sheet) -> impl fmt::Display + '_ {
        Page { draft: self, sheet }
    }
}

struct Page<'d, 'a> {
    draft: &'d Draft<'a>,
    sheet: Sheet,
}

impl fmt::Display for Page<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawn = &self.draft.drawn;
        let (schemas, relevant) = (drawn.schemas(), drawn.relevant());
        let failed = !drawn.problems.is_empty();
        let (content, schemas, relevant, sheet) = (&drawn.content, &schemas, &relevant, self.sheet);
        Readable { content, schemas, relevant, failed, sheet }.write(f)
    }
}

/// What has to be there before a folder can be planned.
pub struct Requirements {
    pub providers: BTreeMap<String, String>,
    /// The name of each module (`a.b` for `module.a.module.b`), its source as it is written, and where it is.
    pub modules: Vec<(String, String, String)>,
}

#[async_trait]
impl Engine for Native {
    fn kind(&self) -> EngineKind {
        EngineKind::Native
    }

    fn version(&self) -> String {
        format!("landform {} as opentofu {TERRAFORM_VERSION}", env!("CARGO_PKG_VERSION"))
    }

    async fn unsupported(&self, workspace: &Workspace) -> Result<Vec<Unsupported>, EngineError> {
        Ok(config::unsupported(workspace, &self.trees)?.err().unwrap_or_default())
    }

    async fn plan(&self, request: PlanRequest<'_>, progress: &dyn Progress, stop: &Stop) -> Result<Plan, EngineError> {
        let workspace = request.workspace;
        let session = Session::new(&*self.providers, request.workspace);
        let drawn = self.draw(request, session, progress, stop).await?.sound()?;
        Ok(self.finished(&drawn, workspace).await)
    }

    async fn apply(
        &self,
        request: ApplyRequest<'_>,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Applied, EngineError> {
        let workspace = request.workspace;
        let content = Content::read(request.plan, &self.version()).map_err(EngineError::Stale)?;
        let config = Config::kept(workspace, &content.configuration).map_err(config::failure)?;
        let base = workspace.state.as_deref().map(State::read).transpose().map_err(unreadable)?;
        let session = Session::new(&*self.providers, workspace);
        for source in content.made_from.providers.keys() {
            let address = config::provider_address(source);
            session.locate(&address, config.version_of(source)).await.map_err(EngineError::Diagnostics)?;
        }
        check_origin(&content.made_from, &origin(workspace, &config, base.as_ref(), session.digests())?)?;
        let made_from = MadeFrom { config: &config, base: base.as_ref(), content: &content };
        let mut applied = self.carry_out(made_from, &session, (journal, progress, stop)).await?;
        applied.diagnostics.extend(config.read_warnings());
        Ok(applied)
    }

    fn straight(&self) -> Option<&dyn Straight> {
        Some(self)
    }

    async fn salvage(&self, _scratch: &Path) -> Result<Option<Vec<u8>>, EngineError> {
        // Nothing is left in the scratch folder: whatever was done is in the journal.
        Ok(None)
    }
}

fn unreadable(error: StateError) -> EngineError {
    // OpenTofu reads and upgrades older ones.
    if let StateError::Format(format @ 1..=3) = error {
        let construct = format!("a state of format {format}");
        return EngineError::Unsupported(vec![Unsupported { construct, range: None }]);
    }
    EngineError::Diagnostics(vec![Diagnostic::error("Error loading state", error.to_string())])
}

fn summary(planned: &object::Planned) -> Change {
    Change {
        address: planned.address.to_string(),
        deposed: planned.deposed.clone(),
        action: planned.action,
        importing: planned.importing.as_ref().map(ToString::to_string),
    }
}

fn parse_address(text: &str) -> Result<Address, EngineError> {
    Address::parse(text).ok_or_else(|| {
        let detail = format!("{text:?} is not the address of an object.");
        EngineError::Diagnostics(vec![Diagnostic::error("Invalid address", detail)])
    })
}

fn adopted(request: &PlanRequest<'_>) -> Result<BTreeMap<Address, ImportTarget>, EngineError> {
    let adopted = |adopt: &crate::Adopt| Ok((parse_address(&adopt.address)?, ImportTarget::Id(adopt.id.clone())));
    request.adopt.iter().map(adopted).collect()
}

fn replaced(request: &PlanRequest<'_>) -> Result<BTreeSet<Address>, EngineError> {
    let managed = |text: &String| {
        let detail = match Address::parse(text) {
            Some(address) if !address.data => return Ok(address),
            Some(_) => "Only managed resources can be used with the -replace=... option.",
            None if text.starts_with("module.") => {
                "A resource instance address is required here. The module path must be followed by a resource instance \
                 specification."
            }
            None => "Resource specification must include a resource type and name.",
        };
        let problem = Diagnostic::error(format!("Invalid force-replace address {text:?}"), detail);
        Err(EngineError::Diagnostics(vec![problem]))
    };
    request.replace.iter().map(managed).collect()
}

fn doubted(request: &PlanRequest<'_>) -> Result<BTreeMap<Address, Vec<serde_json::Value>>, EngineError> {
    let mut doubted: BTreeMap<Address, Vec<serde_json::Value>> = BTreeMap::new();
    for update in &request.doubted {
        doubted.entry(parse_address(&update.address)?).or_default().extend(update.either.iter().cloned());
    }
    Ok(doubted)
}

/// Objects that are taken over enter the journal before anything else happens to them.
async fn journal_imports(content: &Content, state: &State, journal: &dyn Journal) -> Result<(), EngineError> {
    for planned in content.changes.iter().filter(|planned| planned.importing.is_some()) {
        let Some((provider, instance)) = state.current(&planned.address) else { continue };
        let intent = Intent {
            address: planned.address.to_string(),
            deposed: None,
            action: IntentAction::Import,
            type_name: planned.address.type_name.clone(),
            provider: provider.to_owned(),
            prior: None,
            planned: None,
            private: instance.private.clone(),
        };
        let ids = journal.intend(vec![intent]).await?;
        let entry = encode::entry(&planned.address, provider, &[instance]);
        for id in ids {
            journal.settle(id, Settlement::Object(entry.clone())).await?;
        }
    }
    Ok(())
}

/// The outputs that a state holds.
pub fn outputs(state: &State) -> Result<BTreeMap<String, Output>, StateError> {
    let parse = |raw: &serde_json::value::RawValue| {
        serde_json::from_str(raw.get()).map_err(|error| StateError::Malformed(error.to_string()))
    };
    let read = |(name, output): (&String, &crate::state::StateOutput)| {
        let output = Output { value: parse(&output.value)?, ty: parse(&output.ty)?, sensitive: output.sensitive };
        Ok((name.clone(), output))
    };
    state.outputs.iter().map(read).collect()
}

fn origin(
    workspace: &Workspace,
    config: &Config,
    base: Option<&State>,
    providers: BTreeMap<String, String>,
) -> Result<Origin, EngineError> {
    // Ephemeral variables may differ between plan and apply: credentials are renewed while a plan waits.
    let lasting = workspace.variables.iter().filter(|(name, _)| config.keeps(name));
    let variables: BTreeMap<&String, &serde_json::Value> =
        lasting.map(|(name, variable)| (name, &variable.value)).collect();
    let variables = serde_json::to_vec(&variables).expect("variables have string keys only");
    Ok(Origin {
        lineage: base.map(|state| state.lineage.clone()).unwrap_or_default(),
        serial: base.map_or(0, |state| state.serial),
        state: workspace.state.as_deref().map(digest).unwrap_or_default(),
        locks: locks(&workspace.folder)?,
        variables: digest(&variables),
        providers,
    })
}

fn check_origin(planned: &Origin, now: &Origin) -> Result<(), EngineError> {
    let stale = |what: &str| Err(EngineError::Stale(what.to_owned()));
    // A state that has appeared since then is one that was changed, not another one.
    if planned.lineage != now.lineage && !planned.lineage.is_empty() {
        let detail = "The given plan file can not be applied because it was created from a different state lineage.";
        let problem = Diagnostic::error("Saved plan does not match the given state", detail);
        return Err(EngineError::Diagnostics(vec![problem]));
    }
    if planned.lineage != now.lineage || planned.serial != now.serial || planned.state != now.state {
        return stale("the state was changed by another operation after the plan was created");
    }
    if planned.locks != now.locks {
        let detail = "The given plan file was created with a different set of external dependency selections than the current \
                      configuration. A saved plan can be applied only to the same configuration it was created \
                      from.\n\nCreate a new plan from the updated configuration.";
        let problem = Diagnostic::error("Inconsistent dependency lock file", detail);
        return Err(EngineError::Diagnostics(vec![problem]));
    }
    if planned.variables != now.variables {
        return stale("the variables have changed since the plan was made");
    }
    if planned.providers != now.providers {
        return stale("a provider's binary has changed since the plan was made");
    }
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names the versions of providers that a folder has settled on.
fn locks(folder: &Path) -> Result<String, EngineError> {
    let path = folder.join(".terraform.lock.hcl");
    match std::fs::read(&path) {
        Ok(content) => Ok(digest(&content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(EngineError::Io { context: format!("cannot read {}", path.display()), source }),
    }
}
