use landform_base::secret::SecretString;
use landform_domain::{Code, Role, TenantName};
use landform_store::{ConnectionValues, NewToken, Scope, Store, StoreError, TenantSettings};

use crate::place::*;

pub async fn the_admin_token_is_given_once(place: Place) {
    let opened = place.try_open().await.unwrap();
    let token = opened.admin_token.expect("the first start makes one");
    let principal = opened.store.authenticate(&token, "here").await.unwrap().expect("it is good");
    assert_eq!(principal.role, Role::Admin);
    let mut wrong = token.expose().clone();
    let last = wrong.pop().unwrap();
    wrong.push(if last == '0' { '1' } else { '0' });
    for bad in [wrong.as_str(), "", "lf_admin_", "lf_nobody_x", "Bearer"] {
        assert!(opened.store.authenticate(&SecretString::from(bad), "here").await.unwrap().is_none(), "{bad:?}");
    }
    opened.store.close().await;
    drop(opened.store);
    let again = place.try_open().await.unwrap();
    assert!(again.admin_token.is_none(), "it cannot be shown again");
    assert!(again.store.authenticate(&token, "here").await.unwrap().is_some());
}

pub async fn tenants_are_made_once(place: Place) {
    let store = place.open().await;
    let acme = "acme".parse().unwrap();
    let (first, fresh) = store.put_tenant(&acme, TenantSettings::default(), &eve()).await.unwrap();
    assert!(fresh && first.created_at > 1_600_000_000_000, "milliseconds by the database's clock");
    assert_eq!(store.put_tenant(&acme, TenantSettings::default(), &eve()).await.unwrap(), (first, false));
    assert_eq!(store.tenants().await.unwrap().len(), 1);
    assert_eq!(code(store.tenant(&"nobody".parse().unwrap()).await), Code::TenantUnknown);
    assert_eq!(code(store.put_deployment(write("nobody", "a", &[]), None, &eve()).await), Code::TenantUnknown);
}

pub async fn a_tenant_with_nothing_is_deleted(place: Place) {
    let store = place.furnished().await;
    let acme: TenantName = "acme".parse().unwrap();
    let refused = |store: Store, words: &'static str| {
        let acme = acme.clone();
        async move {
            let problem = match store.delete_tenant(&acme, &eve()).await {
                Err(StoreError::Refused(problem)) => problem,
                other => panic!("{other:?}"),
            };
            assert_eq!(problem.code, Code::TenantInUse);
            assert!(problem.message.ends_with(words), "{problem}");
        }
    };
    let run = put(&store, "acme", "site", &[]).await.run;
    refused(store.clone(), "has 1 deployment").await;
    let values = ConnectionValues { variables: [("key".to_owned(), "x".into())].into(), ..Default::default() };
    let cloud = "cloud".parse().unwrap();
    store.put_connection(&acme, &cloud, values.clone(), &eve()).await.unwrap();
    let (hook, _) = store.create_webhook(Some(&acme), "https://example.com", &[], &eve()).await.unwrap();
    let token = NewToken { name: "t".into(), role: Role::Reader, tenant: Some(acme.clone()), lifetime: None };
    let (made, _) = store.create_token(token.clone(), &eve()).await.unwrap();
    store.create_token(NewToken { lifetime: Some(-1), ..token.clone() }, &eve()).await.unwrap();
    store.forget(&acme, &"site".parse().unwrap(), &eve()).await.unwrap();
    refused(store.clone(), "has 1 connection, 1 webhook, 1 token").await;
    store.delete_connection(&acme, &cloud, &eve()).await.unwrap();
    store.delete_webhook(Some(&acme), &hook.id, &eve()).await.unwrap();
    store.revoke_token(&made.id, &eve()).await.unwrap();
    store.pause(&Scope::Tenant(acme.clone()), true, &eve()).await.unwrap();
    store.delete_tenant(&acme, &eve()).await.unwrap();

    assert_eq!(store.tenants().await.unwrap().len(), 1);
    assert_eq!(code(store.tenant(&acme).await), Code::TenantUnknown);
    store.check_tenant(&acme).await.expect("it was there");
    assert_eq!(code(store.check_tenant(&"nobody".parse().unwrap()).await), Code::TenantUnknown);
    assert_eq!(code(store.delete_tenant(&acme, &eve()).await), Code::TenantUnknown);
    assert_eq!(code(store.deployments(&acme).await), Code::TenantUnknown);
    // Nothing is made for it, though its keys are remembered.
    assert_eq!(code(store.put_deployment(write("acme", "site", &[]), None, &eve()).await), Code::TenantUnknown);
    assert_eq!(code(store.put_connection(&acme, &cloud, values, &eve()).await), Code::TenantUnknown);
    let hook = store.create_webhook(Some(&acme), "https://example.com", &[], &eve()).await;
    assert_eq!(code(hook), Code::TenantUnknown);
    assert_eq!(code(store.create_token(token, &eve()).await), Code::TenantUnknown);
    assert_eq!(code(store.pause(&Scope::Tenant(acme.clone()), true, &eve()).await), Code::TenantUnknown);
    assert_eq!(store.run(run.id).await.unwrap().tenant, acme, "what it did is known");

    let limits = TenantSettings { most_waiting: Some(7), ..Default::default() };
    let (back, fresh) = store.put_tenant(&acme, limits, &eve()).await.unwrap();
    assert!(fresh && !back.paused && back.most_waiting == Some(7), "{back:?}");
    put(&store, "acme", "site", &[]).await;
    assert_eq!(carry_out(&store, "state").await.deployment.as_str(), "site");
}

/// Whoever makes something for a tenant while it is deleted finds it gone, or keeps it.
pub async fn a_tenant_is_deleted_or_used(place: Place) {
    let store = place.furnished().await;
    for round in 0..20 {
        let name = format!("t{round}");
        let tenant: TenantName = name.parse().unwrap();
        store.put_tenant(&tenant, TenantSettings::default(), &eve()).await.unwrap();
        let (by_one, by_other) = (eve(), eve());
        let delete = async {
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            store.delete_tenant(&tenant, &by_one).await
        };
        let (deleted, made) = tokio::join!(delete, store.put_deployment(write(&name, "site", &[]), None, &by_other));
        match made {
            Ok(_) => assert_eq!(code(deleted), Code::TenantInUse),
            made => {
                assert_eq!(code(made), Code::TenantUnknown);
                deleted.unwrap();
            }
        }
    }
}

pub async fn template_versions_grow_with_changes(place: Place) {
    let store = place.furnished().await;
    assert_eq!(push(&store, "one").await, 1, "the same files are the same version");
    assert_eq!(push(&store, "two").await, 2);
    assert_eq!(push(&store, "one").await, 3, "going back is a new version");
    let net = "net".parse().unwrap();
    assert_eq!(store.template(&net).await.unwrap().versions.len(), 3);
    assert_eq!(store.templates().await.unwrap().len(), 1);
    let files = store.template_files(&net, 2).await.unwrap();
    assert_eq!(files.iter().collect::<Vec<_>>(), [("main.tf", &b"two"[..])]);
    assert_eq!(code(store.template_files(&net, 4).await), Code::TemplateUnknown);
    assert_eq!(code(store.check_template(&"none".parse().unwrap()).await), Code::TemplateUnknown);
    store.check_template(&net).await.unwrap();
    let mut unknown = write("acme", "a", &[]);
    unknown.template_version = Some(4);
    assert_eq!(code(store.put_deployment(unknown, None, &eve()).await), Code::TemplateUnknown);
}
