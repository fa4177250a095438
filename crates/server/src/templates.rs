use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use landform_api::{
    Template, TemplateDetail, TemplateFile, TemplateList, TemplatePushed, TemplateUse, TemplateUseList,
};
use landform_domain::{Actor, Code};
use serde::Deserialize;

use crate::problem::Refusal;
use crate::request::{Asked, Names, whole_body};
use crate::{Server, archive, view};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushQuery {
    /// Choose the newest providers of the mirror, also if the files are the same as before.
    #[serde(default)]
    upgrade: bool,
}

pub(crate) async fn push(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
    Asked(query): Asked<PushQuery>,
    body: Body,
) -> Result<(StatusCode, Json<TemplatePushed>), Refusal> {
    let name = names.template()?;
    let _permit = server.pushes.try_acquire().map_err(|_| Refusal::new(Code::Overloaded, "too many pushes at once"))?;
    let bytes = whole_body(body, archive::LARGEST_ARCHIVE).await?;
    // Unpacking is work for a thread of its own: it can take some 100 ms.
    let read = tokio::task::spawn_blocking(move || archive::read(&bytes)).await;
    let files = read.map_err(|e| {
        tracing::error!(error = %e, "an archive could not be unpacked");
        Refusal::new(Code::Internal, "the archive could not be unpacked")
    })??;
    let pushed = server.store.push_template(&name, &files, query.upgrade, &actor).await?;
    let status = if pushed.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let version = view::template_version(&name, pushed.version);
    Ok((status, Json(TemplatePushed { version, not_locked: pushed.not_locked })))
}

pub(crate) async fn get(State(server): State<Server>, names: Names) -> Result<Json<Template>, Refusal> {
    let template = server.store.template(&names.template()?).await?;
    let versions = template.versions.into_iter().map(|v| view::template_version(&template.name, v)).collect();
    Ok(Json(Template { name: template.name, versions }))
}

pub(crate) async fn version(State(server): State<Server>, names: Names) -> Result<Json<TemplateDetail>, Refusal> {
    let name = names.template()?;
    let (version, declared, files) = server.store.template_version(&name, version_number(&names)?).await?;
    let file = |(path, content): (&str, &[u8])| TemplateFile { path: path.to_owned(), size: content.len() as u64 };
    let view = view::template_version(&name, version);
    Ok(Json(TemplateDetail {
        name: view.name,
        version: view.version,
        digest: view.digest,
        created_at: view.created_at,
        schema: declared.schema(),
        files: files.iter().map(file).collect(),
        outside_native: declared.unsupported,
        memory: server.store.template_memory(&name, view.version).await?,
    }))
}

pub(crate) async fn delete(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<StatusCode, Refusal> {
    server.store.delete_template_version(&names.template()?, version_number(&names)?, &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn version_number(names: &Names) -> Result<i64, Refusal> {
    names.text("version").parse().map_err(|_| Refusal::new(Code::TemplateUnknown, "a version is a number"))
}

/// Who is on which version.
pub(crate) async fn uses(
    State(server): State<Server>,
    Extension(actor): Extension<Actor>,
    names: Names,
) -> Result<Json<TemplateUseList>, Refusal> {
    let uses = server.store.template_uses(&names.template()?, actor.tenant.as_ref()).await?;
    let template_use = |found: landform_store::TemplateUse| TemplateUse {
        tenant: found.tenant,
        deployment: found.deployment,
        version: found.version,
        applied_version: found.applied_version,
    };
    Ok(Json(TemplateUseList { deployments: uses.into_iter().map(template_use).collect() }))
}

pub(crate) async fn list(State(server): State<Server>) -> Result<Json<TemplateList>, Refusal> {
    let templates = server.store.templates().await?.into_iter().filter_map(|mut template| {
        let newest = template.versions.pop()?;
        Some(view::template_version(&template.name, newest))
    });
    Ok(Json(TemplateList { templates: templates.collect() }))
}
