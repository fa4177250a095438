//! Before an engine begins: the template's folder, variables, seats at vendors, a state with room for what is adopted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use landform_domain::run;
use landform_domain::{Code, Problem};
use landform_engine::state::StateError;
use landform_engine::{Variable, Workspace};
use landform_gateway::Urgency;
use landform_store::{Adoption, StoreError};

use super::{Attempt, broken, denied};
use crate::prepared::Ready;

impl Attempt<'_> {
    pub(super) async fn lay_out(&mut self) -> Result<Result<Workspace, Problem>, StoreError> {
        let claim = &self.claim;
        let ready = match self.template().await? {
            Ok(ready) => ready,
            Err(problem) => return Ok(Err(problem)),
        };
        let folder = ready.folder.clone();
        let scratch = self.shop.folders.scratch(claim.lease.run);
        if let Err(error) = self.sweep(&scratch).await {
            return Ok(Err(broken(format!("children of an earlier attempt: {error}"))));
        }
        let variable = |input: &landform_domain::Input| Variable::new(input.value.clone(), input.sensitive);
        let mut variables: BTreeMap<String, Variable> =
            claim.inputs.iter().map(|(name, input)| (name.clone(), variable(input))).collect();
        let secret = |value: &serde_json::Value| Variable::new(value.clone(), true);
        variables.extend(claim.connections.variables.iter().map(|(name, value)| (name.clone(), secret(value))));
        let seats = {
            let place = (&ready.files, folder.as_path());
            let urgency = match claim.urgency() {
                run::Urgency::Change => Urgency::Person,
                run::Urgency::Idle => Urgency::Background,
            };
            self.shop.booth.take(claim.lease.tenant.as_str(), urgency, place, &mut variables)
        };
        self.seats = match seats {
            Ok(seats) => seats,
            Err(problem) => return Ok(Err(problem)),
        };
        self.reports.hide(self.seats.addresses());
        let mut environment = self.shop.environment.clone();
        for (name, value) in &claim.connections.environment {
            if !self.shop.connection_environment.contains(name) {
                let message =
                    format!("a connection sets the environment variable {name}, which this worker does not allow");
                return Ok(Err(Problem::new(Code::ConnectionInvalid, message)));
            }
            environment.insert(name.clone(), value.clone());
        }
        let state = match self.with_room_for_adoptions(claim.state.clone()) {
            Ok(state) => state,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(Ok(Workspace { folder, scratch, variables, state, environment }))
    }

    /// The template, if what it does is allowed.
    async fn template(&self) -> Result<Result<Arc<Ready>, Problem>, StoreError> {
        let (template, version) = (&self.claim.template, self.claim.template_version);
        if let Some(ready) = self.shop.prepared.get(template, version) {
            return Ok(Ok(ready));
        }
        let files = self.shop.store.template_files(template, version).await?;
        // Looked at again by each worker: what is allowed may have changed since the push.
        let violations = self.shop.policy.violations(files.iter());
        if !violations.is_empty() {
            return Ok(Err(denied(&violations)));
        }
        Ok(match self.shop.folders.template(&files) {
            Ok(folder) => Ok(self.shop.prepared.keep(template, version, Ready { files, folder })),
            Err(error) => Err(broken(format!("the worker's folders: {error}"))),
        })
    }

    /// Both engines import only to an address that is free. Where a replacement was in doubt, the state may still have the
    /// old object there: it makes room, and the plan finds it gone or destroys it.
    pub(super) fn with_room_for_adoptions(&self, state: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Problem> {
        let Some(mut state) = state else { return Ok(None) };
        for adoption in &self.claim.adopt {
            let unreadable = |error: StateError| broken(error.to_string());
            let Adoption { address, id, after_doubt } = adoption;
            match landform_engine::state::make_room(&state, address, id).map_err(unreadable)? {
                None => {}
                Some(with_room) if *after_doubt => state = with_room,
                Some(_) => {
                    let message = format!("{address} is to be adopted as {id}, and the state has another object there");
                    return Err(Problem::new(Code::AdoptionOccupied, message));
                }
            }
        }
        Ok(Some(state))
    }

    /// What an earlier attempt started has ended, one way or the other, before this one looks at what it left.
    async fn sweep(&self, scratch: &Path) -> std::io::Result<()> {
        for swept in landform_base::child::sweep(scratch, self.shop.grace).await? {
            tracing::info!(run = %self.claim.lease.run, pid = swept.pid, outcome = ?swept.outcome, "swept a child");
        }
        Ok(())
    }
}
