//! One deployment as a caller would drive it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use async_trait::async_trait;
use landform_engine::cli::{Cli, CliSettings, Confine};
use landform_engine::{
    Applied, ApplyRequest, Engine, EngineError, Intent, IntentId, Journal, Mode, Plan, PlanRequest, Progress,
    ProgressEvent, Refused, Settlement, Silent, Stop, Variable, Workspace,
};
use landform_testkit::parts;
use serde_json::Value;

/// A journal in memory that can be told to refuse.
#[derive(Default)]
pub struct Notes {
    pub intents: Mutex<Vec<Intent>>,
    pub settled: Mutex<Vec<(IntentId, bool)>>,
    pub refuse: bool,
}

#[async_trait]
impl Journal for Notes {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        if self.refuse {
            return Err(Refused::Fenced);
        }
        let mut all = self.intents.lock().unwrap();
        let first = all.len() as i64;
        all.extend(intents);
        Ok((first..all.len() as i64).map(IntentId).collect())
    }

    async fn settle(&self, intent: IntentId, settlement: Settlement) -> Result<(), Refused> {
        self.settled.lock().unwrap().push((intent, settlement == Settlement::Untouched));
        Ok(())
    }
}

#[derive(Default)]
pub struct Watched(pub Mutex<Vec<ProgressEvent>>);

impl Progress for Watched {
    fn report(&self, event: ProgressEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// One deployment as a caller would drive it, with the state carried from run to run.
pub struct Bench {
    pub root: tempfile::TempDir,
    pub engine: Cli,
    pub state: Option<Vec<u8>>,
    pub variables: BTreeMap<String, Variable>,
    pub environment: BTreeMap<String, String>,
    runs: u32,
}

impl Bench {
    pub async fn new(configuration: &str) -> Bench {
        Bench::with_mirror(configuration, parts::mirror()).await
    }

    pub async fn with_mirror(configuration: &str, mirror: PathBuf) -> Bench {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("seen")).unwrap();
        let engine = Cli::detect(CliSettings {
            binary: parts::tofu(),
            mirror: Some(mirror),
            cache: root.path().join("cache"),
            confinement: Confine::Required,
            may_read: Vec::new(),
            may_write: vec![root.path().join("seen")],
        });
        let engine = engine.await.unwrap();
        let bench =
            Bench { root, engine, state: None, variables: BTreeMap::new(), environment: BTreeMap::new(), runs: 0 };
        bench.write("main.tf", configuration);
        bench
    }

    pub fn write(&self, name: &str, text: &str) {
        let folder = self.root.path().join("template");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), Variable::new(value, false));
    }

    pub fn workspace(&mut self) -> Workspace {
        self.runs += 1;
        Workspace {
            folder: self.root.path().join("template"),
            scratch: self.root.path().join(format!("run-{}", self.runs)),
            variables: self.variables.clone(),
            state: self.state.clone(),
            environment: self.environment.clone(),
        }
    }

    pub async fn plan(&self, workspace: &Workspace, mode: Mode) -> Result<Plan, EngineError> {
        let request = PlanRequest { workspace, mode, adopt: Vec::new(), replace: Vec::new(), doubted: Vec::new() };
        self.engine.plan(request, &Silent, &Stop::new()).await
    }

    pub async fn apply(&self, workspace: &Workspace, plan: &Plan, journal: &Notes) -> Result<Applied, EngineError> {
        self.engine.apply(ApplyRequest { workspace, plan: &plan.bytes }, journal, &Silent, &Stop::new()).await
    }

    /// Plans and applies, and keeps the state.
    pub async fn run(&mut self, mode: Mode) -> (Plan, Applied, Vec<Intent>) {
        let workspace = self.workspace();
        let plan = self.plan(&workspace, mode).await.map_err(|e| panic!("{e:?}")).unwrap();
        let journal = Notes::default();
        let applied = self.apply(&workspace, &plan, &journal).await.map_err(|e| panic!("{e:?}")).unwrap();
        self.state = Some(applied.state.clone());
        (plan, applied, journal.intents.into_inner().unwrap())
    }

    pub fn cached(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.root.path().join("cache")).unwrap();
        entries.map(|e| e.unwrap().path()).filter(|path| path.is_dir()).collect()
    }
}
