use std::collections::BTreeSet;
use std::time::Duration;

use landform_domain::run::{Next, Outcome, Phase, Status};
use landform_domain::{Code, EngineName, EventBody};
use landform_store::{EngineChosen, Planned, RunFilter, StoreError, Work};
use serde_json::json;

use crate::place::*;

pub async fn a_run_goes_from_queue_to_outputs(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[("n", json!(12345678901234567890u64))]).await.run;
    assert_eq!(run.status, Status::Queued(Next::Plan));
    let claimed = claim(&store).await;
    assert!(matches!(claimed.work, Work::Plan));
    assert_eq!(claimed.attempt, 1);
    assert_eq!(claimed.inputs.masked()["n"].to_string(), "12345678901234567890", "numbers are exact");
    let chosen =
        EngineChosen { engine: EngineName::Cli, version: "opentofu 1".into(), reasons: vec!["main.tf:1: x".into()] };
    let planned = Planned { engines: vec![chosen], ..plan() };
    assert_eq!(store.planned(&claimed.lease, planned).await.unwrap(), Status::Applying(Phase::Running));
    let ids = store.intend(&claimed.lease, &[b"a".to_vec(), b"b".to_vec()]).await.unwrap();
    store.settle(&claimed.lease, ids[0], b"made").await.unwrap();
    store.settle(&claimed.lease, ids[0], b"made").await.expect("a repeat does no harm");
    assert_eq!(finish(&store, &claimed.lease, done("s1")).await, Status::Succeeded);
    nothing_due(&store).await;

    let (acme, site) = ("acme".parse().unwrap(), "site".parse().unwrap());
    assert_eq!(store.outputs(&acme, &site).await.unwrap()["state"]["value"], "s1");
    let shown = store.deployment(&acme, &site).await.unwrap();
    assert_eq!(shown.applied_generation, Some(1));
    let shown = shown.last_run.unwrap();
    assert_eq!((shown.id, shown.engine), (run.id, Some(EngineName::Cli)));
    assert!(shown.ended_at.unwrap() >= shown.started_at.unwrap());
    let events: Vec<EventBody> =
        store.events(run.id, 0, 100).await.unwrap().into_iter().map(|event| event.body).collect();
    let words: Vec<&str> = events
        .iter()
        .map(|event| match event {
            EventBody::Status(status) => status.word(),
            EventBody::Engine { .. } => "engine",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(words, ["queued", "planning", "engine", "applying", "succeeded"]);
    let filter = RunFilter { tenant: Some(acme), status: Some("succeeded".into()), ..Default::default() };
    assert_eq!(store.runs(&filter).await.unwrap().len(), 1);
    let older = RunFilter { before: Some(run.id), ..Default::default() };
    assert!(store.runs(&older).await.unwrap().is_empty());
}

pub async fn one_run_at_a_time_per_deployment(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    let first = begin_apply(&store).await;
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    nothing_due(&store).await;
    finish(&store, &first.lease, done("s")).await;
    let second = claim(&store).await;
    assert!(second.lease.epoch > first.lease.epoch);
    assert_eq!(second.state.as_deref(), Some(&b"s"[..]));
}

/// Many workers at once: each run is claimed by one, and no deployment twice.
pub async fn claims_never_overlap(place: Place) {
    let store = place.furnished().await;
    for i in 0..12 {
        put(&store, "acme", &format!("site-{i}"), &[]).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for w in 0..6 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut runs = Vec::new();
            while let Some(claimed) = store.claim(&worker(&format!("w{w}"))).await.unwrap() {
                runs.push(claimed.lease.run);
            }
            runs
        });
    }
    let all = tasks.join_all().await.concat();
    // A worker may see nothing while others hold the rest; what is left is claimed afterwards.
    let mut all: Vec<_> = all;
    while let Some(claimed) = store.claim(&worker("last")).await.unwrap() {
        all.push(claimed.lease.run);
    }
    assert_eq!(all.len(), 12);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 12);
}

pub async fn tenants_take_turns(place: Place) {
    let store = place.furnished().await;
    // A past without competition is not held against anyone.
    for i in 0..5 {
        put(&store, "acme", &format!("past-{i}"), &[]).await;
        carry_out(&store, "s").await;
    }
    for i in 0..4 {
        put(&store, "acme", &format!("many-{i}"), &[]).await;
    }
    for i in 0..2 {
        put(&store, "other", &format!("few-{i}"), &[]).await;
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        order.push(claim(&store).await.lease.tenant.to_string());
    }
    assert_eq!(order, ["acme", "other", "acme", "other", "acme", "acme"]);
}

pub async fn several_runs_are_claimed_at_once(place: Place) {
    let store = place.furnished().await;
    for n in 0..5 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
        put(&store, "other", &format!("d{n}"), &[]).await;
    }
    let first = store.claim_up_to(&worker("w"), 4).await.unwrap();
    let mut owners: Vec<String> =
        first.iter().map(|claim| format!("{}/{}", claim.lease.tenant, claim.deployment)).collect();
    // Each tenant's first and second are as urgent as the other's, and what comes in within a millisecond has no order.
    owners.chunks_mut(2).for_each(<[String]>::sort);
    assert_eq!(owners, ["acme/d0", "other/d0", "acme/d1", "other/d1"]);
    let rest = store.claim_up_to(&worker("w"), 100).await.unwrap();
    assert_eq!(rest.len(), 6);
    for claim in first.iter().chain(&rest) {
        store.renew(&claim.lease).await.expect("each has its own lease");
    }
    nothing_due(&store).await;
}

/// Whoever was busy before is not behind somebody new, and somebody new is not behind a queue.
pub async fn a_tenants_past_does_not_count(place: Place) {
    let store = place.furnished().await;
    for n in 0..20 {
        put(&store, "acme", &format!("old{n}"), &[]).await;
        carry_out(&store, "s").await;
    }
    for n in 0..3 {
        put(&store, "other", &format!("new{n}"), &[]).await;
    }
    put(&store, "acme", "now", &[]).await;
    let order: Vec<String> =
        store.claim_up_to(&worker("w"), 10).await.unwrap().iter().map(|claim| claim.deployment.to_string()).collect();
    assert_eq!(order, ["new0", "now", "new1", "new2"]);
}

/// Writers at the same moment share commits; one that is refused takes only itself back.
pub async fn writers_at_once_keep_what_is_theirs(place: Place) {
    let store = place.furnished().await;
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = store.clone();
        writers.spawn(async move {
            let mut wanted = write("acme", &format!("d{n}"), &[]);
            if n % 3 == 0 {
                wanted.if_generation = Some(7);
            }
            (n, store.put_deployment(wanted, None, &eve()).await)
        });
    }
    while let Some(written) = writers.join_next().await {
        let (n, result) = written.unwrap();
        match n % 3 {
            0 => assert_eq!(code(result), Code::GenerationMismatch),
            _ => drop(result.expect("accepted")),
        }
    }
    assert_eq!(store.deployments(&"acme".parse().unwrap()).await.unwrap().len(), 40);
}

pub async fn an_old_epoch_writes_nothing(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    let old = begin_apply(&store).await.lease;
    let intent = store.intend(&old, &[b"a".to_vec()]).await.unwrap()[0];
    store.void_leases(&worker("w")).await.unwrap();
    let new = claim(&store).await;
    assert_eq!(new.attempt, 2);
    let before = store.events(run.id, 0, 1000).await.unwrap().len();
    let fenced = |error: StoreError| assert!(matches!(error, StoreError::Fenced), "{error}");
    fenced(store.renew(&old).await.unwrap_err());
    fenced(store.intend(&old, &[b"b".to_vec()]).await.unwrap_err());
    fenced(store.settle(&old, intent, b"x").await.unwrap_err());
    fenced(store.report(&old, &[EventBody::Note { text: "late".into() }]).await.unwrap_err());
    fenced(store.planned(&old, plan()).await.unwrap_err());
    fenced(store.finish(&old, done("wrong")).await.unwrap_err());
    fenced(store.release(&old).await.unwrap_err());
    assert_eq!(store.events(run.id, 0, 1000).await.unwrap().len(), before);
    let Work::Recover { journal } = new.work else { panic!("it is recovered") };
    assert_eq!(journal.len(), 1);
    assert!(journal[0].settlement.is_none());
    assert!(new.state.is_none());
}

pub async fn a_lapsed_lease_is_taken_over(mut place: Place) {
    place.lease = Duration::from_millis(1);
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    let first = claim(&store).await;
    let mut second = None;
    while second.is_none() {
        second = store.claim(&worker("other")).await.unwrap();
    }
    let second = second.unwrap();
    assert_eq!((second.lease.run, second.attempt), (run.id, 2));
    assert!(matches!(second.work, Work::Plan), "a plan is simply made again");
    assert!(matches!(store.renew(&first.lease).await, Err(StoreError::Fenced)));
    // Late but not replaced is still the owner.
    tokio::time::sleep(Duration::from_millis(5)).await;
    store.renew(&second.lease).await.unwrap();
}

pub async fn a_worker_voids_its_own_past(place: Place) {
    let store = place.furnished().await;
    for name in ["a", "b"] {
        put(&store, "acme", name, &[]).await;
    }
    let mine = claim(&store).await;
    let theirs = store.claim(&worker("other")).await.unwrap().unwrap();
    nothing_due(&store).await;
    assert_eq!(store.void_leases(&worker("w")).await.unwrap(), 1);
    assert_eq!(claim(&store).await.lease.run, mine.lease.run);
    store.renew(&theirs.lease).await.unwrap();
}

pub async fn cancelling_a_plan_fences_its_worker(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    let claimed = claim(&store).await;
    assert_eq!(store.cancel(run.id, &eve()).await.unwrap().status, Status::Cancelled);
    assert!(matches!(store.renew(&claimed.lease).await, Err(StoreError::Fenced)));
    put(&store, "acme", "site", &[]).await;
    claim(&store).await;
}

pub async fn cancelling_an_apply_is_a_wish(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    let claimed = begin_apply(&store).await;
    assert!(!store.renew(&claimed.lease).await.unwrap().cancel_requested);
    assert_eq!(store.cancel(run.id, &eve()).await.unwrap().status.word(), "applying");
    assert!(store.renew(&claimed.lease).await.unwrap().cancel_requested);
    assert_eq!(finish(&store, &claimed.lease, ended(Outcome::Stopped, Some("half"))).await, Status::Cancelled);
    assert_eq!(code(store.cancel(run.id, &eve()).await), landform_domain::Code::RunFinished);
}

pub async fn events_are_numbered_and_bounded(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    let lease = claim(&store).await.lease;
    let note = |n: usize| EventBody::Note { text: n.to_string() };
    assert_eq!(store.report(&lease, &(0..3).map(note).collect::<Vec<_>>()).await.unwrap(), 0);
    let events = store.events(run.id, 2, 2).await.unwrap();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(events[0].body, note(0));
    let dropped = store.report(&lease, &(0..10_000).map(note).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(dropped, 5, "two of its status and three notes were there");
    // A change of status is never dropped.
    store.planned(&lease, plan()).await.unwrap();
    assert_eq!(store.events(run.id, 10_000, 10).await.unwrap().len(), 1);
}

pub async fn the_doorbell_rings_for_others(place: Place) {
    let store = place.furnished().await;
    let elsewhere = if place.is_postgres() { place.open().await } else { store.clone() };
    let mut bell = elsewhere.doorbell();
    let waits = tokio::spawn(async move {
        while elsewhere.claim(&worker("w")).await.unwrap().is_none() {
            bell.rung(Duration::from_secs(5)).await;
        }
    });
    put(&store, "acme", "site", &[]).await;
    waits.await.unwrap();
}
