use std::sync::Arc;

use landform_domain::{Code, EngineChoice, EngineName, Problem};
use landform_engine::{Engine, EngineKind, Unsupported, Workspace};
use landform_registry::{Constraints, Version};

/// The engines that this worker has.
#[derive(Clone, Default)]
pub struct Engines {
    pub native: Option<Arc<dyn Engine>>,
    /// One for each version of OpenTofu or Terraform; the first that a template's `required_version` allows is taken.
    pub clis: Vec<Arc<dyn Engine>>,
}

/// An engine for a run, and why it is not the native one.
pub(crate) struct Chosen {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) reasons: Vec<String>,
}

impl Engines {
    /// The engine of this name for a workspace. For the same template that is always the same one.
    pub(crate) fn get(&self, name: EngineName, workspace: &Workspace) -> Result<Arc<dyn Engine>, Problem> {
        match name {
            EngineName::Native => self.native.clone().ok_or_else(|| missing(name)),
            EngineName::Cli => self.cli_for(workspace),
        }
    }

    fn cli_for(&self, workspace: &Workspace) -> Result<Arc<dyn Engine>, Problem> {
        if self.clis.is_empty() {
            return Err(missing(EngineName::Cli));
        }
        let required = required_version(workspace);
        let allowed = |engine: &&Arc<dyn Engine>| match number(&engine.version()) {
            Some(version) => required.allow(&version),
            None => required.is_empty(),
        };
        self.clis.iter().find(allowed).cloned().ok_or_else(|| {
            let there: Vec<String> = self.clis.iter().map(|engine| engine.version()).collect();
            let message = format!("the template requires {required}, and this worker has {}", there.join(", "));
            Problem::new(Code::EngineMissing, message)
        })
    }

    /// Decides before anything is planned. Nothing is started for it.
    pub(crate) async fn choose(&self, choice: EngineChoice, workspace: &Workspace) -> Result<Chosen, Problem> {
        match choice {
            EngineChoice::Cli => Ok(Chosen { engine: self.get(EngineName::Cli, workspace)?, reasons: Vec::new() }),
            EngineChoice::Native => {
                let engine = self.get(EngineName::Native, workspace)?;
                match engine.unsupported(workspace).await {
                    Ok(unsupported) if unsupported.is_empty() => Ok(Chosen { engine, reasons: Vec::new() }),
                    Ok(unsupported) => Err(Problem::new(Code::EngineUnsupported, explain(&unsupported).join("; "))),
                    Err(error) => Err(Problem::new(Code::PlanFailed, error.to_string())),
                }
            }
            EngineChoice::Auto => self.choose_freely(workspace).await,
        }
    }

    async fn choose_freely(&self, workspace: &Workspace) -> Result<Chosen, Problem> {
        let Some(native) = &self.native else {
            let reasons = vec!["this worker has no native engine".to_owned()];
            return Ok(Chosen { engine: self.get(EngineName::Cli, workspace)?, reasons });
        };
        let reasons = match native.unsupported(workspace).await {
            Ok(unsupported) => explain(&unsupported),
            // What is wrong with the configuration, the CLI says in the words that people know.
            Err(error) => vec![error.to_string()],
        };
        if reasons.is_empty() {
            return Ok(Chosen { engine: native.clone(), reasons });
        }
        if self.clis.is_empty() {
            return Err(Problem::new(Code::EngineUnsupported, reasons.join("; ")));
        }
        Ok(Chosen { engine: self.cli_for(workspace)?, reasons })
    }
}

fn missing(name: EngineName) -> Problem {
    Problem::new(Code::EngineMissing, format!("this worker has no {name} engine"))
}

/// What the template's root module says about the version of what runs it. A constraint that nobody can read is left
/// to the CLI, which says what is wrong with it.
fn required_version(workspace: &Workspace) -> Constraints {
    let versions = landform_lang::required_versions(&workspace.folder);
    let readable = versions.iter().filter_map(|required| required.constraint.parse::<Constraints>().ok());
    readable.fold(Constraints::default(), Constraints::and)
}

/// From `opentofu 1.12.6`.
fn number(version: &str) -> Option<Version> {
    version.split(' ').nth(1)?.parse().ok()
}

pub(crate) fn name(kind: EngineKind) -> EngineName {
    match kind {
        EngineKind::Native => EngineName::Native,
        EngineKind::Cli => EngineName::Cli,
    }
}

pub(crate) fn explain(unsupported: &[Unsupported]) -> Vec<String> {
    let line = |item: &Unsupported| match &item.range {
        Some(range) => format!("{}:{}: {}", range.file, range.line, item.construct),
        None => item.construct.clone(),
    };
    unsupported.iter().map(line).collect()
}
