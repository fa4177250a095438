//! Tenants. One that is deleted leaves its row and its keys behind: what outlives it (runs, the audit log) is sealed with them
//! and names it, and processes that remember the keys go on with the same ones if it comes back.

use landform_domain::{Actor, Code, Problem, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::claim::waiting::look_for_slots_again;
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::view::Tenant;

/// What can be set for a tenant. What is not given stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantSettings {
    /// Whoever asked for a change must not approve it.
    pub separate_approver: Option<bool>,
    /// Runs under way at the same time; 0 is no limit, also for the two below.
    pub slots: Option<u32>,
    pub most_deployments: Option<u32>,
    /// Runs that have not ended and that no worker has taken yet.
    pub most_waiting: Option<u32>,
}

macro_rules! tenant_columns {
    () => {
        "name, separate_approver, slots, most_deployments, most_waiting, paused, created_at"
    };
}

const TENANT: &str = concat!("SELECT ", tenant_columns!(), " FROM tenants WHERE name = $1 AND deleted_at IS NULL");

impl Store {
    /// Makes the tenant unless it exists; the flag says whether it is new.
    pub async fn put_tenant(
        &self,
        name: &TenantName,
        settings: TenantSettings,
        by: &Actor,
    ) -> Result<(Tenant, bool), StoreError> {
        let mut tx = self.db().begin().await?;
        let made = tx
            .execute(
                "INSERT INTO tenants (name, created_at) VALUES ($1, {now}) ON CONFLICT (name) DO NOTHING",
                params![name.as_str()],
            )
            .await?;
        if made == 1 {
            self.inner.keys.create(&mut tx, name).await?;
        }
        // As a new one would be, but for its keys and its place in the queue.
        let back = tx
            .execute(
                "UPDATE tenants SET deleted_at = NULL, created_at = {now}, separate_approver = 0, slots = NULL,
                    most_deployments = NULL, most_waiting = NULL, paused = 0
                 WHERE name = $1 AND deleted_at IS NOT NULL",
                params![name.as_str()],
            )
            .await?;
        // A limit of 0 is none, which is kept as null; one that is not given is -1 here and stays as it is.
        let limit = |limit: Option<u32>| limit.map_or(-1, i64::from);
        let changed = tx
            .execute(
                "UPDATE tenants SET separate_approver = COALESCE($2, separate_approver),
                    slots = CASE WHEN $3 < 0 THEN slots ELSE NULLIF($3, 0) END,
                    most_deployments = CASE WHEN $4 < 0 THEN most_deployments ELSE NULLIF($4, 0) END,
                    most_waiting = CASE WHEN $5 < 0 THEN most_waiting ELSE NULLIF($5, 0) END
                 WHERE name = $1 AND (separate_approver <> $2 OR $3 >= 0 AND COALESCE(slots, 0) <> $3
                    OR $4 >= 0 AND COALESCE(most_deployments, 0) <> $4
                    OR $5 >= 0 AND COALESCE(most_waiting, 0) <> $5)",
                params![
                    name.as_str(),
                    settings.separate_approver,
                    limit(settings.slots),
                    limit(settings.most_deployments),
                    limit(settings.most_waiting),
                ],
            )
            .await?;
        if settings.slots.is_some() {
            look_for_slots_again(&mut tx, name).await?;
        }
        let is_new = made + back > 0;
        if is_new || changed > 0 {
            let detail = json!({
                "separate_approver": settings.separate_approver,
                "slots": settings.slots,
                "max_deployments": settings.most_deployments,
                "max_waiting_runs": settings.most_waiting,
            });
            let deed = Deed { action: "tenant.put", tenant: Some(name), target: name.to_string(), detail };
            write_down(&mut tx, by, deed).await?;
        }
        let row = tx.exactly_one(TENANT, params![name.as_str()]).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok((tenant(&row)?, is_new))
    }

    pub async fn tenant(&self, name: &TenantName) -> Result<Tenant, StoreError> {
        let row = self.db().read_one(TENANT, params![name.as_str()]).await?;
        tenant(&row.ok_or_else(|| unknown_tenant(name))?)
    }

    /// Refuses a tenant that never was; it may be deleted.
    pub async fn check_tenant(&self, name: &TenantName) -> Result<(), StoreError> {
        let row = self.db().read_one("SELECT name FROM tenants WHERE name = $1", params![name.as_str()]).await?;
        row.map(drop).ok_or_else(|| unknown_tenant(name))
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let sql = concat!("SELECT ", tenant_columns!(), " FROM tenants WHERE deleted_at IS NULL ORDER BY name");
        let rows = self.db().read_all(sql, params![]).await?;
        rows.iter().map(tenant).collect()
    }

    /// Deletes a tenant that has nothing any more. Its runs and what the audit log has of it stay for as long as they would.
    pub async fn delete_tenant(&self, name: &TenantName, by: &Actor) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        // Whoever makes something of the tenant holds its row, too (`hold`): it is seen here, or finds the tenant gone.
        let sql = "SELECT name FROM tenants WHERE name = $1 AND deleted_at IS NULL {lock}";
        tx.one(sql, params![name.as_str()]).await?.ok_or_else(|| unknown_tenant(name))?;
        let row = tx
            .exactly_one(
                "SELECT (SELECT COUNT(*) FROM deployments WHERE tenant = $1) AS deployments,
                    (SELECT COUNT(*) FROM connections WHERE tenant = $1) AS connections,
                    (SELECT COUNT(*) FROM webhooks WHERE tenant = $1) AS webhooks,
                    (SELECT COUNT(*) FROM tokens WHERE tenant = $1 AND revoked_at IS NULL
                        AND (expires_at IS NULL OR expires_at > {now})) AS tokens",
                params![name.as_str()],
            )
            .await?;
        let mut has = Vec::new();
        for (column, word) in
            [("deployments", "deployment"), ("connections", "connection"), ("webhooks", "webhook"), ("tokens", "token")]
        {
            match row.int(column)? {
                0 => {}
                1 => has.push(format!("1 {word}")),
                count => has.push(format!("{count} {column}")),
            }
        }
        if !has.is_empty() {
            let message = format!("tenant `{name}` has {}", has.join(", "));
            return Err(Problem::new(Code::TenantInUse, message).into());
        }
        tx.execute("UPDATE tenants SET deleted_at = {now}, paused = 0 WHERE name = $1", params![name.as_str()]).await?;
        let deed = Deed { action: "tenant.delete", tenant: Some(name), target: name.to_string(), detail: json!({}) };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }
}

/// Called before something of the tenant is made: from then on nobody deletes it.
pub(crate) async fn hold(tx: &mut Tx, name: &TenantName) -> Result<(), StoreError> {
    let sql = "SELECT name FROM tenants WHERE name = $1 AND deleted_at IS NULL {lock_shared}";
    tx.one(sql, params![name.as_str()]).await?.map(drop).ok_or_else(|| unknown_tenant(name))
}

pub(crate) fn unknown_tenant(name: &TenantName) -> StoreError {
    Problem::new(Code::TenantUnknown, format!("there is no tenant `{name}`")).into()
}

fn tenant(row: &Row) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        name: row.parsed("name")?,
        separate_approver: row.flag("separate_approver")?,
        slots: row.int_or_null("slots")?,
        most_deployments: row.int_or_null("most_deployments")?,
        most_waiting: row.int_or_null("most_waiting")?,
        paused: row.flag("paused")?,
        created_at: row.int("created_at")?,
    })
}
