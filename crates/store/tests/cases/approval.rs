use std::time::Duration;

use landform_domain::Code;
use landform_domain::run::{Outcome, Status};
use landform_store::{StoreError, Work};

use crate::place::*;

pub async fn an_approved_plan_is_applied_once(place: Place) {
    let store = place.furnished().await;
    let mut wanted = write("acme", "site", &[]);
    wanted.requires_approval = Some(true);
    let run = store.put_deployment(wanted.clone(), None, &eve()).await.unwrap().run;
    let planning = claim(&store).await;
    let waiting = store.planned(&planning.lease, plan()).await.unwrap();
    assert!(matches!(&waiting, Status::AwaitingApproval { plan, .. } if plan.creates == 1));
    nothing_due(&store).await;
    assert!(matches!(store.renew(&planning.lease).await, Err(StoreError::Fenced)), "waiting holds no worker");
    store.approve(run.id, &eve()).await.unwrap();
    assert_eq!(code(store.approve(run.id, &eve()).await), Code::RunNotWaiting);
    assert_eq!(code(store.reject(run.id, "late", &eve()).await), Code::RunNotWaiting);
    let applying = claim(&store).await;
    let Work::Apply { plan } = &applying.work else { panic!("the plan is applied as it is") };
    assert_eq!(plan, b"the plan");
    // The worker dies; its plan is never handed out again.
    store.void_leases(&worker("w")).await.unwrap();
    let recovering = claim(&store).await;
    assert!(matches!(recovering.work, Work::Recover { .. }));
    let resolution = landform_store::Resolution { verdict: Default::default(), state: None, adopted: Vec::new() };
    assert_eq!(store.resolve(&recovering.lease, resolution).await.unwrap(), Status::Planning);
    let again = store.planned(&recovering.lease, crate::place::plan()).await.unwrap();
    assert!(matches!(again, Status::AwaitingApproval { .. }), "a new plan is a new approval");
    // Destroying obeys it too.
    store.reject(run.id, "no", &eve()).await.unwrap();
    let destroy = delete(&store, "acme", "site").await.run;
    assert!(destroy.requires_approval);
}

pub async fn rejected_and_expired_plans_are_gone(mut place: Place) {
    place.approval = Duration::ZERO;
    let store = place.furnished().await;
    let mut wanted = write("acme", "site", &[]);
    wanted.requires_approval = Some(true);
    let first = store.put_deployment(wanted.clone(), None, &eve()).await.unwrap().run;
    store.planned(&claim(&store).await.lease, plan()).await.unwrap();
    store.reject(first.id, "too large", &eve()).await.unwrap();
    assert!(matches!(status(&store, first.id).await, Status::Rejected { reason, .. } if reason == "too large"));
    let second = store.put_deployment(wanted, None, &eve()).await.unwrap().run;
    store.planned(&claim(&store).await.lease, plan()).await.unwrap();
    while store.expire_overdue().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(status(&store, second.id).await, Status::Expired);
    assert_eq!(code(store.approve(second.id, &eve()).await), Code::RunFinished);
    nothing_due(&store).await;
    // A finished plan cannot be finished by an old lease.
    let third = put(&store, "acme", "next", &[]).await.run;
    let claimed = begin_apply(&store).await;
    assert_eq!(claimed.lease.run, third.id);
    assert_eq!(finish(&store, &claimed.lease, ended(Outcome::Succeeded, None)).await, Status::Succeeded);
}
