//! Runs that nobody may take yet are put aside, out of the index that claims read, by whoever comes across them; whoever
//! ends the reason puts them back. Both happen under the lock of the row that the reason stands in.

use landform_domain::{DeploymentId, TenantName};

use super::ASKED_CHECKS;
use crate::db::{Row, Tx, params};
use crate::error::StoreError;

/// The deployment is held by another run or by a lock, or it is paused.
pub(crate) const FOR_DEPLOYMENT: i64 = 2;
/// The tenant has as many runs under way as it may have.
pub(crate) const FOR_SLOT: i64 = 3;

/// Only one worker may take it: it owns the vendor's account.
pub(crate) const FOR_OWNER: i64 = 4;
/// Nobody may take it before a time.
pub(crate) const FOR_TIME: i64 = 5;

/// Puts the runs of a scan aside. Their rows and their deployments' rows are locked.
pub(super) async fn park(tx: &mut Tx, scan: &[Row], reason: i64) -> Result<(), StoreError> {
    if scan.is_empty() {
        return Ok(());
    }
    let runs: Vec<String> = scan.iter().map(|row| row.text("id")).collect::<Result<_, _>>()?;
    let runs = serde_json::to_string(&runs)?;
    let sql = "UPDATE runs SET claimable = $2 WHERE id IN (SELECT e.value FROM {strings $1})";
    tx.execute(sql, params![runs.as_str(), reason]).await?;
    if reason == FOR_DEPLOYMENT {
        tx.execute(
            "UPDATE deployments SET parked = 1 WHERE id IN (
                 SELECT r.deployment FROM runs r WHERE r.id IN (SELECT e.value FROM {strings $1}))",
            params![runs],
        )
        .await?;
    }
    Ok(())
}

/// The deployment, whose row is locked, is free now.
pub(crate) async fn unpark(tx: &mut Tx, deployment: DeploymentId) -> Result<(), StoreError> {
    let id = deployment.to_string();
    tx.execute("UPDATE runs SET claimable = 1 WHERE deployment = $1 AND claimable = 2", params![id.clone()]).await?;
    tx.execute("UPDATE deployments SET parked = 0 WHERE id = $1", params![id]).await?;
    Ok(())
}

/// After a pause has ended: whatever else holds a deployment goes on holding it. An empty name is every name.
///
/// While one tenant waited, the fair order went on for the others: its runs come back as if they had been queued now, at
/// their old distances. When everything waited, the order stood still.
pub(crate) async fn unpark_what_is_free(tx: &mut Tx, tenant: &str, name: &str) -> Result<(), StoreError> {
    let late = if tenant.is_empty() { 0 } else { how_late(tx, tenant, name).await? };
    tx.execute(
        "UPDATE runs SET claimable = 1, order_key = CASE WHEN order_key < $4 THEN order_key + $3 ELSE order_key END
             WHERE claimable = 2 AND deployment IN (SELECT d.id FROM deployments d
             WHERE d.parked = 1 AND ($1 = '' OR d.tenant = $1) AND ($2 = '' OR d.name = $2)
                AND d.paused = 0 AND d.active_run IS NULL)",
        params![tenant, name, late, ASKED_CHECKS],
    )
    .await?;
    tx.execute(
        "UPDATE deployments SET parked = 0
             WHERE parked = 1 AND ($1 = '' OR tenant = $1) AND ($2 = '' OR name = $2)
                AND paused = 0 AND active_run IS NULL",
        params![tenant, name],
    )
    .await?;
    if late > 0 {
        // Whatever the tenant queues next comes behind them.
        tx.execute(
            "UPDATE tenants SET queue_tag = CASE WHEN last.key > queue_tag THEN last.key ELSE queue_tag END
             FROM (SELECT COALESCE(MAX(r.order_key), 0) AS key FROM runs r
                 WHERE r.tenant = $1 AND r.claimable <> 0 AND r.order_key < $2) AS last
             WHERE name = $1",
            params![tenant, ASKED_CHECKS],
        )
        .await?;
    }
    Ok(())
}

/// How far the fair order has gone on beyond the first of those that come back. One deployment that comes back alone is
/// behind what its tenant has queued since: many of them, one after the other, would all get the same place otherwise.
async fn how_late(tx: &mut Tx, tenant: &str, name: &str) -> Result<i64, StoreError> {
    let row = tx
        .exactly_one(
            "SELECT COALESCE((SELECT MIN(r.order_key) FROM runs r WHERE r.claimable = 1 AND r.order_key < $3),
                    (SELECT MAX(reached) + 1 FROM queue_clock), 0) AS next,
                (SELECT MIN(r.order_key) FROM runs r JOIN deployments d ON d.id = r.deployment
                    WHERE r.claimable = 2 AND r.tenant = $1 AND r.order_key < $3 AND ($2 = '' OR d.name = $2)
                        AND d.parked = 1 AND d.paused = 0 AND d.active_run IS NULL) AS first,
                (SELECT queue_tag + 1 FROM tenants WHERE name = $1) AS behind",
            params![tenant, name, ASKED_CHECKS],
        )
        .await?;
    let (Some(first), next) = (row.int_or_null("first")?, row.int("next")?) else { return Ok(0) };
    let next = if name.is_empty() || next <= first { next } else { next.max(row.int("behind")?) };
    Ok((next - first).max(0))
}

/// How many runs more a tenant may have under way; `None` is no limit. Its row is locked until the transaction ends.
pub(super) async fn free_slots(tx: &mut Tx, tenant: &TenantName) -> Result<Option<i64>, StoreError> {
    let Some(slots) = lock_slots(tx, tenant).await? else { return Ok(None) };
    let sql = "SELECT COUNT(*) AS running FROM deployments WHERE tenant = $1 AND lease_until IS NOT NULL";
    let running = tx.exactly_one(sql, params![tenant.as_str()]).await?.int("running")?;
    Ok(Some(slots - running))
}

async fn lock_slots(tx: &mut Tx, tenant: &TenantName) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT slots FROM tenants WHERE name = $1 {lock}";
    tx.exactly_one(sql, params![tenant.as_str()]).await?.int_or_null("slots")
}

/// The limit may have changed: whatever waits for a slot is looked at anew.
pub(crate) async fn look_for_slots_again(tx: &mut Tx, tenant: &TenantName) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET claimable = 1 WHERE tenant = $1 AND claimable <> 0 AND claimable = 3";
    tx.execute(sql, params![tenant.as_str()]).await?;
    Ok(())
}

/// A run of a tenant with a limit has ended: the next one that waits for a slot is due. Under the tenant's lock, so that
/// a claim which has just counted this run as being under way has put its own aside by now.
pub(crate) async fn hand_slot_on(tx: &mut Tx, tenant: &TenantName) -> Result<(), StoreError> {
    lock_slots(tx, tenant).await?;
    tx.execute(
        "UPDATE runs SET claimable = 1 WHERE id IN (
             SELECT id FROM runs WHERE tenant = $1 AND claimable <> 0 AND claimable = 3 ORDER BY order_key, id LIMIT 1)",
        params![tenant.as_str()],
    ).await?;
    Ok(())
}
