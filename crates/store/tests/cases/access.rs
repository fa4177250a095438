use landform_domain::{Actor, Code, Right, Role};
use landform_store::{AuditFilter, NewToken, TenantSettings};

use crate::place::*;

fn new(role: Role, tenant: Option<&str>) -> NewToken {
    let tenant = tenant.map(|name| name.parse().unwrap());
    NewToken { name: format!("{role} for tests"), role, tenant, lifetime: None }
}

pub async fn tokens_are_made_listed_and_withdrawn(place: Place) {
    let store = place.furnished().await;
    let (made, secret) = store.create_token(new(Role::Operator, Some("acme")), &eve()).await.unwrap();
    let actor = store.authenticate(&secret, "198.51.100.7").await.unwrap().expect("it is good");
    assert_eq!((actor.id.as_str(), actor.origin.as_str()), (made.id.as_str(), "198.51.100.7"));
    assert!(actor.may(Right::Operate) && !actor.may(Right::Approve));
    assert_eq!(actor.tenant, Some("acme".parse().unwrap()));
    assert_eq!(store.tokens(None).await.unwrap().len(), 2, "and the first admin");
    assert_eq!(store.tokens(actor.tenant.as_ref()).await.unwrap(), std::slice::from_ref(&made));

    assert_eq!(code(store.create_token(new(Role::Reader, Some("nobody")), &eve()).await), Code::TenantUnknown);
    let bound = Actor { tenant: actor.tenant.clone(), ..eve() };
    assert_eq!(code(store.create_token(new(Role::Reader, Some("other")), &bound).await), Code::TenantUnknown);
    assert_eq!(code(store.create_token(new(Role::Admin, None), &bound).await), Code::Forbidden);
    assert_eq!(code(store.revoke_token("admin", &bound).await), Code::TokenUnknown);
    assert_eq!(code(store.revoke_token("admin", &eve()).await), Code::TokenLast);

    store.revoke_token(&made.id, &bound).await.unwrap();
    assert!(store.authenticate(&secret, "").await.unwrap().is_none());
    assert_eq!(code(store.revoke_token(&made.id, &eve()).await), Code::TokenUnknown);
    let short = NewToken { lifetime: Some(-1), ..new(Role::Reader, None) };
    let (_, over) = store.create_token(short, &eve()).await.unwrap();
    assert!(store.authenticate(&over, "").await.unwrap().is_none(), "its time is over");
}

pub async fn every_deed_is_in_the_log_and_stays_there(place: Place) {
    let store = place.furnished().await;
    let run = put(&store, "acme", "site", &[]).await.run;
    store.cancel(run.id, &eve()).await.unwrap();
    let acme = AuditFilter { tenant: Some("acme".parse().unwrap()), ..AuditFilter::default() };
    let log = store.audit(&acme).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["run.cancel", "deployment.put", "tenant.put"]);
    assert_eq!((log[0].actor_name.as_str(), log[0].target.clone()), ("eve", run.id.to_string()));
    assert_eq!(log[1].detail["run"], run.id.to_string());
    let page = AuditFilter { before: Some(log[0].seq), limit: 1, ..acme.clone() };
    assert_eq!(store.audit(&page).await.unwrap(), log[1..2]);
    let runs = AuditFilter { action: Some("run.".into()), ..acme.clone() };
    assert_eq!(store.audit(&runs).await.unwrap().len(), 1);
    // What is refused did not happen.
    assert_eq!(code(store.cancel(run.id, &eve()).await), Code::RunFinished);
    assert_eq!(store.audit(&acme).await.unwrap(), log);
    store.put_tenant(&"acme".parse().unwrap(), TenantSettings::default(), &eve()).await.unwrap();
    assert_eq!(store.audit(&acme).await.unwrap(), log, "and neither did what changed nothing");
}

pub async fn author_and_approver_can_be_required_to_differ(place: Place) {
    let store = place.furnished().await;
    let acme = "acme".parse().unwrap();
    let settings = TenantSettings { separate_approver: Some(true), ..TenantSettings::default() };
    assert!(store.put_tenant(&acme, settings, &eve()).await.unwrap().0.separate_approver);
    let mut wanted = write("acme", "site", &[]);
    wanted.requires_approval = Some(true);
    let run = store.put_deployment(wanted.clone(), None, &eve()).await.unwrap().run;
    assert_eq!(run.author_name.as_deref(), Some("eve"));
    let claimed = claim(&store).await;
    store.planned(&claimed.lease, plan()).await.unwrap();
    assert_eq!(code(store.approve(run.id, &eve()).await), Code::ApproverIsAuthor);
    let ann = Actor { id: "ann".into(), name: "ann".into(), role: Role::Approver, ..eve() };
    assert_eq!(store.approve(run.id, &ann).await.unwrap().status.word(), "queued");

    let bob = Actor { role: Role::Operator, ..eve() };
    wanted.requires_approval = Some(false);
    assert_eq!(code(store.put_deployment(wanted.clone(), None, &bob).await), Code::ApprovalRequired);
    wanted.requires_approval = None;
    let kept = store.put_deployment(wanted.clone(), None, &bob).await.unwrap().run;
    assert!(kept.requires_approval, "left out, it stays");
    wanted.requires_approval = Some(false);
    assert!(!store.put_deployment(wanted, None, &ann).await.unwrap().run.requires_approval);
}
