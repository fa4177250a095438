use landform_base::secret::SecretString;
use landform_domain::{Code, Role};
use landform_store::TenantSettings;

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
    let mut unknown = write("acme", "a", &[]);
    unknown.template_version = Some(4);
    assert_eq!(code(store.put_deployment(unknown, None, &eve()).await), Code::TemplateUnknown);
}
