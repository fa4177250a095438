use landform_domain::Code;
use landform_domain::memory::Room;
use landform_store::{RunRequest, Scope, Store, TenantSettings};

use crate::place::*;

async fn set(store: &Store, settings: TenantSettings) {
    store.put_tenant(&"acme".parse().unwrap(), settings, &eve()).await.unwrap();
}

/// Thousands of runs that wait must not be passed over by every claim: they are put aside once, and come back.
pub async fn what_is_paused_is_out_of_the_way(place: Place) {
    let store = place.furnished().await;
    let everything_of_acme = Scope::Tenant("acme".parse().unwrap());
    store.pause(&everything_of_acme, true, &eve()).await.unwrap();
    for n in 0..40 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    nothing_due(&store).await;
    put(&store, "other", "site", &[]).await;
    assert_eq!(claim(&store).await.lease.tenant.as_str(), "other");
    let alone = Scope::Deployment("acme".parse().unwrap(), "d0".parse().unwrap());
    store.pause(&alone, true, &eve()).await.unwrap();
    store.pause(&everything_of_acme, false, &eve()).await.unwrap();
    let taken = store.claim_up_to(&worker("w"), 100).await.unwrap();
    assert_eq!(taken.len(), 39, "one of them is paused by itself");
    store.pause(&alone, false, &eve()).await.unwrap();
    assert_eq!(claim(&store).await.deployment.as_str(), "d0");
}

/// A run from far behind was taken while those before it could not be: the fair order goes on from those.
pub async fn a_claim_from_far_behind_starves_nobody(place: Place) {
    let store = place.furnished().await;
    for n in 0..5 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    let first_four = (0..4).map(|n| Scope::Deployment("acme".parse().unwrap(), format!("d{n}").parse().unwrap()));
    let first_four: Vec<Scope> = first_four.collect();
    for scope in &first_four {
        store.pause(scope, true, &eve()).await.unwrap();
    }
    assert_eq!(claim(&store).await.deployment.as_str(), "d4");
    for scope in &first_four {
        store.pause(scope, false, &eve()).await.unwrap();
    }
    put(&store, "other", "site", &[]).await;
    let mut order = Vec::new();
    for _ in 0..5 {
        order.push(claim(&store).await.lease.tenant.to_string());
    }
    assert_eq!(order, ["acme", "other", "acme", "acme", "acme"]);
}

/// Who comes back from a pause with many runs does not come before those who were served meanwhile.
pub async fn the_end_of_a_pause_starves_nobody(place: Place) {
    let store = place.furnished().await;
    let acme = Scope::Tenant("acme".parse().unwrap());
    store.pause(&acme, true, &eve()).await.unwrap();
    for n in 0..6 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    nothing_due(&store).await;
    for n in 0..10 {
        put(&store, "other", &format!("o{n}"), &[]).await;
    }
    assert_eq!(store.claim_up_to(&worker("w"), 7).await.unwrap().len(), 7);
    store.pause(&acme, false, &eve()).await.unwrap();
    put(&store, "acme", "last", &[]).await;
    let mut order = Vec::new();
    for _ in 0..10 {
        let claimed = claim(&store).await;
        order.push((claimed.lease.tenant.to_string(), claimed.deployment.to_string()));
    }
    let first_six: Vec<&str> = order[..6].iter().map(|(tenant, _)| tenant.as_str()).collect();
    assert_eq!(first_six.iter().filter(|tenant| **tenant == "other").count(), 3, "in turns: {order:?}");
    assert_eq!(order[9].1, "last", "it was queued last: {order:?}");
}

/// Whose places are all taken asks for runs of those who have none.
pub async fn a_newcomer_is_somebody_with_nothing_under_way(place: Place) {
    let store = place.furnished().await;
    let newcomer = async || {
        let claimed = store.claim_newcomer(&worker("w"), Room::UNLIMITED).await.unwrap();
        claimed.map(|claim| (claim.lease.tenant.to_string(), claim.deployment.to_string()))
    };
    for n in 0..3 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    assert_eq!(claim(&store).await.deployment.as_str(), "d0");
    assert_eq!(newcomer().await, None, "acme has a run under way");
    put(&store, "other", "first", &[]).await;
    put(&store, "other", "second", &[]).await;
    assert_eq!(newcomer().await, Some(("other".to_owned(), "first".to_owned())));
    assert_eq!(newcomer().await, None, "now everybody has one");
    let mut left = Vec::new();
    for _ in 0..3 {
        left.push(claim(&store).await.deployment.to_string());
    }
    assert_eq!(left, ["d1", "d2", "second"], "the fair order is as before");
}

pub async fn what_is_held_comes_back_when_it_is_free(place: Place) {
    let store = place.furnished().await;
    let (acme, site) = ("acme".parse().unwrap(), "site".parse().unwrap());
    put(&store, "acme", "site", &[]).await;
    let first = begin_apply(&store).await;
    // A run behind one that is being applied is come across, and put aside.
    let trial = RunRequest { plan_only: true, ..RunRequest::default() };
    store.run_again(&acme, &site, trial, &eve()).await.unwrap();
    nothing_due(&store).await;
    finish(&store, &first.lease, done("one")).await;
    let second = claim(&store).await;
    assert!(second.plan_only);
    store.planned(&second.lease, plan()).await.unwrap();
    // The same with the lock of an outside client.
    let info = serde_json::json!({"ID": "lock-1", "Who": "eve"});
    store.lock_state(&acme, &site, info, &eve()).await.unwrap();
    put(&store, "acme", "site", &[("n", 2.into())]).await;
    nothing_due(&store).await;
    store.unlock_state(&acme, &site, Some("lock-1"), &eve()).await.unwrap();
    assert_eq!(claim(&store).await.generation, 2);
}

pub async fn a_tenant_has_at_most_its_slots(place: Place) {
    let store = place.furnished().await;
    set(&store, TenantSettings { slots: Some(2), ..TenantSettings::default() }).await;
    for n in 0..5 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    put(&store, "other", "site", &[]).await;
    let names = |claims: &[landform_store::Claim]| -> Vec<String> {
        claims.iter().map(|claim| claim.deployment.to_string()).collect()
    };
    let first = store.claim_up_to(&worker("w"), 100).await.unwrap();
    assert_eq!(names(&first), ["d0", "site", "d1"]);
    nothing_due(&store).await;
    // A slot that is free is handed on, in order.
    store.planned(&first[0].lease, plan()).await.unwrap();
    nothing_due(&store).await;
    finish(&store, &first[0].lease, done("one")).await;
    assert_eq!(names(&store.claim_up_to(&worker("w"), 100).await.unwrap()), ["d2"]);
    // What a dead worker left comes first, and needs no slot of its own.
    store.void_leases(&worker("w")).await.unwrap();
    assert_eq!(store.claim_up_to(&worker("w"), 100).await.unwrap().len(), 3);
    set(&store, TenantSettings { slots: Some(0), ..TenantSettings::default() }).await;
    assert_eq!(names(&store.claim_up_to(&worker("w"), 100).await.unwrap()), ["d3", "d4"]);
}

pub async fn quotas_refuse_what_is_beyond_them(place: Place) {
    let store = place.furnished().await;
    let limits = TenantSettings { most_deployments: Some(3), most_waiting: Some(2), ..TenantSettings::default() };
    set(&store, limits).await;
    for name in ["a", "b"] {
        put(&store, "acme", name, &[]).await;
    }
    let third = || write("acme", "c", &[]);
    assert_eq!(code(store.put_deployment(third(), None, &eve()).await), Code::WaitingQuota);
    assert!(store.deployment(&"acme".parse().unwrap(), &"c".parse().unwrap()).await.is_err(), "nothing is kept of it");
    // A newer generation takes the place of one that waits.
    put(&store, "acme", "b", &[("n", 2.into())]).await;
    carry_out(&store, "one").await;
    store.put_deployment(third(), None, &eve()).await.expect("there is room again");
    let fourth = write("acme", "d", &[]);
    assert_eq!(code(store.put_deployment(fourth, None, &eve()).await), Code::DeploymentQuota);
    put(&store, "other", "d", &[]).await;
}
