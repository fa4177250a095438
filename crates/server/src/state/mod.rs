//! The `http` backend of `tofu` and `terraform`: they read, write, lock and unlock a state here, without knowing more of
//! this product than an address and a token.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use landform_domain::{Actor, Code};
use landform_store::{Locking, OutsideWrite, StoreError};
use serde::Deserialize;
use serde_json::Value;

use crate::Server;
use crate::problem::Refusal;
use crate::request::{Asked, Names, whole_body};

const LARGEST_STATE: usize = 64 << 20;
const LARGEST_LOCK: usize = 64 << 10;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteQuery {
    /// The id of the lock that the client holds, as it sends it by itself.
    #[serde(rename = "ID")]
    id: Option<String>,
    /// Take over another lineage. For admins.
    #[serde(default)]
    force: bool,
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Response, Refusal> {
    match server.store.state(&names.tenant()?, &names.deployment()?).await {
        Ok(version) => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            Ok((kind, version.state).into_response())
        }
        // To these clients an empty answer means that there is no state yet.
        Err(StoreError::Refused(problem)) if problem.code == Code::StateUnknown => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) async fn write(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    Asked(query): Asked<WriteQuery>,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let (tenant, deployment) = (names.tenant()?, names.deployment()?);
    // A few at once: a state may be large, and it is in memory as a whole.
    let _permit =
        server.pushes.acquire().await.map_err(|_| Refusal::new(Code::Overloaded, "too many states at once"))?;
    let state = whole_body(body, LARGEST_STATE).await?;
    let how = OutsideWrite { lock: query.id, force: query.force };
    server.store.write_state(&tenant, &deployment, &state, &how, &actor).await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    Asked(query): Asked<WriteQuery>,
) -> Result<StatusCode, Refusal> {
    server.store.delete_state(&names.tenant()?, &names.deployment()?, query.id.as_deref(), &actor).await?;
    Ok(StatusCode::OK)
}

/// The answer to a lock that somebody else holds is that lock's description: the clients show it to their users.
pub(crate) async fn lock(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    body: Body,
) -> Result<Response, Refusal> {
    let info = described(body).await?.unwrap_or_default();
    match server.store.lock_state(&names.tenant()?, &names.deployment()?, info, &actor).await? {
        Locking::Taken => Ok(StatusCode::OK.into_response()),
        Locking::Held(held) => Ok((StatusCode::LOCKED, Json(held)).into_response()),
    }
}

/// Without a description, as `force-unlock` sends it, the lock is taken away by force.
pub(crate) async fn unlock(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let info = described(body).await?;
    let id = info.as_ref().and_then(|info| info["ID"].as_str());
    server.store.unlock_state(&names.tenant()?, &names.deployment()?, id, &actor).await?;
    Ok(StatusCode::OK)
}

async fn described(body: Body) -> Result<Option<Value>, Refusal> {
    let bytes = whole_body(body, LARGEST_LOCK).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let info: Value = serde_json::from_slice(&bytes)
        .map_err(|e| Refusal::new(Code::RequestInvalid, format!("the lock cannot be read: {e}")))?;
    Ok(Some(info))
}
