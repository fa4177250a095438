//! Plan and apply in one process.

use std::sync::Mutex;

use async_trait::async_trait;
use landform_engine::{
    Action, Adopt, Engine, EngineError, Gate, Gone, IntentAction, Mode, Outline, PlanRequest, Progress, Refused,
    Silent, Stop, Variable, Workspace,
};
use serde_json::json;

use crate::bench::{Bench, Notes, Watched};
use crate::{LIFE, SLOW, StopAt, intended};

/// Keeps what it was told, and opens or not.
struct Door {
    opens: bool,
    told: Mutex<Vec<Outline>>,
}

impl Door {
    fn that(opens: bool) -> Door {
        Door { opens, told: Mutex::default() }
    }

    fn told(&self) -> Option<Outline> {
        let mut told = self.told.lock().unwrap();
        assert!(told.len() <= 1, "it is asked once");
        told.pop()
    }
}

#[async_trait]
impl Gate for Door {
    async fn open(&self, outline: Outline) -> bool {
        self.told.lock().unwrap().push(outline);
        self.opens
    }
}

async fn go(
    bench: &Bench,
    workspace: &Workspace,
    door: &Door,
    journal: &Notes,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Gone, EngineError> {
    let request =
        PlanRequest { workspace, mode: Mode::Normal, adopt: Vec::new(), replace: Vec::new(), doubted: Vec::new() };
    bench.engine.straight().expect("this CLI can ask").go(request, door, journal, progress, stop).await
}

#[tokio::test]
async fn what_the_gate_lets_through_is_journalled_and_applied() {
    let mut bench = Bench::new(LIFE).await;
    bench.set("text", json!("one"));
    let (workspace, door, journal) = (bench.workspace(), Door::that(true), Notes::default());
    let Ok(Gone::Through(applied)) = go(&bench, &workspace, &door, &journal, &Silent, &Stop::new()).await else {
        panic!("it goes through")
    };
    assert!(applied.complete());
    assert_eq!((&applied.outputs["text"].value, &applied.outputs["year"].value), (&json!("one"), &json!(2026)));
    let outline = door.told().unwrap();
    assert!(outline.effective && outline.outputs_change);
    let changes: Vec<_> = outline.changes.iter().map(|change| (change.address.as_str(), change.action)).collect();
    assert_eq!(changes, [("terraform_data.it", Action::Create), ("time_static.then", Action::Create)]);
    let intents = journal.intents.into_inner().unwrap();
    assert_eq!(intended(&intents), changes.iter().map(|(a, _)| (*a, IntentAction::Create)).collect::<Vec<_>>());

    bench.state = Some(applied.state);
    let (workspace, door, journal) = (bench.workspace(), Door::that(false), Notes::default());
    let gone = go(&bench, &workspace, &door, &journal, &Silent, &Stop::new()).await;
    assert!(matches!(gone, Ok(Gone::Held)), "there is nothing to do");
    let outline = door.told().unwrap();
    assert!(!outline.effective && outline.changes.is_empty());
    assert!(journal.intents.into_inner().unwrap().is_empty());
}

fn leaves_a_mark(bench: &Bench) -> std::path::PathBuf {
    let mark = bench.root.path().join("seen").join("made");
    let configuration = format!(
        "resource \"terraform_data\" \"it\" {{\n  provisioner \"local-exec\" {{\n    command = \"touch {}\"\n  }}\n}}",
        mark.display()
    );
    bench.write("main.tf", &configuration);
    mark
}

#[tokio::test]
async fn a_closed_gate_and_a_refusing_journal_leave_everything_alone() {
    let mut bench = Bench::new("").await;
    let mark = leaves_a_mark(&bench);
    let workspace = bench.workspace();
    let gone = go(&bench, &workspace, &Door::that(false), &Notes::default(), &Silent, &Stop::new()).await;
    assert!(matches!(gone, Ok(Gone::Held)));
    let journal = Notes { refuse: true, ..Notes::default() };
    let gone = go(&bench, &workspace, &Door::that(true), &journal, &Silent, &Stop::new()).await;
    assert!(matches!(gone, Err(EngineError::Refused(Refused::Fenced))));
    let stop = Stop::new();
    stop.cancel();
    let (door, journal) = (Door::that(true), Notes::default());
    assert!(matches!(go(&bench, &workspace, &door, &journal, &Silent, &stop).await, Err(EngineError::Stopped)));
    assert!(door.told().is_none());
    assert!(!mark.exists());
}

#[tokio::test]
async fn what_it_cannot_tell_is_left_to_a_saved_plan() {
    let mut bench = Bench::new("variable \"missing\" {}\noutput \"it\" { value = var.missing }").await;
    let workspace = bench.workspace();
    let door = Door::that(true);
    let gone = go(&bench, &workspace, &door, &Notes::default(), &Silent, &Stop::new()).await;
    assert!(matches!(gone, Ok(Gone::NotStraight)) || matches!(gone, Err(EngineError::Diagnostics(_))));
    assert!(door.told().is_none());

    bench.write("main.tf", "resource \"terraform_data\" \"old\" {}");
    bench.run(Mode::Normal).await;
    let moved =
        "resource \"terraform_data\" \"new\" {}\nmoved {\n  from = terraform_data.old\n  to = terraform_data.new\n}";
    bench.write("main.tf", moved);
    let workspace = bench.workspace();
    let gone = go(&bench, &workspace, &door, &Notes::default(), &Silent, &Stop::new()).await;
    assert!(matches!(gone, Ok(Gone::NotStraight)));
    let adopt = vec![Adopt { address: "terraform_data.new".to_owned(), id: "x".to_owned() }];
    let request =
        PlanRequest { workspace: &workspace, mode: Mode::Normal, adopt, replace: Vec::new(), doubted: Vec::new() };
    let gone = bench.engine.straight().unwrap().go(request, &door, &Notes::default(), &Silent, &Stop::new()).await;
    assert!(matches!(gone, Ok(Gone::NotStraight)));
    assert!(door.told().is_none());
}

#[tokio::test]
async fn a_stop_ends_it_with_its_state() {
    let mut bench = Bench::new(SLOW).await;
    let workspace = bench.workspace();
    let stop = Stop::new();
    let progress = StopAt("terraform_data.slow", stop.clone());
    let gone = go(&bench, &workspace, &Door::that(true), &Notes::default(), &progress, &stop).await;
    let Ok(Gone::Through(applied)) = gone else { panic!("it was let through") };
    assert!(applied.stopped && !applied.complete());
    let state = String::from_utf8(applied.state).unwrap();
    assert!(state.contains("\"first\"") && !state.contains("\"never\""));
}

#[tokio::test]
async fn secrets_stay_out_of_what_people_read() {
    let configuration = r#"
variable "given" {}
variable "declared" {
  default   = "declared-secret"
  sensitive = true
}
variable "unmarked" { sensitive = true }
resource "terraform_data" "marked" { input = sensitive(base64decode("bWFya2VkLXNlY3JldA==")) }
resource "terraform_data" "it" {
  input = terraform_data.marked.id
  provisioner "local-exec" {
    command = "echo ${var.given} ${var.declared} ${var.unmarked} ${terraform_data.marked.output} >&2; exit 1"
  }
}
"#;
    let mut bench = Bench::new(configuration).await;
    bench.variables.insert("given".to_owned(), Variable::new(json!("given-secret"), true));
    bench.set("unmarked", json!("unmarked-secret"));
    let (workspace, watched) = (bench.workspace(), Watched::default());
    let gone = go(&bench, &workspace, &Door::that(true), &Notes::default(), &watched, &Stop::new()).await;
    let Ok(Gone::Through(applied)) = gone else { panic!("it was let through") };
    assert!(!applied.complete());
    let read = format!("{:?} {:?}", watched.0.lock().unwrap(), applied.diagnostics);
    assert!(!read.contains("-secret"), "{read}");
}
