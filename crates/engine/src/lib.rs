//! Engines plan and apply one workspace. There are two: `native` speaks to providers itself, `cli` drives a real
//! `tofu` or `terraform`. Both see the world through the same traits, so whoever drives them need not care which it is.
//!
//! Promises: before a provider is asked to change anything the [`Journal`] has the intent, and a refusal of the
//! journal means that the call is not made; what the engine tells [`Progress`] may be lost and nothing depends on it;
//! plan bytes are opaque to the caller and are applied exactly or refused as stale.
//! Absent on purpose: the store, tenants, HTTP. Whoever calls seals what must be sealed.

mod address;
pub mod cli;
mod error;
mod journal;
pub mod native;
mod plan;
pub mod policy;
mod progress;
pub mod state;
mod straight;
mod workspace;

pub use address::{Address, Key};
pub use error::{Diagnostic, EngineError, Seen, Severity, SourceRange, Unsupported};
pub use journal::{Intent, IntentAction, IntentId, Journal, Refused, Settlement};
pub use plan::{Action, Adopt, Applied, ApplyRequest, Change, Doubted, Mode, Output, Plan, PlanRequest};
pub use progress::{Moment, Progress, ProgressEvent, Silent, Stage, Work};
pub use straight::{Gate, Gone, Outline, Straight};
pub use tokio_util::sync::CancellationToken as Stop;
pub use workspace::{Engine, EngineKind, Variable, Workspace};
