//! What people ask of a run.

use std::collections::BTreeMap;

use landform_domain::recovery::Answer;
use landform_domain::run::{Command, Status};
use landform_domain::{Actor, Code, DeploymentId, Problem, RunId};
use serde_json::{Value, json};

use crate::audit::{Deed, write_down};
use crate::db::{Tx, params};
use crate::drift::checks_give_way;
use crate::error::StoreError;
use crate::open::Store;
use crate::read::unknown_run;
use crate::transition::{Means, advance, load_run, lock_by_id};
use crate::view::Run;

impl Store {
    pub async fn approve(&self, run: RunId, by: &Actor) -> Result<Run, StoreError> {
        let command = Command::Approve { by: by.name.clone() };
        self.command(run, command, Some((by, "run.approve", json!({})))).await
    }

    pub async fn reject(&self, run: RunId, reason: &str, by: &Actor) -> Result<Run, StoreError> {
        let command = Command::Reject { by: by.name.clone(), reason: reason.to_owned() };
        self.command(run, command, Some((by, "run.reject", json!({"reason": reason})))).await
    }

    /// A run that is applying stops at the next safe point; any other ends at once.
    pub async fn cancel(&self, run: RunId, by: &Actor) -> Result<Run, StoreError> {
        let command = Command::Cancel { by: by.name.clone() };
        self.command(run, command, Some((by, "run.cancel", json!({})))).await
    }

    /// Answers doubts, by address. When all are answered the run is queued again.
    pub async fn recover(&self, run: RunId, answers: BTreeMap<String, Answer>, by: &Actor) -> Result<Run, StoreError> {
        let detail = json!({"answers": answers});
        let command = Command::Recover { answers, by: by.name.clone() };
        self.command(run, command, Some((by, "run.recover", detail))).await
    }

    /// Ends the runs whose plans nobody approved in time. Returns how many.
    pub async fn expire_overdue(&self) -> Result<usize, StoreError> {
        let sql = "SELECT id FROM runs WHERE expires_at IS NOT NULL AND expires_at < {now} LIMIT 100";
        let mut expired = 0;
        for row in self.db().read_all(sql, params![]).await? {
            match self.command(row.parsed("id")?, Command::Expire, None).await {
                Ok(_) => expired += 1,
                // Somebody decided at the last moment.
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(expired)
    }

    /// Without a deed nobody did it: time has passed.
    async fn command(
        &self,
        id: RunId,
        command: Command,
        deed: Option<(&Actor, &'static str, Value)>,
    ) -> Result<Run, StoreError> {
        let sql = "SELECT deployment FROM runs WHERE id = $1";
        let row = self.db().read_one(sql, params![id.to_string()]).await?.ok_or_else(|| unknown_run(id))?;
        let deployment: DeploymentId = row.parsed("deployment")?;
        let mut tx = self.db().begin().await?;
        // A deployment that is gone has only runs that are final, and the step refuses those.
        lock_by_id(&mut tx, deployment).await?;
        let run = load_run(&mut tx, id).await?.ok_or_else(|| unknown_run(id))?;
        if let (Command::Approve { .. }, Some((by, ..))) = (&command, &deed) {
            refuse_own_approval(&mut tx, &run, by).await?;
            refuse_overdue(&mut tx, &run).await?;
            checks_give_way(&mut tx, deployment, &Command::Supersede { by: id }).await?;
        }
        let run = advance(&mut tx, deployment, &run, command, Means::default()).await?;
        if let Some((by, action, detail)) = deed {
            let deed = Deed { action, tenant: Some(&run.tenant), target: id.to_string(), detail };
            write_down(&mut tx, by, deed).await?;
        }
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(run)
    }
}

/// Where a tenant wants two people, the one who asked for the change is not the one who decides about it.
async fn refuse_own_approval(tx: &mut Tx, run: &Run, by: &Actor) -> Result<(), StoreError> {
    if run.author.as_ref() != Some(&by.id) {
        return Ok(());
    }
    let sql = "SELECT separate_approver FROM tenants WHERE name = $1";
    if tx.exactly_one(sql, params![run.tenant.as_str()]).await?.flag("separate_approver")? {
        let message = format!("{} asked for run {} and cannot approve it", by.name, run.id);
        return Err(Problem::new(Code::ApproverIsAuthor, message).into());
    }
    Ok(())
}

/// A plan whose time is over is not approved any more, also while nobody has come yet to say that it has expired.
async fn refuse_overdue(tx: &mut Tx, run: &Run) -> Result<(), StoreError> {
    let Status::AwaitingApproval { expires_at, .. } = run.status else { return Ok(()) };
    if expires_at < tx.exactly_one("SELECT {now} AS now", params![]).await?.int("now")? {
        let message = format!("the time in which run {} could be approved is over", run.id);
        return Err(Problem::new(Code::RunNotWaiting, message).into());
    }
    Ok(())
}
