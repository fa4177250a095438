use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Extension, Json};
use landform_api as api;
use landform_domain::{Actor, Code};
use landform_store::ConnectionValues;

use crate::problem::Refusal;
use crate::request::{JsonBody, Names, preferred_wait};
use crate::{Server, view, wait};

const MOST_VALUES: usize = 100;
const LARGEST: usize = 64 << 10;

pub(crate) async fn put(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    JsonBody(spec): JsonBody<api::ConnectionSpec>,
) -> Result<(StatusCode, Json<api::Connection>), Refusal> {
    check(&spec)?;
    let values = ConnectionValues { variables: spec.variables, environment: spec.environment };
    let put = server.store.put_connection(&names.tenant()?, &names.connection()?, values, &actor).await?;
    let (connection, is_new) = put;
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(view::connection(connection))))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<api::Connection>, Refusal> {
    Ok(Json(view::connection(server.store.connection(&names.tenant()?, &names.connection()?).await?)))
}

pub(crate) async fn list(State(server): State<Server>, names: Names) -> Result<Json<api::ConnectionList>, Refusal> {
    let connections = server.store.connections(&names.tenant()?).await?;
    Ok(Json(api::ConnectionList { connections: connections.into_iter().map(view::connection).collect() }))
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.delete_connection(&names.tenant()?, &names.connection()?, &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How long the caller is kept waiting for the result, where it does not say how long it wants to.
const PATIENCE: Duration = Duration::from_secs(60);

/// A trial of a deployment that uses the connection: what the provider says is in the run that this answers with.
pub(crate) async fn test(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<api::ConnectionTest>,
) -> Result<Response, Refusal> {
    let wait = preferred_wait(&headers)?.unwrap_or(PATIENCE);
    let (tenant, connection) = (names.tenant()?, names.connection()?);
    let run = server.store.try_connection(&tenant, &connection, wanted.deployment.as_ref(), &actor).await?;
    wait::answer(&server, run, Some(wait)).await
}

fn check(spec: &api::ConnectionSpec) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(Code::ConnectionInvalid, message));
    let count = spec.variables.len() + spec.environment.len();
    if count == 0 || count > MOST_VALUES {
        return invalid(format!("a connection has 1 to {MOST_VALUES} values"));
    }
    let plain = |name: &String| {
        !name.is_empty() && name.len() <= 200 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    if let Some(name) = spec.variables.keys().chain(spec.environment.keys()).find(|name| !plain(name)) {
        let shown: String = name.chars().take(80).collect();
        return invalid(format!("{shown:?} is no name of a variable"));
    }
    let size: usize = spec.variables.values().map(|value| value.to_string().len()).sum::<usize>()
        + spec.environment.values().map(String::len).sum::<usize>();
    if size > LARGEST || spec.environment.values().any(|value| value.contains('\0')) {
        return invalid(format!("the values have at most {LARGEST} bytes, none of them 0"));
    }
    Ok(())
}
