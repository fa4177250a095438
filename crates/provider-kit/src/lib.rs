//! Serving a provider written here: as a process that any Terraform or OpenTofu starts, or in process.
//!
//! A provider is a [`Definition`] (its configuration) and a [`Resource`] for each type; [`Kit`] makes a
//! [`landform_protocol::Provider`] of them, and [`run`] a process that speaks protocol 5 or 6.
//! Promises: a panic is a diagnostic of the call that panicked; a configuration belongs to one [`Kit`], never to the
//! program; a process ends when whoever started it is gone.
//! Absent on purpose: starting and supervising processes (see `plugin`), data sources, functions.

mod guard;
mod kit;
mod resource;
mod schema;
mod serve;
mod service;
mod tls;

pub use guard::Guard;
pub use kit::{Definition, Kit, Resources};
pub use resource::{Failure, Resource};
pub use schema::{Builder, block, bool, number, of, string};
pub use serve::{Handler, ServeError, serve};
pub use service::{Service, run};
