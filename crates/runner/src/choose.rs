use std::sync::Arc;

use landform_domain::{Code, EngineChoice, EngineName, Problem};
use landform_engine::{Engine, EngineKind, Unsupported, Workspace};

/// The engines that this worker has.
#[derive(Clone, Default)]
pub struct Engines {
    pub native: Option<Arc<dyn Engine>>,
    pub cli: Option<Arc<dyn Engine>>,
}

/// An engine for a run, and why it is not the native one.
pub(crate) struct Chosen {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) reasons: Vec<String>,
}

impl Engines {
    pub(crate) fn get(&self, name: EngineName) -> Result<Arc<dyn Engine>, Problem> {
        let engine = match name {
            EngineName::Native => &self.native,
            EngineName::Cli => &self.cli,
        };
        engine.clone().ok_or_else(|| Problem::new(Code::EngineMissing, format!("this worker has no {name} engine")))
    }

    /// Decides before anything is planned. Nothing is started for it.
    pub(crate) async fn choose(&self, choice: EngineChoice, workspace: &Workspace) -> Result<Chosen, Problem> {
        match choice {
            EngineChoice::Cli => Ok(Chosen { engine: self.get(EngineName::Cli)?, reasons: Vec::new() }),
            EngineChoice::Native => {
                let engine = self.get(EngineName::Native)?;
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
            return Ok(Chosen { engine: self.get(EngineName::Cli)?, reasons });
        };
        let reasons = match native.unsupported(workspace).await {
            Ok(unsupported) => explain(&unsupported),
            // What is wrong with the configuration, the CLI says in the words that people know.
            Err(error) => vec![error.to_string()],
        };
        if reasons.is_empty() {
            return Ok(Chosen { engine: native.clone(), reasons });
        }
        match &self.cli {
            Some(cli) => Ok(Chosen { engine: cli.clone(), reasons }),
            None => Err(Problem::new(Code::EngineUnsupported, reasons.join("; "))),
        }
    }
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
