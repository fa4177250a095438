use landform_domain::TenantName;
use reqwest::Method;

use super::{Client, ClientError, Location, Query, Write, deployment_path};
use crate::{Accepted, Drift, DriftList, DriftSchedule};

/// Which deployments to list; without a status those that drifted.
#[derive(Clone, Debug, Default)]
pub struct DriftFilter {
    pub status: Option<String>,
    pub tenant: Option<TenantName>,
    pub template: Option<String>,
    pub kind: Option<String>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl Client {
    pub async fn drift(&self, location: &Location) -> Result<Drift, ClientError> {
        self.get(&format!("{}/drift", deployment_path(location))).await
    }

    pub async fn drift_list(&self, filter: &DriftFilter) -> Result<DriftList, ClientError> {
        let mut query = Query::default();
        query.add("status", filter.status.as_ref());
        query.add("tenant", filter.tenant.as_ref());
        query.add("template", filter.template.as_ref());
        query.add("type", filter.kind.as_ref());
        query.add("after", filter.after.as_ref());
        self.get(&query.of("drift")).await
    }

    pub async fn drift_check(&self, location: &Location) -> Result<Accepted, ClientError> {
        let path = format!("{}/drift/check", deployment_path(location));
        self.write(self.request(Method::POST, &path), &Write::default()).await
    }

    pub async fn drift_heal(&self, location: &Location) -> Result<Accepted, ClientError> {
        let path = format!("{}/drift/heal", deployment_path(location));
        self.write(self.request(Method::POST, &path), &Write::default()).await
    }

    pub async fn drift_schedule(&self, location: &Location, schedule: &DriftSchedule) -> Result<Drift, ClientError> {
        let path = format!("{}/drift/schedule", deployment_path(location));
        self.read(self.request(Method::PUT, &path).json(schedule)).await
    }
}
