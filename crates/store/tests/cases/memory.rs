use landform_domain::memory::{Room, UNSEEN};
use landform_store::{Claim, Claimed, EngineChosen, Finish, Planned, Store};

use crate::place::*;

async fn take(store: &Store, room: Room) -> Claimed {
    store.claim_within(&worker("w"), 100, room).await.unwrap()
}

/// Ends a run whose processes took so much.
async fn end(store: &Store, claim: &Claim, memory: Option<u64>) {
    let engine = landform_domain::EngineName::Native;
    let chosen = EngineChosen { engine, version: "1".into(), reasons: Vec::new() };
    store.planned(&claim.lease, Planned { engines: vec![chosen], ..plan() }).await.unwrap();
    finish(store, &claim.lease, Finish { memory, ..done("{}") }).await;
}

pub async fn a_run_is_admitted_by_what_its_template_took_before(place: Place) {
    let store = place.furnished().await;
    for n in 0..5 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    // Nobody has seen the template at work: a guess is made for each.
    let taken = take(&store, Room { budget: 2 * UNSEEN, reserved: 0 }).await;
    assert_eq!((taken.claims.len(), taken.no_room), (2, true));
    assert_eq!(taken.claims[0].memory, None);
    let full = take(&store, Room { budget: 2 * UNSEEN, reserved: 2 * UNSEEN }).await;
    assert_eq!((full.claims.len(), full.no_room), (0, true));
    // It goes up at once and down slowly.
    end(&store, &taken.claims[0], Some(800)).await;
    end(&store, &taken.claims[1], Some(1600)).await;
    let third = take(&store, Room { budget: 3199, reserved: 0 }).await;
    assert_eq!((third.claims.len(), third.no_room, third.claims[0].memory), (1, true, Some(1600)));
    end(&store, &third.claims[0], Some(800)).await;
    let known = store.template_memory(&"net".parse().unwrap(), 1).await.unwrap();
    assert_eq!(known.into_iter().collect::<Vec<_>>(), [("native".to_owned(), 1500)]);
    // Larger than the whole budget: it runs alone, and whoever comes next waits for it.
    let alone = take(&store, Room { budget: 1000, reserved: 0 }).await;
    assert_eq!((alone.claims.len(), alone.no_room), (1, true));
    let rest = store.claim_up_to(&worker("w"), 100).await.unwrap();
    assert_eq!(rest.len(), 1);
}

/// A smaller run does not overtake a larger one, or that would wait for ever.
pub async fn nobody_overtakes_a_run_that_does_not_fit(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "large", &[]).await;
    let first = claim(&store).await;
    end(&store, &first, Some(10 * UNSEEN)).await;
    let again = landform_store::RunRequest::default();
    store.run_again(&"acme".parse().unwrap(), &"large".parse().unwrap(), again, &eve()).await.unwrap();
    let other = "small".parse().unwrap();
    let files = [("main.tf".to_owned(), b"# small".to_vec())];
    let files = landform_domain::template::Files::new(files).unwrap();
    store.push_template(&other, &files, false, &eve()).await.unwrap();
    let small = landform_store::DeploymentWrite { template: other, ..write("acme", "small", &[]) };
    store.put_deployment(small, None, &eve()).await.unwrap();
    let busy = take(&store, Room { budget: 10 * UNSEEN, reserved: 1 }).await;
    assert_eq!((busy.claims.len(), busy.no_room), (0, true), "there is room for the small one, but it is not its turn");
    let free = take(&store, Room { budget: 11 * UNSEEN, reserved: 0 }).await;
    let names: Vec<&str> = free.claims.iter().map(|claim| claim.deployment.as_str()).collect();
    assert_eq!(names, ["large", "small"]);
}
