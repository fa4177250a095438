//! The two halves of a run, plan and apply; and both in one go, for a run that nobody has to approve.
//!
//! In one go the configuration is read once, the plan is not turned into bytes and back, and providers go on as they
//! are: a process of the run's own is started and configured once, not twice. Nor are they asked twice for the plan of an
//! object of which everything was known the first time.

use async_trait::async_trait;

use super::apply::Apply;
use super::config::{self, Config};
use super::content::Content;
use super::eval::DERIVED;
use super::plan::{self, Planner, moved_state};
use super::session::Session;
use super::{
    Native, adopted, clock, doubted, encode, journal_imports, origin, outputs, replaced, show, summary, unreadable,
};
use crate::state::State;
use crate::{
    Action, Applied, Change, Diagnostic, EngineError, Gate, Gone, Journal, Mode, Outline, PlanRequest, Progress, Stop,
    Straight, Workspace,
};

/// A plan with what it was made with.
pub(super) struct Drawn<'a> {
    config: Config,
    base: Option<State>,
    session: Session<'a>,
    pub(super) content: Content,
    /// Whether the state knows more of its objects by now, beside what they are.
    restated: bool,
    /// The outputs of modules that have a value, by instance.
    said: Vec<(String, String)>,
    warnings: Vec<Diagnostic>,
    /// What went wrong on the way, if something did: then there is only a part of it.
    pub(super) problems: Vec<Diagnostic>,
}

fn holds_data(state: &[u8]) -> bool {
    State::read(state).is_ok_and(|state| state.resources().iter().any(|resource| resource.mode == "data"))
}

/// Whether two states hold something else of the same objects: who is in charge of them, on what they stand, how they end.
/// People are not told, but where nothing else is planned it is worth being kept.
fn differ_beside_values(before: &State, after: &State) -> bool {
    let managed = before.objects().filter(|object| !object.address.data);
    let mut both = managed.filter_map(|object| {
        let of = |state: &State| {
            let (provider, instance) = state.object(&object.address, object.deposed.as_deref())?;
            let ends = (instance.create_before_destroy, instance.skip_destroy);
            Some((provider.to_owned(), instance.dependencies.clone(), ends, instance.private.clone()))
        };
        of(before).zip(of(after))
    });
    both.any(|(before, after)| before != after)
}

/// What is carried out.
pub(super) struct MadeFrom<'a> {
    pub(super) config: &'a Config,
    pub(super) base: Option<&'a State>,
    pub(super) content: &'a Content,
}

impl Drawn<'_> {
    /// The plan, unless something went wrong.
    pub(super) fn sound(self) -> Result<Self, EngineError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        Err(EngineError::Diagnostics([self.problems, self.warnings].concat()))
    }

    pub(super) fn schemas(&self) -> show::Schemas {
        self.session.schemas()
    }

    /// What decided about the changes. Only drift is measured by it.
    pub(super) fn relevant(&self) -> Vec<serde_json::Value> {
        if self.content.drift.is_empty() {
            return Vec::new();
        }
        show::relevant(&self.content, &self.config, &self.said, &self.session.schemas())
    }

    /// What people are told of it, in short.
    pub(super) fn outline(&self) -> Outline {
        let content = &self.content;
        let changes: Vec<Change> = content.changes.iter().filter(|planned| planned.effective()).map(summary).collect();
        let outputs_change = content.outputs.values().any(|output| output.action() != Action::NoOp);
        let changed = |drift: &super::object::Planned| drift.action != Action::NoOp;
        let drifted = content.mode == Mode::RefreshOnly && (self.restated || content.drift.iter().any(changed));
        // Data that was read is forgotten with the rest. People are not told, but there is something to apply.
        let nothing_else = changes.is_empty() && !outputs_change;
        let forgotten = content.mode == Mode::Destroy && nothing_else && holds_data(&content.refreshed);
        Outline {
            effective: !changes.is_empty() || outputs_change || drifted || forgotten,
            changes,
            outputs_change,
            warnings: self.warnings.clone(),
            json: None,
        }
    }

    /// The whole of it in the format of `tofu show -json`, which is several times as large as the plan itself.
    pub(super) async fn json(&self, workspace: &Workspace) -> serde_json::Value {
        for address in self.config.provider_addresses() {
            let known = self.session.schemas();
            if known.keys().any(|other| show::source_of(other) == show::source_of(&address)) {
                continue;
            }
            // It has nothing to do, and is shown all the same. One that cannot be had is shown without its arguments.
            if let Err(found) = self.session.schema(&address, &self.config).await {
                tracing::debug!(address, ?found, "a provider's schema cannot be had");
            }
        }
        show::plan(&self.content, &self.config, workspace, &self.said, &self.session.schemas())
    }
}

impl Native {
    pub(super) async fn draw<'a>(
        &'a self,
        request: PlanRequest<'a>,
        session: Session<'a>,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Drawn<'a>, EngineError> {
        let workspace = request.workspace;
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::of_tree(tree, workspace).map_err(config::failure)?;
        let base = workspace.state.as_deref().map(State::read).transpose().map_err(unreadable)?;
        let start = base.clone().unwrap_or_else(|| State::new(uuid::Uuid::new_v4().to_string()));
        let (start, moved, warnings) = moved_state(&config, &start);
        let timestamp = clock::now();
        let mut planner = Planner::new(&config, &session, &start, (progress, stop), self.parallelism, &timestamp);
        planner.moved = moved;
        planner.refresh = self.refresh;
        planner.mode = request.mode;
        planner.eval.lenient = request.mode != Mode::Normal;
        planner.adopt = adopted(&request)?;
        planner.replace = replaced(&request)?;
        planner.doubted = doubted(&request)?;
        let made = planner.run().await;
        progress.memory(session.peak_memory());
        let plan::Made { world, outputs, said, checks, warnings: more, problems } =
            made.map_err(|error| match error {
                EngineError::Diagnostics(mut found) => {
                    config.locate(&mut found);
                    EngineError::Diagnostics([found, config.warnings()].concat())
                }
                other => other,
            })?;
        let restated = request.mode == Mode::RefreshOnly && differ_beside_values(&start, &world.refreshed);
        let content = Content {
            engine: crate::Engine::version(self),
            made_from: origin(workspace, &config, base.as_ref(), session.digests())?,
            configuration: config.files(),
            mode: request.mode,
            timestamp,
            refreshed: world.refreshed.write(),
            changes: world.changes,
            drift: world.drift,
            outputs,
            checks,
            deprecations: more.iter().any(|warning| warning.summary == DERIVED),
        };
        let mut warnings = [config.warnings(), warnings, more, session.warnings.take()].concat();
        config.locate(&mut warnings);
        let mut problems = problems;
        config.locate(&mut problems);
        Ok(Drawn { config, base, session, content, restated, said, warnings, problems })
    }

    pub(super) async fn carry_out(
        &self,
        made_from: MadeFrom<'_>,
        session: &Session<'_>,
        ports: (&dyn Journal, &dyn Progress, &Stop),
    ) -> Result<Applied, EngineError> {
        let MadeFrom { config, base, content } = made_from;
        let (journal, progress, stop) = ports;
        if stop.is_cancelled() {
            return Err(EngineError::Stopped);
        }
        let start = State::read(&content.refreshed).map_err(unreadable)?;
        journal_imports(content, &start, journal).await?;
        let ended = Apply::new(config, content, session, ports, start, self.parallelism).run().await;
        progress.memory(session.peak_memory());
        let mut ended = ended?;
        config.locate(&mut ended.diagnostics);
        let mut state = ended.state;
        state.set_check_results(encode::check_results(&ended.checks));
        state.follow(base);
        let outputs = outputs(&state).map_err(unreadable)?;
        Ok(Applied { state: state.write(), outputs, diagnostics: ended.diagnostics, stopped: ended.stopped })
    }
}

#[async_trait]
impl Straight for Native {
    async fn go(
        &self,
        request: PlanRequest<'_>,
        gate: &dyn Gate,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Gone, EngineError> {
        let workspace = request.workspace;
        let session = Session::before_apply(&*self.providers, workspace, &self.sound);
        let drawn = self.draw(request, session, progress, stop).await?.sound()?;
        let outline = Outline { json: Some(drawn.json(workspace).await), ..drawn.outline() };
        let effective = outline.effective;
        if !gate.open(outline).await || !effective {
            return Ok(Gone::Held);
        }
        let session = Session::after(&drawn.session);
        let made_from = MadeFrom { config: &drawn.config, base: drawn.base.as_ref(), content: &drawn.content };
        self.carry_out(made_from, &session, (journal, progress, stop)).await.map(Gone::Through)
    }
}
