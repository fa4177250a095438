use landform_domain::run::Outcome;
use landform_store::{OutsideWrite, Resource, ResourceFilter, Store};
use serde_json::{Value, json};

use crate::place::*;

fn state(serial: u64, objects: &[(&str, &str)]) -> String {
    let resource = |(name, id): &(&str, &str)| {
        json!({"mode": "managed", "type": "net_site", "name": name,
            "provider": "provider[\"registry.opentofu.org/acme/net\"]",
            "instances": [{"schema_version": 0, "attributes": {"id": id, "secret": "correct-horse"}}]})
    };
    let resources: Vec<Value> = objects.iter().map(resource).collect();
    json!({"version": 4, "serial": serial, "lineage": "l", "outputs": {}, "resources": resources}).to_string()
}

async fn all(store: &Store, filter: ResourceFilter) -> Vec<Resource> {
    store.resources(&filter).await.unwrap().resources
}

fn ids(resources: &[Resource]) -> Vec<String> {
    let id = |resource: &Resource| resource.id.clone().unwrap_or_default();
    resources.iter().map(|resource| format!("{} {}", resource.address, id(resource))).collect()
}

pub async fn the_inventory_follows_the_states(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[]).await;
    carry_out(&store, &state(1, &[("a", "1"), ("b", "2")])).await;
    let first = all(&store, ResourceFilter::default()).await;
    assert_eq!(ids(&first), ["net_site.a 1", "net_site.b 2"]);
    assert_eq!(first[0].provider, "registry.opentofu.org/acme/net");
    // What fails has a state all the same; what did not change keeps its time.
    put(&store, "acme", "site", &[("n", 2.into())]).await;
    let claimed = begin_apply(&store).await;
    let problem = landform_domain::Problem::new(landform_domain::Code::ApplyFailed, "half");
    let half = ended(Outcome::Failed(problem), Some(&state(2, &[("a", "1"), ("c", "3")])));
    finish(&store, &claimed.lease, half).await;
    let second = all(&store, ResourceFilter::default()).await;
    assert_eq!(ids(&second), ["net_site.a 1", "net_site.c 3"]);
    assert_eq!(second[0], first[0]);
    // From outside, and in a form that only its client can read.
    let (acme, site) = ("acme".parse().unwrap(), "site".parse().unwrap());
    let outside = |text: String| {
        let (store, acme, site) = (&store, &acme, &site);
        async move {
            store.write_state(acme, site, text.as_bytes(), &OutsideWrite::default(), &eve()).await.unwrap();
        }
    };
    outside(state(3, &[("d", "4")])).await;
    assert_eq!(ids(&all(&store, ResourceFilter::default()).await), ["net_site.d 4"]);
    outside(json!({"serial": 4, "lineage": "l", "encrypted_data": "AAAA", "encryption_version": "v0"}).to_string())
        .await;
    assert!(all(&store, ResourceFilter::default()).await.is_empty());
    outside(state(5, &[("e", "5")])).await;
    store.delete_state(&acme, &site, None, &eve()).await.unwrap();
    assert!(all(&store, ResourceFilter::default()).await.is_empty());
}

pub async fn the_inventory_is_read_by_pages(place: Place) {
    let store = place.furnished().await;
    for tenant in ["acme", "other"] {
        put(&store, tenant, "site", &[]).await;
        let names: Vec<(String, String)> = (0..7).map(|n| (format!("n{n}"), format!("{tenant}-{n}"))).collect();
        let objects: Vec<(&str, &str)> = names.iter().map(|(name, id)| (name.as_str(), id.as_str())).collect();
        carry_out(&store, &state(1, &objects)).await;
    }
    let mut filter = ResourceFilter { limit: 5, ..ResourceFilter::default() };
    let (mut pages, mut seen) = (0, Vec::new());
    loop {
        let page = store.resources(&filter).await.unwrap();
        pages += 1;
        seen.extend(page.resources);
        match page.next {
            Some(next) => filter.after = Some(next),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (3, 14));
    seen.dedup();
    assert_eq!(seen.len(), 14, "each of them once");
    let acme = || Some("acme".parse().unwrap());
    let found = |filter: ResourceFilter| async { all(&store, filter).await.len() };
    assert_eq!(found(ResourceFilter { tenant: acme(), ..Default::default() }).await, 7);
    assert_eq!(found(ResourceFilter { kind: Some("net_site".into()), ..Default::default() }).await, 14);
    assert_eq!(found(ResourceFilter { kind: Some("net".into()), ..Default::default() }).await, 0);
    assert_eq!(found(ResourceFilter { id: Some("other-3".into()), ..Default::default() }).await, 1);
    assert_eq!(found(ResourceFilter { id: Some("other-3".into()), tenant: acme(), ..Default::default() }).await, 0);
    assert_eq!(found(ResourceFilter { text: Some("SITE.N3".into()), ..Default::default() }).await, 2);
    assert_eq!(found(ResourceFilter { text: Some("er-3".into()), ..Default::default() }).await, 1);
    assert_eq!(
        found(ResourceFilter { text: Some("%".into()), ..Default::default() }).await,
        0,
        "a sign, not a pattern"
    );
}
