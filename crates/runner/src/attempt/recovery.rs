//! An apply that was interrupted: what is known of it is settled before anything else begins.

use landform_domain::Problem;
use landform_domain::run::Status;
use landform_engine::Workspace;
use landform_store::{JournalEntry, StoreError};

use super::{Attempt, Done, End, broken, fail, leave};
use crate::{folders, recover};

impl Attempt<'_> {
    pub(super) async fn recover(
        &mut self,
        mut workspace: Workspace,
        journal: &[JournalEntry],
    ) -> Result<Done, StoreError> {
        let salvaged = match self.salvage(&workspace, journal).await {
            Ok(salvaged) => salvaged,
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        };
        let resolution = match recover::resolve(journal, workspace.state.as_deref(), salvaged, &self.claim.adopt) {
            Ok(resolution) => resolution,
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        };
        self.claim.adopt.retain(|adoption| !resolution.adopted.contains(&adoption.address));
        let recovered = resolution.state.clone();
        let updates = &resolution.verdict.updates;
        let interrupted = journal.iter().filter(|entry| updates.contains(&entry.id)).map(|entry| entry.intent.clone());
        match recover::doubted(&interrupted.collect::<Vec<_>>()) {
            Ok(more) => self.doubted.extend(more),
            Err(problem) => return Ok(leave(&self.claim, &problem)),
        }
        match self.shop.store.resolve(&self.claim.lease, resolution).await? {
            Status::Planning => {
                workspace.state = match self.with_room_for_adoptions(recovered.or(workspace.state)) {
                    Ok(state) => state,
                    Err(problem) => return Ok(fail(problem)),
                };
                self.plan_and_apply(workspace).await
            }
            _ => Ok(Done::End(End::Clean)),
        }
    }

    /// What an engine has left on this worker's disk, if it was the attempt of this journal that left it: others may have
    /// worked on the run since this worker last did.
    async fn salvage(&self, workspace: &Workspace, journal: &[JournalEntry]) -> Result<Option<Vec<u8>>, Problem> {
        let Some(engine) = self.claim.engine_before else { return Ok(None) };
        let interrupted = journal.iter().map(|entry| entry.epoch).max();
        if interrupted.is_none() || interrupted != folders::left_by(&workspace.scratch) {
            return Ok(None);
        }
        let engine = self.shop.engines.get(engine, workspace)?;
        engine.salvage(&workspace.scratch).await.map_err(|error| broken(error.to_string()))
    }
}
