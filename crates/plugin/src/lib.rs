//! Provider processes: starting a provider's binary, speaking protocol 5 or 6 with it, and keeping spares.
//!
//! Promises: a binary that is no provider, hangs, or dies is a clear error in bounded time; a process has one
//! configuration for its whole life, and serves another run only if that run's binary, surroundings and configuration are
//! the same and the [`Terms`] of the provider allow it; nothing outlives this process; a spare knows nothing of ours but
//! a few variables that every program needs. The number of processes is bounded.
//! Absent on purpose: what a plan is, and where binaries come from (see `registry`).

mod binary;
mod client;
mod handshake;
mod launch;
mod lease;
mod offspring;
mod pool;
mod process;
mod schemas;
mod tail;
mod warm;

pub use binary::Binary;
pub use client::Client;
pub use launch::{Launch, StartError, Surroundings};
pub use lease::{Leased, Terms};
pub use pool::{Limits, Pool};
pub use process::Process;
pub use schemas::Schemas;
pub use warm::WarmLimits;
