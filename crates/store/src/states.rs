//! The versions of a deployment's state: made by runs, by outside clients, and by people who edit it.

use std::fmt;

use landform_domain::{Actor, Code, DeploymentName, Problem, RunId, StateEdit, TenantName};
use serde_json::json;

use crate::db::{Row, Tx, params};
use crate::drift;
use crate::error::StoreError;
use crate::inventory;
use crate::keys::{Kind, Sealer};
use crate::open::Store;
use crate::outside::{note, refuse_unless_free};
use crate::read::unknown_deployment;
use crate::retention::prune_states;
use crate::transition::{Locked, lock_by_name};
use crate::view::{Run, StateVersion};

/// Knows the format of states, which the store does not.
pub trait StateEditor: Send + Sync + fmt::Debug {
    /// The state after the edit, with the serial that follows.
    fn edit(&self, state: &[u8], edit: &StateEdit) -> Result<EditedState, Problem>;
}

pub struct EditedState {
    pub state: Vec<u8>,
    /// The addresses that were removed, or the new ones of what was moved.
    pub addresses: Vec<String>,
}

/// Edits nothing: a store has this until it is given one that knows the format.
#[derive(Debug)]
pub struct NoEditor;

impl StateEditor for NoEditor {
    fn edit(&self, _state: &[u8], _edit: &StateEdit) -> Result<EditedState, Problem> {
        Err(Problem::new(Code::Internal, "this store was opened without an editor of states"))
    }
}

/// What is known of a version without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateVersionInfo {
    pub version: i64,
    pub generation: i64,
    /// The run that wrote it; `None` for a person or an outside client.
    pub run: Option<RunId>,
    pub current: bool,
    pub created_at: i64,
}

impl Store {
    /// The versions that are kept, the newest first.
    pub async fn state_versions(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
    ) -> Result<Vec<StateVersionInfo>, StoreError> {
        let sql = "SELECT id, state_version FROM deployments WHERE tenant = $1 AND name = $2";
        let row = self.db().read_one(sql, params![tenant.as_str(), name.as_str()]).await?;
        let row = row.ok_or_else(|| unknown_deployment(tenant, name))?;
        let current = row.int_or_null("state_version")?;
        let sql = "SELECT version, generation, run, created_at FROM states WHERE deployment = $1 ORDER BY version DESC";
        let info = |row: &Row| -> Result<StateVersionInfo, StoreError> {
            let (version, run) = (row.int("version")?, row.text("run")?);
            Ok(StateVersionInfo {
                version,
                generation: row.int("generation")?,
                run: if run.is_empty() { None } else { Some(run.parse()?) },
                current: current == Some(version),
                created_at: row.int("created_at")?,
            })
        };
        self.db().read_all(sql, params![row.text("id")?]).await?.iter().map(info).collect()
    }

    /// A version that is still kept. It holds secrets.
    pub async fn state_version(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        version: i64,
    ) -> Result<StateVersion, StoreError> {
        let sql = "SELECT d.id AS id, s.state AS state
             FROM deployments d LEFT JOIN states s ON s.deployment = d.id AND s.version = $3
             WHERE d.tenant = $1 AND d.name = $2";
        let row = self.db().read_one(sql, params![tenant.as_str(), name.as_str(), version]).await?;
        let row = row.ok_or_else(|| unknown_deployment(tenant, name))?;
        let Some(sealed) = row.blob_or_null("state")? else {
            let message = format!("there is no version {version} of the state of `{tenant}/{name}`, or not any more");
            return Err(Problem::new(Code::StateUnknown, message).into());
        };
        let key = self.tenant_key(tenant).await?;
        let state = key.sealer(row.parsed("id")?).open(Kind::State, &version.to_string(), &sealed)?;
        Ok(StateVersion { version, state })
    }

    /// Changes the state as a person asks, without any provider. Refused while a run or a client has it. The epoch rises,
    /// so that nobody who was there before can write afterwards.
    pub async fn edit_state(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        edit: &StateEdit,
        by: &Actor,
    ) -> Result<(i64, Vec<String>), StoreError> {
        let key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        refuse_unless_free(&mut tx, &locked, None).await?;
        let Some(version) = locked.state_version else {
            return Err(Problem::new(Code::StateUnknown, format!("`{tenant}/{name}` has no state yet")).into());
        };
        let sealer = key.sealer(locked.id);
        let sql = "SELECT state FROM states WHERE deployment = $1 AND version = $2";
        let row = tx.exactly_one(sql, params![locked.id.to_string(), version]).await?;
        let state = sealer.open(Kind::State, &version.to_string(), &row.blob("state")?)?;
        let edited = self.inner.editor.edit(&state, edit)?;
        let version = self.insert_state(&mut tx, &sealer, &locked, None, &edited.state).await?;
        tx.execute("UPDATE deployments SET epoch = epoch + 1 WHERE id = $1", params![locked.id.to_string()]).await?;
        let action = match edit {
            StateEdit::Remove { .. } => "state.remove",
            StateEdit::Move { .. } => "state.move",
        };
        note(&mut tx, by, action, &locked, json!({"version": version, "edit": edit})).await?;
        tx.commit().await?;
        Ok((version, edited.addresses))
    }

    /// The next version, which is the current one from now on. `by` is the run that made it, if it was one.
    pub(crate) async fn insert_state(
        &self,
        tx: &mut Tx,
        sealer: &Sealer,
        locked: &Locked,
        by: Option<&Run>,
        state: &[u8],
    ) -> Result<i64, StoreError> {
        let version = locked.last_state_version + 1;
        tx.execute(
            "INSERT INTO states (deployment, version, generation, run, state, created_at)
             VALUES ($1, $2, $3, $4, $5, {now})",
            params![
                locked.id.to_string(),
                version,
                by.map_or(locked.generation, |run| run.generation),
                by.map(|run| run.id.to_string()).unwrap_or_default(),
                sealer.seal(Kind::State, &version.to_string(), state)?,
            ],
        )
        .await?;
        tx.execute(
            "UPDATE deployments SET state_version = $2, last_state_version = $2,
                state_generation = COALESCE($3, state_generation), updated_at = {now}
             WHERE id = $1",
            params![locked.id.to_string(), version, by.map(|run| run.generation)],
        )
        .await?;
        if by.is_none() {
            drift::unknown_again(tx, &locked.id.to_string()).await?;
        }
        prune_states(tx, locked.id, version, self.inner.retention.state_versions).await?;
        inventory::project(tx, sealer, &locked.tenant, &locked.name, state).await?;
        Ok(version)
    }
}
