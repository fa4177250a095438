use landform_domain::run::{Kind, Outcome, Status};
use landform_domain::{Code, Problem, inputs};
use landform_store::IdempotencyKey;
use serde_json::json;

use crate::place::*;

pub async fn the_same_put_is_the_same_run(place: Place) {
    let store = place.furnished().await;
    let first = put(&store, "acme", "site", &[("size", json!(1))]).await;
    assert!(first.fresh);
    for _ in 0..2 {
        let again = put(&store, "acme", "site", &[("size", json!(1))]).await;
        assert!(!again.fresh);
        assert_eq!(again.run.id, first.run.id);
        if again.run.status.word() == "queued" {
            carry_out(&store, "s1").await;
        }
    }
    let changed = put(&store, "acme", "site", &[("size", json!(2))]).await;
    assert!(changed.fresh);
    assert_eq!(changed.run.generation, 2);
    // A new version of the template is a change too, for whoever wants the newest.
    push(&store, "two").await;
    assert_eq!(put(&store, "acme", "site", &[("size", json!(2))]).await.run.generation, 3);
    // The same name of another tenant is another deployment.
    assert_eq!(put(&store, "other", "site", &[("size", json!(2))]).await.run.generation, 1);
}

pub async fn a_failed_run_is_made_again(place: Place) {
    let store = place.furnished().await;
    let first = put(&store, "acme", "site", &[]).await;
    let claimed = begin_apply(&store).await;
    let failure = Outcome::Failed(Problem::new(Code::ApplyFailed, "no"));
    finish(&store, &claimed.lease, ended(failure, Some("half"))).await;
    let second = put(&store, "acme", "site", &[]).await;
    assert!(second.fresh && second.run.id != first.run.id);
    assert_eq!(second.run.generation, 1);
    let claimed = claim(&store).await;
    assert_eq!(claimed.state.as_deref(), Some(&b"half"[..]), "it continues from what was done");
    store.cancel(second.run.id, &eve()).await.unwrap();
    assert!(put(&store, "acme", "site", &[]).await.fresh, "cancelled counts the same");
}

pub async fn a_newer_generation_supersedes_what_waits(place: Place) {
    let store = place.furnished().await;
    let queued = put(&store, "acme", "site", &[("n", json!(1))]).await.run;
    let planning = put(&store, "acme", "site", &[("n", json!(2))]).await.run;
    assert_eq!(status(&store, queued.id).await, Status::Superseded { by: planning.id });
    let claimed = claim(&store).await;
    assert_eq!(claimed.lease.run, planning.id);
    let newest = put(&store, "acme", "site", &[("n", json!(3))]).await.run;
    assert_eq!(status(&store, planning.id).await, Status::Superseded { by: newest.id });
    assert!(matches!(store.planned(&claimed.lease, plan()).await, Err(landform_store::StoreError::Fenced)));
    assert_eq!(claim(&store).await.lease.run, newest.id);
}

pub async fn a_newer_generation_lets_an_apply_end(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    let applying = begin_apply(&store).await;
    let second = put(&store, "acme", "site", &[("n", json!(2))]).await.run;
    let third = put(&store, "acme", "site", &[("n", json!(3))]).await.run;
    nothing_due(&store).await;
    assert_eq!(status(&store, second.id).await, Status::Superseded { by: third.id });
    // Superseding a run that waited did not disturb the one that is applied.
    store.renew(&applying.lease).await.unwrap();
    assert_eq!(finish(&store, &applying.lease, done("s1")).await, Status::Succeeded);
    let deployment = store.deployment(&"acme".parse().unwrap(), &"site".parse().unwrap()).await.unwrap();
    assert_eq!((deployment.generation, deployment.applied_generation), (3, Some(1)));
    let next = claim(&store).await;
    assert_eq!((next.lease.run, next.generation), (third.id, 3));
}

pub async fn generations_can_be_conditions(place: Place) {
    let store = place.furnished().await;
    let mut first = write("acme", "site", &[]);
    first.if_generation = Some(1);
    assert_eq!(code(store.put_deployment(first.clone(), None, &eve()).await), Code::GenerationMismatch);
    assert_eq!(
        code(store.deployment(&first.tenant, &first.name).await),
        Code::DeploymentUnknown,
        "a refused write leaves nothing"
    );
    first.if_generation = Some(0);
    store.put_deployment(first.clone(), None, &eve()).await.unwrap();
    assert_eq!(code(store.put_deployment(first, None, &eve()).await), Code::GenerationMismatch);
}

pub async fn an_idempotency_key_gives_the_same_answer(place: Place) {
    let store = place.furnished().await;
    let key = |body: &str| IdempotencyKey {
        principal: "eve".into(),
        route: "PUT /x".into(),
        key: "k1".into(),
        body: body.into(),
    };
    let first = store.put_deployment(write("acme", "site", &[]), Some(key("a")), &eve()).await.unwrap();
    carry_out(&store, "s").await;
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let again = store.put_deployment(write("acme", "site", &[]), Some(key("a")), &eve()).await.unwrap();
    assert_eq!((again.run.id, again.fresh), (first.run.id, false), "even after a newer write");
    let other = store.put_deployment(write("acme", "site", &[]), Some(key("b")), &eve()).await;
    assert_eq!(code(other), Code::IdempotencyKeyReused);
    // A refused request does not use its key up.
    let mut bad = write("acme", "new", &[]);
    bad.template_version = Some(99);
    let fresh_key = || Some(IdempotencyKey { key: "k2".into(), ..key("c") });
    assert_eq!(code(store.put_deployment(bad, fresh_key(), &eve()).await), Code::TemplateUnknown);
    assert!(store.put_deployment(write("acme", "new", &[]), fresh_key(), &eve()).await.unwrap().fresh);
}

pub async fn sensitive_inputs_are_kept_and_sealed(place: Place) {
    let store = place.furnished().await;
    let secret = json!("correct-horse-battery");
    put(&store, "acme", "site", &[("secret_key", secret.clone()), ("n", json!(1))]).await;
    let again = put(&store, "acme", "site", &[("n", json!(1))]).await;
    assert!(!again.fresh, "an omitted sensitive input keeps its value, so nothing changed");
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let shown = store.deployment(&"acme".parse().unwrap(), &"site".parse().unwrap()).await.unwrap();
    assert_eq!(shown.inputs.masked()["secret_key"], inputs::MASK);
    let claimed = claim(&store).await;
    let (_, input) = claimed.inputs.iter().find(|(name, _)| *name == "secret_key").unwrap();
    assert_eq!(input.value, secret);
    let id = store.intend(&claimed.lease, &[b"correct-horse-intent".to_vec()]).await.unwrap()[0];
    store.settle(&claimed.lease, id, b"correct-horse-settlement").await.unwrap();
    store.planned(&claimed.lease, plan()).await.unwrap();
    finish(&store, &claimed.lease, done("correct-horse-state")).await;
    assert_eq!(
        store.state(&"acme".parse().unwrap(), &"site".parse().unwrap()).await.unwrap().state,
        b"correct-horse-state"
    );
    store.close().await;
}

pub async fn destroy_uses_what_made_the_state(place: Place) {
    let store = place.furnished().await;
    let (acme, site) = ("acme".parse().unwrap(), "site".parse().unwrap());
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    carry_out(&store, "s1").await;
    push(&store, "two").await;
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let destroy = delete(&store, "acme", "site").await.run;
    assert_eq!((destroy.kind, destroy.generation), (Kind::Destroy, 3));
    assert_eq!(delete(&store, "acme", "site").await.run.id, destroy.id, "asked twice, destroyed once");
    let claimed = begin_apply(&store).await;
    assert_eq!(claimed.lease.run, destroy.id, "the second generation was superseded");
    assert_eq!(claimed.template_version, 1);
    assert_eq!(claimed.inputs.masked()["n"], json!(1));
    assert_eq!(claimed.state.as_deref(), Some(&b"s1"[..]));
    finish(&store, &claimed.lease, done("empty")).await;
    assert_eq!(code(store.deployment(&acme, &site).await), Code::DeploymentUnknown);
    assert_eq!(status(&store, destroy.id).await, Status::Succeeded, "runs stay");
    assert!(!store.events(destroy.id, 0, 100).await.unwrap().is_empty());
    // The name is free again, and what comes is new.
    assert_eq!(put(&store, "acme", "site", &[]).await.run.generation, 1);
    assert!(claim(&store).await.state.is_none());
}

pub async fn put_during_destroy_begins_anew(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    carry_out(&store, "s1").await;
    delete(&store, "acme", "site").await;
    let destroying = begin_apply(&store).await;
    let again = put(&store, "acme", "site", &[("n", json!(1))]).await.run;
    finish(&store, &destroying.lease, done("empty")).await;
    let claimed = claim(&store).await;
    assert_eq!(claimed.lease.run, again.id);
    assert!(claimed.state.is_none(), "a new incarnation has no state");
    let shown = store.deployment(&"acme".parse().unwrap(), &"site".parse().unwrap()).await.unwrap();
    assert_eq!(shown.applied_generation, None);
}

pub async fn two_first_writers_make_one_deployment(place: Place) {
    let store = place.furnished().await;
    let by = eve();
    let write_it = || store.put_deployment(write("acme", "site", &[("n", json!(1))]), None, &by);
    let (a, b, c) = tokio::join!(write_it(), write_it(), write_it());
    let runs = [a.unwrap(), b.unwrap(), c.unwrap()];
    assert!(runs.iter().all(|accepted| accepted.run.id == runs[0].run.id));
    assert_eq!(runs.iter().filter(|accepted| accepted.fresh).count(), 1);
}
