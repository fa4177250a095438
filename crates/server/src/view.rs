//! What the store has, as it is sent.

use landform_api as api;
use landform_api::{ProblemBody, Rejection, Timestamp};
use landform_domain::TemplateName;
use landform_domain::inputs::MASK;
use landform_domain::run::{Kind, Status};
use landform_store as store;

use crate::problem::Refusal;

fn at(unix_millis: i64) -> Timestamp {
    Timestamp { unix_millis }
}

pub(crate) fn tenant(tenant: store::Tenant) -> api::Tenant {
    api::Tenant {
        name: tenant.name,
        separate_approver: tenant.separate_approver,
        slots: tenant.slots,
        max_deployments: tenant.most_deployments,
        max_waiting_runs: tenant.most_waiting,
        paused: tenant.paused,
        created_at: at(tenant.created_at),
    }
}

pub(crate) fn paused(paused: store::Paused) -> api::Paused {
    let store::Paused { everything, tenant, deployment } = paused;
    api::Paused { everything, tenant, deployment }
}

pub(crate) fn resource(resource: store::Resource) -> api::Resource {
    api::Resource {
        tenant: resource.tenant,
        deployment: resource.deployment,
        address: resource.address,
        mode: resource.mode,
        kind: resource.kind,
        name: resource.name,
        provider: resource.provider,
        id: resource.id,
        updated_at: at(resource.updated_at),
    }
}

pub(crate) fn token(token: store::Token) -> api::Token {
    api::Token {
        id: token.id,
        name: token.name,
        role: token.role,
        tenant: token.tenant,
        created_by: token.created_by,
        created_at: at(token.created_at),
        expires_at: token.expires_at.map(at),
    }
}

pub(crate) fn connection(connection: store::Connection) -> api::Connection {
    api::Connection {
        name: connection.name,
        version: connection.version,
        variables: connection.variables,
        environment: connection.environment,
        created_at: at(connection.created_at),
        updated_at: at(connection.updated_at),
    }
}

pub(crate) fn webhook(webhook: store::Webhook) -> api::Webhook {
    api::Webhook { id: webhook.id, url: webhook.url, events: webhook.events, created_at: at(webhook.created_at) }
}

pub(crate) fn delivery(delivery: store::Delivery) -> api::Delivery {
    api::Delivery {
        id: delivery.id,
        event: delivery.event,
        tenant: delivery.tenant,
        deployment: delivery.deployment,
        run: delivery.run,
        generation: delivery.generation,
        status: delivery.status,
        attempts: delivery.attempts,
        answer: delivery.answer,
        error: delivery.error,
        created_at: at(delivery.created_at),
        ended_at: delivery.ended_at.map(at),
    }
}

pub(crate) fn audit_entry(entry: store::AuditEntry) -> api::AuditEntry {
    api::AuditEntry {
        seq: entry.seq,
        at: at(entry.at),
        actor: entry.actor,
        actor_name: entry.actor_name,
        origin: entry.origin,
        action: entry.action,
        tenant: entry.tenant,
        target: entry.target,
        detail: entry.detail,
    }
}

pub(crate) fn template_version(name: &TemplateName, version: store::TemplateVersion) -> api::TemplateVersion {
    api::TemplateVersion {
        name: name.clone(),
        version: version.version,
        digest: version.digest,
        created_at: at(version.created_at),
    }
}

pub(crate) fn deployment(deployment: store::Deployment) -> api::Deployment {
    api::Deployment {
        tenant: deployment.tenant,
        name: deployment.name,
        template: deployment.template,
        template_version: deployment.template_version,
        inputs: deployment.inputs.masked(),
        connections: deployment.connections,
        engine: deployment.engine,
        requires_approval: deployment.requires_approval,
        time_limit: deployment.time_limit.and_then(|seconds| u32::try_from(seconds).ok()),
        paused: deployment.paused,
        generation: deployment.generation,
        applied_generation: deployment.applied_generation,
        destroying: deployment.kind == Kind::Destroy,
        last_run: deployment.last_run.map(run),
        drift: drift(deployment.drift),
        created_at: at(deployment.created_at),
        updated_at: at(deployment.updated_at),
    }
}

pub(crate) fn drift(fact: store::DriftFact) -> api::Drift {
    api::Drift {
        status: fact.status,
        checked_at: fact.checked_at.map(at),
        run: fact.run,
        drifted_since: fact.drifted_since.map(at),
        summary: fact.summary,
        diff: fact.objects,
        failed: fact.failed.map(|failed| api::FailedCheck { run: failed.run, code: failed.code, at: at(failed.at) }),
        schedule: fact.every.map(|every| api::DriftScheduled { every, next_at: fact.next_at.map(at) }),
    }
}

pub(crate) fn state_version(version: store::StateVersionInfo) -> api::StateVersion {
    api::StateVersion {
        version: version.version,
        generation: version.generation,
        run: version.run,
        current: version.current,
        created_at: at(version.created_at),
    }
}

pub(crate) fn run(run: store::Run) -> api::Run {
    let mut view = api::Run {
        id: run.id,
        tenant: run.tenant,
        deployment: run.deployment,
        kind: run.kind,
        generation: run.generation,
        status: run.status.word().to_owned(),
        finished: run.status.is_final(),
        blocked: run.blocked.map(|blocked| api::Blocked {
            reason: blocked.reason,
            until: blocked.until.map(at),
            run: blocked.run,
        }),
        engine: run.engine,
        requires_approval: run.requires_approval,
        plan_only: run.plan_only,
        author: run.author_name,
        cancel_requested: run.cancel_requested,
        plan: None,
        expires_at: None,
        doubts: Vec::new(),
        problem: None,
        superseded_by: None,
        rejected: None,
        attempt: run.attempts,
        created_at: at(run.created_at),
        started_at: run.started_at.map(at),
        ended_at: run.ended_at.map(at),
    };
    match run.status {
        Status::AwaitingApproval { plan, expires_at } => {
            view.plan = Some(plan);
            view.expires_at = Some(at(expires_at));
        }
        Status::Planned { plan } => view.plan = Some(plan),
        Status::NeedsRecovery { doubts } => view.doubts = doubts,
        Status::Failed(problem) => view.problem = Some(ProblemBody::of(&problem)),
        Status::Rejected { by, reason } => view.rejected = Some(Rejection { by, reason }),
        Status::Superseded { by } => view.superseded_by = Some(by),
        Status::Queued(_)
        | Status::Planning
        | Status::Applying(_)
        | Status::Succeeded
        | Status::Unchanged
        | Status::Cancelled
        | Status::Expired => {}
    }
    view
}

pub(crate) fn event(event: store::Event) -> api::Event {
    api::Event { seq: event.seq, at: at(event.at), body: event.body.into() }
}

pub(crate) fn outputs(outputs: store::Outputs, show_sensitive: bool) -> Result<api::Outputs, Refusal> {
    let mut shown = api::Outputs::default();
    for (name, output) in outputs {
        let read = serde_json::from_value(output);
        let mut output: api::Output = read.map_err(|e| Refusal::from(store::StoreError::Corrupt(e.to_string())))?;
        if output.sensitive && !show_sensitive {
            output.value = MASK.into();
        }
        shown.0.insert(name, output);
    }
    Ok(shown)
}
