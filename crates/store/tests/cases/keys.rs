use std::time::Duration;

use landform_base::seal::MasterKey;
use landform_store::{IdempotencyKey, KeyLimits, Options, Store};
use serde_json::json;

use crate::place::*;

/// Every key has done its work after a handful of values.
fn soon(ahead: Duration) -> KeyLimits {
    KeyLimits { uses: 10, uncounted: 2, ahead, look_again: Duration::ZERO }
}

async fn open(place: &Place, key: MasterKey, key_limits: KeyLimits) -> Store {
    let options = Options { key_limits, ..Options::new(place.location.clone(), key) };
    Store::open(options).await.unwrap().store
}

async fn state(store: &Store, name: &str) -> String {
    let state = store.state(&"acme".parse().unwrap(), &name.parse().unwrap()).await.unwrap();
    String::from_utf8(state.state).unwrap()
}

/// Seals some thirty values.
async fn work(store: &Store, name: &str) {
    for size in 0..8 {
        put(store, "acme", name, &[("secret_size", json!(size))]).await;
        carry_out(store, &format!("{name} {size}")).await;
    }
}

pub async fn a_key_that_was_used_enough_gets_a_successor(place: Place) {
    let furnished = place.furnished().await;
    put(&furnished, "acme", "first", &[("secret_size", json!(1))]).await;
    let idempotent =
        || IdempotencyKey { principal: "eve".into(), route: "r".into(), key: "k".into(), body: b"b".to_vec() };
    let write_again = || write("acme", "keyed", &[("secret_size", json!(2))]);
    let keyed = furnished.put_deployment(write_again(), Some(idempotent()), &eve()).await.unwrap();
    carry_out(&furnished, "made with the first key").await;
    carry_out(&furnished, "so was this").await;
    furnished.close().await;
    drop(furnished);
    let store = open(&place, place.master_key.clone(), soon(Duration::ZERO)).await;
    work(&store, "second").await;
    // What was sealed before is read, and equal things are recognised, although another key seals now.
    assert_eq!(state(&store, "first").await, "made with the first key");
    let same = put(&store, "acme", "first", &[("secret_size", json!(1))]).await;
    assert_eq!(same.run.generation, 1, "nothing has changed");
    let again = store.put_deployment(write_again(), Some(idempotent()), &eve()).await.unwrap();
    assert_eq!(again.run.id, keyed.run.id);
    // A change of the master key takes all of them, and everything is found with the new one.
    let new = MasterKey::generate().unwrap();
    assert!(store.change_master_key(&new).await.unwrap() >= 4, "two tenants, and successors");
    store.close().await;
    drop(store);
    let store = open(&place, new, KeyLimits::default()).await;
    assert_eq!(state(&store, "first").await, "made with the first key");
    assert_eq!(state(&store, "second").await, "second 7");
}

/// Other processes need time to hear of it.
pub async fn a_successor_seals_nothing_before_its_time(place: Place) {
    place.furnished().await.close().await;
    let store = open(&place, place.master_key.clone(), soon(Duration::from_secs(3600))).await;
    work(&store, "site").await;
    let new = MasterKey::generate().unwrap();
    assert_eq!(store.change_master_key(&new).await.unwrap(), 3, "two tenants, and one successor that waits");
}
