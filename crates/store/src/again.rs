//! Runs besides those that a write makes: again, as a trial, back to what was before; and deployments that are let go.

use std::collections::BTreeMap;

use landform_domain::run::{Command, Kind};
use landform_domain::{Actor, Code, ConnectionName, DeploymentName, Problem, RunId, TenantName};
use serde_json::json;

use crate::accept::{Accepted, Desired, insert_run, load_desired, supersede_older};
use crate::audit::{Deed, write_down};
use crate::catalog::resolve_template;
use crate::db::{Row, Tx, params};
use crate::drift::{self, checks_give_way};
use crate::error::StoreError;
use crate::inventory;
use crate::keys::Sealer;
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::transition::{Locked, Means, advance, load_run, lock_by_name};
use crate::view::Run;

/// What a further run of the present generation shall do.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// Make the plan, show it, and change nothing.
    pub plan_only: bool,
    /// Addresses of objects to replace although nothing about them has changed.
    pub replace: Vec<String>,
    /// Objects that exist already: address and id.
    pub adopt: BTreeMap<String, String>,
    /// Addresses where something was to be adopted and is no more: it does not exist, or is not to be taken over.
    pub absent: Vec<String>,
}

/// Deployments whose last run failed with the same code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    pub code: String,
    pub count: i64,
    /// One of them, to look at.
    pub newest: RunId,
}

/// The last run of a deployment, for what it shall be now, has failed.
macro_rules! failed {
    () => {
        " FROM runs r JOIN deployments d ON d.id = r.deployment AND d.generation = r.generation
         WHERE r.error_code IS NOT NULL AND r.plan_only = 0 AND ($1 = '' OR r.tenant = $1)
            AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.deployment = r.deployment AND n.id > r.id AND n.plan_only = 0)"
    };
}

const MOST_RETRIES: u32 = 1000;

impl Store {
    /// Makes a further run for what the deployment shall be now.
    pub async fn run_again(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        request: RunRequest,
        by: &Actor,
    ) -> Result<Run, StoreError> {
        self.run_again_as("run.create", tenant, name, request, by).await
    }

    /// Tries the newest values of a connection out, by a trial of a deployment that uses it: its providers are configured
    /// with them and read what there is, and nothing is changed. Without a deployment, the first one that uses it.
    pub async fn try_connection(
        &self,
        tenant: &TenantName,
        connection: &ConnectionName,
        deployment: Option<&DeploymentName>,
        by: &Actor,
    ) -> Result<Run, StoreError> {
        self.connection(tenant, connection).await?;
        let wanted = deployment.map(DeploymentName::as_str).unwrap_or_default();
        let sql = "SELECT d.name FROM generation_connections g JOIN deployments d ON d.id = g.deployment
             WHERE g.tenant = $1 AND g.connection = $2 AND g.generation = d.generation AND ($3 = '' OR d.name = $3)
             ORDER BY d.name LIMIT 1";
        let row = self.db().read_one(sql, params![tenant.as_str(), connection.as_str(), wanted]).await?;
        let Some(row) = row else {
            let who =
                deployment.map_or_else(|| "no deployment".to_owned(), |name| format!("not the deployment `{name}`"));
            let message = format!("it is {who} that uses the connection `{connection}`");
            return Err(Problem::new(Code::ConnectionUnused, message).into());
        };
        let trial = RunRequest { plan_only: true, ..RunRequest::default() };
        self.run_again_as("connection.test", tenant, &row.parsed("name")?, trial, by).await
    }

    async fn run_again_as(
        &self,
        action: &'static str,
        tenant: &TenantName,
        name: &DeploymentName,
        request: RunRequest,
        by: &Actor,
    ) -> Result<Run, StoreError> {
        let key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        let run = again(&mut tx, &key.sealer(locked.id), &locked, &request, action, by).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run)
    }

    /// Makes a run that failed, or was stopped, again. What was done already is in the state, so it goes on from there.
    pub async fn retry(&self, id: RunId, by: &Actor) -> Result<Run, StoreError> {
        let before = self.run(id).await?;
        if !before.status.is_final() || before.status.is_success() {
            return Err(Problem::new(Code::MoveIllegal, format!("run {id} is {}", before.status)).into());
        }
        if before.kind == Kind::Check {
            return self.check_drift(&before.tenant, &before.deployment, by).await;
        }
        let key = self.tenant_key(&before.tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, &before.tenant, &before.deployment).await?;
        let locked = locked.ok_or_else(|| unknown_deployment(&before.tenant, &before.deployment))?;
        if locked.generation != before.generation {
            let message = format!("the deployment is at generation {}, not {}", locked.generation, before.generation);
            return Err(Problem::new(Code::MoveIllegal, message).into());
        }
        let request = RunRequest { plan_only: before.plan_only, ..RunRequest::default() };
        let run = again(&mut tx, &key.sealer(locked.id), &locked, &request, "run.retry", by).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run)
    }

    /// Brings what has drifted back to what it should be: an ordinary run of the present generation, which needs approval
    /// where changes do.
    pub async fn heal(&self, tenant: &TenantName, name: &DeploymentName, by: &Actor) -> Result<Run, StoreError> {
        if self.deployment(tenant, name).await?.kind == Kind::Destroy {
            let message = "the deployment is being destroyed: there is nothing to heal";
            return Err(Problem::new(Code::MoveIllegal, message).into());
        }
        self.run_again(tenant, name, RunRequest::default(), by).await
    }

    /// A new generation with the template, the inputs and the connections of an earlier run. Whether it needs approval
    /// is as it is now.
    pub async fn roll_back(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        to: RunId,
        by: &Actor,
    ) -> Result<Accepted, StoreError> {
        let key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        let sql = "SELECT generation FROM runs WHERE id = $1 AND deployment = $2";
        let row = tx.one(sql, params![to.to_string(), locked.id.to_string()]).await?;
        // One of another deployment, or of another tenant, is as good as none.
        let no_such = || {
            let message = format!("there is no run {to} of deployment `{tenant}/{name}` to go back to");
            StoreError::from(Problem::new(Code::RunUnknown, message))
        };
        let generation = row.ok_or_else(no_such)?.int("generation")?;
        let sealer = key.sealer(locked.id);
        let earlier = load_desired(&mut tx, &sealer, locked.id, generation).await?;
        let earlier = earlier.filter(|earlier| earlier.kind == Kind::Apply).ok_or_else(no_such)?;
        let newest = newest(&mut tx, &sealer, &locked).await?;
        resolve_template(&mut tx, &earlier.template, Some(earlier.template_version)).await?;
        for bound in &earlier.connections {
            check_connection(&mut tx, tenant, &bound.connection).await?;
        }
        let Desired { engine, requires_approval, time_limit, .. } = newest;
        let desired = Desired { engine, requires_approval, time_limit, ..earlier };
        self.accept(tx, locked, &sealer, desired, None, ("deployment.rollback", by)).await
    }

    /// Removes a deployment and destroys nothing: what it made goes on existing, and nobody knows of it any more.
    pub async fn forget(&self, tenant: &TenantName, name: &DeploymentName, by: &Actor) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        checks_give_way(&mut tx, locked.id, &Command::Cancel { by: by.name.clone() }).await?;
        let sql = "SELECT active_run FROM deployments WHERE id = $1";
        let row = tx.exactly_one(sql, params![locked.id.to_string()]).await?;
        if let Some(holder) = row.text_or_null("active_run")? {
            let status = "SELECT status FROM runs WHERE id = $1";
            let status = tx.exactly_one(status, params![holder.as_str()]).await?.text("status")?;
            let code = if status == "needs_recovery" { Code::RunInDoubt } else { Code::RunApplying };
            return Err(Problem::new(code, format!("the deployment is held by run {holder}")).into());
        }
        let sql = "SELECT id FROM runs WHERE deployment = $1 AND status IN ('queued', 'awaiting_approval')";
        for row in tx.all(sql, params![locked.id.to_string()]).await? {
            let Some(run) = load_run(&mut tx, row.parsed("id")?).await? else { continue };
            advance(&mut tx, locked.id, &run, Command::Cancel { by: by.name.clone() }, Means::default()).await?;
        }
        for sql in [
            "DELETE FROM deployments WHERE id = $1",
            "DELETE FROM generations WHERE deployment = $1",
            "DELETE FROM generation_connections WHERE deployment = $1",
            "DELETE FROM adoptions WHERE deployment = $1",
        ] {
            tx.execute(sql, params![locked.id.to_string()]).await?;
        }
        drift::forget(&mut tx, &locked.id.to_string()).await?;
        inventory::clear(&mut tx, tenant, name).await?;
        let detail = json!({"generation": locked.generation, "state_version": locked.state_version});
        let deed = Deed { action: "deployment.forget", tenant: Some(tenant), target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// Deployments whose last run failed, by the code of their failure; the most frequent first.
    pub async fn failures(&self, tenant: Option<&TenantName>) -> Result<Vec<FailureGroup>, StoreError> {
        let sql = concat!(
            "SELECT r.error_code AS code, COUNT(*) AS count, MAX(r.id) AS newest",
            failed!(),
            " GROUP BY r.error_code ORDER BY count DESC, code"
        );
        let rows = self.db().read_all(sql, params![tenant.map(TenantName::as_str).unwrap_or_default()]).await?;
        let group = |row: &Row| {
            Ok(FailureGroup { code: row.text("code")?, count: row.int("count")?, newest: row.parsed("newest")? })
        };
        rows.iter().map(group).collect()
    }

    /// Makes the failed runs of one code again, the oldest first, at most `limit` of them (0 means the most, 1000).
    pub async fn retry_all(
        &self,
        code: &str,
        tenant: Option<&TenantName>,
        limit: u32,
        by: &Actor,
    ) -> Result<Vec<Run>, StoreError> {
        let limit = if limit == 0 { MOST_RETRIES } else { limit.min(MOST_RETRIES) };
        let sql = concat!("SELECT r.id", failed!(), " AND r.error_code = $2 ORDER BY r.id LIMIT $3");
        let tenant = tenant.map(TenantName::as_str).unwrap_or_default();
        let mut runs = Vec::new();
        for row in self.db().read_all(sql, params![tenant, code, i64::from(limit)]).await? {
            match self.retry(row.parsed("id")?, by).await {
                Ok(run) => runs.push(run),
                // Somebody has changed the deployment in between.
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(runs)
    }
}

async fn again(
    tx: &mut Tx,
    sealer: &Sealer,
    locked: &Locked,
    request: &RunRequest,
    action: &'static str,
    by: &Actor,
) -> Result<Run, StoreError> {
    let desired = newest(tx, sealer, locked).await?;
    if desired.kind == Kind::Destroy && !(request.replace.is_empty() && request.adopt.is_empty()) {
        let message = "the deployment is being destroyed: there is nothing to replace or to adopt";
        return Err(Problem::new(Code::MoveIllegal, message).into());
    }
    for address in &request.absent {
        let sql = "DELETE FROM adoptions WHERE deployment = $1 AND address = $2";
        if tx.execute(sql, params![locked.id.to_string(), address.as_str()]).await? == 0 {
            let message = format!("nothing is to be adopted at {address}");
            return Err(Problem::new(Code::AdoptionUnknown, message).into());
        }
    }
    for (address, id) in &request.adopt {
        tx.execute(
            "INSERT INTO adoptions (deployment, address, object_id) VALUES ($1, $2, $3)
             ON CONFLICT (deployment, address) DO UPDATE SET object_id = excluded.object_id",
            params![locked.id.to_string(), address.as_str(), id.as_str()],
        )
        .await?;
    }
    let run = insert_run(tx, locked, locked.generation, &desired, request, by).await?;
    // A trial changes nothing, so it is in nobody's way; but somebody waits for it, and for a drift check nobody does.
    if request.plan_only {
        checks_give_way(tx, locked.id, &Command::Supersede { by: run.id }).await?;
    } else {
        supersede_older(tx, locked, run.id).await?;
    }
    let detail = json!({
        "deployment": locked.name, "generation": locked.generation, "plan_only": request.plan_only,
        "replace": request.replace, "adopt": request.adopt, "absent": request.absent,
    });
    let deed = Deed { action, tenant: Some(&locked.tenant), target: run.id.to_string(), detail };
    write_down(tx, by, deed).await?;
    Ok(run)
}

async fn newest(tx: &mut Tx, sealer: &Sealer, locked: &Locked) -> Result<Desired, StoreError> {
    let newest = load_desired(tx, sealer, locked.id, locked.generation).await?;
    // A state that somebody brought from outside is no deployment yet.
    newest.ok_or_else(|| unknown_deployment(&locked.tenant, &locked.name))
}

async fn check_connection(tx: &mut Tx, tenant: &TenantName, name: &ConnectionName) -> Result<(), StoreError> {
    let sql = "SELECT name FROM connections WHERE tenant = $1 AND name = $2";
    match tx.one(sql, params![tenant.as_str(), name.as_str()]).await? {
        Some(_) => Ok(()),
        None => {
            let message = format!("the earlier run used the connection `{name}`, which is gone");
            Err(Problem::new(Code::ConnectionUnknown, message).into())
        }
    }
}
