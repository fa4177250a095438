use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use landform_cty::Value;
use landform_protocol::{Configure, Provider, ProviderSchema};
use tokio::sync::OnceCell;

use super::answers::Answers;
use super::builtin::{self, Builtin};
use super::config::Config;
use super::eval::Eval;
use super::object::{Bound, Memory, Outcome, bare};
use super::ports::{Located, Providers, Requirement};
use super::show::{Schemas, source_of};
use super::sound::{Kind, Sound, SoundFor};
use super::warnings::Warnings;
use crate::state::{TERRAFORM_VERSION, split_provider};
use crate::{Diagnostic, Seen, Severity, Workspace};

/// What OpenTofu 1.12.6 tells a provider about its own version: the Terraform that it is compatible with, since providers
/// make decisions by it.
const VERSION_FOR_PROVIDERS: &str = "1.13.0";

/// The providers of one plan or one apply. Each is started when it is first needed and configured once. It ends with the
/// session, or with that of the apply that follows at once; no configured process is ever used for another run.
pub struct Session<'a> {
    providers: &'a dyn Providers,
    workspace: &'a Workspace,
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
    pub warnings: Warnings,
    /// An apply may follow at once, so what providers answer is kept for it; and nothing is asked that was found sound by an
    /// earlier run.
    straight: Option<Sound>,
}

#[derive(Default)]
struct Slot {
    /// What the plan of the same run has left: a provider with the configuration that it has for life.
    earlier: Option<Configured>,
    located: OnceCell<Outcome<Located>>,
    started: OnceCell<Outcome<Started>>,
    bound: OnceCell<Outcome<(Bound, Value)>>,
    answers: Answers,
}

#[derive(Clone)]
struct Configured {
    started: Started,
    with: Value,
    answers: Answers,
}

#[derive(Clone)]
pub struct Started {
    pub provider: Arc<dyn Provider>,
    pub schema: Arc<ProviderSchema>,
}

impl<'a> Session<'a> {
    pub fn new(providers: &'a dyn Providers, workspace: &'a Workspace) -> Session<'a> {
        Session { providers, workspace, slots: Mutex::default(), warnings: Warnings::default(), straight: None }
    }

    /// The session of a plan that is to be carried out at once.
    pub fn before_apply(providers: &'a dyn Providers, workspace: &'a Workspace, sound: &Sound) -> Session<'a> {
        Session { straight: Some(sound.clone()), ..Session::new(providers, workspace) }
    }

    /// The session of an apply that follows its plan at once. A provider goes on if it would be configured just the same;
    /// what a plan did not know yet makes another configuration, and that is another process.
    pub fn after(plan: &Session<'a>) -> Session<'a> {
        let left = |slot: &Slot| {
            let earlier = match (slot.started.get(), slot.bound.get()) {
                (Some(Ok(started)), Some(Ok((_, with)))) if with.is_wholly_known() => {
                    Some(Configured { started: started.clone(), with: with.clone(), answers: slot.answers.clone() })
                }
                _ => None,
            };
            let located = OnceCell::new_with(slot.located.get().cloned());
            Arc::new(Slot { earlier, located, ..Slot::default() })
        };
        let slots = plan.slots().into_iter().map(|(address, slot)| (address, left(&slot))).collect();
        Session { slots: Mutex::new(slots), warnings: Warnings::default(), straight: None, ..*plan }
    }

    fn slot(&self, address: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(address.to_owned()).or_default().clone()
    }

    fn slots(&self) -> Vec<(String, Arc<Slot>)> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(address, slot)| (address.clone(), slot.clone())).collect()
    }

    /// Finds a provider without starting it.
    pub async fn locate(&self, address: &str, version: &str) -> Outcome<Located> {
        let source = source_of(address);
        if source == builtin::SOURCE {
            let version = TERRAFORM_VERSION.to_owned();
            let path = std::path::PathBuf::new();
            return Ok(Located { source: source.to_owned(), digest: version.clone(), version, path });
        }
        let find = async {
            let requirement = Requirement { source: source.to_owned(), version: version.to_owned() };
            self.providers.locate(&self.workspace.folder, &requirement).await.map_err(|diagnostic| vec![diagnostic])
        };
        self.slot(address).located.get_or_init(|| find).await.clone()
    }

    /// A running provider that is not configured yet.
    pub async fn started(&self, address: &str, config: &Config) -> Outcome<Started> {
        let start = async {
            let provider: Arc<dyn Provider> = if source_of(address) == builtin::SOURCE {
                Arc::new(Builtin)
            } else {
                let located = self.locate(address, config.version_of(source_of(address))).await?;
                let started = self.providers.start(&located, &self.workspace.environment).await;
                started.map_err(|diagnostic| vec![diagnostic])?
            };
            let schema = provider.schema().await.map_err(|error| {
                vec![Diagnostic::error("Failed to load plugin schemas", format!("{}: {error}", source_of(address)))]
            })?;
            Ok(Started { provider, schema })
        };
        self.slot(address).started.get_or_init(|| start).await.clone()
    }

    /// A provider that is ready to work.
    pub async fn bound(&self, address: &str, eval: &Eval<'_>) -> Outcome<Bound> {
        let slot = self.slot(address);
        let configure = async {
            if let Some(Configured { started, with, answers }) = &slot.earlier {
                let value = bare(&eval.provider(address, &started.schema.provider.block)?);
                if value == *with {
                    let Started { provider, schema } =
                        slot.started.get_or_init(|| async { Ok(started.clone()) }).await.clone()?;
                    let memory = Memory::Recalling(answers.clone());
                    return Ok((Bound { memory, ..self.ready(address, provider, schema) }, value));
                }
            }
            let Started { provider, schema } = self.started(address, eval.config).await?;
            let value = bare(&eval.provider(address, &schema.provider.block)?);
            self.ask_about(&*provider, address, value.clone()).await?;
            let call = Configure { terraform_version: VERSION_FOR_PROVIDERS.to_owned(), config: value.clone() };
            let answer = provider.configure(call).await;
            let diagnostics = answer.map_err(|error| vec![unanswered(address, &error)])?;
            accept(address, diagnostics)?;
            let memory = match self.straight {
                Some(_) => Memory::Keeping(slot.answers.clone()),
                None => Memory::None,
            };
            Ok((Bound { memory, ..self.ready(address, provider, schema) }, value))
        };
        slot.bound.get_or_init(|| configure).await.clone().map(|(bound, _)| bound)
    }

    fn ready(&self, address: &str, provider: Arc<dyn Provider>, schema: Arc<ProviderSchema>) -> Bound {
        Bound { provider, schema, address: address.to_owned(), warnings: self.warnings.clone(), memory: Memory::None }
    }

    /// A provider that is not configured: good for validating only.
    pub async fn blank(&self, address: &str, config: &Config) -> Outcome<Bound> {
        let Started { provider, schema } = self.started(address, config).await?;
        let memory = self.sound_for(address).map_or(Memory::None, Memory::Sound);
        Ok(Bound { memory, ..self.ready(address, provider, schema) })
    }

    fn sound_for(&self, address: &str) -> Option<SoundFor> {
        let sound = self.straight.as_ref()?;
        let slot = self.slot(address);
        let located = slot.located.get()?.as_ref().ok()?;
        Some(sound.for_provider(&located.digest, &self.workspace.environment))
    }

    /// What a provider can do. One that the plan has left need not be started again to know.
    pub async fn schema(&self, address: &str, config: &Config) -> Outcome<Arc<ProviderSchema>> {
        match &self.slot(address).earlier {
            Some(earlier) => Ok(earlier.started.schema.clone()),
            None => Ok(self.started(address, config).await?.schema),
        }
    }

    /// Asks the provider whether a configuration for itself is sound.
    pub async fn validate(&self, address: &str, config: &Config, value: Value) -> Outcome<()> {
        let started = self.started(address, config).await?;
        self.ask_about(&*started.provider, address, value).await
    }

    async fn ask_about(&self, provider: &dyn Provider, address: &str, value: Value) -> Outcome<()> {
        let config = value.clone();
        // The answer may hold the provider's own defaults; OpenTofu configures with what was written, and so does this.
        let ask = async { provider.validate_provider_config(value).await.map(|(_, diagnostics)| diagnostics) };
        let answer = match self.sound_for(address) {
            Some(sound) => sound.unless_known(Kind::Provider, "", &config, ask).await,
            None => ask.await,
        };
        accept(address, answer.map_err(|error| vec![unanswered(address, &error)])?)
    }

    /// The schemas of all providers that were started.
    pub fn schemas(&self) -> Schemas {
        let mut schemas = Schemas::new();
        for (address, slot) in self.slots() {
            let Some(Ok(started)) = slot.started.get() else { continue };
            // One of several says for the block, too: a state names the block of what it holds.
            schemas.insert(split_provider(&address).0.to_owned(), started.schema.clone());
            schemas.insert(address, started.schema.clone());
        }
        schemas
    }

    /// By source address: what was found, and is named by the plan.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let located = self.slots().into_iter().filter_map(|(address, slot)| {
            let located = slot.located.get()?.as_ref().ok()?;
            Some((source_of(&address).to_owned(), located.digest.clone()))
        });
        located.collect()
    }

    /// The most memory that the processes of all providers have had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let slots = self.slots();
        let started = slots.iter().filter_map(|(_, slot)| slot.started.get()?.as_ref().ok());
        started.map(|started| started.provider.peak_memory()).sum()
    }

    /// Asks every call under way to end early. The processes are this session's own, so nobody else is disturbed.
    pub async fn stop_calls(&self) {
        for (_, slot) in self.slots() {
            if let Some(Ok(started)) = slot.started.get()
                && let Err(error) = started.provider.stop().await
            {
                tracing::debug!(%error, "a provider could not be asked to stop");
            }
        }
    }
}

fn unanswered(address: &str, error: &landform_protocol::CallError) -> Diagnostic {
    Diagnostic::error("Plugin did not respond", format!("{}: {error}", source_of(address)))
}

fn accept(address: &str, diagnostics: landform_protocol::Diagnostics) -> Outcome<()> {
    let translate = |diagnostic: landform_protocol::Diagnostic| Diagnostic {
        severity: match diagnostic.severity {
            landform_protocol::Severity::Error => Severity::Error,
            landform_protocol::Severity::Warning => Severity::Warning,
        },
        summary: diagnostic.summary,
        detail: diagnostic.detail,
        address: Some(address.to_owned()),
        range: None,
        seen: Box::new(Seen { argument: Some(diagnostic.attribute.unwrap_or_default()), ..Seen::default() }),
    };
    let diagnostics: Vec<Diagnostic> = diagnostics.into_iter().map(translate).collect();
    if diagnostics.iter().any(Diagnostic::is_error) { Err(diagnostics) } else { Ok(()) }
}
