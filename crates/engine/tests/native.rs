//! The native engine with a real provider process: the journal comes first, doubt stays doubt, and nothing is made twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use landform_engine::native::{Located, Native, Providers, Requirement};
use landform_engine::state::{self, Settled};
use landform_engine::{
    Action, Adopt, Applied, ApplyRequest, Diagnostic, Doubted, Engine, EngineError, Intent, IntentAction, IntentId,
    Journal, Mode, Plan, PlanRequest, Refused, Settlement, Silent, Stop, Workspace,
};
use landform_plugin::{Binary, Launch, Process, Schemas};
use landform_protocol::Provider;
use landform_testkit::{ledger, programs};

/// The ledger provider, and nothing else. Its processes are registered in a folder, so that a test can end them.
struct Ledger {
    register: PathBuf,
}

#[async_trait]
impl Providers for Ledger {
    async fn locate(&self, _folder: &Path, requirement: &Requirement) -> Result<Located, Diagnostic> {
        let binary = Binary::at(&programs::path("terraform-provider-ledger")).unwrap();
        let (source, version) = (requirement.source.clone(), ledger::VERSION.to_owned());
        Ok(Located { source, version, digest: binary.sha256, path: binary.path })
    }

    async fn start(&self, located: &Located, _: &BTreeMap<String, String>) -> Result<Arc<dyn Provider>, Diagnostic> {
        let binary = Binary { path: located.path.clone(), sha256: located.digest.clone() };
        let launch = Launch { register: Some(self.register.clone()), ..Launch::new(&located.path) };
        Ok(Arc::new(Process::start(binary, launch, Arc::new(Schemas::in_memory())).await.unwrap()))
    }
}

type OnIntent = Box<dyn Fn(&Intent) -> Result<(), Refused> + Send + Sync>;

/// What a journal is told; and what it does about it.
#[derive(Default)]
struct Told {
    intents: Mutex<Vec<Intent>>,
    settled: Mutex<Vec<(IntentId, Settlement)>>,
    on_intent: Option<OnIntent>,
}

impl Told {
    fn doing(on_intent: impl Fn(&Intent) -> Result<(), Refused> + Send + Sync + 'static) -> Told {
        Told { on_intent: Some(Box::new(on_intent)), ..Told::default() }
    }

    fn actions(&self) -> Vec<(String, IntentAction)> {
        self.intents.lock().unwrap().iter().map(|intent| (intent.address.clone(), intent.action)).collect()
    }

    fn settlements(&self) -> Vec<Settled> {
        let intents = self.intents.lock().unwrap();
        let settled = self.settled.lock().unwrap();
        let entry = |(id, settlement): &(IntentId, Settlement)| Settled {
            address: intents[id.0 as usize].address.clone(),
            deposed: None,
            settlement: settlement.clone(),
        };
        settled.iter().map(entry).collect()
    }
}

#[async_trait]
impl Journal for Told {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        for intent in &intents {
            self.on_intent.as_ref().map_or(Ok(()), |act| act(intent))?;
        }
        let mut all = self.intents.lock().unwrap();
        let first = all.len() as i64;
        let ids = (first..first + intents.len() as i64).map(IntentId).collect();
        all.extend(intents);
        Ok(ids)
    }

    async fn settle(&self, intent: IntentId, settlement: Settlement) -> Result<(), Refused> {
        self.settled.lock().unwrap().push((intent, settlement));
        Ok(())
    }
}

struct Scene {
    folder: tempfile::TempDir,
    engine: Native,
    workspace: Workspace,
}

impl Scene {
    fn new(content: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let (work, register) = (folder.path().join("work"), folder.path().join("register"));
        std::fs::create_dir(&work).unwrap();
        let workspace = Workspace {
            folder: work,
            scratch: folder.path().to_owned(),
            variables: BTreeMap::new(),
            state: None,
            environment: BTreeMap::new(),
        };
        let scene = Scene { engine: Native::new(Arc::new(Ledger { register })), folder, workspace };
        scene.write(content);
        scene
    }

    fn ledger_path(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    fn ledger(&self) -> ledger::Ledger {
        ledger::read(&self.ledger_path()).unwrap()
    }

    fn write(&self, content: &str) {
        let head = format!(
            "terraform {{\n  required_providers {{\n    ledger = {{ source = \"landform/ledger\" }}\n  }}\n}}\n\
             provider \"ledger\" {{ ledger = {:?} }}\n",
            self.ledger_path().display().to_string()
        );
        std::fs::write(self.workspace.folder.join("main.tf"), format!("{head}{content}")).unwrap();
    }

    async fn plan_with(&self, mode: Mode, adopt: Vec<Adopt>) -> Result<Plan, EngineError> {
        let request = PlanRequest { workspace: &self.workspace, mode, adopt, replace: Vec::new(), doubted: Vec::new() };
        self.engine.plan(request, &Silent, &Stop::new()).await
    }

    async fn plan_after(&self, intents: &[Intent]) -> Plan {
        let doubted = intents.iter().filter_map(Doubted::of).collect();
        let (mode, adopt, replace) = (Mode::Normal, Vec::new(), Vec::new());
        let request = PlanRequest { workspace: &self.workspace, mode, adopt, replace, doubted };
        self.engine.plan(request, &Silent, &Stop::new()).await.unwrap()
    }

    async fn plan(&self) -> Plan {
        self.plan_with(Mode::Normal, Vec::new()).await.unwrap()
    }

    async fn apply(&self, plan: &Plan, journal: &Told, stop: &Stop) -> Result<Applied, EngineError> {
        let request = ApplyRequest { workspace: &self.workspace, plan: &plan.bytes };
        self.engine.apply(request, journal, &Silent, stop).await
    }

    /// Plans, applies and keeps the state.
    async fn converge(&mut self) -> (Told, Applied) {
        let journal = Told::default();
        let plan = self.plan().await;
        let applied = self.apply(&plan, &journal, &Stop::new()).await.unwrap();
        self.workspace.state = Some(applied.state.clone());
        (journal, applied)
    }
}

const CHAIN: &str = r#"
resource "ledger_object" "a" {
  name = "a"
}
resource "ledger_object" "b" {
  name = "b"
  kind = "of-${ledger_object.a.id}"
}
"#;

#[tokio::test]
async fn a_refusal_of_the_journal_means_that_nothing_is_called() {
    let scene = Scene::new(CHAIN);
    let plan = scene.plan().await;
    let journal = Told::doing(|_| Err(Refused::Fenced));
    let outcome = scene.apply(&plan, &journal, &Stop::new()).await;
    assert!(matches!(outcome, Err(EngineError::Refused(Refused::Fenced))));
    assert_eq!(scene.ledger().operations, []);
}

#[tokio::test]
async fn every_change_is_intended_before_it_is_made_and_settled_after() {
    let mut scene = Scene::new(CHAIN);
    let path = scene.ledger_path();
    let plan = scene.plan().await;
    let journal = Told::doing(move |intent| {
        let made = ledger::read(&path).unwrap();
        assert!(made.named(intent.address.rsplit('.').next().unwrap()).is_empty(), "made before it was intended");
        Ok(())
    });
    let applied = scene.apply(&plan, &journal, &Stop::new()).await.unwrap();
    assert!(applied.complete());
    let create = |name: &str| (format!("ledger_object.{name}"), IntentAction::Create);
    assert_eq!(journal.actions(), [create("a"), create("b")]);
    let replayed = state::replay(None, &journal.settlements()).unwrap();
    let objects = |bytes: &[u8]| state::objects(bytes).unwrap();
    assert_eq!(objects(&replayed), objects(&applied.state), "the journal alone gives the same objects");

    scene.workspace.state = Some(applied.state);
    scene.write(&CHAIN.replace("name = \"a\"", "name = \"a\"\n  kind = \"new\""));
    let before = scene.workspace.state.clone().unwrap();
    let (journal, applied) = scene.converge().await;
    let (a, b) = ("ledger_object.a".to_owned(), "ledger_object.b".to_owned());
    let want = [
        (b.clone(), IntentAction::Delete),
        (a.clone(), IntentAction::Delete),
        (a, IntentAction::Create),
        (b, IntentAction::Create),
    ];
    assert_eq!(journal.actions(), want, "both halves of a replacement, in the order that the objects allow");
    let replayed = state::replay(Some(&before), &journal.settlements()).unwrap();
    assert_eq!(objects(&replayed), objects(&applied.state));
    assert_eq!(scene.ledger().objects.len(), 2);
    assert!(!scene.plan().await.effective, "nothing is left to do");
}

#[tokio::test]
async fn a_provider_that_dies_in_the_middle_leaves_its_intent_open() {
    let scene = Scene::new("resource \"ledger_object\" \"a\" {\n  name = \"a\"\n  delay_ms = 4000\n}\n");
    let plan = scene.plan().await;
    let (register, path) = (scene.folder.path().join("register"), scene.ledger_path());
    let journal = Told::doing(move |_| {
        let (register, path) = (register.clone(), path.clone());
        tokio::spawn(async move {
            // The object exists as soon as the ledger says so, and the provider has not answered yet.
            while ledger::read(&path).unwrap().objects.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            for entry in std::fs::read_dir(register).unwrap().flatten() {
                let entry: serde_json::Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
                let pid = entry["pid"].to_string();
                assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
            }
        });
        Ok(())
    });
    let outcome = scene.apply(&plan, &journal, &Stop::new()).await;
    let Err(EngineError::Lost(detail)) = outcome else { panic!("the doubt is not stated") };
    assert!(detail.contains("ledger_object.a"), "{detail}");
    assert_eq!(journal.actions().len(), 1);
    assert_eq!(journal.settlements().len(), 0, "the intent stays open");
    assert_eq!(scene.ledger().objects.len(), 1, "and the object does exist");
}

#[tokio::test]
async fn a_failed_create_is_told_and_leaves_nothing() {
    let scene = Scene::new(CHAIN);
    let plan = scene.plan().await;
    std::fs::create_dir(scene.ledger_path()).unwrap();
    let journal = Told::default();
    let applied = scene.apply(&plan, &journal, &Stop::new()).await.unwrap();
    assert!(!applied.complete());
    assert_eq!(applied.diagnostics[0].address.as_deref(), Some("ledger_object.a"));
    assert_eq!(journal.actions().len(), 1, "what stands on it is not begun");
    assert!(matches!(journal.settlements()[0].settlement, Settlement::Untouched));
    assert_eq!(state::objects(&applied.state).unwrap(), []);
}

#[tokio::test]
async fn a_stop_lets_what_has_begun_end_and_nothing_new_begin() {
    let scene = Scene::new(CHAIN);
    let plan = scene.plan().await;
    let stop = Stop::new();
    let early = Stop::new();
    early.cancel();
    let stopped = scene.apply(&plan, &Told::default(), &early).await;
    assert!(matches!(stopped, Err(EngineError::Stopped)));
    let trigger = stop.clone();
    let journal = Told::doing(move |_| {
        trigger.cancel();
        Ok(())
    });
    let applied = scene.apply(&plan, &journal, &stop).await.unwrap();
    assert!(applied.stopped && !applied.complete());
    assert_eq!(journal.actions().len(), 1);
    assert_eq!(scene.ledger().objects.len(), 1);
    assert!(state::has_object(&applied.state, "ledger_object.a", None).unwrap());
}

#[tokio::test]
async fn an_object_that_exists_is_adopted_and_not_made_again() {
    let mut scene = Scene::new("resource \"ledger_object\" \"a\" { name = \"a\" }\n");
    scene.converge().await;
    let id = scene.ledger().objects.keys().next().unwrap().clone();
    scene.workspace.state = None;
    let adopt = vec![Adopt { address: "ledger_object.a".into(), id: id.clone() }];
    let plan = scene.plan_with(Mode::Normal, adopt).await.unwrap();
    assert!(plan.effective);
    assert_eq!(plan.changes[0].importing.as_deref(), Some(id.as_str()));
    assert_eq!(plan.changes[0].action, Action::NoOp);
    let journal = Told::default();
    let applied = scene.apply(&plan, &journal, &Stop::new()).await.unwrap();
    assert_eq!(journal.actions(), [("ledger_object.a".to_owned(), IntentAction::Import)]);
    assert!(String::from_utf8(applied.state).unwrap().contains(&id));
    assert_eq!(scene.ledger().operations.len(), 1);
    let missing = vec![Adopt { address: "ledger_object.a".into(), id: "nowhere".into() }];
    assert!(matches!(scene.plan_with(Mode::Normal, missing).await, Err(EngineError::Diagnostics(_))));
}

#[tokio::test]
async fn what_vanished_outside_is_made_again_and_a_refresh_only_plan_says_so() {
    let mut scene = Scene::new("resource \"ledger_object\" \"a\" { name = \"a\" }\n");
    scene.converge().await;
    std::fs::remove_file(scene.ledger_path()).unwrap();
    let refresh = scene.plan_with(Mode::RefreshOnly, Vec::new()).await.unwrap();
    assert!(refresh.effective && refresh.changes.is_empty());
    let applied = scene.apply(&refresh, &Told::default(), &Stop::new()).await.unwrap();
    assert_eq!(state::objects(&applied.state).unwrap(), []);
    let plan = scene.plan().await;
    assert_eq!(plan.changes[0].action, Action::Create);
}

#[tokio::test]
async fn a_plan_keeps_its_configuration() {
    let scene = Scene::new(CHAIN);
    let plan = scene.plan().await;
    scene.write("");
    scene.apply(&plan, &Told::default(), &Stop::new()).await.unwrap();
    assert_eq!(scene.ledger().operations.len(), 2);
}

#[tokio::test]
async fn a_plan_is_stale_when_what_it_was_made_from_has_changed() {
    let mut scene = Scene::new(CHAIN);
    let plan = scene.plan().await;
    scene.converge().await;
    let stale = scene.apply(&plan, &Told::default(), &Stop::new()).await;
    assert!(matches!(stale, Err(EngineError::Stale(_))), "another state");
    let plan = scene.plan().await;
    let garbage = Plan { bytes: b"{}".to_vec(), ..plan };
    let stale = scene.apply(&garbage, &Told::default(), &Stop::new()).await;
    assert!(matches!(stale, Err(EngineError::Stale(_))), "no plan at all");
    assert_eq!(scene.ledger().operations.len(), 2);
}

/// The ledger never tells a key: reading an object answers with the key that the state has.
#[tokio::test]
async fn an_update_in_doubt_is_made_again_unless_reading_proves_how_it_is() {
    let keyed = |key: &str, size: u32| {
        format!("resource \"ledger_object\" \"a\" {{\n  name = \"a\"\n  key  = {key:?}\n  size = {size}\n}}\n")
    };
    let mut scene = Scene::new(&keyed("old", 1));
    scene.converge().await;
    let state = scene.workspace.state.clone();
    scene.write(&keyed("new", 1));
    let (journal, _) = scene.converge().await;
    let interrupted = journal.intents.lock().unwrap().clone();
    // Nobody heard of it, and the old key is wanted again.
    scene.workspace.state = state.clone();
    scene.write(&keyed("old", 1));
    assert!(!scene.plan().await.effective, "reading shows nothing");
    let plan = scene.plan_after(&interrupted).await;
    assert_eq!(plan.changes.iter().map(|change| change.action).collect::<Vec<_>>(), [Action::Update]);
    let change = &plan.json["resource_changes"][0]["change"];
    assert_eq!((&change["before"]["key"], &change["after"]["key"]), (&"new".into(), &"old".into()));
    let applied = scene.apply(&plan, &Told::default(), &Stop::new()).await.unwrap();
    assert!(applied.complete());
    assert_eq!(scene.ledger().named("a")[0].key.as_deref(), Some("old"));
    // Another change of the object alone would not have brought the key.
    scene.write(&keyed("old", 2));
    let change = scene.plan_after(&interrupted).await.json["resource_changes"][0]["change"].clone();
    assert_eq!((&change["before"]["key"], &change["after"]["key"]), (&"new".into(), &"old".into()), "{change}");

    // The size is told, so there is no doubt about it.
    let mut scene = Scene::new(&keyed("old", 1));
    scene.converge().await;
    let state = scene.workspace.state.clone();
    scene.write(&keyed("old", 2));
    let (journal, _) = scene.converge().await;
    let interrupted = journal.intents.lock().unwrap().clone();
    scene.workspace.state = state;
    assert!(!scene.plan_after(&interrupted).await.effective, "it is seen to be as it should be");
}
