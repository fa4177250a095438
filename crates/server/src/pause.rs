use axum::extract::State;
use axum::{Extension, Json};
use landform_api as api;
use landform_domain::Actor;
use landform_store::Scope;

use crate::Server;
use crate::problem::Refusal;
use crate::request::Names;
use crate::view;

type Answer = Result<Json<api::Paused>, Refusal>;

async fn switch(server: &Server, scope: Scope, paused: bool, actor: &Actor) -> Answer {
    Ok(Json(view::paused(server.store.pause(&scope, paused, actor).await?)))
}

pub(crate) async fn get(State(server): State<Server>) -> Answer {
    Ok(Json(api::Paused { everything: server.store.is_paused().await?, tenant: None, deployment: None }))
}

pub(crate) async fn pause_deployment(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Answer {
    switch(&server, Scope::Deployment(names.tenant()?, names.deployment()?), true, &actor).await
}

pub(crate) async fn resume_deployment(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Answer {
    switch(&server, Scope::Deployment(names.tenant()?, names.deployment()?), false, &actor).await
}

pub(crate) async fn pause_tenant(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Answer {
    switch(&server, Scope::Tenant(names.tenant()?), true, &actor).await
}

pub(crate) async fn resume_tenant(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Answer {
    switch(&server, Scope::Tenant(names.tenant()?), false, &actor).await
}

pub(crate) async fn pause_everything(State(server): State<Server>, Extension(actor): Extension<Actor>) -> Answer {
    switch(&server, Scope::Everything, true, &actor).await
}

pub(crate) async fn resume_everything(State(server): State<Server>, Extension(actor): Extension<Actor>) -> Answer {
    switch(&server, Scope::Everything, false, &actor).await
}
