use landform_domain::memory::Room;
use landform_domain::run::{Kind, Outcome, Status, Urgency};
use landform_domain::{
    Code, DeploymentName, Drift, DriftStatus, DriftSummary, DriftedAttribute, DriftedObject, EventBody, Problem,
    TenantName,
};
use landform_store::{Claim, DriftFact, DriftFilter, Planned, RunFilter, RunRequest, Scope, Store, TenantSettings};
use serde_json::json;

use crate::place::*;

fn acme() -> TenantName {
    "acme".parse().unwrap()
}

fn site() -> DeploymentName {
    "site".parse().unwrap()
}

fn changed(address: &str, path: &str) -> DriftedObject {
    let change = DriftedAttribute { path: path.into(), before: json!("a"), after: json!("b"), sensitive: false };
    DriftedObject { address: address.into(), kind: "thing".into(), gone: false, changes: vec![change] }
}

fn gone(address: &str) -> DriftedObject {
    DriftedObject { address: address.into(), kind: "other".into(), gone: true, changes: Vec::new() }
}

fn found(objects: Vec<DriftedObject>) -> Drift {
    let count = |gone: bool| objects.iter().filter(|object| object.gone == gone).count() as u64;
    Drift { summary: DriftSummary { changed: count(false), gone: count(true) }, objects }
}

/// A deployment with a state, whose drift nobody knows.
async fn applied(place: &Place) -> Store {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    carry_out(&store, "s1").await;
    store
}

async fn fact(store: &Store) -> DriftFact {
    store.drift(&acme(), &site()).await.unwrap()
}

async fn claim_some(store: &Store, most: usize, checks: usize) -> Vec<Claim> {
    store.claim_with_checks(&worker("w"), most, checks, Room::UNLIMITED).await.unwrap().claims
}

/// Asks for a check and claims it.
async fn begin_check(store: &Store) -> Claim {
    let asked = store.check_drift(&acme(), &site(), &eve()).await.unwrap();
    let claimed = claim(store).await;
    assert_eq!((claimed.lease.run, claimed.kind), (asked.id, Kind::Check));
    claimed
}

async fn check(store: &Store, objects: Vec<DriftedObject>) -> Claim {
    let claimed = begin_check(store).await;
    store.checked(&claimed.lease, Vec::new(), found(objects)).await.unwrap();
    claimed
}

pub async fn a_check_finds_drift_and_an_apply_clears_it(place: Place) {
    let store = applied(&place).await;
    assert_eq!(fact(&store).await, DriftFact::default());
    let webhook = store.create_webhook(Some(&acme()), "https://a.example", &[], &eve()).await.unwrap().0;
    let before = store.deployment(&acme(), &site()).await.unwrap();
    let version = store.state(&acme(), &site()).await.unwrap().version;
    let claimed = check(&store, vec![changed("thing.a", "name"), gone("other.b")]).await;

    let known = fact(&store).await;
    assert_eq!((known.status, known.run), (DriftStatus::Drifted, Some(claimed.lease.run)));
    assert_eq!(known.summary, DriftSummary { changed: 1, gone: 1 });
    assert_eq!(known.objects, [changed("thing.a", "name"), gone("other.b")]);
    assert!(known.checked_at.is_some() && known.drifted_since.is_some());
    assert_eq!(status(&store, claimed.lease.run).await, Status::Succeeded);
    let events = store.events(claimed.lease.run, 0, 10).await.unwrap();
    assert!(events.iter().any(|event| event.body == EventBody::Drift(known.summary)), "{events:?}");
    // It is no change: nothing but the fact is different.
    let after = store.deployment(&acme(), &site()).await.unwrap();
    assert_eq!(store.state(&acme(), &site()).await.unwrap().version, version);
    assert_eq!((after.generation, after.applied_generation), (before.generation, before.applied_generation));
    assert_eq!(after.updated_at, before.updated_at);
    assert_eq!(after.last_run.unwrap().id, before.last_run.unwrap().id);
    assert_eq!(after.drift, known);

    // The same again keeps since when it is so.
    check(&store, vec![changed("thing.a", "name")]).await;
    assert_eq!(fact(&store).await.drifted_since, known.drifted_since);
    let healed = store.heal(&acme(), &site(), &eve()).await.unwrap();
    carry_out(&store, "s2").await;
    let known = fact(&store).await;
    assert_eq!((known.status, known.run, known.drifted_since), (DriftStatus::None, Some(healed.id), None));
    assert!(known.objects.is_empty() && known.summary.is_none());
    let told: Vec<String> = store
        .deliveries(Some(&acme()), &webhook.id)
        .await
        .unwrap()
        .into_iter()
        .map(|delivery| delivery.event)
        .collect();
    let about = |words: &str| told.iter().filter(|event| event.starts_with(words)).count();
    assert_eq!(about("deployment.drifted"), 1, "{told:?}");
    assert_eq!(about("deployment.drift_resolved"), 1, "{told:?}");
    assert_eq!(about("run."), 3, "only the run that healed it was a change: {told:?}");
}

/// A plan that awaits approval is applied as it is after a check, and what an unchanged run sees counts.
pub async fn a_check_disturbs_nobody(place: Place) {
    let store = applied(&place).await;
    let mut wanted = write("acme", "site", &[("n", json!(2))]);
    wanted.requires_approval = Some(true);
    let waiting = store.put_deployment(wanted, None, &eve()).await.unwrap().run;
    let planning = claim(&store).await;
    store.planned(&planning.lease, plan()).await.unwrap();
    check(&store, vec![gone("other.b")]).await;
    assert!(matches!(status(&store, waiting.id).await, Status::AwaitingApproval { .. }));
    store.approve(waiting.id, &eve()).await.unwrap();
    let applying = claim(&store).await;
    assert_eq!(applying.lease.run, waiting.id);
    let state = |serial: i64| {
        json!({"version": 4, "serial": serial, "lineage": "x", "resources": [], "outputs": {}}).to_string()
    };
    assert_eq!(finish(&store, &applying.lease, done(&state(1))).await, Status::Succeeded);
    assert_eq!(fact(&store).await.status, DriftStatus::None);

    check(&store, vec![gone("other.b")]).await;
    for (json, expected) in
        [(json!({"resource_drift": [{}]}), DriftStatus::Drifted), (json!({"resource_changes": []}), DriftStatus::None)]
    {
        store.run_again(&acme(), &site(), RunRequest::default(), &eve()).await.unwrap();
        let again = claim(&store).await;
        let json = Some(serde_json::to_vec(&json).unwrap());
        let unchanged = Planned { effective: false, json, ..plan() };
        assert_eq!(store.planned(&again.lease, unchanged).await.unwrap(), Status::Unchanged);
        assert_eq!(fact(&store).await.status, expected);
    }
    // A waiting check is none of the runs that a tenant may have waiting, and asking twice is asking once.
    let limits = TenantSettings { most_waiting: Some(1), ..TenantSettings::default() };
    store.put_tenant(&acme(), limits, &eve()).await.unwrap();
    let first = store.check_drift(&acme(), &site(), &eve()).await.unwrap();
    assert_eq!(store.check_drift(&acme(), &site(), &eve()).await.unwrap().id, first.id);
    put(&store, "acme", "second", &[]).await;
    // A state from outside is another one: what was known is about the old one.
    let change = claim(&store).await;
    assert_eq!(change.deployment.as_str(), "second", "a change comes first");
    let checking = claim(&store).await;
    assert_eq!(checking.lease.run, first.id);
    store.checked(&checking.lease, Vec::new(), found(vec![gone("other.b")])).await.unwrap();
    assert_eq!(fact(&store).await.status, DriftStatus::Drifted);
    store.write_state(&acme(), &site(), state(9).as_bytes(), &Default::default(), &eve()).await.unwrap();
    assert_eq!(fact(&store).await, DriftFact::default());
    store.forget(&acme(), &site(), &eve()).await.unwrap();
    assert_eq!(code(store.drift(&acme(), &site()).await), Code::DeploymentUnknown);
}

pub async fn a_check_gives_way_to_whoever_wants_to_change_something(place: Place) {
    let store = applied(&place).await;
    // To a change, at once: its worker is fenced, and the change is claimed.
    let checking = begin_check(&store).await;
    let change = put(&store, "acme", "site", &[("n", json!(2))]).await.run;
    assert_eq!(status(&store, checking.lease.run).await, Status::Superseded { by: change.id });
    assert!(store.checked(&checking.lease, Vec::new(), found(vec![gone("other.b")])).await.is_err());
    assert_eq!(carry_out(&store, "s2").await.lease.run, change.id);
    assert_eq!(fact(&store).await.status, DriftStatus::Unknown, "nobody has heard of what it saw");

    // To an approval.
    let mut wanted = write("acme", "site", &[("n", json!(3))]);
    wanted.requires_approval = Some(true);
    let waiting = store.put_deployment(wanted, None, &eve()).await.unwrap().run;
    let planning = claim(&store).await;
    store.planned(&planning.lease, plan()).await.unwrap();
    let checking = begin_check(&store).await;
    store.approve(waiting.id, &eve()).await.unwrap();
    assert_eq!(status(&store, checking.lease.run).await, Status::Superseded { by: waiting.id });
    let applying = claim(&store).await;
    assert_eq!(applying.lease.run, waiting.id);
    finish(&store, &applying.lease, done("s3")).await;

    // To a trial, to a client that takes the lock, and to whoever lets the deployment go.
    let checking = begin_check(&store).await;
    let trial = RunRequest { plan_only: true, ..RunRequest::default() };
    let trial = store.run_again(&acme(), &site(), trial, &eve()).await.unwrap();
    assert_eq!(status(&store, checking.lease.run).await, Status::Superseded { by: trial.id });
    let planning = claim(&store).await;
    store.planned(&planning.lease, plan()).await.unwrap();
    let checking = begin_check(&store).await;
    let lock = store.lock_state(&acme(), &site(), json!({"ID": "l", "Who": "eve"}), &eve()).await.unwrap();
    assert_eq!(lock, landform_store::Locking::Taken);
    assert_eq!(status(&store, checking.lease.run).await, Status::Cancelled);
    store.unlock_state(&acme(), &site(), Some("l"), &eve()).await.unwrap();
    let checking = begin_check(&store).await;
    store.forget(&acme(), &site(), &eve()).await.unwrap();
    assert_eq!(status(&store, checking.lease.run).await, Status::Cancelled);
}

pub async fn changes_are_claimed_before_checks(place: Place) {
    let store = applied(&place).await;
    put(&store, "other", "busy", &[]).await;
    carry_out(&store, "s").await;
    store.check_drift(&acme(), &site(), &eve()).await.unwrap();
    put(&store, "other", "late", &[]).await;
    // With no place for checks there is none.
    let none = claim_some(&store, 5, 0).await;
    assert_eq!(none.iter().map(|claim| claim.kind).collect::<Vec<_>>(), [Kind::Apply]);
    assert!(claim_some(&store, 5, 0).await.is_empty());
    store.check_drift(&"other".parse().unwrap(), &"busy".parse().unwrap(), &eve()).await.unwrap();
    put(&store, "acme", "later", &[]).await;
    let both = claim_some(&store, 5, 1).await;
    let urgencies: Vec<Urgency> = both.iter().map(Claim::urgency).collect();
    assert_eq!(urgencies, [Urgency::Change, Urgency::Idle], "as many checks as there is room for, after the changes");
    // What was claimed behind everything does not move the fair order: both tenants still take turns.
    for n in 0..2 {
        put(&store, "acme", &format!("a{n}"), &[]).await;
        put(&store, "other", &format!("o{n}"), &[]).await;
    }
    let claims = claim_some(&store, 4, 0).await;
    let tenants: Vec<&str> = claims.iter().map(|claim| claim.lease.tenant.as_str()).collect();
    assert_eq!(tenants.iter().filter(|tenant| **tenant == "acme").count(), 2, "{tenants:?}");
    assert_ne!(tenants[0], tenants[1], "{tenants:?}");
}

/// Neither what was accepted since nor what failed before it changed anything.
pub async fn a_check_uses_what_was_applied_last(place: Place) {
    let store = applied(&place).await;
    push(&store, "two").await;
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let failing = claim(&store).await;
    assert_eq!((failing.generation, failing.template_version), (2, 2));
    finish(&store, &failing.lease, ended(Outcome::Failed(Problem::new(Code::PlanFailed, "no")), None)).await;
    let checking = begin_check(&store).await;
    assert_eq!((checking.generation, checking.template_version), (1, 1));
    assert_eq!(checking.inputs.masked()["n"], 1);
    assert_eq!(checking.state.as_deref(), Some(&b"s1"[..]));
    store.checked(&checking.lease, Vec::new(), Drift::default()).await.unwrap();
    // One that was applied without any effect is what holds from then on.
    store.heal(&acme(), &site(), &eve()).await.unwrap();
    let again = claim(&store).await;
    store.planned(&again.lease, Planned { effective: false, ..plan() }).await.unwrap();
    assert_eq!(begin_check(&store).await.generation, 2);
    // Without a state there is nothing to compare with.
    put(&store, "acme", "new", &[]).await;
    assert_eq!(code(store.check_drift(&acme(), &"new".parse().unwrap(), &eve()).await), Code::StateUnknown);
    assert_eq!(code(store.check_drift(&acme(), &"no".parse().unwrap(), &eve()).await), Code::DeploymentUnknown);
}

pub async fn a_check_that_fails_leaves_the_fact(place: Place) {
    let store = applied(&place).await;
    let first = check(&store, vec![gone("other.b")]).await;
    let failing = begin_check(&store).await;
    finish(&store, &failing.lease, ended(Outcome::Failed(Problem::new(Code::PlanFailed, "no")), None)).await;
    let known = fact(&store).await;
    assert_eq!((known.status, known.run), (DriftStatus::Drifted, Some(first.lease.run)));
    let failed = known.failed.unwrap();
    assert_eq!((failed.run, failed.code.as_str()), (failing.lease.run, "plan_failed"));
    assert!(store.failures(None).await.unwrap().is_empty(), "no change has failed");
    let again = store.retry(failing.lease.run, &eve()).await.unwrap();
    assert_eq!(again.kind, Kind::Check);
    let claimed = claim(&store).await;
    store.checked(&claimed.lease, Vec::new(), Drift::default()).await.unwrap();
    assert_eq!((fact(&store).await.status, fact(&store).await.failed), (DriftStatus::None, None));
}

pub async fn schedules_ask_for_checks(place: Place) {
    let store = applied(&place).await;
    let schedule = async |every| store.schedule_drift_checks(&acme(), &site(), every, &eve()).await;
    for wrong in [0, 59, 32 * 24 * 3600, -60] {
        assert_eq!(code(schedule(Some(wrong)).await), Code::RequestInvalid);
    }
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 0);
    schedule(Some(3600)).await.unwrap();
    // Paused, it is passed over, and comes when it goes on.
    let scope = Scope::Deployment(acme(), site());
    store.pause(&scope, true, &eve()).await.unwrap();
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 0);
    store.pause(&scope, false, &eve()).await.unwrap();
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 1, "nobody has looked yet");
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 0, "the next one is in an hour");
    let claimed = claim(&store).await;
    assert_eq!(claimed.kind, Kind::Check);
    let author = store.run(claimed.lease.run).await.unwrap().author_name;
    assert_eq!(author.as_deref(), Some("schedule"));
    store.checked(&claimed.lease, Vec::new(), Drift::default()).await.unwrap();
    let known = fact(&store).await;
    let wait = known.next_at.unwrap() - known.checked_at.unwrap();
    assert!((3_200_000..=4_000_000).contains(&wait), "an hour, more or less: {wait}");
    schedule(None).await.unwrap();
    assert_eq!((fact(&store).await.every, fact(&store).await.next_at), (None, None));
    // There is an end to how many are asked for at once.
    for n in 0..40 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
        carry_out(&store, "s").await;
        let name = format!("d{n}").parse().unwrap();
        store.schedule_drift_checks(&acme(), &name, Some(60), &eve()).await.unwrap();
    }
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 32);
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 0);
    let claimed = claim(&store).await;
    store.checked(&claimed.lease, Vec::new(), Drift::default()).await.unwrap();
    assert_eq!(store.ask_for_due_checks().await.unwrap(), 1);
    // One that somebody asks for comes before those of schedules, also if it is one of them.
    let last = RunFilter { tenant: Some(acme()), status: Some("queued".into()), ..RunFilter::default() };
    let last = store.runs(&last).await.unwrap().remove(0);
    let asked = store.check_drift(&acme(), &last.deployment, &eve()).await.unwrap();
    assert_eq!(asked.id, last.id);
    assert_eq!(claim(&store).await.lease.run, last.id);
}

pub async fn the_fleet_is_grouped_by_what_differs(place: Place) {
    let store = place.furnished().await;
    for (tenant, name, objects) in [
        ("acme", "a", vec![changed("thing.x", "rules[0].port"), changed("thing.y", "rules[1].port")]),
        ("acme", "b", vec![changed("thing.x", "rules[3]"), gone("other.b")]),
        ("acme", "c", vec![]),
        ("other", "a", vec![changed("thing.x", "rules")]),
    ] {
        put(&store, tenant, name, &[]).await;
        carry_out(&store, "s").await;
        store.check_drift(&tenant.parse().unwrap(), &name.parse().unwrap(), &eve()).await.unwrap();
        let claimed = claim(&store).await;
        store.checked(&claimed.lease, Vec::new(), found(objects)).await.unwrap();
    }
    put(&store, "acme", "unseen", &[]).await;
    carry_out(&store, "s").await;
    let names = async |filter: DriftFilter| -> Vec<String> {
        let found = store.drifted_deployments(&filter).await.unwrap();
        found.iter().map(|found| format!("{}/{}", found.tenant, found.deployment)).collect()
    };
    let drifted = DriftFilter { status: DriftStatus::Drifted, ..DriftFilter::default() };
    assert_eq!(names(drifted.clone()).await, ["acme/a", "acme/b", "other/a"]);
    assert_eq!(names(DriftFilter { status: DriftStatus::None, ..drifted.clone() }).await, ["acme/c"]);
    assert_eq!(names(DriftFilter { status: DriftStatus::Unknown, ..drifted.clone() }).await, ["acme/unseen"]);
    assert_eq!(names(DriftFilter { kind: Some("other".into()), ..drifted.clone() }).await, ["acme/b"]);
    assert_eq!(names(DriftFilter { tenant: Some("other".parse().unwrap()), ..drifted.clone() }).await, ["other/a"]);
    let wrong = DriftFilter { template: Some("no".parse().unwrap()), ..drifted.clone() };
    assert!(names(wrong).await.is_empty());
    let page = DriftFilter { limit: 2, ..drifted.clone() };
    assert_eq!(names(page.clone()).await.len(), 2);
    let page = DriftFilter { after: Some(("acme".into(), "b".into())), ..page };
    assert_eq!(names(page).await, ["other/a"]);

    let groups = store.drift_groups(None).await.unwrap();
    let [rules, gone] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((rules.kind.as_str(), rules.gone, rules.objects, rules.deployments), ("thing", false, 4, 3));
    assert_eq!((rules.template.as_str(), &rules.attributes[..]), ("net", &["rules".to_owned()][..]));
    assert_eq!((rules.tenant.as_str(), rules.deployment.as_str()), ("acme", "a"));
    assert_eq!((gone.kind.as_str(), gone.gone, gone.objects), ("other", true, 1));
    assert_eq!(store.drift_groups(Some(&"other".parse().unwrap())).await.unwrap().len(), 1);
    // Whoever is destroyed has no drift.
    delete(&store, "acme", "b").await;
    carry_out(&store, "gone").await;
    assert_eq!(names(drifted).await, ["acme/a", "other/a"]);
    assert_eq!(store.drift_groups(None).await.unwrap().len(), 1);
}
