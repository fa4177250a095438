//! The worker with an engine in memory, on a real store: what it does when all goes well, and when it dies anywhere.

mod engine;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Steps, TestEngine, World};
use landform_base::seal::MasterKey;
use landform_domain::recovery::Answer;
use landform_domain::run::{Kind, Next, Status};
use landform_domain::template::Files;
use landform_domain::{Actor, Code, EngineChoice, EngineName, EventBody, Input, Inputs, RunId};
use landform_engine::{EngineKind, SourceRange, Unsupported};
use landform_runner::{Engines, Settings, Worker};
use landform_store::{DeploymentWrite, Location, Options, Run, Store, TenantSettings};
use serde_json::{Value, json};

struct House {
    folder: tempfile::TempDir,
    store: Store,
    world: Arc<Mutex<World>>,
    steps: Arc<Steps>,
    unsupported: Vec<Unsupported>,
}

impl House {
    async fn new() -> House {
        House::with_lease(Duration::from_secs(30)).await
    }

    async fn with_lease(lease: Duration) -> House {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("store"));
        let mut options = Options::new(location, MasterKey::generate().unwrap());
        options.lease = lease;
        let store = Store::open(options).await.unwrap().store;
        store.put_tenant(&"acme".parse().unwrap(), TenantSettings::default(), &Actor::local("eve")).await.unwrap();
        let files = Files::new([("main.tf".to_string(), b"x".to_vec())]).unwrap();
        store.push_template(&"net".parse().unwrap(), &files, false, &Actor::local("eve")).await.unwrap();
        House { folder, store, world: Arc::default(), steps: Arc::default(), unsupported: Vec::new() }
    }

    async fn worker(&self) -> Worker {
        self.worker_for(4).await
    }

    async fn worker_for(&self, concurrency: usize) -> Worker {
        let engine = |kind| -> Arc<dyn landform_engine::Engine> {
            Arc::new(TestEngine {
                kind,
                world: self.world.clone(),
                steps: self.steps.clone(),
                unsupported: if kind == EngineKind::Native { self.unsupported.clone() } else { Vec::new() },
            })
        };
        let engines = Engines { native: Some(engine(EngineKind::Native)), clis: vec![engine(EngineKind::Cli)] };
        let mut settings = Settings::new(self.folder.path().join("worker"));
        settings.poll = Duration::from_millis(50);
        settings.concurrency = concurrency;
        Worker::start(self.store.clone(), engines, settings).await.unwrap()
    }

    fn wish(&self, inputs: &[(&str, Value)]) -> DeploymentWrite {
        let input = |(name, value): &(&str, Value)| {
            (name.to_string(), Input { value: value.clone(), sensitive: *name == "secret" })
        };
        DeploymentWrite {
            tenant: "acme".parse().unwrap(),
            name: "site".parse().unwrap(),
            template: "net".parse().unwrap(),
            template_version: None,
            inputs: Inputs::new(inputs.iter().map(input).collect()).unwrap(),
            engine: EngineChoice::Auto,
            requires_approval: None,
            time_limit: None,
            connections: Vec::new(),
            if_generation: None,
        }
    }

    async fn put(&self, inputs: &[(&str, Value)]) -> RunId {
        self.store.put_deployment(self.wish(inputs), None, &Actor::local("eve")).await.unwrap().run.id
    }

    async fn destroy(&self) -> RunId {
        let (tenant, name) = ("acme".parse().unwrap(), "site".parse().unwrap());
        self.store.delete_deployment(&tenant, &name, None, None, &Actor::local("eve")).await.unwrap().run.id
    }

    /// Waits until the run has ended or waits for a person.
    async fn rests(&self, run: RunId) -> Run {
        self.until(run, |status| {
            let waits = matches!(status, Status::NeedsRecovery { .. } | Status::AwaitingApproval { .. });
            status.is_final() || waits
        })
        .await
    }

    async fn until(&self, run: RunId, reached: impl Fn(&Status) -> bool) -> Run {
        let mut bell = self.store.doorbell();
        loop {
            let now = self.store.run(run).await.unwrap();
            if reached(&now.status) {
                return now;
            }
            bell.rung(Duration::from_millis(100)).await;
        }
    }

    async fn succeeds(&self, run: RunId) {
        let run = self.rests(run).await;
        assert!(run.status.is_success(), "{:?}", run.status);
    }

    fn stand_still_at(&self, step: usize) {
        *self.steps.stand_still_at.lock().unwrap() = Some(step);
    }

    fn exist(&self) -> Vec<String> {
        self.world.lock().unwrap().addresses()
    }

    async fn events(&self, run: RunId) -> Vec<EventBody> {
        self.store.events(run, 0, 1000).await.unwrap().into_iter().map(|event| event.body).collect()
    }
}

fn things(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("thing.a{n}")).collect()
}

/// The only place is taken for long; another tenant's run has one beside it, and the first tenant's next run has not.
#[tokio::test]
async fn whoever_has_nothing_under_way_need_not_wait_for_others() {
    let house = House::new().await;
    house.store.put_tenant(&"other".parse().unwrap(), TenantSettings::default(), &Actor::local("eve")).await.unwrap();
    house.stand_still_at(0);
    let worker = house.worker_for(1).await;
    let of = async |tenant: &str, name: &str| {
        let (tenant, name) = (tenant.parse().unwrap(), name.parse().unwrap());
        let wish = DeploymentWrite { tenant, name, ..house.wish(&[("count", json!(1))]) };
        house.store.put_deployment(wish, None, &Actor::local("eve")).await.unwrap().run.id
    };
    of("acme", "long").await;
    house.steps.standing.notified().await;
    let second = of("acme", "second").await;
    house.succeeds(of("other", "site").await).await;
    house.succeeds(of("other", "again").await).await;
    assert!(matches!(house.store.run(second).await.unwrap().status, Status::Queued(_)));
    worker.abandon().await;
}

#[tokio::test]
async fn create_change_and_destroy() {
    let house = House::new().await;
    let worker = house.worker().await;
    house.succeeds(house.put(&[("count", json!(2))]).await).await;
    assert_eq!(house.exist(), things(2));
    let (acme, site) = ("acme".parse().unwrap(), "site".parse().unwrap());
    assert_eq!(house.store.outputs(&acme, &site).await.unwrap()["count"]["value"], json!(2));
    house.succeeds(house.put(&[("count", json!(3))]).await).await;
    assert_eq!(house.exist(), things(3));
    let again = house.put(&[("count", json!(3)), ("other", json!(1))]).await;
    assert_eq!(house.rests(again).await.status, Status::Unchanged);
    let destroy = house.destroy().await;
    house.succeeds(destroy).await;
    assert_eq!(house.store.run(destroy).await.unwrap().kind, Kind::Destroy);
    assert!(house.exist().is_empty());
    worker.drain(Duration::from_secs(600)).await;
    let left = std::fs::read_dir(house.folder.path().join("worker/runs")).unwrap().count();
    assert_eq!(left, 0, "scratch folders are gone");
}

#[tokio::test]
async fn what_was_never_applied_is_destroyed_without_an_engine() {
    let house = House::new().await;
    house.put(&[("count", json!(2)), ("plan_fails", json!("never planned"))]).await;
    let destroy = house.destroy().await;
    let worker = house.worker().await;
    assert_eq!(house.rests(destroy).await.status, Status::Unchanged);
    worker.drain(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn a_failed_apply_keeps_what_it_did_and_the_next_run_continues() {
    let house = House::new().await;
    let worker = house.worker().await;
    let failed = house.put(&[("count", json!(3)), ("fails", json!("thing.a1"))]).await;
    let run = house.rests(failed).await;
    let Status::Failed(problem) = run.status else { panic!("{:?}", run.status) };
    assert_eq!((problem.code, problem.message.as_str()), (Code::ApplyFailed, "Denied: thing.a1 cannot be made"));
    assert_eq!(house.exist(), things(1));
    house.succeeds(house.put(&[("count", json!(3))]).await).await;
    assert_eq!(house.exist(), things(3));
    worker.drain(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn a_failed_plan_says_why_without_the_secret() {
    let house = House::new().await;
    let worker = house.worker().await;
    let inputs = [("count", json!(1)), ("plan_fails", json!("hunter22 is wrong")), ("secret", json!("hunter22"))];
    let run = house.put(&inputs).await;
    let Status::Failed(problem) = house.rests(run).await.status else { panic!("it fails") };
    assert_eq!(problem.code, Code::PlanFailed);
    assert_eq!(problem.message, "Bad configuration: (redacted) is wrong");
    let events = serde_json::to_string(&house.events(run).await).unwrap();
    assert!(events.contains("Bad configuration") && !events.contains("hunter22"), "{events}");
    worker.drain(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn auto_falls_back_to_the_cli_and_says_why() {
    let mut house = House::new().await;
    let range = Some(SourceRange { file: "main.tf".into(), line: 7, column: 3, end: None });
    house.unsupported = vec![Unsupported { construct: "for_each".into(), range }];
    let worker = house.worker().await;
    let auto = house.put(&[("count", json!(1))]).await;
    house.succeeds(auto).await;
    assert_eq!(house.store.run(auto).await.unwrap().engine, Some(EngineName::Cli));
    let reasons = house.events(auto).await.into_iter().find_map(|event| match event {
        EventBody::Engine { reasons, .. } => Some(reasons),
        _ => None,
    });
    assert_eq!(reasons.unwrap(), ["main.tf:7: for_each"]);
    let mut wish = house.wish(&[("count", json!(2))]);
    wish.engine = EngineChoice::Native;
    let native = house.store.put_deployment(wish, None, &Actor::local("eve")).await.unwrap().run.id;
    let Status::Failed(problem) = house.rests(native).await.status else { panic!("it is refused") };
    assert_eq!((problem.code, problem.message.as_str()), (Code::EngineUnsupported, "main.tf:7: for_each"));
    worker.drain(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn an_approved_plan_is_applied_and_a_stale_one_refused() {
    let house = House::new().await;
    let worker = house.worker().await;
    let mut wish = house.wish(&[("count", json!(1))]);
    wish.requires_approval = Some(true);
    let run = house.store.put_deployment(wish, None, &Actor::local("eve")).await.unwrap().run.id;
    assert_eq!(house.rests(run).await.status.word(), "awaiting_approval");
    assert!(house.exist().is_empty());
    house.store.approve(run, &Actor::local("eve")).await.unwrap();
    let after = |status: &Status| status.is_final();
    assert_eq!(house.until(run, after).await.status, Status::Succeeded);
    assert_eq!(house.exist(), things(1));
    assert_eq!(house.steps.names.lock().unwrap().iter().filter(|name| **name == "plan").count(), 1);
    worker.drain(Duration::from_secs(600)).await;
}

/// The steps of an apply are: plan, planned, apply, then creating, created and settled for each object.
const SECOND_CREATE: usize = 6;

/// A worker hears from the store six times in this time.
const SHORT: Duration = Duration::from_secs(12);

#[tokio::test]
async fn a_cancelled_apply_stops_at_the_next_safe_point() {
    let house = House::with_lease(SHORT).await;
    house.stand_still_at(SECOND_CREATE);
    let worker = house.worker().await;
    let run = house.put(&[("count", json!(3))]).await;
    house.steps.standing.notified().await;
    assert_eq!(house.store.cancel(run, &Actor::local("eve")).await.unwrap().status.word(), "applying");
    assert_eq!(house.rests(run).await.status, Status::Cancelled);
    assert_eq!(house.exist(), things(2), "the object under way was finished, the third never begun");
    house.succeeds(house.put(&[("count", json!(3))]).await).await;
    assert_eq!(house.exist(), things(3));
    worker.drain(Duration::from_secs(600)).await;
}

#[tokio::test]
async fn a_drained_worker_leaves_the_rest_to_the_next() {
    let house = House::new().await;
    house.stand_still_at(SECOND_CREATE);
    let worker = house.worker().await;
    let run = house.put(&[("count", json!(3))]).await;
    house.steps.standing.notified().await;
    worker.drain(Duration::ZERO).await;
    assert_eq!(house.store.run(run).await.unwrap().status, Status::Queued(Next::Plan));
    assert_eq!(house.exist(), things(2));
    let worker = house.worker().await;
    house.succeeds(run).await;
    assert_eq!(house.exist(), things(3));
    worker.drain(Duration::from_secs(600)).await;
}

/// Somebody else takes the deployment while an attempt is in the middle of a call: it is dropped, writes nothing more,
/// and what it had asked for is in doubt.
#[tokio::test]
async fn an_attempt_that_is_fenced_is_dropped() {
    let house = House::with_lease(SHORT).await;
    house.stand_still_at(SECOND_CREATE);
    let worker = house.worker().await;
    let run = house.put(&[("count", json!(3))]).await;
    house.steps.standing.notified().await;
    house.store.void_leases(worker.id()).await.unwrap();
    let now = house.rests(run).await;
    let Status::NeedsRecovery { doubts } = &now.status else { panic!("{:?}", now.status) };
    assert_eq!(doubts.iter().map(|doubt| doubt.address.as_str()).collect::<Vec<_>>(), ["thing.a1"]);
    assert_eq!(now.attempts, 2);
    assert_eq!(house.exist(), things(1));
    worker.drain(Duration::from_secs(600)).await;
}

/// Kills the worker at each step of creating three objects, with both kinds of engine, and looks at the world.
async fn dies_everywhere(choice: EngineChoice) {
    let mut at = 0;
    loop {
        let house = House::new().await;
        house.stand_still_at(at);
        let worker = house.worker().await;
        let mut wish = house.wish(&[("count", json!(3))]);
        wish.engine = choice;
        let run = house.store.put_deployment(wish.clone(), None, &Actor::local("eve")).await.unwrap().run.id;
        let ended = tokio::select! {
            () = house.steps.standing.notified() => false,
            _ = house.rests(run) => true,
        };
        worker.abandon().await;
        let died_after = house.steps.names.lock().unwrap().last().copied();
        *house.steps.stand_still_at.lock().unwrap() = None;
        let worker = house.worker().await;
        let mut now = house.rests(run).await;
        if let Status::NeedsRecovery { doubts } = &now.status {
            let answers: BTreeMap<String, Answer> =
                doubts.iter().map(|doubt| (doubt.address.clone(), look_it_up(&house, &doubt.address))).collect();
            assert!(now.attempts > 1);
            house.store.recover(run, answers, &Actor::local("eve")).await.unwrap();
            now = house.until(run, Status::is_final).await;
        } else if !ended {
            let silent = ["plan", "planned", "apply", "settled", "saved"];
            assert!(silent.contains(&died_after.unwrap()), "{died_after:?} must leave a doubt");
        }
        assert!(now.status.is_success(), "died after {died_after:?}: {:?}", now.status);
        assert_eq!(house.exist(), things(3), "died after {died_after:?}");
        let outputs = house.store.outputs(&wish.tenant, &wish.name).await.unwrap();
        assert_eq!(outputs["count"]["value"], json!(3), "died after {died_after:?}");
        // The state has all of it: a destroy leaves nothing.
        let destroy = house.destroy().await;
        house.succeeds(destroy).await;
        assert!(house.exist().is_empty(), "died after {died_after:?}: {:?}", house.exist());
        worker.drain(Duration::from_secs(600)).await;
        if ended {
            break;
        }
        at += 1;
    }
    assert!(at > 8, "every step was a death");
}

/// What an operator would find in the vendor's console.
fn look_it_up(house: &House, address: &str) -> Answer {
    let world = house.world.lock().unwrap();
    let found: Vec<&String> = world.objects.iter().filter(|(_, at)| *at == address).map(|(id, _)| id).collect();
    match found[..] {
        [] => Answer::Absent,
        [id] => Answer::Adopt(id.clone()),
        _ => panic!("{address} exists twice"),
    }
}

#[tokio::test]
async fn nothing_is_made_twice_wherever_a_native_apply_dies() {
    dies_everywhere(EngineChoice::Native).await;
}

#[tokio::test]
async fn nothing_is_made_twice_wherever_a_cli_apply_dies() {
    dies_everywhere(EngineChoice::Cli).await;
}

#[tokio::test]
async fn a_second_worker_in_the_same_folder_is_refused() {
    let house = House::new().await;
    let worker = house.worker().await;
    let settings = Settings::new(house.folder.path().join("worker"));
    let second = Worker::start(house.store.clone(), Engines::default(), settings).await;
    assert!(second.err().unwrap().to_string().contains("another worker works in"));
    worker.drain(Duration::ZERO).await;
}
