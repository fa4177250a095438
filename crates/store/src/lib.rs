//! The memory of Landform: SQLite or PostgreSQL behind one API. The only crate with SQL.
//!
//! Promises: one transaction per decision, and it is on disk when the call returns; every write of a worker is fenced
//! by its deployment's epoch and says so when it is refused ([`StoreError::Fenced`]); inputs, states, plans, outputs
//! and the journal are sealed; time is the database's. What may become of a run is decided by `domain` alone; here it is
//! kept, under the lock of the deployment's row. What somebody does is in the audit log, in the same transaction; so is
//! the inventory of objects with the state that has them.
//! Absent on purpose: how a run is carried out (`runner`), who may do what (`server`).

mod accept;
mod access;
mod account;
mod again;
mod audit;
mod catalog;
mod chores;
mod claim;
mod command;
mod connection;
mod copy;
mod db;
mod doorbell;
mod drift;
mod error;
mod finish;
mod group;
mod inventory;
mod journal;
mod keys;
mod memory;
pub mod metrics;
mod open;
mod outside;
mod pause;
mod probe;
mod read;
mod reader;
mod readers;
mod retention;
mod ring;
mod river;
mod row;
mod spool;
mod sql;
mod sqlite;
mod states;
mod statistics;
mod tenants;
mod transition;
mod upkeep;
mod view;
mod webhook;

pub use accept::{Accepted, DeploymentWrite, IdempotencyKey};
pub use access::{KeepToken, NewToken, Token};
pub use account::{Legacy, Ownership};
pub use again::{FailureGroup, RunRequest};
pub use audit::{AuditEntry, AuditFilter};
pub use catalog::{Pushed, TemplateUse};
pub use chores::{Chore, ChoreAttempt, ChoreEnd, ChoreError, ChoreRunner, Chores};
pub use claim::{Adoption, Claim, Claimed, Lease, Renewed, Work, WorkerId};
pub use connection::{Connection, ConnectionValues};
pub use copy::{back_up, bring_back, is_copy};
pub use doorbell::{Doorbell, News};
pub use drift::{DriftFact, DriftFilter, DriftGroup, DriftedDeployment, FailedCheck};
pub use error::StoreError;
pub use finish::{EngineChosen, Finish, Planned, Resolution};
pub use inventory::{Resource, ResourceFilter, ResourcePage, ResourcePlace};
pub use journal::JournalEntry;
pub use open::{Location, Opened, Options, SQLITE_FILE, Store};
pub use outside::{LockInfo, Locking, OutsideWrite};
pub use pause::{Paused, Scope};
pub use probe::{Probe, probe};
pub use read::RunFilter;
pub use reader::{AnyTemplate, Lock, TemplateReader};
pub use retention::Retention;
pub use ring::KeyLimits;
pub use spool::{Brought, SpooledSettlement};
pub use states::{EditedState, NoEditor, StateEditor, StateVersionInfo};
pub use tenants::TenantSettings;
pub use view::{Blocked, Deployment, Event, Outputs, Run, StateVersion, Template, TemplateVersion, Tenant};
pub use webhook::{Delivery, DueDelivery, Sent, Webhook};
