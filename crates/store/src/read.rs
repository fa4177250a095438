//! Reads for the doors.

use landform_domain::{Code, ConnectionName, DeploymentId, DeploymentName, Problem, RunId, TemplateName, TenantName};

use crate::db::{Row, params};
use crate::drift::{DriftFact, drift_columns};
use crate::error::StoreError;
use crate::keys::{Kind, Sealer};
use crate::open::Store;
use crate::tenants::unknown_tenant;
use crate::transition::run_columns;
use crate::view::{self, Deployment, Event, Outputs, Run, StateVersion};

/// Newest first.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub tenant: Option<TenantName>,
    pub deployment: Option<DeploymentName>,
    /// A status word, such as `queued`.
    pub status: Option<String>,
    pub template: Option<TemplateName>,
    /// The code of a failure.
    pub code: Option<String>,
    /// Only runs made since then, in milliseconds.
    pub since: Option<i64>,
    /// Only runs older than this one, for the next page.
    pub before: Option<RunId>,
    /// 0 means 100, which is also the most.
    pub limit: u32,
}

const PAGE: u32 = 100;

const DEPLOYMENT: &str = concat!(
    "SELECT d.id, d.tenant, d.name, d.generation, d.applied_generation, d.paused, d.created_at, d.updated_at,
        g.kind, g.template, g.template_version, g.inputs, g.engine, g.requires_approval, g.time_limit,
        (SELECT MAX(r.id) FROM runs r WHERE r.deployment = d.id AND r.kind <> 'check' AND r.plan_only = 0) AS last_run, ",
    drift_columns!(),
    "
     FROM deployments d JOIN generations g ON g.deployment = d.id AND g.generation = d.generation
        LEFT JOIN drift f ON f.deployment = d.id
     WHERE d.tenant = $1 AND ($2 = '' OR d.name = $2) ORDER BY d.name"
);

/// Above every id: they begin with a hexadecimal digit.
const AFTER_ALL: &str = "g";

macro_rules! runs_where {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            run_columns!(),
            " FROM runs r WHERE ",
            $condition,
            " AND r.id < $4 AND ($6 = '' OR r.template = $6) AND ($7 = '' OR r.error_code = $7) AND r.created_at >= $8
             ORDER BY r.id DESC LIMIT $5"
        )
    };
}

impl Store {
    pub async fn deployment(&self, tenant: &TenantName, name: &DeploymentName) -> Result<Deployment, StoreError> {
        let row = self.db().read_one(DEPLOYMENT, params![tenant.as_str(), name.as_str()]).await?;
        match row {
            Some(row) => {
                let mut deployment = self.deployment_from_row(&row).await?;
                deployment.drift = self.drift(tenant, name).await?;
                Ok(deployment)
            }
            None => Err(unknown_deployment(tenant, name)),
        }
    }

    pub async fn deployments(&self, tenant: &TenantName) -> Result<Vec<Deployment>, StoreError> {
        self.tenant(tenant).await?;
        let mut deployments = Vec::new();
        for row in self.db().read_all(DEPLOYMENT, params![tenant.as_str(), ""]).await? {
            deployments.push(self.deployment_from_row(&row).await?);
        }
        Ok(deployments)
    }

    async fn deployment_from_row(&self, row: &Row) -> Result<Deployment, StoreError> {
        let tenant: TenantName = row.parsed("tenant")?;
        let generation = row.int("generation")?;
        let sealer = self.sealer_of(&tenant, row.parsed("id")?).await?;
        let inputs = sealer.open(Kind::Inputs, &generation.to_string(), &row.blob("inputs")?)?;
        let last_run = match row.text_or_null("last_run")? {
            Some(id) => Some(self.run(id.parse()?).await?),
            None => None,
        };
        Ok(Deployment {
            tenant,
            name: row.parsed("name")?,
            kind: view::kind(&row.text("kind")?)?,
            generation,
            applied_generation: row.int_or_null("applied_generation")?,
            template: row.parsed("template")?,
            template_version: row.int("template_version")?,
            inputs: serde_json::from_slice(&inputs)?,
            connections: self.connections_of(row.parsed("id")?, generation).await?,
            engine: row.parsed("engine")?,
            requires_approval: row.flag("requires_approval")?,
            time_limit: row.int_or_null("time_limit")?,
            paused: row.flag("paused")?,
            last_run,
            drift: DriftFact::from_row(row)?,
            created_at: row.int("created_at")?,
            updated_at: row.int("updated_at")?,
        })
    }

    async fn connections_of(
        &self,
        deployment: DeploymentId,
        generation: i64,
    ) -> Result<Vec<ConnectionName>, StoreError> {
        let sql = "SELECT connection FROM generation_connections
             WHERE deployment = $1 AND generation = $2 ORDER BY connection";
        let rows = self.db().read_all(sql, params![deployment.to_string(), generation]).await?;
        rows.iter().map(|row| row.parsed("connection")).collect()
    }

    pub async fn run(&self, id: RunId) -> Result<Run, StoreError> {
        let sql = concat!("SELECT ", run_columns!(), " FROM runs r WHERE r.id = $1");
        let row = self.db().read_one(sql, params![id.to_string()]).await?;
        Run::from_row(&row.ok_or_else(|| unknown_run(id))?)
    }

    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, StoreError> {
        let limit = if filter.limit == 0 { PAGE } else { filter.limit.min(PAGE) };
        let text = |value: Option<String>| value.unwrap_or_default();
        // Each has the index that it needs; what is left is compared row by row.
        let sql = match (&filter.tenant, &filter.deployment, &filter.status) {
            (Some(_), Some(_), _) => runs_where!("r.tenant = $1 AND r.name = $2 AND ($3 = '' OR r.status = $3)"),
            (Some(_), None, _) => runs_where!("r.tenant = $1 AND $2 = '' AND ($3 = '' OR r.status = $3)"),
            (None, _, Some(_)) => runs_where!("$1 = '' AND ($2 = '' OR r.name = $2) AND r.status = $3"),
            (None, _, None) => runs_where!("$1 = '' AND ($2 = '' OR r.name = $2) AND $3 = ''"),
        };
        let values = params![
            text(filter.tenant.as_ref().map(ToString::to_string)),
            text(filter.deployment.as_ref().map(ToString::to_string)),
            text(filter.status.clone()),
            filter.before.map_or(AFTER_ALL.to_owned(), |id| id.to_string()),
            i64::from(limit),
            text(filter.template.as_ref().map(ToString::to_string)),
            text(filter.code.clone()),
            filter.since.unwrap_or(0),
        ];
        self.db().read_all(sql, values).await?.iter().map(Run::from_row).collect()
    }

    /// The plan of a run in the format of `tofu show -json`, if one was kept. It holds secrets.
    pub async fn plan(&self, run: RunId) -> Result<serde_json::Value, StoreError> {
        let sql = "SELECT tenant, deployment, plan_json FROM runs WHERE id = $1";
        let row = self.db().read_one(sql, params![run.to_string()]).await?.ok_or_else(|| unknown_run(run))?;
        let Some(sealed) = row.blob_or_null("plan_json")? else {
            return Err(Problem::new(Code::PlanUnknown, format!("there is no plan of run {run}")).into());
        };
        let sealer = self.sealer_of(&row.parsed("tenant")?, row.parsed("deployment")?).await?;
        Ok(serde_json::from_slice(&sealer.open(Kind::PlanJson, &run.to_string(), &sealed)?)?)
    }

    /// The events after a number, in order, at most `limit`.
    pub async fn events(&self, run: RunId, after: i64, limit: u32) -> Result<Vec<Event>, StoreError> {
        let rows = self
            .db()
            .read_all(
                "SELECT seq, at, body FROM events WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3",
                params![run.to_string(), after, i64::from(limit)],
            )
            .await?;
        let event = |row: &Row| -> Result<Event, StoreError> {
            Ok(Event { seq: row.int("seq")?, at: row.int("at")?, body: serde_json::from_str(&row.text("body")?)? })
        };
        rows.iter().map(event).collect()
    }

    /// The outputs of the last apply. They may hold secrets.
    pub async fn outputs(&self, tenant: &TenantName, name: &DeploymentName) -> Result<Outputs, StoreError> {
        let sql = "SELECT id, outputs FROM deployments WHERE tenant = $1 AND name = $2";
        let row = self.db().read_one(sql, params![tenant.as_str(), name.as_str()]).await?;
        let row = row.ok_or_else(|| unknown_deployment(tenant, name))?;
        let Some(sealed) = row.blob_or_null("outputs")? else {
            return Err(Problem::new(Code::OutputsUnknown, format!("`{tenant}/{name}` was never applied")).into());
        };
        let sealer = self.sealer_of(tenant, row.parsed("id")?).await?;
        Ok(serde_json::from_slice(&sealer.open(Kind::Outputs, "", &sealed)?)?)
    }

    /// The current state. It holds secrets.
    pub async fn state(&self, tenant: &TenantName, name: &DeploymentName) -> Result<StateVersion, StoreError> {
        let sql = "SELECT d.id AS id, s.version AS version, s.state AS state
             FROM deployments d LEFT JOIN states s ON s.deployment = d.id AND s.version = d.state_version
             WHERE d.tenant = $1 AND d.name = $2";
        let row = self.db().read_one(sql, params![tenant.as_str(), name.as_str()]).await?;
        let row = row.ok_or_else(|| unknown_deployment(tenant, name))?;
        let (Some(version), Some(sealed)) = (row.int_or_null("version")?, row.blob_or_null("state")?) else {
            return Err(Problem::new(Code::StateUnknown, format!("`{tenant}/{name}` has no state yet")).into());
        };
        let sealer = self.sealer_of(tenant, row.parsed("id")?).await?;
        Ok(StateVersion { version, state: sealer.open(Kind::State, &version.to_string(), &sealed)? })
    }

    async fn sealer_of(&self, tenant: &TenantName, deployment: DeploymentId) -> Result<Sealer, StoreError> {
        let key = self.inner.keys.of(self.db(), tenant).await?.ok_or_else(|| unknown_tenant(tenant))?;
        Ok(key.sealer(deployment))
    }
}

pub(crate) fn unknown_deployment(tenant: &TenantName, name: &DeploymentName) -> StoreError {
    Problem::new(Code::DeploymentUnknown, format!("there is no deployment `{name}` of tenant `{tenant}`")).into()
}

pub(crate) fn unknown_run(id: RunId) -> StoreError {
    Problem::new(Code::RunUnknown, format!("there is no run {id}")).into()
}
