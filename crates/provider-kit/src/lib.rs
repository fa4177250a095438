//! Serving a provider written here: as a process that any Terraform or OpenTofu starts, or in process.
//!
//! A provider is a [`Definition`] (its configuration), a [`Resource`] for each type and a [`DataSource`] for each kind of
//! look-up; [`Kit`] makes a [`landform_protocol::Provider`] of them, and [`run`] a process that speaks protocol 5 or 6.
//! Promises: a panic is a diagnostic of the call that panicked; a configuration belongs to one [`Kit`], never to the
//! program; a process ends when whoever started it is gone.
//! Absent on purpose: starting and supervising processes (see `plugin`), functions, ephemeral resources.

mod guard;
mod kit;
mod resource;
mod schema;
mod serve;
mod service;
mod shortcut;
mod tls;

pub use guard::Guard;
pub use kit::{DataSources, Definition, Kit, Resources};
pub use resource::{DataSource, Failure, Resource};
pub use schema::{Builder, block, bool, nested, number, of, string, with_block};
pub use serve::{Handler, ServeError, serve};
pub use service::{Service, run};
pub use shortcut::Shortcut;

pub use hyper::body::Bytes;
pub use hyper::http;
