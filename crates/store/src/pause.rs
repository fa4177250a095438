//! Pausing: runs are accepted and wait. What is being applied comes to its end, and what a crash left is looked after.

use landform_domain::{Actor, DeploymentName, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::claim::waiting::unpark_what_is_free;
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::tenants::unknown_tenant;

/// What is paused, or goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Deployment(TenantName, DeploymentName),
    Tenant(TenantName),
    Everything,
}

/// What holds runs back. Each switch is its own: runs go on when all that concern them are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    pub everything: bool,
    /// If it was asked about a tenant, or about a deployment.
    pub tenant: Option<bool>,
    pub deployment: Option<bool>,
}

// A deployment's row has all three reasons in one number, so that a claim looks at nothing else.
const OWN: i64 = 1;
pub(crate) const OF_TENANT: i64 = 2;
pub(crate) const OF_EVERYTHING: i64 = 4;

impl Store {
    /// Each scope has a switch of its own: what is paused as a tenant stays so when everything goes on.
    pub async fn pause(&self, scope: &Scope, paused: bool, by: &Actor) -> Result<Paused, StoreError> {
        let mut tx = self.db().begin().await?;
        let (tenant, target) = switch(&mut tx, scope, paused).await?;
        if !paused {
            let (tenant, name) = match scope {
                Scope::Deployment(tenant, name) => (tenant.as_str(), name.as_str()),
                Scope::Tenant(tenant) => (tenant.as_str(), ""),
                Scope::Everything => ("", ""),
            };
            unpark_what_is_free(&mut tx, tenant, name).await?;
        }
        let action = if paused { "pause" } else { "resume" };
        write_down(&mut tx, by, Deed { action, tenant, target, detail: json!({}) }).await?;
        let paused = now_paused(&mut tx, scope).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(paused)
    }

    /// Whether all runs are paused.
    pub async fn is_paused(&self) -> Result<bool, StoreError> {
        let row = self.db().read_one("SELECT paused FROM switches", params![]).await?;
        row.ok_or_else(|| StoreError::Corrupt("there are no switches".into()))?.flag("paused")
    }
}

async fn now_paused(tx: &mut Tx, scope: &Scope) -> Result<Paused, StoreError> {
    let everything = tx.exactly_one("SELECT paused FROM switches", params![]).await?.flag("paused")?;
    let (tenant, deployment) = match scope {
        Scope::Everything => (None, None),
        Scope::Tenant(tenant) => (Some(tenant), None),
        Scope::Deployment(tenant, name) => (Some(tenant), Some((tenant, name))),
    };
    let mut paused = Paused { everything, tenant: None, deployment: None };
    if let Some(tenant) = tenant {
        let row = tx.exactly_one("SELECT paused FROM tenants WHERE name = $1", params![tenant.as_str()]).await?;
        paused.tenant = Some(row.flag("paused")?);
    }
    if let Some((tenant, name)) = deployment {
        let sql = "SELECT paused FROM deployments WHERE tenant = $1 AND name = $2";
        let row = tx.exactly_one(sql, params![tenant.as_str(), name.as_str()]).await?;
        paused.deployment = Some(row.int("paused")? & OWN != 0);
    }
    Ok(paused)
}

async fn switch<'a>(
    tx: &mut Tx,
    scope: &'a Scope,
    paused: bool,
) -> Result<(Option<&'a TenantName>, String), StoreError> {
    match scope {
        Scope::Deployment(tenant, name) => {
            let changed = tx
                .execute(
                    "UPDATE deployments SET paused = (paused & 6) | $3 WHERE tenant = $1 AND name = $2",
                    params![tenant.as_str(), name.as_str(), if paused { OWN } else { 0 }],
                )
                .await?;
            if changed == 0 {
                return Err(unknown_deployment(tenant, name));
            }
            Ok((Some(tenant), name.to_string()))
        }
        Scope::Tenant(tenant) => {
            let sql = "UPDATE tenants SET paused = $2 WHERE name = $1 AND deleted_at IS NULL";
            if tx.execute(sql, params![tenant.as_str(), paused]).await? == 0 {
                return Err(unknown_tenant(tenant));
            }
            tx.execute(
                "UPDATE deployments SET paused = (paused & 5) | $2 WHERE tenant = $1",
                params![tenant.as_str(), if paused { OF_TENANT } else { 0 }],
            )
            .await?;
            Ok((Some(tenant), tenant.to_string()))
        }
        Scope::Everything => {
            tx.execute("UPDATE switches SET paused = $1", params![paused]).await?;
            tx.execute(
                "UPDATE deployments SET paused = (paused & 3) | $1",
                params![if paused { OF_EVERYTHING } else { 0 }],
            )
            .await?;
            Ok((None, "everything".to_owned()))
        }
    }
}
