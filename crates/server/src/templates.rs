use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api::{Template, TemplateList, TemplateVersion};
use landform_domain::{Actor, Code};

use crate::problem::Refusal;
use crate::request::{Names, whole_body};
use crate::{Server, archive, view};

pub(crate) async fn push(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    body: Body,
) -> Result<(StatusCode, Json<TemplateVersion>), Refusal> {
    let name = names.template()?;
    let _permit = server.pushes.try_acquire().map_err(|_| Refusal::new(Code::Overloaded, "too many pushes at once"))?;
    let bytes = whole_body(body, archive::LARGEST_ARCHIVE).await?;
    // Unpacking is work for a thread of its own: it can take some 100 ms.
    let read = tokio::task::spawn_blocking(move || archive::read(&bytes)).await;
    let files = read.map_err(|e| {
        tracing::error!(error = %e, "an archive could not be unpacked");
        Refusal::new(Code::Internal, "the archive could not be unpacked")
    })??;
    let (version, is_new) = server.store.push_template(&name, &files, &actor).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view::template_version(&name, version))))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Template>, Refusal> {
    let template = server.store.template(&names.template()?).await?;
    let versions = template.versions.into_iter().map(|v| view::template_version(&template.name, v)).collect();
    Ok(Json(Template { name: template.name, versions }))
}

pub(crate) async fn list(State(server): State<Server>) -> Result<Json<TemplateList>, Refusal> {
    let templates = server.store.templates().await?.into_iter().filter_map(|mut template| {
        let newest = template.versions.pop()?;
        Some(view::template_version(&template.name, newest))
    });
    Ok(Json(TemplateList { templates: templates.collect() }))
}
