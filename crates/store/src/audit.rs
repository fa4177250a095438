//! The audit log: who did what, from where. A deed is written down in its own transaction, or it does not happen; the
//! database itself refuses to change a row.

use landform_domain::{Actor, TenantName};
use serde_json::Value;

use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;

/// What was done. It never holds a secret: it names things and numbers them.
pub(crate) struct Deed<'a> {
    /// Noun and verb, such as `run.approve`.
    pub(crate) action: &'static str,
    pub(crate) tenant: Option<&'a TenantName>,
    pub(crate) target: String,
    pub(crate) detail: Value,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub seq: i64,
    pub at: i64,
    pub actor: String,
    pub actor_name: String,
    pub origin: String,
    pub action: String,
    pub tenant: Option<TenantName>,
    pub target: String,
    pub detail: Value,
}

/// Newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub tenant: Option<TenantName>,
    /// A token's id.
    pub actor: Option<String>,
    /// An action, or its noun with a dot, such as `run.`.
    pub action: Option<String>,
    /// Only entries older than this one, for the next page.
    pub before: Option<i64>,
    /// 0 means 100; 1000 is the most.
    pub limit: u32,
}

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;

pub(crate) async fn write_down(tx: &mut Tx, by: &Actor, deed: Deed<'_>) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO audit (at, actor, actor_name, origin, action, tenant, target, detail)
         VALUES ({now}, $1, $2, $3, $4, $5, $6, $7)",
        params![
            by.id.as_str(),
            by.name.as_str(),
            by.origin.as_str(),
            deed.action,
            deed.tenant.map(TenantName::as_str),
            deed.target,
            deed.detail.to_string(),
        ],
    )
    .await?;
    Ok(())
}

impl Store {
    pub async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        let limit = if filter.limit == 0 { PAGE } else { filter.limit.min(LARGEST_PAGE) };
        let rows = self
            .db()
            .read_all(
                "SELECT seq, at, actor, actor_name, origin, action, tenant, target, detail FROM audit
                 WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR actor = $2)
                    AND ($3 = '' OR action = $3 OR (substr($3, length($3)) = '.' AND substr(action, 1, length($3)) = $3))
                    AND seq < $4
                 ORDER BY seq DESC LIMIT $5",
                params![
                    filter.tenant.as_ref().map(ToString::to_string).unwrap_or_default(),
                    filter.actor.clone().unwrap_or_default(),
                    filter.action.clone().unwrap_or_default(),
                    filter.before.unwrap_or(i64::MAX),
                    i64::from(limit),
                ],
            )
            .await?;
        rows.iter().map(entry).collect()
    }
}

fn entry(row: &Row) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        seq: row.int("seq")?,
        at: row.int("at")?,
        actor: row.text("actor")?,
        actor_name: row.text("actor_name")?,
        origin: row.text("origin")?,
        action: row.text("action")?,
        tenant: row.text_or_null("tenant")?.map(|name| name.parse()).transpose()?,
        target: row.text("target")?,
        detail: serde_json::from_str(&row.text("detail")?)?,
    })
}
