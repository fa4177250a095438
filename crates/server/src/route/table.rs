use axum::http::Method;
use landform_api as api;
use landform_domain::Right;

use super::{Route, Tenancy};
use crate::{
    audit, connections, deployments, drift, failures, metrics, pause, resources, runs, state, templates, tenants,
    tokens, webhooks,
};

fn get(path: &'static str) -> (Method, &'static str) {
    (Method::GET, path)
}

fn put(path: &'static str) -> (Method, &'static str) {
    (Method::PUT, path)
}

fn post(path: &'static str) -> (Method, &'static str) {
    (Method::POST, path)
}

fn delete(path: &'static str) -> (Method, &'static str) {
    (Method::DELETE, path)
}

/// A method that HTTP itself does not have.
fn own(method: &'static str) -> Method {
    Method::from_bytes(method.as_bytes()).expect("a token of letters")
}

/// Everything under `/v1`, and what else needs a token. Rows of one path stand together.
#[rustfmt::skip]
pub(crate) fn table() -> Vec<Route> {
    use Right::{Administer, Approve, Operate, Read, Secrets};
    use Tenancy::{Fleet, Narrowed, Run, Shared, Tenant};
    vec![
        Route::new(get("/v1/tokens"), Administer, Narrowed, tokens::list, "List the tokens that work").answers::<api::TokenList>(200),
        Route::new(post("/v1/tokens"), Administer, Narrowed, tokens::create, "Make a token; its secret is shown this once").takes::<api::TokenSpec>().answers::<api::TokenMade>(201),
        Route::new(delete("/v1/tokens/{token}"), Administer, Narrowed, tokens::revoke, "Withdraw a token").answers_nothing(),

        Route::new(get("/v1/audit"), Administer, Narrowed, audit::list, "Who did what, from where, the newest first").asks::<audit::AuditQuery>().answers::<api::AuditList>(200),

        Route::new(get("/v1/tenants"), Read, Narrowed, tenants::list, "List the tenants").answers::<api::TenantList>(200),
        Route::new(get("/v1/tenants/{tenant}"), Read, Tenant, tenants::get, "Show a tenant").answers::<api::Tenant>(200),
        Route::new(put("/v1/tenants/{tenant}"), Administer, Fleet, tenants::put, "Make a tenant, or change its settings").takes::<api::TenantSpec>().answers::<api::Tenant>(201),
        Route::new(delete("/v1/tenants/{tenant}"), Administer, Fleet, tenants::delete, "Delete a tenant that has nothing any more").answers_nothing(),

        Route::new(get("/v1/tenants/{tenant}/connections"), Read, Tenant, connections::list, "List a tenant's connections").answers::<api::ConnectionList>(200),
        Route::new(get("/v1/tenants/{tenant}/connections/{connection}"), Read, Tenant, connections::get, "Show what a connection has values for").answers::<api::Connection>(200),
        Route::new(put("/v1/tenants/{tenant}/connections/{connection}"), Administer, Tenant, connections::put, "Make a connection, or rotate it").takes::<api::ConnectionSpec>().answers::<api::Connection>(201),
        Route::new(delete("/v1/tenants/{tenant}/connections/{connection}"), Administer, Tenant, connections::delete, "Delete a connection that no deployment uses").answers_nothing(),
        Route::new(post("/v1/tenants/{tenant}/connections/{connection}/test"), Operate, Tenant, connections::test, "Try a connection: a trial of a deployment that uses it; changes nothing").takes::<api::ConnectionTest>().answers::<api::Accepted>(200),
        Route::new(get("/v1/tenants/{tenant}/webhooks"), Administer, Tenant, webhooks::list, "List a tenant's webhooks").answers::<api::WebhookList>(200),
        Route::new(post("/v1/tenants/{tenant}/webhooks"), Administer, Tenant, webhooks::create, "Make a webhook; the secret that signs is shown this once").takes::<api::WebhookSpec>().answers::<api::WebhookMade>(201),
        Route::new(delete("/v1/tenants/{tenant}/webhooks/{webhook}"), Administer, Tenant, webhooks::delete, "Delete a webhook").answers_nothing(),
        Route::new(get("/v1/tenants/{tenant}/webhooks/{webhook}/deliveries"), Administer, Tenant, webhooks::deliveries, "What was sent to a webhook, or is to be").answers::<api::DeliveryList>(200),
        Route::new(get("/v1/webhooks"), Administer, Fleet, webhooks::list, "List the webhooks of the whole fleet").answers::<api::WebhookList>(200),
        Route::new(post("/v1/webhooks"), Administer, Fleet, webhooks::create, "Make a webhook for the whole fleet; the secret that signs is shown this once").takes::<api::WebhookSpec>().answers::<api::WebhookMade>(201),
        Route::new(delete("/v1/webhooks/{webhook}"), Administer, Fleet, webhooks::delete, "Delete a webhook of the whole fleet").answers_nothing(),
        Route::new(get("/v1/webhooks/{webhook}/deliveries"), Administer, Fleet, webhooks::deliveries, "What was sent to a webhook of the whole fleet, or is to be").answers::<api::DeliveryList>(200),
        Route::new(post("/v1/tenants/{tenant}/pause"), Operate, Tenant, pause::pause_tenant, "Let a tenant's runs wait").answers::<api::Paused>(200),
        Route::new(post("/v1/tenants/{tenant}/resume"), Operate, Tenant, pause::resume_tenant, "Let a tenant's runs go on").answers::<api::Paused>(200),
        Route::new(get("/v1/pause"), Read, Fleet, pause::get, "Whether all runs are paused").answers::<api::Paused>(200),
        Route::new(post("/v1/pause"), Administer, Fleet, pause::pause_everything, "Let all runs wait").answers::<api::Paused>(200),
        Route::new(post("/v1/resume"), Administer, Fleet, pause::resume_everything, "Let all runs go on").answers::<api::Paused>(200),

        Route::new(get("/v1/templates"), Read, Shared, templates::list, "List the newest versions of all templates").answers::<api::TemplateList>(200),
        Route::new(get("/v1/templates/{template}"), Read, Shared, templates::get, "List the versions of a template").answers::<api::Template>(200),
        Route::new(put("/v1/templates/{template}"), Administer, Fleet, templates::push, "Push a template: a gzipped tar file of plain files").asks::<templates::PushQuery>().takes_raw("application/gzip").answers::<api::TemplatePushed>(201),
        Route::new(get("/v1/templates/{template}/versions/{version}"), Read, Shared, templates::version, "Show a version: the schema of its inputs, its files").answers::<api::TemplateDetail>(200),
        Route::new(delete("/v1/templates/{template}/versions/{version}"), Administer, Fleet, templates::delete, "Delete a version that nothing depends on").answers_nothing(),
        Route::new(get("/v1/templates/{template}/deployments"), Read, Shared, templates::uses, "Who is on which version").answers::<api::TemplateUseList>(200),

        Route::new(get("/v1/tenants/{tenant}/deployments"), Read, Tenant, deployments::list, "List a tenant's deployments").answers::<api::DeploymentList>(200),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}"), Read, Tenant, deployments::get, "Show a deployment").answers::<api::Deployment>(200),
        Route::new(put("/v1/tenants/{tenant}/deployments/{deployment}"), Operate, Tenant, deployments::put, "Create or change a deployment").takes::<api::DeploymentSpec>().answers::<api::Accepted>(202),
        Route::new(delete("/v1/tenants/{tenant}/deployments/{deployment}"), Operate, Tenant, deployments::delete, "Destroy what a deployment has made, and then the deployment").answers::<api::Accepted>(202),
        Route::new(post("/v1/batch"), Operate, Narrowed, deployments::batch::accept, "Many writes of deployments: a line of JSON (BatchLine) in, a line of JSON (BatchResult) out for each").takes_lines::<api::BatchLine>().answers_lines::<api::BatchResult>(),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/runs"), Operate, Tenant, deployments::run, "A further run: again, as a trial, with replacements or adoptions").takes::<api::RunRequest>().answers::<api::Accepted>(202),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/rollback"), Operate, Tenant, deployments::rollback, "Back to the template and the inputs of an earlier run").takes::<api::Rollback>().answers::<api::Accepted>(202),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/forget"), Operate, Tenant, deployments::forget, "Remove a deployment and destroy nothing").answers_nothing(),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/pause"), Operate, Tenant, pause::pause_deployment, "Let a deployment's runs wait").answers::<api::Paused>(200),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/resume"), Operate, Tenant, pause::resume_deployment, "Let a deployment's runs go on").answers::<api::Paused>(200),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}/outputs"), Read, Tenant, deployments::outputs, "Show a deployment's outputs").asks::<deployments::OutputsQuery>().answers::<api::Outputs>(200),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}/state"), Secrets, Tenant, deployments::state::get, "The state, as any `tofu` reads it").answers_raw("application/json"),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}/state/versions"), Read, Tenant, deployments::state::versions, "List the versions of the state that are kept").answers::<api::StateVersionList>(200),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}/state/versions/{version}"), Secrets, Tenant, deployments::state::version, "A version of the state, as any `tofu` reads it").answers_raw("application/json"),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/state/remove"), Operate, Tenant, deployments::state::remove, "Let the state forget objects; what they stand for stays").takes::<api::StateRemove>().answers::<api::StateEdited>(200),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/state/move"), Operate, Tenant, deployments::state::rename, "Give objects in the state another address").takes::<api::StateMove>().answers::<api::StateEdited>(200),

        Route::new(get("/v1/drift"), Read, Narrowed, drift::list, "Deployments that drifted, and what they have in common").asks::<drift::DriftQuery>().answers::<api::DriftList>(200),
        Route::new(get("/v1/tenants/{tenant}/deployments/{deployment}/drift"), Read, Tenant, drift::get, "What is known of a deployment's drift").answers::<api::Drift>(200),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/drift/check"), Operate, Tenant, drift::check, "Look whether everything is as the state says; nothing is changed").answers::<api::Accepted>(202),
        Route::new(post("/v1/tenants/{tenant}/deployments/{deployment}/drift/heal"), Operate, Tenant, drift::heal, "Bring back what drifted: an ordinary run, with approval where changes need it").answers::<api::Accepted>(202),
        Route::new(put("/v1/tenants/{tenant}/deployments/{deployment}/drift/schedule"), Operate, Tenant, drift::schedule, "Have a deployment checked once in a while, or not any more").takes::<api::DriftSchedule>().answers::<api::Drift>(200),

        Route::new(get("/v1/state/{tenant}/{deployment}"), Secrets, Tenant, state::get, "The `http` state backend: read").answers_raw("application/json"),
        Route::new(post("/v1/state/{tenant}/{deployment}"), Operate, Tenant, state::write, "The `http` state backend: write").asks::<state::WriteQuery>().takes_raw("application/json"),
        Route::new(delete("/v1/state/{tenant}/{deployment}"), Operate, Tenant, state::delete, "The `http` state backend: forget").asks::<state::WriteQuery>(),
        Route::new((own("LOCK"), "/v1/state/{tenant}/{deployment}"), Operate, Tenant, state::lock, "The `http` state backend: lock").takes_raw("application/json"),
        Route::new((own("UNLOCK"), "/v1/state/{tenant}/{deployment}"), Operate, Tenant, state::unlock, "The `http` state backend: unlock; without a body, by force").takes_raw("application/json"),

        Route::new(get("/v1/resources"), Read, Narrowed, resources::list, "The inventory: what all states have").asks::<resources::ResourcesQuery>().answers::<api::ResourceList>(200),
        Route::new(get("/metrics"), Read, Fleet, metrics::get, "Figures for Prometheus").answers_raw("text/plain"),

        Route::new(get("/v1/runs"), Read, Narrowed, runs::list, "List runs, the newest first").asks::<runs::RunsQuery>().answers::<api::RunList>(200),
        Route::new(get("/v1/runs/{run}"), Read, Run, runs::get, "Show a run").answers::<api::Run>(200),
        Route::new(get("/v1/runs/{run}/plan"), Read, Run, runs::plan::get, "A run's plan as JSON; or, with `Accept: text/plain`, as text").answers_raw("application/json"),
        Route::new(get("/v1/runs/{run}/events"), Read, Run, runs::events::get, "A page of a run's events; or, with `Accept: text/event-stream`, a stream").asks::<runs::events::EventsQuery>().answers::<api::EventList>(200),
        Route::new(post("/v1/runs/{run}/approve"), Approve, Run, runs::approve, "Apply the plan exactly as it is").answers::<api::Run>(200),
        Route::new(post("/v1/runs/{run}/reject"), Approve, Run, runs::reject, "Drop the plan").takes::<api::Reject>().answers::<api::Run>(200),
        Route::new(post("/v1/runs/{run}/cancel"), Operate, Run, runs::cancel, "Stop a run; one that is applying stops at the next safe point").answers::<api::Run>(200),
        Route::new(post("/v1/runs/{run}/retry"), Operate, Run, runs::retry, "Make a run that failed or was stopped again").answers::<api::Accepted>(202),
        Route::new(get("/v1/failures"), Read, Narrowed, failures::list, "Deployments whose last run failed, by the code of the failure").asks::<failures::FailuresQuery>().answers::<api::FailureList>(200),
        Route::new(post("/v1/failures/retry"), Operate, Narrowed, failures::retry, "Make all failed runs of one code again").takes::<api::RetryAll>().answers::<api::RunList>(202),
        Route::new(post("/v1/runs/{run}/recover"), Operate, Run, runs::recover, "Say what became of the objects in doubt").takes::<api::Recovery>().answers::<api::Run>(200),
    ]
}
