//! What people ask of a run.

use std::collections::BTreeMap;

use landform_domain::recovery::Answer;
use landform_domain::run::Command;
use landform_domain::{DeploymentId, RunId};

use crate::db::params;
use crate::error::StoreError;
use crate::open::Store;
use crate::read::unknown_run;
use crate::transition::{Means, advance, load_run, lock_by_id};
use crate::view::Run;

impl Store {
    pub async fn approve(&self, run: RunId, by: &str) -> Result<Run, StoreError> {
        self.command(run, Command::Approve { by: by.to_owned() }).await
    }

    pub async fn reject(&self, run: RunId, by: &str, reason: &str) -> Result<Run, StoreError> {
        self.command(run, Command::Reject { by: by.to_owned(), reason: reason.to_owned() }).await
    }

    /// A run that is applying stops at the next safe point; any other ends at once.
    pub async fn cancel(&self, run: RunId, by: &str) -> Result<Run, StoreError> {
        self.command(run, Command::Cancel { by: by.to_owned() }).await
    }

    /// Answers doubts, by address. When all are answered the run is queued again.
    pub async fn recover(&self, run: RunId, answers: BTreeMap<String, Answer>, by: &str) -> Result<Run, StoreError> {
        self.command(run, Command::Recover { answers, by: by.to_owned() }).await
    }

    /// Ends the runs whose plans nobody approved in time. Returns how many.
    pub async fn expire_overdue(&self) -> Result<usize, StoreError> {
        let sql = "SELECT id FROM runs WHERE expires_at IS NOT NULL AND expires_at < {now} LIMIT 100";
        let mut expired = 0;
        for row in self.db().read_all(sql, params![]).await? {
            match self.command(row.parsed("id")?, Command::Expire).await {
                Ok(_) => expired += 1,
                // Somebody decided at the last moment.
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(expired)
    }

    async fn command(&self, id: RunId, command: Command) -> Result<Run, StoreError> {
        let sql = "SELECT deployment FROM runs WHERE id = $1";
        let row = self.db().read_one(sql, params![id.to_string()]).await?.ok_or_else(|| unknown_run(id))?;
        let deployment: DeploymentId = row.parsed("deployment")?;
        let mut tx = self.db().begin().await?;
        // A deployment that is gone has only runs that are final, and the step refuses those.
        lock_by_id(&mut tx, deployment).await?;
        let run = load_run(&mut tx, id).await?.ok_or_else(|| unknown_run(id))?;
        let run = advance(&mut tx, deployment, &run, command, Means::default()).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run)
    }
}
