//! The store's own chores.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chores::{Chore, ChoreEnd, Chores};
use crate::open::Store;

/// Ends the runs whose plans nobody approved in time.
#[derive(Clone, Serialize, Deserialize)]
struct ExpireApprovals {}

impl Chore for ExpireApprovals {
    const KIND: &'static str = "expire_approvals";
    const ATTEMPTS: u16 = 1;
}

/// Removes what is older than it must be.
#[derive(Clone, Serialize, Deserialize)]
struct Prune {}

impl Chore for Prune {
    const KIND: &'static str = "prune";
    const ATTEMPTS: u16 = 1;
}

/// Asks for the drift checks whose time has come.
#[derive(Clone, Serialize, Deserialize)]
struct AskForChecks {}

impl Chore for AskForChecks {
    const KIND: &'static str = "ask_for_drift_checks";
    const ATTEMPTS: u16 = 1;
}

const LOOK_FOR_CHECKS_EVERY: Duration = Duration::from_secs(5);
const LOOK_FOR_OVERDUE_EVERY: Duration = Duration::from_secs(5);
const PRUNE_EVERY: Duration = Duration::from_secs(600);

impl Store {
    /// What the store wants done once in a while, whoever else adds chores to it.
    pub fn upkeep(&self) -> Chores {
        let (expiring, pruning, checking) = (self.clone(), self.clone(), self.clone());
        Chores::new()
            .every(LOOK_FOR_OVERDUE_EVERY, ExpireApprovals {}, move |_| {
                let store = expiring.clone();
                async move {
                    store.expire_overdue().await?;
                    Ok(ChoreEnd::Done)
                }
            })
            .every(LOOK_FOR_CHECKS_EVERY, AskForChecks {}, move |_| {
                let store = checking.clone();
                async move {
                    store.ask_for_due_checks().await?;
                    Ok(ChoreEnd::Done)
                }
            })
            .every(PRUNE_EVERY, Prune {}, move |_| {
                let store = pruning.clone();
                async move {
                    let removed = store.prune().await?;
                    if removed > 0 {
                        tracing::info!(removed, "old runs were removed");
                    }
                    Ok(ChoreEnd::Done)
                }
            })
    }
}
