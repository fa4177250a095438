//! The words of Landform and the rules between them: names and ids, who may do what, templates, inputs, the run and its legal moves,
//! what a crash leaves in doubt, and the errors that people see.
//!
//! Promises: everything here is pure. The same arguments give the same answer; there is no I/O, no clock, no
//! randomness and nothing asynchronous. [`run::step`] alone decides what may become of a run.
//! Absent on purpose: how things are stored (`store`), carried out (`runner`) or sent (`api`).

pub mod access;
pub mod declared;
pub mod drift;
pub mod engine;
pub mod error;
pub mod event;
pub mod id;
pub mod inputs;
pub mod memory;
pub mod name;
pub mod recovery;
pub mod run;
pub mod state_edit;
pub mod template;

pub use access::{Actor, Right, Role};
pub use drift::{Drift, DriftStatus, DriftSummary, DriftedAttribute, DriftedObject};
pub use engine::{EngineChoice, EngineName};
pub use error::{Class, Code, Problem};
pub use event::EventBody;
pub use id::{DeploymentId, RunId};
pub use inputs::{Input, Inputs};
pub use name::{ConnectionName, DeploymentName, TemplateName, TenantName};
pub use state_edit::StateEdit;
