//! What readers get.

use std::collections::BTreeMap;

use landform_domain::run::{Generation, Kind, Status};
use landform_domain::{
    ConnectionName, DeploymentName, EngineChoice, EngineName, EventBody, Inputs, RunId, TemplateName, TenantName,
};

use crate::db::Row;
use crate::drift::DriftFact;
use crate::error::StoreError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub name: TenantName,
    /// Whoever asked for a change must not approve it.
    pub separate_approver: bool,
    /// Runs under way at the same time; `None` is no limit, also for the two below.
    pub slots: Option<i64>,
    pub most_deployments: Option<i64>,
    /// Runs that have not ended and that no worker has taken yet.
    pub most_waiting: Option<i64>,
    pub created_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub name: TemplateName,
    /// Ascending.
    pub versions: Vec<TemplateVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateVersion {
    pub version: i64,
    pub digest: String,
    pub created_at: i64,
}

#[derive(Clone, Debug)]
pub struct Deployment {
    pub tenant: TenantName,
    pub name: DeploymentName,
    /// What the newest generation wants: to apply, or to destroy.
    pub kind: Kind,
    pub generation: Generation,
    pub applied_generation: Option<Generation>,
    pub template: TemplateName,
    pub template_version: i64,
    pub inputs: Inputs,
    pub connections: Vec<ConnectionName>,
    pub engine: EngineChoice,
    pub requires_approval: bool,
    /// Seconds that a plan or an apply may take.
    pub time_limit: Option<i64>,
    /// Its runs wait: because of itself, its tenant, or everything.
    pub paused: bool,
    /// The last one that was no drift check.
    pub last_run: Option<Run>,
    /// Its objects are there where one deployment is read, and not in lists.
    pub drift: DriftFact,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub id: RunId,
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub kind: Kind,
    pub generation: Generation,
    pub requires_approval: bool,
    /// It ends with its plan.
    pub plan_only: bool,
    pub cancel_requested: bool,
    pub status: Status,
    /// Why it waits although it is queued, and until when.
    pub blocked: Option<Blocked>,
    /// Known once a worker has chosen.
    pub engine: Option<EngineName>,
    /// Who asked for it: the id of a token, and its name then.
    pub author: Option<String>,
    pub author_name: Option<String>,
    pub attempts: i64,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
}

/// Nobody takes the run before a time, for a reason that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub reason: String,
    /// Milliseconds since 1970, by the database's clock.
    pub until: i64,
}

#[derive(Clone, Debug)]
pub struct Event {
    /// Counts from 1 in each run, without gaps.
    pub seq: i64,
    pub at: i64,
    pub body: EventBody,
}

/// Outputs as the engine gave them, by name: JSON with `value`, `type` and `sensitive`. They may hold secrets.
pub type Outputs = BTreeMap<String, serde_json::Value>;

/// A whole state. It holds secrets.
#[derive(Clone)]
pub struct StateVersion {
    pub version: i64,
    pub state: Vec<u8>,
}

impl Run {
    pub(crate) fn from_row(row: &Row) -> Result<Run, StoreError> {
        Ok(Run {
            id: row.parsed("id")?,
            tenant: row.parsed("tenant")?,
            deployment: row.parsed("name")?,
            kind: kind(&row.text("kind")?)?,
            generation: row.int("generation")?,
            requires_approval: row.flag("requires_approval")?,
            plan_only: row.flag("plan_only")?,
            cancel_requested: row.flag("cancel_requested")?,
            status: serde_json::from_str(&row.text("detail")?)?,
            blocked: match (row.text_or_null("blocked_by")?, row.int_or_null("not_before")?) {
                (Some(reason), Some(until)) => Some(Blocked { reason, until }),
                _ => None,
            },
            engine: row.text_or_null("engine")?.map(|text| text.parse()).transpose()?,
            author: row.text_or_null("author")?,
            author_name: row.text_or_null("author_name")?,
            attempts: row.int("attempts")?,
            created_at: row.int("created_at")?,
            started_at: row.int_or_null("started_at")?,
            ended_at: row.int_or_null("ended_at")?,
        })
    }

    /// The part that the rules are about.
    pub(crate) fn rules(&self) -> landform_domain::run::Run {
        landform_domain::run::Run {
            id: self.id,
            kind: self.kind,
            generation: self.generation,
            requires_approval: self.requires_approval,
            plan_only: self.plan_only,
            cancel_requested: self.cancel_requested,
            status: self.status.clone(),
        }
    }
}

pub(crate) fn kind(text: &str) -> Result<Kind, StoreError> {
    match text {
        "apply" => Ok(Kind::Apply),
        "destroy" => Ok(Kind::Destroy),
        "check" => Ok(Kind::Check),
        other => Err(StoreError::Corrupt(format!("kind {other}"))),
    }
}
