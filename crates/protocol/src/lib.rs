//! The words of the provider protocol: schemas, calls and answers, and the [`Provider`] trait that has one method a call.
//!
//! Whoever speaks to a provider (`plugin`, over gRPC) and whoever is one (`provider-kit`, or a provider inside the
//! binary) share this crate, so the engine cannot tell them apart.
//! Absent on purpose: processes, sockets and plans.

mod calls;
mod provider;
mod schema;
pub mod wire;

pub use calls::*;
pub use provider::{CallError, Provider};
pub use schema::*;
