//! What readers get.

use std::collections::BTreeMap;

use landform_domain::run::{Generation, Kind, Status};
use landform_domain::{
    ConnectionName, DeploymentName, EngineChoice, EngineName, EventBody, Inputs, RunId, TemplateName, TenantName,
};

use crate::claim::waiting;
use crate::db::Row;
use crate::drift::DriftFact;
use crate::error::StoreError;
use crate::pause;

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
    /// By its own switch; all runs may be paused besides.
    pub paused: bool,
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
    /// Why it waits although it is queued.
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

/// Nobody takes the run yet, for a reason that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub reason: String,
    /// Milliseconds since 1970, by the database's clock; none where it is somebody's word that ends it.
    pub until: Option<i64>,
    /// The run that it waits for.
    pub run: Option<RunId>,
}

impl Blocked {
    /// From the columns of a run that tell about it.
    fn from_row(row: &Row) -> Result<Option<Blocked>, StoreError> {
        let because = |reason: &str| Some(Blocked { reason: reason.to_owned(), until: None, run: None });
        Ok(match row.int_or_null("waits_for")? {
            Some(waiting::FOR_DEPLOYMENT) => match row.int_or_null("paused")?.unwrap_or(0) {
                // Whatever else holds it: nobody goes on before that.
                paused if paused & pause::OF_EVERYTHING != 0 => because("all runs are paused"),
                paused if paused & pause::OF_TENANT != 0 => because("the tenant is paused"),
                paused if paused != 0 => because("the deployment is paused"),
                _ => match (row.text_or_null("held_by")?, row.text_or_null("held_as")?) {
                    (Some(run), Some(status)) => Some(Blocked {
                        reason: format!("run {run} of this deployment is not over: {}", status.replace('_', " ")),
                        until: None,
                        run: run.parse().ok(),
                    }),
                    (Some(_), None) => because("somebody has locked the deployment's state"),
                    // It has just been freed.
                    (None, _) => None,
                },
            },
            Some(waiting::FOR_SLOT) => because("the tenant has as many runs under way as it may have"),
            Some(waiting::FOR_OWNER) => because("another worker makes the calls to the vendor's account"),
            Some(waiting::FOR_TIME) => match (row.text_or_null("blocked_by")?, row.int_or_null("not_before")?) {
                (Some(reason), until) => Some(Blocked { reason, until, run: None }),
                (None, _) => None,
            },
            _ => None,
        })
    }
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
            blocked: Blocked::from_row(row)?,
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
