//! The work: a [`Worker`] claims runs, has an engine plan and apply them, and finds out what a dead attempt has done.
//!
//! Promises: an engine's intents are in the store before its calls are made; a worker whose lease is late starts
//! nothing more and ends what it has before the lease does; what a provider has done while the store was away is kept on
//! disk and told later; after a crash nothing is created twice, and what is in doubt is listed. Reports for people are
//! bounded and may be dropped, with a count.
//! Absent on purpose: serving HTTP, SQL, and how an engine works.

mod accounts;
mod at_work;
mod attempt;
pub mod built_in;
mod choose;
mod drift;
mod folders;
mod identity;
mod keeper;
pub mod known;
mod locks;
mod memory;
mod ports;
mod prepared;
pub mod providers;
mod recover;
mod report;
mod seats;
mod spool;
mod states;
mod straight;
mod templates;
mod threads;
mod vendors;
mod webhooks;
mod worker;

pub use choose::Engines;
pub use states::FormatEditor;
pub use templates::LanguageReader;
pub use webhooks::deliver_webhooks;
pub use worker::{Settings, StartError, Worker};
