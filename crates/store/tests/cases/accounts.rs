use std::time::{Duration, SystemTime};

use landform_domain::Code;
use landform_domain::run::{Next, Status};
use landform_store::{Blocked, Claim, Legacy, Ownership, Store, StoreError, Work, WorkerId};

use crate::place::*;

async fn claim_as(store: &Store, name: &str) -> Option<Claim> {
    store.claim(&worker(name)).await.expect("claims")
}

async fn taken_as(store: &Store, name: &str) -> Claim {
    claim_as(store, name).await.expect("a run is due")
}

pub async fn an_account_has_one_owner(place: Place) {
    let store = place.furnished().await;
    let (a, b) = (worker("a"), worker("b"));
    assert_eq!(store.own_account(&a, "cato:1").await.unwrap(), Ownership::Owned);
    assert_eq!(store.own_account(&a, "cato:1").await.unwrap(), Ownership::Owned, "it may ask again");
    assert_eq!(store.own_account(&b, "cato:1").await.unwrap(), Ownership::OwnedBy(a.clone()));
    assert_eq!(store.own_account(&b, "cato:2").await.unwrap(), Ownership::Owned);
    assert_eq!(store.own_account(&a, "cato:0").await.unwrap(), Ownership::Owned);
    assert_eq!(store.renew_accounts(&a).await.unwrap(), ["cato:0", "cato:1"]);
    store.free_accounts(&a).await.unwrap();
    assert!(store.renew_accounts(&a).await.unwrap().is_empty());
    assert_eq!(store.own_account(&b, "cato:1").await.unwrap(), Ownership::Owned);
    // Asked at the same moment, one of many gets it, and all agree on who.
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let store = store.clone();
        tasks.spawn(async move {
            let me = worker(&format!("w{n}"));
            match store.own_account(&me, "versa:1").await.unwrap() {
                Ownership::Owned => me,
                Ownership::OwnedBy(other) => other,
            }
        });
    }
    let owners: std::collections::HashSet<WorkerId> = tasks.join_all().await.into_iter().collect();
    assert_eq!(owners.len(), 1, "{owners:?}");
}

/// Whoever owns an account next learns what was called, and whether that is all.
pub async fn an_accounts_past_goes_to_its_next_owner(place: Place) {
    let store = place.furnished().await;
    let (a, b) = (worker("a"), worker("b"));
    let take = async |who: &WorkerId| {
        assert_eq!(store.own_account(who, "k").await.unwrap(), Ownership::Owned);
        store.inherit_account(who, "k").await.unwrap()
    };
    let said = |calls: &str| [("k".to_owned(), calls.to_owned())];
    assert_eq!(take(&a).await, None, "nobody has called before");
    store.leave_accounts(&a, &said("one"), false).await.unwrap();
    assert_eq!(take(&a).await, None, "its own calls it knows better");
    store.leave_accounts(&b, &said("not the owner"), true).await.unwrap();
    // Gone without a last word.
    store.free_accounts(&a).await.unwrap();
    let Some(Legacy { calls, is_whole, written_ago }) = take(&b).await else { panic!("a has called") };
    assert_eq!((calls.as_str(), is_whole), ("one", false));
    assert!(written_ago < Duration::from_secs(60));
    store.leave_accounts(&b, &said("two"), true).await.unwrap();
    let Some(Legacy { calls, is_whole, .. }) = take(&a).await else { panic!("b has called") };
    assert_eq!((calls.as_str(), is_whole), ("two", true), "the last word gives the account up");
    store.free_accounts(&a).await.unwrap();
    assert!(!take(&b).await.expect("a has owned it").is_whole, "a may have called without a word");
}

/// A run that another worker's account needs goes there, is nobody else's, and has lost nothing.
pub async fn a_bound_run_is_its_owners(place: Place) {
    let store = place.furnished().await;
    let (owner, other) = (worker("owner"), worker("other"));
    assert_eq!(store.own_account(&owner, "k").await.unwrap(), Ownership::Owned);
    for n in 0..3 {
        put(&store, "acme", &format!("d{n}"), &[]).await;
    }
    let claimed = taken_as(&store, "other").await;
    assert_eq!(store.own_account(&other, "k").await.unwrap(), Ownership::OwnedBy(owner.clone()));
    store.bind_to(&claimed.lease, &owner).await.unwrap();
    assert!(matches!(store.renew(&claimed.lease).await, Err(StoreError::Fenced)), "it is not ours any more");
    let shown = store.run(claimed.lease.run).await.unwrap();
    assert_eq!((shown.status, shown.attempts, shown.started_at), (Status::Queued(Next::Plan), 0, None));
    assert_eq!(taken_as(&store, "other").await.deployment.as_str(), "d1", "the bound one is passed over");
    // The owner gets it in the fair order, beside what is anybody's.
    let mine = store.claim_up_to(&owner, 10).await.unwrap();
    let names: Vec<&str> = mine.iter().map(|claim| claim.deployment.as_str()).collect();
    assert_eq!(names, ["d0", "d2"]);
    assert_eq!(mine[0].attempt, 1);
    assert!(mine[0].lease.epoch > claimed.lease.epoch);
}

pub async fn what_is_bound_is_free_when_its_owner_is_gone(mut place: Place) {
    place.lease = Duration::from_secs(1);
    let store = place.furnished().await;
    put(&store, "acme", "site", &[]).await;
    for goodbye in ["given up", "voided", "silent"] {
        assert_eq!(store.own_account(&worker("owner"), "k").await.unwrap(), Ownership::Owned);
        let claimed = taken_as(&store, "other").await;
        store.bind_to(&claimed.lease, &worker("owner")).await.unwrap();
        assert!(claim_as(&store, "other").await.is_none(), "{goodbye}");
        match goodbye {
            "given up" => store.free_accounts(&worker("owner")).await.unwrap(),
            "voided" => assert_eq!(store.void_leases(&worker("owner")).await.unwrap(), 0),
            _ => tokio::time::sleep(place.lease * 3).await,
        }
        let again = taken_as(&store, "other").await;
        assert_eq!(again.attempt, 1, "{goodbye}");
        assert_eq!(store.own_account(&worker("other"), "k").await.unwrap(), Ownership::Owned, "{goodbye}");
        // For the next round: it goes back to somebody who owns nothing, so anybody may have it.
        store.free_accounts(&worker("other")).await.unwrap();
        store.bind_to(&again.lease, &worker("other")).await.unwrap();
    }
    taken_as(&store, "owner").await;
}

pub async fn a_run_can_wait_for_a_time(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "early", &[]).await;
    put(&store, "acme", "late", &[]).await;
    let claims = store.claim_up_to(&worker("w"), 2).await.unwrap();
    let until = |millis| SystemTime::now() + Duration::from_millis(millis);
    store.give_back_until(&claims[0].lease, until(50), "the budget of cato:1").await.unwrap();
    store.give_back_until(&claims[1].lease, until(3_600_000), "the budget of cato:1").await.unwrap();
    let shown = store.run(claims[1].lease.run).await.unwrap();
    assert_eq!(shown.status, Status::Queued(Next::Plan));
    let Some(Blocked { reason, until: Some(until), run: None }) = shown.blocked else { panic!("it says why it waits") };
    assert_eq!(reason, "the budget of cato:1");
    assert!(until >= shown.created_at + 3_500_000);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let again = claim(&store).await;
    assert_eq!((again.deployment.as_str(), again.attempt), ("early", 1));
    assert_eq!(store.run(again.lease.run).await.unwrap().blocked, None);
    nothing_due(&store).await;
    // What waits can be cancelled as ever.
    assert_eq!(store.cancel(claims[1].lease.run, &eve()).await.unwrap().status, Status::Cancelled);
    assert_eq!(store.run(claims[1].lease.run).await.unwrap().blocked, None);
}

/// A plan that was approved is not planned anew because its account is elsewhere; one that is being applied stays where
/// it is.
pub async fn an_approved_plan_survives_being_put_back(place: Place) {
    let store = place.furnished().await;
    let mut wanted = write("acme", "site", &[]);
    wanted.requires_approval = Some(true);
    let run = store.put_deployment(wanted, None, &eve()).await.unwrap().run;
    let planning = claim(&store).await;
    store.planned(&planning.lease, plan()).await.unwrap();
    store.approve(run.id, &eve()).await.unwrap();
    let claimed = claim(&store).await;
    store.give_back_until(&claimed.lease, SystemTime::now(), "no budget").await.unwrap();
    assert_eq!(status(&store, run.id).await, Status::Queued(Next::Apply));
    let claimed = claim(&store).await;
    assert_eq!(claimed.attempt, 2);
    assert!(matches!(&claimed.work, Work::Apply { plan } if plan == b"the plan"));
    store.intend(&claimed.lease, &[b"a".to_vec()]).await.unwrap();
    let refused = store.bind_to(&claimed.lease, &worker("owner")).await;
    assert_eq!(code(refused), Code::RunApplying);
    store.renew(&claimed.lease).await.expect("it is still ours");
    // Without an approval the plan is not kept, so there is nothing to go back to.
    put(&store, "acme", "other", &[]).await;
    let applying = begin_apply(&store).await;
    assert_eq!(code(store.bind_to(&applying.lease, &worker("owner")).await), Code::MoveIllegal);
}
