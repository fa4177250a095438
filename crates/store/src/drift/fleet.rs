//! Drift over the fleet: which deployments have it, and what they have in common.

use landform_domain::{DeploymentName, DriftStatus, TemplateName, TenantName};

use super::{DriftFact, drift_columns};
use crate::db::{Row, params};
use crate::error::StoreError;
use crate::open::Store;

#[derive(Clone, Debug, Default)]
pub struct DriftFilter {
    pub status: DriftStatus,
    pub tenant: Option<TenantName>,
    pub template: Option<TemplateName>,
    /// Only deployments with a drifted object of this type.
    pub kind: Option<String>,
    /// The last deployment of the page before.
    pub after: Option<(String, String)>,
    /// 0 means 100, which is also the most.
    pub limit: u32,
}

/// A deployment with what is known of it, without its objects.
#[derive(Clone, Debug)]
pub struct DriftedDeployment {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub template: TemplateName,
    pub template_version: i64,
    pub fact: DriftFact,
}

/// Objects of one type of one template that are gone, or that differ in the same attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftGroup {
    pub template: String,
    pub kind: String,
    pub gone: bool,
    pub attributes: Vec<String>,
    pub objects: i64,
    pub deployments: i64,
    /// One of them, to look at.
    pub tenant: TenantName,
    pub deployment: DeploymentName,
}

const PAGE: u32 = 100;
const MOST_GROUPS: i64 = 100;

macro_rules! deployments_from {
    ($from:literal) => {
        concat!(
            "SELECT d.tenant, d.name, g.template, g.template_version, ",
            drift_columns!(),
            $from,
            " JOIN generations g ON g.deployment = d.id AND g.generation = d.generation
             WHERE COALESCE(f.status, 'unknown') = $1 AND ($2 = '' OR d.tenant = $2) AND ($3 = '' OR g.template = $3)
                AND ($4 = '' OR EXISTS (SELECT 1 FROM drift_objects o WHERE o.deployment = d.id AND o.type = $4))
                AND (d.tenant, d.name) > ($5, $6)
             ORDER BY d.tenant, d.name LIMIT $7"
        )
    };
}

impl Store {
    /// In the order of tenant and name.
    pub async fn drifted_deployments(&self, filter: &DriftFilter) -> Result<Vec<DriftedDeployment>, StoreError> {
        let sql = match filter.status {
            // Most of these have no row.
            DriftStatus::Unknown => deployments_from!(" FROM deployments d LEFT JOIN drift f ON f.deployment = d.id"),
            _ => deployments_from!(" FROM drift f JOIN deployments d ON d.id = f.deployment"),
        };
        let (tenant, name) = filter.after.clone().unwrap_or_default();
        let limit = if filter.limit == 0 { PAGE } else { filter.limit.min(PAGE) };
        let values = params![
            filter.status.as_str(),
            filter.tenant.as_ref().map(TenantName::as_str).unwrap_or_default(),
            filter.template.as_ref().map(TemplateName::as_str).unwrap_or_default(),
            filter.kind.as_deref().unwrap_or_default(),
            tenant,
            name,
            i64::from(limit),
        ];
        let deployment = |row: &Row| -> Result<DriftedDeployment, StoreError> {
            Ok(DriftedDeployment {
                tenant: row.parsed("tenant")?,
                deployment: row.parsed("name")?,
                template: row.parsed("template")?,
                template_version: row.int("template_version")?,
                fact: DriftFact::from_row(row)?,
            })
        };
        self.db().read_all(sql, values).await?.iter().map(deployment).collect()
    }

    /// What drifted objects have in common, what is most frequent first.
    pub async fn drift_groups(&self, tenant: Option<&TenantName>) -> Result<Vec<DriftGroup>, StoreError> {
        let sql = "SELECT template, type, gone, attributes, COUNT(*) AS objects,
                COUNT(DISTINCT deployment) AS deployments, MIN(tenant || '/' || name) AS example
             FROM drift_objects WHERE ($1 = '' OR tenant = $1)
             GROUP BY template, type, gone, attributes
             ORDER BY deployments DESC, template, type, gone, attributes LIMIT $2";
        let rows =
            self.db().read_all(sql, params![tenant.map(TenantName::as_str).unwrap_or_default(), MOST_GROUPS]).await?;
        let group = |row: &Row| -> Result<DriftGroup, StoreError> {
            let example = row.text("example")?;
            let (tenant, deployment) = example.split_once('/').unwrap_or_default();
            Ok(DriftGroup {
                template: row.text("template")?,
                kind: row.text("type")?,
                gone: row.flag("gone")?,
                attributes: row.text("attributes")?.split_whitespace().map(str::to_owned).collect(),
                objects: row.int("objects")?,
                deployments: row.int("deployments")?,
                tenant: tenant.parse()?,
                deployment: deployment.parse()?,
            })
        };
        rows.iter().map(group).collect()
    }
}
