//! A small engine over a world in memory. Its objects get a new id with every create and can be found by id only, so
//! what is created twice stays visible. It can stand still at any step, which is where a test lets the worker die.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use landform_engine::{
    Action, Applied, ApplyRequest, Change, Diagnostic, Engine, EngineError, EngineKind, Intent, IntentAction, Journal,
    Mode, Output, Plan, PlanRequest, Progress, ProgressEvent, Settlement, Stop, Unsupported, Workspace,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What exists: id to address.
#[derive(Default)]
pub struct World {
    pub objects: BTreeMap<String, String>,
    last_id: u64,
}

impl World {
    fn create(&mut self, address: &str) -> String {
        self.last_id += 1;
        let id = format!("i-{}", self.last_id);
        self.objects.insert(id.clone(), address.to_owned());
        id
    }

    pub fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = self.objects.values().cloned().collect();
        addresses.sort();
        addresses
    }
}

/// Counts the steps of all plans and applies, and stands still at one of them.
#[derive(Default)]
pub struct Steps {
    pub names: Mutex<Vec<&'static str>>,
    pub stand_still_at: Mutex<Option<usize>>,
    pub standing: Notify,
}

impl Steps {
    async fn step(&self, name: &'static str) {
        if self.stands_still(name) {
            std::future::pending::<()>().await;
        }
    }

    /// A long call of a provider: it stands still until it is asked to stop.
    async fn call(&self, name: &'static str, stop: &Stop) {
        if self.stands_still(name) {
            stop.cancelled().await;
        }
    }

    fn stands_still(&self, name: &'static str) -> bool {
        let mut names = self.names.lock().unwrap();
        names.push(name);
        let here = *self.stand_still_at.lock().unwrap() == Some(names.len() - 1);
        if here {
            self.standing.notify_one();
        }
        here
    }
}

pub struct TestEngine {
    pub kind: EngineKind,
    pub world: Arc<Mutex<World>>,
    pub steps: Arc<Steps>,
    pub unsupported: Vec<Unsupported>,
}

#[derive(Serialize, Deserialize)]
struct Planned {
    creates: Vec<String>,
    deletes: Vec<(String, String)>,
    imports: Vec<(String, String)>,
    state: Option<Vec<u8>>,
}

type Objects = BTreeMap<String, String>;

fn objects_of(state: Option<&[u8]>) -> Objects {
    let Some(state) = state else { return Objects::new() };
    let state: Value = serde_json::from_slice(state).unwrap();
    let entry = |resource: &Value| {
        let address = format!("thing.{}", resource["name"].as_str().unwrap());
        (address, resource["instances"][0]["attributes"]["id"].as_str().unwrap().to_owned())
    };
    state["resources"].as_array().unwrap().iter().map(entry).collect()
}

fn entry(address: &str, id: &str) -> Value {
    json!({"mode": "managed", "type": "thing", "name": address.strip_prefix("thing.").unwrap(),
           "provider": "provider[\"test/test/thing\"]",
           "instances": [{"schema_version": 0, "attributes": {"id": id}}]})
}

fn write_state(objects: &Objects, before: Option<&[u8]>) -> Vec<u8> {
    let before: Value = before.map_or(json!({"serial": 0}), |bytes| serde_json::from_slice(bytes).unwrap());
    let serial: u64 = before["serial"].to_string().parse().unwrap();
    let resources: Vec<Value> = objects.iter().map(|(address, id)| entry(address, id)).collect();
    serde_json::to_vec(&json!({"version": 4, "terraform_version": "1.0.0", "serial": serial + 1,
        "lineage": "the-lineage", "outputs": {"count": {"value": objects.len(), "type": "number"}}, "resources": resources, "check_results": null}))
    .unwrap()
}

fn wanted(workspace: &Workspace, mode: Mode) -> Vec<String> {
    let count = match mode {
        Mode::Destroy => 0,
        _ => workspace.variables["count"].value.as_u64().unwrap(),
    };
    (0..count).map(|n| format!("thing.a{n}")).collect()
}

fn intent(address: &str, action: IntentAction) -> Intent {
    Intent {
        address: address.to_owned(),
        deposed: None,
        action,
        type_name: "thing".into(),
        provider: "provider[\"test/test/thing\"]".into(),
        prior: None,
        planned: None,
        private: Vec::new(),
    }
}

#[async_trait]
impl Engine for TestEngine {
    fn kind(&self) -> EngineKind {
        self.kind
    }

    fn version(&self) -> String {
        "test 1".into()
    }

    async fn unsupported(&self, _workspace: &Workspace) -> Result<Vec<Unsupported>, EngineError> {
        Ok(self.unsupported.clone())
    }

    async fn plan(&self, request: PlanRequest<'_>, progress: &dyn Progress, stop: &Stop) -> Result<Plan, EngineError> {
        self.steps.step("plan").await;
        if stop.is_cancelled() {
            return Err(EngineError::Stopped);
        }
        let workspace = request.workspace;
        if let Some(message) = workspace.variables.get("plan_fails") {
            let detail = message.value.as_str().unwrap();
            return Err(EngineError::Diagnostics(vec![Diagnostic::error("Bad configuration", detail)]));
        }
        progress.report(ProgressEvent::Note { text: "planning".into() });
        let have = objects_of(workspace.state.as_deref());
        let want = wanted(workspace, request.mode);
        let imports: Vec<(String, String)> = request
            .adopt
            .iter()
            .filter(|adopt| !have.contains_key(&adopt.address))
            .map(|adopt| (adopt.address.clone(), adopt.id.clone()))
            .collect();
        let imported = |address: &String| imports.iter().any(|(import, _)| import == address);
        let planned = Planned {
            creates: want.iter().filter(|a| !have.contains_key(*a) && !imported(a)).cloned().collect(),
            deletes: have.iter().filter(|(a, _)| !want.contains(a)).map(|(a, id)| (a.clone(), id.clone())).collect(),
            imports: imports.clone(),
            state: workspace.state.clone(),
        };
        let change =
            |address: &String, action| Change { address: address.clone(), deposed: None, action, importing: None };
        let changes: Vec<Change> = planned
            .creates
            .iter()
            .map(|address| change(address, Action::Create))
            .chain(planned.deletes.iter().map(|(address, _)| change(address, Action::Delete)))
            .collect();
        let state: Value = workspace.state.as_ref().map_or(Value::Null, |bytes| serde_json::from_slice(bytes).unwrap());
        let outputs_change = request.mode != Mode::Destroy && state["outputs"]["count"]["value"] != json!(want.len());
        self.steps.step("planned").await;
        Ok(Plan {
            engine: self.kind,
            version: self.version(),
            bytes: serde_json::to_vec(&planned).unwrap(),
            outputs_change,
            effective: outputs_change || !changes.is_empty() || !imports.is_empty(),
            changes,
            json: Value::Null,
            warnings: Vec::new(),
        })
    }

    async fn apply(
        &self,
        request: ApplyRequest<'_>,
        journal: &dyn Journal,
        _progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Applied, EngineError> {
        let workspace = request.workspace;
        let planned: Planned = serde_json::from_slice(request.plan).unwrap();
        if planned.state != workspace.state {
            return Err(EngineError::Stale("another state".into()));
        }
        let mut objects = objects_of(workspace.state.as_deref());
        let mut diagnostics = Vec::new();
        self.steps.step("apply").await;
        match self.kind {
            EngineKind::Native => {
                self.apply_one_by_one(&planned, workspace, journal, stop, &mut objects, &mut diagnostics).await?;
            }
            EngineKind::Cli => self.apply_in_one_go(&planned, workspace, journal, &mut objects).await?,
        }
        let stopped = stop.is_cancelled();
        let output = Output { value: json!(objects.len()), ty: json!("number"), sensitive: false };
        let state = write_state(&objects, workspace.state.as_deref());
        Ok(Applied { state, outputs: BTreeMap::from([("count".into(), output)]), diagnostics, stopped })
    }

    async fn salvage(&self, scratch: &Path) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(std::fs::read(scratch.join("state")).ok())
    }
}

impl TestEngine {
    async fn apply_one_by_one(
        &self,
        planned: &Planned,
        workspace: &Workspace,
        journal: &dyn Journal,
        stop: &Stop,
        objects: &mut Objects,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<(), EngineError> {
        for (address, id) in &planned.imports {
            let intent = journal.intend(vec![intent(address, IntentAction::Import)]).await?[0];
            self.steps.step("importing").await;
            journal.settle(intent, Settlement::Object(entry(address, id))).await?;
            objects.insert(address.clone(), id.clone());
        }
        for address in &planned.creates {
            if stop.is_cancelled() {
                return Ok(());
            }
            let intent = journal.intend(vec![intent(address, IntentAction::Create)]).await?[0];
            self.steps.call("creating", stop).await;
            if workspace.variables.get("fails").is_some_and(|input| input.value == address.as_str()) {
                journal.settle(intent, Settlement::Untouched).await?;
                diagnostics.push(Diagnostic::error("Denied", format!("{address} cannot be made")));
                return Ok(());
            }
            let id = self.world.lock().unwrap().create(address);
            self.steps.step("created").await;
            journal.settle(intent, Settlement::Object(entry(address, &id))).await?;
            self.steps.step("settled").await;
            objects.insert(address.clone(), id);
        }
        for (address, id) in &planned.deletes {
            let intent = journal.intend(vec![intent(address, IntentAction::Delete)]).await?[0];
            self.steps.step("deleting").await;
            self.world.lock().unwrap().objects.remove(id);
            self.steps.step("deleted").await;
            journal.settle(intent, Settlement::Gone).await?;
            objects.remove(address);
        }
        Ok(())
    }

    /// Like the CLI: all intents first, no settlements, and a state file that is written now and then.
    async fn apply_in_one_go(
        &self,
        planned: &Planned,
        workspace: &Workspace,
        journal: &dyn Journal,
        objects: &mut Objects,
    ) -> Result<(), EngineError> {
        let creates = planned.creates.iter().map(|address| intent(address, IntentAction::Create));
        let deletes = planned.deletes.iter().map(|(address, _)| intent(address, IntentAction::Delete));
        journal.intend(creates.chain(deletes).collect()).await?;
        self.steps.step("started").await;
        objects.extend(planned.imports.iter().cloned());
        for address in &planned.creates {
            let id = self.world.lock().unwrap().create(address);
            self.steps.step("created").await;
            objects.insert(address.clone(), id);
            std::fs::write(workspace.scratch.join("state"), write_state(objects, workspace.state.as_deref())).unwrap();
            self.steps.step("saved").await;
        }
        for (address, id) in &planned.deletes {
            self.world.lock().unwrap().objects.remove(id);
            objects.remove(address);
            self.steps.step("deleted").await;
        }
        Ok(())
    }
}
