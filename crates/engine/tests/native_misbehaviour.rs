//! Providers that fail or break their promises: what exists is saved, and the provider is told apart from the user. And
//! how often they are asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_engine::native::{Located, Native, Providers, Requirement};
use landform_engine::state::State;
use landform_engine::{
    Applied, ApplyRequest, Engine, EngineError, Gate, Gone, Intent, IntentId, Journal, Mode, Outline, PlanRequest,
    Refused, Settlement, Silent, Stop, Variable, Workspace,
};
use landform_protocol::*;

/// What the provider does wrong when it is asked to apply.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The object was made, but something about it failed.
    HalfMade,
    UnknownAfterApply,
    OtherValueThanPlanned,
    /// The same with the excuse of the old SDK.
    OtherValueByLegacy,
    /// Plans a value for an argument that the configuration sets otherwise.
    OtherPlanThanConfigured,
    None,
}

struct Faulty {
    fault: Fault,
    asked: Asked,
}

/// The sizes of the objects that were to be validated or planned.
type Asked = Arc<Mutex<Vec<(&'static str, Value)>>>;

fn asked(what: &'static str, config: &Value, all: &Asked) {
    let size = config.as_mapping().and_then(|fields| fields.get("size")).cloned();
    all.lock().unwrap().push((what, size.unwrap_or_else(|| Value::null(Type::Number))));
}

fn attribute(ty: Type, computed: bool) -> Attribute {
    Attribute {
        kind: AttributeKind::Plain(ty),
        required: false,
        optional: !computed,
        computed,
        sensitive: false,
        write_only: false,
        description: String::new(),
        deprecated: None,
    }
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut fields = object.as_mapping().cloned().unwrap_or_default();
    fields.insert(name.to_owned(), value);
    Value::object(fields)
}

#[async_trait]
impl Provider for Faulty {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        let attributes = BTreeMap::from([
            ("id".to_owned(), attribute(Type::String, true)),
            ("size".to_owned(), attribute(Type::Number, false)),
        ]);
        let thing = Schema { version: 0, block: Block { attributes, ..Block::default() } };
        Ok(Arc::new(ProviderSchema {
            provider: Schema { version: 0, block: Block::default() },
            provider_meta: None,
            resources: BTreeMap::from([("faulty_thing".to_owned(), thing)]),
            data_sources: BTreeMap::new(),
            identities: BTreeMap::new(),
            capabilities: ServerCapabilities::default(),
        }))
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        Ok((config, Diagnostics::new()))
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        asked("validate", &call.config, &self.asked);
        Ok(Diagnostics::new())
    }

    async fn validate_data_config(&self, _: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        Err(CallError::Unsupported { call: "ValidateDataResourceConfig" })
    }

    async fn configure(&self, _: Configure) -> Result<Diagnostics, CallError> {
        Ok(Diagnostics::new())
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        let ty = self.schema().await?.resources["faulty_thing"].block.implied_type();
        let json = serde_json::from_slice(&call.attributes_json).unwrap();
        Ok((Value::from_json(&json, &ty).unwrap(), Diagnostics::new()))
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        Ok(ReadAnswer {
            new_state: call.current,
            private: call.private,
            identity: None,
            diagnostics: Diagnostics::new(),
        })
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        asked("plan", &call.config, &self.asked);
        let mut planned = call.proposed;
        if call.prior.is_null() {
            planned = with(&planned, "id", Value::unknown(Type::String));
        }
        if self.fault == Fault::OtherPlanThanConfigured {
            planned = with(&planned, "size", Value::number(99u64));
        }
        Ok(PlanAnswer {
            planned,
            requires_replace: Vec::new(),
            planned_private: b"planned".to_vec(),
            planned_identity: None,
            legacy_type_system: self.fault == Fault::OtherValueByLegacy,
            diagnostics: Diagnostics::new(),
        })
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        assert_eq!(call.planned_private, b"planned", "private bytes are handed on unchanged");
        let made = with(&call.planned, "id", Value::from("made"));
        let mut diagnostics = Diagnostics::new();
        let new_state = match self.fault {
            _ if call.planned.is_null() => call.planned,
            Fault::UnknownAfterApply => call.planned,
            Fault::OtherValueThanPlanned | Fault::OtherValueByLegacy => with(&made, "size", Value::number(7u64)),
            Fault::HalfMade => {
                let severity = Severity::Error;
                let (summary, detail) = ("half made".to_owned(), String::new());
                diagnostics.push(Diagnostic { severity, summary, detail, attribute: None });
                made
            }
            Fault::OtherPlanThanConfigured | Fault::None => made,
        };
        let legacy_type_system = self.fault == Fault::OtherValueByLegacy;
        Ok(ApplyAnswer { new_state, private: b"applied".to_vec(), identity: None, legacy_type_system, diagnostics })
    }

    async fn import_resource_state(
        &self,
        _: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        Err(CallError::Unsupported { call: "ImportResourceState" })
    }

    async fn read_data_source(&self, _: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        Err(CallError::Unsupported { call: "ReadDataSource" })
    }

    async fn stop(&self) -> Result<(), CallError> {
        Ok(())
    }
}

struct Only(Fault, Asked);

#[async_trait]
impl Providers for Only {
    async fn locate(&self, _: &Path, wanted: &Requirement) -> Result<Located, landform_engine::Diagnostic> {
        let (version, digest) = ("1.0.0".to_owned(), "in process".to_owned());
        Ok(Located { source: wanted.source.clone(), version, digest, path: PathBuf::new() })
    }

    async fn start(
        &self,
        _: &Located,
        _: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Provider>, landform_engine::Diagnostic> {
        Ok(Arc::new(Faulty { fault: self.0, asked: self.1.clone() }))
    }
}

struct NoJournal;

#[async_trait]
impl Journal for NoJournal {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        Ok((0..intents.len() as i64).map(IntentId).collect())
    }

    async fn settle(&self, _: IntentId, _: Settlement) -> Result<(), Refused> {
        Ok(())
    }
}

struct Open;

#[async_trait]
impl Gate for Open {
    async fn open(&self, _: Outline) -> bool {
        true
    }
}

struct Scene {
    workspace: Workspace,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene::with("resource \"faulty_thing\" \"a\" { size = 1 }\n")
    }

    fn with(resources: &str) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let head = "terraform {\n  required_providers {\n    faulty = { source = \"example/faulty\" }\n  }\n}\n";
        std::fs::write(folder.path().join("main.tf"), format!("{head}{resources}")).unwrap();
        let workspace = Workspace {
            folder: folder.path().to_owned(),
            scratch: folder.path().to_owned(),
            variables: BTreeMap::new(),
            state: None,
            environment: BTreeMap::new(),
        };
        Scene { workspace, _folder: folder }
    }

    async fn converge(&mut self, fault: Fault) -> Result<Applied, EngineError> {
        let engine = Native::new(Arc::new(Only(fault, Asked::default())));
        let workspace = &self.workspace;
        let request =
            PlanRequest { workspace, mode: Mode::Normal, adopt: Vec::new(), replace: Vec::new(), doubted: Vec::new() };
        let plan = engine.plan(request, &Silent, &Stop::new()).await?;
        let request = ApplyRequest { workspace, plan: &plan.bytes };
        let applied = engine.apply(request, &NoJournal, &Silent, &Stop::new()).await?;
        self.workspace.state = Some(applied.state.clone());
        Ok(applied)
    }

    /// Plans and applies in one go, and says what the provider was asked.
    async fn go(&mut self) -> Vec<(&'static str, Value)> {
        let all = Asked::default();
        self.go_with(&Native::new(Arc::new(Only(Fault::None, all.clone())))).await;
        std::mem::take(&mut all.lock().unwrap())
    }

    async fn go_with(&mut self, engine: &Native) {
        let request = PlanRequest {
            workspace: &self.workspace,
            mode: Mode::Normal,
            adopt: Vec::new(),
            replace: Vec::new(),
            doubted: Vec::new(),
        };
        let gone = engine.straight().unwrap().go(request, &Open, &NoJournal, &Silent, &Stop::new()).await.unwrap();
        let Gone::Through(applied) = gone else { panic!("it was held") };
        assert!(applied.complete(), "{:?}", applied.diagnostics);
        self.workspace.state = Some(applied.state);
    }

    fn attributes(&self) -> serde_json::Value {
        let state: serde_json::Value = serde_json::from_slice(self.workspace.state.as_ref().unwrap()).unwrap();
        state["resources"][0]["instances"][0].clone()
    }
}

#[tokio::test]
async fn a_half_made_object_is_saved_as_tainted_and_replaced_next_time() {
    let mut scene = Scene::new();
    let applied = scene.converge(Fault::HalfMade).await.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "half made");
    assert_eq!(scene.attributes()["status"], "tainted");
    assert_eq!(scene.attributes()["attributes"]["id"], "made");
    let applied = scene.converge(Fault::None).await.unwrap();
    assert!(applied.complete());
    assert_eq!(scene.attributes()["status"], serde_json::Value::Null);
    assert_eq!(scene.attributes()["private"], "YXBwbGllZA==");
    assert_eq!(State::read(&applied.state).unwrap().serial, 2);
}

#[tokio::test]
async fn what_is_unknown_after_an_apply_is_an_error_and_saved_as_null() {
    let mut scene = Scene::new();
    let applied = scene.converge(Fault::UnknownAfterApply).await.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "Provider returned invalid result object after apply");
    assert!(applied.diagnostics[0].detail.contains(".id"), "{}", applied.diagnostics[0].detail);
    assert_eq!(scene.attributes()["attributes"], serde_json::json!({"id": null, "size": 1}));
}

#[tokio::test]
async fn a_result_other_than_planned_is_an_error_but_for_the_legacy_type_system() {
    let mut scene = Scene::new();
    let applied = scene.converge(Fault::OtherValueThanPlanned).await.unwrap();
    assert_eq!(applied.diagnostics[0].summary, "Provider produced inconsistent result after apply");
    assert_eq!(scene.attributes()["attributes"]["size"], 7, "what is there is saved all the same");
    let mut scene = Scene::new();
    let applied = scene.converge(Fault::OtherValueByLegacy).await.unwrap();
    assert!(applied.complete());
    assert_eq!(scene.attributes()["attributes"]["size"], 7);
}

#[tokio::test]
async fn a_plan_against_the_configuration_is_refused() {
    let mut scene = Scene::new();
    let Err(EngineError::Diagnostics(found)) = scene.converge(Fault::OtherPlanThanConfigured).await else {
        panic!("the plan was accepted")
    };
    assert_eq!(found[0].summary, "Provider produced invalid plan");
    assert!(found[0].detail.contains(".size"), "{}", found[0].detail);
}

#[tokio::test]
async fn in_one_go_a_provider_is_not_asked_the_same_twice() {
    let mut scene = Scene::new();
    // Validated before all planning and with its plan, and neither validated nor planned once more before it is made.
    let once = |size: u64| ["validate", "validate", "plan"].map(|what| (what, Value::number(size))).to_vec();
    assert_eq!(scene.go().await, once(1));
    assert_eq!(scene.attributes()["attributes"], serde_json::json!({"id": "made", "size": 1}));
    let file = scene.workspace.folder.join("main.tf");
    let text = std::fs::read_to_string(&file).unwrap().replace("size = 1", "size = 2");
    std::fs::write(&file, text).unwrap();
    assert_eq!(scene.go().await, once(2), "an update");
    assert_eq!(scene.attributes()["attributes"]["size"], 2);
}

#[tokio::test]
async fn what_is_sound_whatever_the_inputs_are_is_asked_by_the_first_run_alone() {
    let mut scene = Scene::with("variable \"n\" { type = number }\nresource \"faulty_thing\" \"a\" { size = var.n }\n");
    let all = Asked::default();
    let engine = Native::new(Arc::new(Only(Fault::None, all.clone())));
    let mut first = vec![("validate", Value::unknown(Type::Number))];
    for size in [1u64, 2] {
        scene.workspace.variables.insert("n".to_owned(), Variable::new(size.into(), false));
        scene.go_with(&engine).await;
        let own = ["validate", "plan"].map(|what| (what, Value::number(size)));
        assert_eq!(std::mem::take(&mut *all.lock().unwrap()), [std::mem::take(&mut first), own.to_vec()].concat());
    }
}

#[tokio::test]
async fn in_one_go_a_provider_is_asked_again_for_what_stands_on_a_change() {
    let others = [
        "resource \"faulty_thing\" \"b\" {\n  size       = 5\n  depends_on = [faulty_thing.a]\n}\n",
        "resource \"faulty_thing\" \"b\" { size = length(faulty_thing.a.id) + 1 }\n",
    ];
    for other in others {
        let mut scene = Scene::with(&format!("resource \"faulty_thing\" \"a\" {{ size = 1 }}\n{other}"));
        let asked = scene.go().await;
        let of_b = |size: &Value| *size != Value::number(1u64);
        assert_eq!(asked.iter().filter(|(what, size)| !of_b(size) && *what == "plan").count(), 1, "{asked:?}");
        assert_eq!(asked.iter().filter(|(what, size)| of_b(size) && *what == "plan").count(), 2, "{asked:?}");
        assert_eq!(asked.last(), Some(&("plan", Value::number(5u64))), "with all that is known by then");
    }
}
