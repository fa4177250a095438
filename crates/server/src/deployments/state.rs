//! A deployment's state, for people: to read any version that is kept, and to change it without a provider.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use landform_api::{StateEdited, StateMove, StateRemove, StateVersionList};
use landform_domain::{Actor, Code, StateEdit};

use super::check_addresses;
use crate::problem::Refusal;
use crate::request::{JsonBody, Names};
use crate::{Server, view};

/// The state as any `tofu` reads it. It holds secrets.
pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Response, Refusal> {
    let version = server.store.state(&names.tenant()?, &names.deployment()?).await?;
    Ok(as_file(version.state))
}

pub(crate) async fn versions(State(server): State<Server>, names: Names) -> Result<Json<StateVersionList>, Refusal> {
    let versions = server.store.state_versions(&names.tenant()?, &names.deployment()?).await?;
    Ok(Json(StateVersionList { versions: versions.into_iter().map(view::state_version).collect() }))
}

pub(crate) async fn version(State(server): State<Server>, names: Names) -> Result<Response, Refusal> {
    let number = names.text("version").parse();
    let number = number.map_err(|_| Refusal::new(Code::StateUnknown, "a version is a number"))?;
    let version = server.store.state_version(&names.tenant()?, &names.deployment()?, number).await?;
    Ok(as_file(version.state))
}

pub(crate) async fn remove(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(wanted): JsonBody<StateRemove>,
) -> Result<Json<StateEdited>, Refusal> {
    check_addresses(wanted.addresses.iter())?;
    if wanted.addresses.is_empty() {
        return Err(Refusal::new(Code::RequestInvalid, "no address was given"));
    }
    edit(&server, &actor, &names, StateEdit::Remove { addresses: wanted.addresses }).await
}

pub(crate) async fn rename(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(wanted): JsonBody<StateMove>,
) -> Result<Json<StateEdited>, Refusal> {
    check_addresses([&wanted.from, &wanted.to].into_iter())?;
    edit(&server, &actor, &names, StateEdit::Move { from: wanted.from, to: wanted.to }).await
}

async fn edit(server: &Server, actor: &Actor, names: &Names, edit: StateEdit) -> Result<Json<StateEdited>, Refusal> {
    let (version, addresses) = server.store.edit_state(&names.tenant()?, &names.deployment()?, &edit, actor).await?;
    Ok(Json(StateEdited { version, addresses }))
}

fn as_file(state: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], state).into_response()
}
