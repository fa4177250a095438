//! SD-WAN vendors without a usable provider of their own: the provider for Versa Director.
//!
//! It is made with `provider-kit`, so it is an ordinary plugin for any OpenTofu and runs inside of Landform without a
//! process. Promises: what the Director said is in the diagnostic; a request that got no answer is looked up before
//! anything is said about it; only a request that was refused for its rate is sent again; secrets are in no message.
//! Absent on purpose: runs, tables, and what a plan is.

mod fields;
pub mod versa;
