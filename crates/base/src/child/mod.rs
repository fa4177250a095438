//! Children: providers and the CLI.
//!
//! A child is bound to this process by the kernel's parent-death signal. That signal fires when the *thread* that
//! spawned it ends, so all children are spawned by one thread that never ends. Grandchildren do not inherit it; they
//! are in the child's process group, which is killed with the child and, after a crash of ours, found again by
//! [`sweep`] through the register file that each child has while it lives.

mod process;
mod register;
mod spawn;
mod start;
mod sweep;

pub use process::Child;
pub use spawn::{OnParentDeath, Spec, Stream, spawn};
pub use sweep::{Outcome, Swept, sweep};

#[cfg(test)]
mod tests;
