//! The wire types of Landform's REST interface and a typed client for it, shared by the server and the CLI.
//!
//! Promises: what the server sends is what the client reads, because both use these types; numbers keep all their
//! digits; an error has a stable code and says what to do.
//! Absent on purpose: how either side works.

mod access;
mod client;
mod connection;
mod deployment;
mod drift;
mod event;
mod json;
mod problem;
mod resource;
mod run;
mod state;
mod template;
mod tenant;
mod time;
mod webhook;

pub use access::{AuditEntry, AuditList, Token, TokenList, TokenMade, TokenSpec};
pub use client::{
    AuditFilter, BatchResults, Client, ClientError, DriftFilter, Events, Location, ResourceFilter, RunFilter, Scope,
    Write, install_cryptography,
};
pub use connection::{Connection, ConnectionList, ConnectionSpec, ConnectionTest};
pub use deployment::{
    Accepted, BatchLine, BatchMethod, BatchResult, Deployment, DeploymentList, DeploymentSpec, Output, Outputs,
};
pub use drift::{Drift, DriftGroup, DriftList, DriftSchedule, DriftScheduled, DriftedDeployment, FailedCheck};
pub use event::{Event, EventBody, EventList};
pub use json::read_json;
pub use problem::ProblemBody;
pub use resource::{Resource, ResourceList};
pub use run::{
    Blocked, FailureGroup, FailureList, Recovery, Reject, Rejection, RetryAll, Rollback, Run, RunList, RunRequest,
};
pub use state::{StateEdited, StateMove, StateRemove, StateVersion, StateVersionList};
pub use template::{
    Template, TemplateDetail, TemplateFile, TemplateList, TemplatePushed, TemplateUse, TemplateUseList, TemplateVersion,
};
pub use tenant::{Paused, Tenant, TenantList, TenantSpec};
pub use time::Timestamp;
pub use webhook::{Delivery, DeliveryList, Webhook, WebhookList, WebhookMade, WebhookSpec};
