//! How drift checks come about, and how they give way. A check is a run of its own kind. It is claimed only when no change
//! is due, takes what was applied last, and makes no plan stale: it writes neither state nor generation, and a plan that
//! awaits approval is not compared with the epoch, which every claim raises.

use landform_base::seal::fill_random;
use landform_domain::run::{Command, Kind, Next, Status};
use landform_domain::{Actor, Code, DeploymentId, DeploymentName, EventBody, Problem, RunId, TenantName};
use serde_json::json;

use super::make_row;
use crate::accept::new_id;
use crate::audit::{Deed, write_down};
use crate::claim::{ASKED_CHECKS, SCHEDULED_CHECKS};
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::transition::{Locked, Means, advance, append_events, load_run, lock_by_id, lock_by_name};
use crate::view::Run;

/// So many checks wait or are under way at most before the schedule adds further ones.
const MOST_AT_ONCE: i64 = 32;

/// Who asks for checks when nobody does.
const SCHEDULE: &str = "schedule";

impl Store {
    /// Asks for a look at whether everything is as the state says. If one is asked for already, that is the answer.
    pub async fn check_drift(&self, tenant: &TenantName, name: &DeploymentName, by: &Actor) -> Result<Run, StoreError> {
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.filter(|locked| locked.generation > 0);
        let locked = locked.ok_or_else(|| unknown_deployment(tenant, name))?;
        if let Some(run) = unfinished(&mut tx, &locked).await? {
            // It may be one of the schedule, far behind.
            let sql = "UPDATE runs SET order_key = order_key - $2 + $3 WHERE id = $1 AND order_key >= $2";
            tx.execute(sql, params![run.id.to_string(), SCHEDULED_CHECKS, ASKED_CHECKS]).await?;
            tx.commit().await?;
            self.inner.bell.ring();
            return Ok(run);
        }
        let run = insert_check(&mut tx, &locked, ASKED_CHECKS, Some(by)).await?;
        let detail = json!({"run": run.id});
        let deed = Deed { action: "drift.check", tenant: Some(tenant), target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run)
    }

    /// Asks for the checks whose time has come, as many as there is room for. Returns how many. Deployments that are
    /// paused, held or without a state are passed over, and come as soon as they can be looked at.
    pub async fn ask_for_due_checks(&self) -> Result<usize, StoreError> {
        let sql = "SELECT COUNT(*) AS count FROM runs WHERE kind = 'check' AND ended_at IS NULL";
        let under_way = self.db().read_one(sql, params![]).await?.map_or(Ok(0), |row| row.int("count"))?;
        let room = MOST_AT_ONCE - under_way;
        if room <= 0 {
            return Ok(0);
        }
        let sql = "SELECT f.deployment FROM drift f JOIN deployments d ON d.id = f.deployment
             WHERE f.next_at IS NOT NULL AND f.next_at <= {now}
                AND d.paused = 0 AND d.active_run IS NULL AND d.state_version IS NOT NULL
             ORDER BY f.next_at LIMIT $1";
        let mut asked = 0;
        for row in self.db().read_all(sql, params![room]).await? {
            let mut tx = self.db().begin().await?;
            let Some(locked) = lock_by_id(&mut tx, row.parsed("deployment")?).await? else { continue };
            if locked.state_version.is_some() && unfinished(&mut tx, &locked).await?.is_none() {
                insert_check(&mut tx, &locked, SCHEDULED_CHECKS, None).await?;
                asked += 1;
            }
            // Ten percent more or less, so that what was scheduled together does not stay together.
            let mut random = [0u8; 1];
            fill_random(&mut random)?;
            tx.execute(
                "UPDATE drift SET next_at = {now} + every * (900 + $2) WHERE deployment = $1",
                params![locked.id.to_string(), i64::from(random[0]) * 200 / 255],
            )
            .await?;
            tx.commit().await?;
        }
        if asked > 0 {
            self.inner.bell.ring();
        }
        Ok(asked)
    }
}

async fn unfinished(tx: &mut Tx, locked: &Locked) -> Result<Option<Run>, StoreError> {
    let sql = "SELECT id FROM runs WHERE deployment = $1 AND kind = 'check' AND ended_at IS NULL LIMIT 1";
    match tx.one(sql, params![locked.id.to_string()]).await? {
        Some(row) => load_run(tx, row.parsed("id")?).await,
        None => Ok(None),
    }
}

/// Checks stand behind all changes in the order of claims, in the order in which they were asked for. They are no part of
/// what a tenant may have waiting, and `by` is nobody for those of the schedule.
async fn insert_check(tx: &mut Tx, locked: &Locked, order: i64, by: Option<&Actor>) -> Result<Run, StoreError> {
    if locked.state_version.is_none() {
        let message = format!("`{}/{}` has no state yet", locked.tenant, locked.name);
        return Err(Problem::new(Code::StateUnknown, message).into());
    }
    // What was applied last. The present generation may say more than the one that wrote the state, such as where to find
    // the credentials; any other may be gone by now.
    let sql = "SELECT g.generation, g.template FROM deployments d JOIN generations g ON g.deployment = d.id
            AND g.generation = CASE WHEN d.applied_generation = d.generation THEN d.generation
                ELSE COALESCE(d.state_generation, d.generation) END
         WHERE d.id = $1";
    let applied = tx.exactly_one(sql, params![locked.id.to_string()]).await?;
    make_row(tx, locked).await?;
    let id: RunId = new_id(tx, RunId::from_parts).await?;
    let status = Status::Queued(Next::Plan);
    tx.execute(
        "INSERT INTO runs (id, deployment, tenant, name, kind, generation, requires_approval, status, detail,
            claimable, order_key, author, author_name, template, plan_only, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, 1, $9 + {now}, $10, $11, $12, 1, {now})",
        params![
            id.to_string(),
            locked.id.to_string(),
            locked.tenant.as_str(),
            locked.name.as_str(),
            Kind::Check.as_str(),
            applied.int("generation")?,
            status.word(),
            serde_json::to_string(&status)?,
            order,
            by.map(|by| by.id.as_str()),
            by.map_or(SCHEDULE, |by| by.name.as_str()),
            applied.text("template")?,
        ],
    )
    .await?;
    append_events(tx, id, &[EventBody::Status(status)]).await?;
    load_run(tx, id).await?.ok_or_else(|| StoreError::Corrupt("a run vanished".into()))
}

/// Whoever wants to change something does not wait for a look: checks that wait or are under way end by this command, and
/// their worker is fenced.
pub(crate) async fn checks_give_way(
    tx: &mut Tx,
    deployment: DeploymentId,
    command: &Command,
) -> Result<(), StoreError> {
    let sql = "SELECT id FROM runs WHERE deployment = $1 AND kind = 'check' AND ended_at IS NULL";
    for row in tx.all(sql, params![deployment.to_string()]).await? {
        if let Some(run) = load_run(tx, row.parsed("id")?).await? {
            advance(tx, deployment, &run, command.clone(), Means::default()).await?;
        }
    }
    Ok(())
}
