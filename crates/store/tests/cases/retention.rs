use std::time::Duration;

use landform_store::{IdempotencyKey, Retention, RunFilter};
use serde_json::json;

use crate::place::*;

fn at_once() -> Retention {
    Retention { runs: Duration::ZERO, idempotency_keys: Duration::ZERO, state_versions: 2 }
}

/// Time is the database's, in milliseconds: what has ended is older than now a moment later.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub async fn old_runs_go_and_the_newest_stays(mut place: Place) {
    place.retention = at_once();
    let store = place.furnished().await;
    for n in 0..3 {
        put(&store, "acme", "site", &[("n", json!(n))]).await;
        carry_out(&store, "s").await;
    }
    let newest = put(&store, "acme", "site", &[("n", json!(2))]).await;
    assert!(!newest.fresh);
    put(&store, "acme", "busy", &[]).await;
    let busy = claim(&store).await;
    put(&store, "other", "gone", &[]).await;
    carry_out(&store, "s").await;
    delete(&store, "other", "gone").await;
    carry_out(&store, "s").await;
    a_moment().await;

    assert_eq!(store.prune().await.unwrap(), 4, "two of the site and both of what is destroyed");
    let left = store.runs(&RunFilter::default()).await.unwrap();
    let mut ids: Vec<_> = left.iter().map(|run| run.id).collect();
    ids.sort();
    assert_eq!(ids, [newest.run.id, busy.lease.run]);
    assert!(!store.events(newest.run.id, 0, 10).await.unwrap().is_empty());
    let again = put(&store, "acme", "site", &[("n", json!(2))]).await;
    assert_eq!(again.run.id, newest.run.id, "the deployment still knows how it stands");
    assert_eq!(store.prune().await.unwrap(), 0);
}

pub async fn old_keys_go(mut place: Place) {
    place.retention = at_once();
    let store = place.furnished().await;
    let key = || IdempotencyKey { principal: "p".into(), route: "r".into(), key: "k".into(), body: b"body".to_vec() };
    let put = async |n: i64| store.put_deployment(write("acme", "site", &[("n", json!(n))]), Some(key()), &eve()).await;
    let first = put(1).await.unwrap();
    assert_eq!(put(2).await.unwrap().run.id, first.run.id, "the key decides");
    a_moment().await;
    store.prune().await.unwrap();
    assert_ne!(put(2).await.unwrap().run.id, first.run.id, "the key is forgotten");
}

pub async fn lists_find_what_they_are_asked_for(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "a", &[]).await;
    put(&store, "acme", "b", &[]).await;
    put(&store, "other", "a", &[]).await;
    carry_out(&store, "s").await;
    let count = async |tenant: Option<&str>, deployment: Option<&str>, status: Option<&str>| {
        let filter = RunFilter {
            tenant: tenant.map(|name| name.parse().unwrap()),
            deployment: deployment.map(|name| name.parse().unwrap()),
            status: status.map(str::to_owned),
            ..RunFilter::default()
        };
        store.runs(&filter).await.unwrap().len()
    };
    assert_eq!(count(None, None, None).await, 3);
    assert_eq!(count(Some("acme"), None, None).await, 2);
    assert_eq!(count(Some("acme"), Some("a"), None).await, 1);
    assert_eq!(count(Some("acme"), None, Some("queued")).await, 1);
    assert_eq!(count(None, None, Some("succeeded")).await, 1);
    assert_eq!(count(None, Some("a"), None).await, 2);
    let all = store.runs(&RunFilter::default()).await.unwrap();
    let before = RunFilter { before: Some(all[0].id), ..RunFilter::default() };
    assert_eq!(store.runs(&before).await.unwrap().len(), 2);
}
