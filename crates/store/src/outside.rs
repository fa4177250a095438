//! The state for clients outside: any `tofu` or `terraform` with the `http` backend. A lock of theirs keeps runs away, a
//! run keeps them away, and the epoch rises with each lock, so nobody who was there before can write afterwards.

use landform_domain::run::Command;
use landform_domain::{Actor, Code, DeploymentName, Problem, Right, TenantName};
use serde_json::{Value, json};

use crate::accept::create_row;
use crate::audit::{Deed, write_down};
use crate::claim::waiting::unpark_what_is_free;
use crate::db::{Tx, params};
use crate::drift;
use crate::error::StoreError;
use crate::inventory;
use crate::keys::Kind;
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::transition::{Locked, lock_by_name};

/// A lock as clients describe it to each other: an object with `ID`, `Who`, `Operation` and the like.
pub type LockInfo = Value;

/// In the place of a run's id: the deployment is held by a lock.
const HELD_BY_LOCK: &str = "lock";

/// Who writes a state from outside, and how.
#[derive(Clone, Debug, Default)]
pub struct OutsideWrite {
    /// The id of the lock that the client says it holds.
    pub lock: Option<String>,
    /// Take over another lineage. For admins.
    pub force: bool,
}

/// What a client was told about a lock.
#[derive(Clone, Debug, PartialEq)]
pub enum Locking {
    Taken,
    /// Somebody else has it.
    Held(LockInfo),
}

impl Store {
    /// Takes the lock for an outside client. It has no expiry: a person may be behind it.
    pub async fn lock_state(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        info: LockInfo,
        by: &Actor,
    ) -> Result<Locking, StoreError> {
        let id = info["ID"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| invalid("a lock has an `ID`"))?.to_owned();
        self.tenant(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = match lock_by_name(&mut tx, tenant, name).await? {
            Some(locked) => locked,
            None => create_row(&mut tx, tenant, name).await?,
        };
        match holder(&mut tx, &locked).await? {
            // The client asks again, because it did not hear the answer.
            Some(held) if held["ID"] == id.as_str() => {
                tx.commit().await?;
                return Ok(Locking::Taken);
            }
            Some(held) => return Ok(Locking::Held(held)),
            None => {}
        }
        tx.execute(
            "INSERT INTO state_locks (deployment, id, info, actor, created_at) VALUES ($1, $2, $3, $4, {now})",
            params![locked.id.to_string(), id.as_str(), info.to_string(), by.id.as_str()],
        )
        .await?;
        tx.execute(
            "UPDATE deployments SET active_run = $2, epoch = epoch + 1 WHERE id = $1",
            params![locked.id.to_string(), HELD_BY_LOCK],
        )
        .await?;
        note(&mut tx, by, "state.lock", &locked, json!({"lock": id})).await?;
        tx.commit().await?;
        Ok(Locking::Taken)
    }

    /// Gives the lock back. Without its id it is taken away by force, which is for admins.
    pub async fn unlock_state(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        id: Option<&str>,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        let sql = "SELECT id, info FROM state_locks WHERE deployment = $1";
        // Already given back: the client asks again, because it did not hear the answer.
        let Some(row) = tx.one(sql, params![locked.id.to_string()]).await? else { return tx.commit().await };
        let held = row.text("id")?;
        match id {
            Some(id) if id != held => return Err(refused(&serde_json::from_str(&row.text("info")?)?)),
            Some(_) => {}
            None => by.require(Right::Administer)?,
        }
        tx.execute("DELETE FROM state_locks WHERE deployment = $1", params![locked.id.to_string()]).await?;
        tx.execute(
            "UPDATE deployments SET active_run = NULL WHERE id = $1 AND active_run = $2",
            params![locked.id.to_string(), HELD_BY_LOCK],
        )
        .await?;
        unpark_what_is_free(&mut tx, tenant.as_str(), name.as_str()).await?;
        note(&mut tx, by, "state.unlock", &locked, json!({"lock": held, "forced": id.is_none()})).await?;
        // A run may have waited for it.
        tx.commit().await?;
        self.inner.bell.ring();
        Ok(())
    }

    /// Takes a state from outside. The same bytes again are no change; anything that is not newer is refused.
    pub async fn write_state(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        state: &[u8],
        how: &OutsideWrite,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let new = Stamp::of(state)?;
        let key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = match lock_by_name(&mut tx, tenant, name).await? {
            Some(locked) => locked,
            None => create_row(&mut tx, tenant, name).await?,
        };
        refuse_unless_free(&mut tx, &locked, how.lock.as_deref()).await?;
        let sealer = key.sealer(locked.id);
        if let Some(version) = locked.state_version {
            let sql = "SELECT state FROM states WHERE deployment = $1 AND version = $2";
            let row = tx.exactly_one(sql, params![locked.id.to_string(), version]).await?;
            let old = sealer.open(Kind::State, &version.to_string(), &row.blob("state")?)?;
            if old == state {
                return tx.commit().await;
            }
            new.check_follows(&Stamp::of(&old)?, how.force && by.may(Right::Administer))?;
        }
        let version = self.insert_state(&mut tx, &sealer, &locked, None, state).await?;
        let outputs = sealer.seal(Kind::Outputs, "", &serde_json::to_vec(&new.outputs)?)?;
        tx.execute("UPDATE deployments SET outputs = $2 WHERE id = $1", params![locked.id.to_string(), outputs])
            .await?;
        let detail = json!({"version": version, "serial": new.serial, "lineage": new.lineage, "forced": how.force});
        note(&mut tx, by, "state.write", &locked, detail).await?;
        tx.commit().await
    }

    /// Forgets the state. While it has objects that is for admins: nothing else knows of them.
    pub async fn delete_state(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        lock: Option<&str>,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        refuse_unless_free(&mut tx, &locked, lock).await?;
        let Some(version) = locked.state_version else { return tx.commit().await };
        let sql = "SELECT state FROM states WHERE deployment = $1 AND version = $2";
        let row = tx.exactly_one(sql, params![locked.id.to_string(), version]).await?;
        let state = key.sealer(locked.id).open(Kind::State, &version.to_string(), &row.blob("state")?)?;
        if !Stamp::of(&state)?.empty {
            by.require(Right::Administer)?;
        }
        tx.execute(
            "UPDATE deployments SET state_version = NULL, state_generation = NULL, outputs = NULL, updated_at = {now}
             WHERE id = $1",
            params![locked.id.to_string()],
        )
        .await?;
        inventory::clear(&mut tx, tenant, name).await?;
        drift::unknown_again(&mut tx, &locked.id.to_string()).await?;
        note(&mut tx, by, "state.delete", &locked, json!({"version": version})).await?;
        tx.commit().await
    }
}

pub(crate) async fn note(
    tx: &mut Tx,
    by: &Actor,
    action: &'static str,
    locked: &Locked,
    detail: Value,
) -> Result<(), StoreError> {
    let deed = Deed { action, tenant: Some(&locked.tenant), target: locked.name.to_string(), detail };
    write_down(tx, by, deed).await
}

/// What a run's lock says that it is.
const OPERATION: &str = "landform run";

/// Who keeps others away from the state: an outside client, or a run. A drift check keeps nobody away.
async fn holder(tx: &mut Tx, locked: &Locked) -> Result<Option<LockInfo>, StoreError> {
    let command = Command::Cancel { by: "a client that wants the state".to_owned() };
    drift::checks_give_way(tx, locked.id, &command).await?;
    let sql = "SELECT info FROM state_locks WHERE deployment = $1";
    if let Some(row) = tx.one(sql, params![locked.id.to_string()]).await? {
        return Ok(Some(serde_json::from_str(&row.text("info")?)?));
    }
    let sql = "SELECT active_run, lease_worker FROM deployments WHERE id = $1";
    let row = tx.exactly_one(sql, params![locked.id.to_string()]).await?;
    let Some(run) = row.text_or_null("active_run")? else { return Ok(None) };
    let worker = row.text_or_null("lease_worker")?.unwrap_or_default();
    let info = "A run of Landform holds this state. It is free again when the run has ended.";
    Ok(Some(json!({"ID": run, "Operation": OPERATION, "Info": info, "Who": worker})))
}

/// A client that holds the lock may write; if nobody holds anything, so may one that does not use locks.
pub(crate) async fn refuse_unless_free(tx: &mut Tx, locked: &Locked, lock: Option<&str>) -> Result<(), StoreError> {
    match (holder(tx, locked).await?, lock) {
        (None, None) => Ok(()),
        (Some(held), Some(lock)) if held["ID"] == lock => Ok(()),
        (Some(held), _) => Err(refused(&held)),
        // The lock was taken away by force, and somebody else may have written since.
        (None, Some(lock)) => {
            let shown: String = lock.chars().take(80).collect();
            Err(Problem::new(Code::StateConflict, format!("the lock {shown:?} is not held any more")).into())
        }
    }
}

fn refused(held: &LockInfo) -> StoreError {
    let word = |name: &str| held[name].as_str().unwrap_or("somebody").chars().take(120).collect::<String>();
    if held["Operation"] == OPERATION {
        let message = format!("run {} holds the state; if it needs recovery, answer its doubts first", word("ID"));
        return Problem::new(Code::StateLocked, message).into();
    }
    Problem::new(Code::StateLocked, format!("the state is locked by {} ({})", word("Who"), word("ID"))).into()
}

fn invalid(message: &str) -> StoreError {
    Problem::new(Code::StateInvalid, message).into()
}

/// What is read of a state from outside. A client that encrypts its state leaves serial and lineage readable.
struct Stamp {
    serial: u64,
    lineage: String,
    /// It has no objects, as far as can be seen.
    empty: bool,
    outputs: Value,
}

impl Stamp {
    fn of(state: &[u8]) -> Result<Stamp, StoreError> {
        let state: Value = serde_json::from_slice(state).map_err(|_| invalid("the state is not JSON"))?;
        let encrypted = state.get("encrypted_data").is_some();
        if !encrypted && state["version"].as_u64() != Some(4) {
            return Err(invalid("the state is not of format 4"));
        }
        let serial = state["serial"].as_u64().ok_or_else(|| invalid("the state has no serial"))?;
        let lineage = state["lineage"].as_str().ok_or_else(|| invalid("the state has no lineage"))?.to_owned();
        let resources = state["resources"].as_array().map_or(0, Vec::len);
        let outputs = state.get("outputs").filter(|outputs| outputs.is_object()).cloned().unwrap_or_else(|| json!({}));
        Ok(Stamp { serial, lineage, empty: !encrypted && resources == 0, outputs })
    }

    fn check_follows(&self, old: &Stamp, force: bool) -> Result<(), StoreError> {
        let conflict = |message: String| Err(Problem::new(Code::StateConflict, message).into());
        if self.lineage != old.lineage {
            if old.empty || force {
                return Ok(());
            }
            return conflict(format!("the state is of the lineage {:?}, not {:?}", old.lineage, self.lineage));
        }
        if self.serial <= old.serial {
            return conflict(format!("the state is at serial {}, and {} is not newer", old.serial, self.serial));
        }
        Ok(())
    }
}
