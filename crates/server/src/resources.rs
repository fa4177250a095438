//! The inventory: what all states have.

use axum::extract::State;
use axum::{Extension, Json};
use landform_api::ResourceList;
use landform_domain::{Actor, Code};
use landform_store::{ResourceFilter, ResourcePlace};
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, given, narrowed};
use crate::{Server, view};

const LONGEST_TEXT: usize = 500;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResourcesQuery {
    tenant: Option<String>,
    deployment: Option<String>,
    /// The type of resource, such as `aws_vpc`.
    r#type: Option<String>,
    /// The object's id, exactly.
    id: Option<String>,
    /// A part of the address or of the id, in letters of either case.
    q: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    #[serde(default)]
    limit: u32,
}

pub(crate) async fn list(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    Asked(query): Asked<ResourcesQuery>,
) -> Result<Json<ResourceList>, Refusal> {
    let filter = ResourceFilter {
        tenant: narrowed(&server, &actor, given(query.tenant)?).await?,
        deployment: given(query.deployment)?,
        kind: text("type", query.r#type)?,
        id: text("id", query.id)?,
        text: text("q", query.q)?,
        after: place(query.after)?,
        limit: query.limit,
    };
    let page = server.store.resources(&filter).await?;
    if let (true, Some(tenant), Some(deployment)) = (page.resources.is_empty(), &filter.tenant, &filter.deployment) {
        server.store.deployment(tenant, deployment).await?;
    }
    Ok(Json(ResourceList {
        resources: page.resources.into_iter().map(view::resource).collect(),
        next: page.next.map(|next| format!("{}/{}/{}", next.tenant, next.deployment, next.address)),
    }))
}

fn text(name: &str, given: Option<String>) -> Result<Option<String>, Refusal> {
    let given = given.filter(|text| !text.is_empty());
    if given.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TEXT) {
        return Err(Refusal::new(Code::RequestInvalid, format!("`{name}` has at most {LONGEST_TEXT} characters")));
    }
    Ok(given)
}

/// Names have no slash; whatever is behind the second one is the address.
fn place(cursor: Option<String>) -> Result<Option<ResourcePlace>, Refusal> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let mut parts = cursor.splitn(3, '/').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(tenant), Some(deployment), Some(address)) => Ok(Some(ResourcePlace { tenant, deployment, address })),
        _ => Err(Refusal::new(Code::RequestInvalid, "`after` is the `next` of another page")),
    }
}
