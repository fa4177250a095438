use std::collections::BTreeMap;

use landform_domain::recovery::{Answer, Doubt, Verdict};
use landform_domain::run::{Next, Outcome, Status};
use landform_domain::{Code, Problem};
use landform_store::{Adoption, Brought, Claim, Finish, Resolution, SpooledSettlement, Store, Work};
use serde_json::json;

use crate::place::*;

/// An apply that made one object, was asked for another, and died.
async fn dead_apply(store: &Store) -> (Claim, Vec<i64>) {
    put(store, "acme", "site", &[("n", json!(1))]).await;
    let first = begin_apply(store).await;
    let ids = store.intend(&first.lease, &[b"create a".to_vec(), b"create b".to_vec()]).await.unwrap();
    store.settle(&first.lease, ids[0], b"a is made").await.unwrap();
    store.void_leases(&worker("w")).await.unwrap();
    (claim(store).await, ids)
}

fn doubts(ids: &[i64]) -> Verdict {
    let doubt =
        |(n, id): (usize, &i64)| Doubt { intent: *id, address: format!("thing.{n}"), type_name: "thing".into() };
    Verdict { doubts: ids.iter().enumerate().map(doubt).collect(), ..Verdict::default() }
}

pub async fn a_dead_apply_is_recovered_from_its_journal(place: Place) {
    let store = place.furnished().await;
    let (recovering, ids) = dead_apply(&store).await;
    let Work::Recover { journal } = &recovering.work else { panic!("it is recovered") };
    let entries: Vec<_> =
        journal.iter().map(|entry| (entry.id, entry.intent.as_slice(), entry.settlement.as_deref())).collect();
    assert_eq!(entries, [(ids[0], &b"create a"[..], Some(&b"a is made"[..])), (ids[1], &b"create b"[..], None)]);
    // No new call beside an open intent of an older attempt.
    assert!(store.intend(&recovering.lease, &[b"x".to_vec()]).await.is_err());
    // Dying once more changes nothing.
    store.void_leases(&worker("w")).await.unwrap();
    let recovering = claim(&store).await;
    assert!(matches!(&recovering.work, Work::Recover { journal } if journal.len() == 2));
    let resolution =
        Resolution { verdict: Verdict::default(), state: Some(b"recovered".to_vec()), adopted: Vec::new() };
    assert_eq!(store.resolve(&recovering.lease, resolution).await.unwrap(), Status::Planning);
    store.intend(&recovering.lease, &[b"x".to_vec()]).await.unwrap();
    store.planned(&recovering.lease, plan()).await.unwrap();
    store.void_leases(&worker("w")).await.unwrap();
    let next = claim(&store).await;
    assert!(matches!(&next.work, Work::Recover { journal } if journal.len() == 1), "only what is new");
    assert_eq!(next.state.as_deref(), Some(&b"recovered"[..]));
}

pub async fn doubts_block_until_they_are_answered(place: Place) {
    let store = place.furnished().await;
    let (recovering, ids) = dead_apply(&store).await;
    let run = recovering.lease.run;
    let resolution = Resolution { verdict: doubts(&ids[1..]), state: Some(b"recovered".to_vec()), adopted: Vec::new() };
    let status_now = store.resolve(&recovering.lease, resolution).await.unwrap();
    assert_eq!(status_now, Status::NeedsRecovery { doubts: doubts(&ids[1..]).doubts });
    // A newer generation is accepted, and waits.
    let newer = put(&store, "acme", "site", &[("n", json!(2))]).await.run;
    nothing_due(&store).await;
    assert_eq!(status(&store, newer.id).await, Status::Queued(Next::Plan));
    assert_eq!(code(store.cancel(run, &eve()).await), Code::RunInDoubt);
    let answer = |address: &str| BTreeMap::from([(address.to_string(), Answer::Adopt("i-7".into()))]);
    assert_eq!(code(store.recover(run, answer("thing.x"), &eve()).await), Code::DoubtUnknown);
    assert_eq!(code(store.recover(newer.id, answer("thing.0"), &eve()).await), Code::RunNotInDoubt);
    store.recover(run, answer("thing.0"), &eve()).await.unwrap();
    let next = claim(&store).await;
    assert_eq!(next.lease.run, run, "what is recovered goes before what is newer");
    let adoption = Adoption { address: "thing.0".to_string(), id: "i-7".to_string(), after_doubt: true };
    assert_eq!(next.adopt, [adoption]);
    assert!(matches!(next.work, Work::Plan));
    store.intend(&next.lease, &[b"import".to_vec()]).await.expect("the answered intent is closed");
}

pub async fn adoptions_wait_until_they_are_done(place: Place) {
    let store = place.furnished().await;
    let (recovering, ids) = dead_apply(&store).await;
    let resolution = Resolution { verdict: doubts(&ids), state: None, adopted: Vec::new() };
    store.resolve(&recovering.lease, resolution).await.unwrap();
    let answers =
        BTreeMap::from([("thing.0".to_string(), Answer::Adopt("i-1".into())), ("thing.1".to_string(), Answer::Absent)]);
    store.recover(recovering.lease.run, answers, &eve()).await.unwrap();
    // The recovered run ends without having imported; the next one is asked to.
    store.cancel(recovering.lease.run, &eve()).await.unwrap();
    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let next = begin_apply(&store).await;
    assert_eq!(next.adopt.len(), 1);
    let mut finished = done("s");
    finished.adopted = vec!["thing.0".into()];
    finish(&store, &next.lease, finished).await;
    put(&store, "acme", "site", &[("n", json!(3))]).await;
    assert!(claim(&store).await.adopt.is_empty());
}

/// The import was made and the attempt died: its object is in the recovered state.
pub async fn adoptions_end_with_a_recovery_that_finds_them_done(place: Place) {
    let store = place.furnished().await;
    let (recovering, ids) = dead_apply(&store).await;
    let resolution = Resolution { verdict: doubts(&ids), state: None, adopted: Vec::new() };
    store.resolve(&recovering.lease, resolution).await.unwrap();
    let adopt = |id: &str| Answer::Adopt(id.into());
    let answers = BTreeMap::from([("thing.0".to_string(), adopt("i-1")), ("thing.1".to_string(), adopt("i-2"))]);
    store.recover(recovering.lease.run, answers, &eve()).await.unwrap();
    let importing = begin_apply(&store).await;
    assert_eq!(importing.adopt.len(), 2);
    store.intend(&importing.lease, &[b"import".to_vec()]).await.unwrap();
    store.void_leases(&worker("w")).await.unwrap();
    let again = claim(&store).await;
    let adopted = vec!["thing.0".to_string()];
    let resolution = Resolution { verdict: Verdict::default(), state: Some(b"recovered".to_vec()), adopted };
    assert_eq!(store.resolve(&again.lease, resolution).await.unwrap(), Status::Planning);
    store.void_leases(&worker("w")).await.unwrap();
    let left: Vec<String> = claim(&store).await.adopt.into_iter().map(|adoption| adoption.address).collect();
    assert_eq!(left, ["thing.1"]);
}

pub async fn a_result_that_was_kept_answers_a_doubt(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    let first = begin_apply(&store).await;
    let ids = store.intend(&first.lease, &[b"create a".to_vec(), b"create b".to_vec()]).await.unwrap();
    let kept = store.seal_settlement(&first.lease, ids[0], b"a is made").await.unwrap();
    store.void_leases(&worker("w")).await.unwrap();
    let recovering = claim(&store).await;
    assert_eq!(store.settle_spooled(&kept).await.unwrap(), Brought::NotYet, "somebody looks at the journal");
    let run = recovering.lease.run;
    store
        .resolve(&recovering.lease, Resolution { verdict: doubts(&ids), state: None, adopted: Vec::new() })
        .await
        .unwrap();
    let other = SpooledSettlement { epoch: kept.epoch + 1, ..kept.clone() };
    assert_eq!(store.settle_spooled(&other).await.unwrap(), Brought::TooLate, "another attempt's");
    assert!(matches!(status(&store, run).await, Status::NeedsRecovery { .. }));
    assert_eq!(store.settle_spooled(&kept).await.unwrap(), Brought::Taken);
    assert_eq!(store.settle_spooled(&kept).await.unwrap(), Brought::TooLate, "once");
    // Recovery is done again, and knows more.
    let again = claim(&store).await;
    let Work::Recover { journal } = &again.work else { panic!("it is recovered") };
    let settlements: Vec<_> = journal.iter().map(|entry| entry.settlement.as_deref()).collect();
    assert_eq!(settlements, [Some(&b"a is made"[..]), None]);
}

/// A plan may wait, fail or be given up; until one was carried out, whoever plans is told of the interrupted update.
pub async fn an_update_in_doubt_is_told_to_every_plan_until_one_is_carried_out(place: Place) {
    let store = place.furnished().await;
    put(&store, "acme", "site", &[("n", json!(1))]).await;
    let first = begin_apply(&store).await;
    assert!(first.doubted.is_empty());
    let ids = store.intend(&first.lease, &[b"update a".to_vec(), b"update b".to_vec()]).await.unwrap();
    store.settle(&first.lease, ids[1], b"b is changed").await.unwrap();
    store.void_leases(&worker("w")).await.unwrap();
    let recovering = claim(&store).await;
    let verdict = Verdict { updates: vec![ids[0]], resolved: vec![ids[1]], ..Verdict::default() };
    let resolution = Resolution { verdict, state: Some(b"recovered".to_vec()), adopted: Vec::new() };
    assert_eq!(store.resolve(&recovering.lease, resolution).await.unwrap(), Status::Planning);
    store.intend(&recovering.lease, &[b"update c".to_vec()]).await.expect("it blocks nothing");
    let failed = Finish { outcome: Outcome::Failed(Problem::new(Code::ApplyFailed, "no")), ..done("s") };
    store.planned(&recovering.lease, plan()).await.unwrap();
    finish(&store, &recovering.lease, failed).await;

    put(&store, "acme", "site", &[("n", json!(2))]).await;
    let next = begin_apply(&store).await;
    assert_eq!(next.doubted, [b"update a".to_vec()], "the failed run has carried nothing out");
    store.void_leases(&worker("w")).await.unwrap();
    let again = claim(&store).await;
    assert!(matches!(&again.work, Work::Recover { journal } if journal.is_empty()), "it is no attempt's own");
    assert_eq!(again.doubted.len(), 1);
    store
        .resolve(&again.lease, Resolution { verdict: Verdict::default(), state: None, adopted: Vec::new() })
        .await
        .unwrap();
    store.planned(&again.lease, plan()).await.unwrap();
    finish(&store, &again.lease, done("s2")).await;

    put(&store, "acme", "site", &[("n", json!(3))]).await;
    assert!(claim(&store).await.doubted.is_empty());
}
