//! Accepting what somebody wants of a deployment: desired state, run and event in one transaction.

use std::fmt;

use landform_base::seal::fill_random;
use landform_domain::run::{Command, Kind, Next, Status};
use landform_domain::{
    Actor, Code, ConnectionName, DeploymentId, DeploymentName, EngineChoice, EventBody, Inputs, Problem, Right, RunId,
    TemplateName, TenantName,
};
use serde_json::json;

use crate::again::RunRequest;
use crate::audit::{Deed, write_down};
use crate::catalog::resolve_template;
use crate::connection::{Bound, bind, keep_bound, load_bound};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::keys::{self, Sealer, TenantKey};
use crate::open::Store;
use crate::read::unknown_deployment;
use crate::tenants::{self, unknown_tenant};
use crate::transition::{Locked, Means, advance, append_events, load_run, lock_by_name};
use crate::view::{self, Run};

/// What a deployment shall be.
#[derive(Clone, Debug)]
pub struct DeploymentWrite {
    pub tenant: TenantName,
    pub name: DeploymentName,
    pub template: TemplateName,
    /// `None`: the newest.
    pub template_version: Option<i64>,
    pub inputs: Inputs,
    /// Where the values of the template's ephemeral variables come from.
    pub connections: Vec<ConnectionName>,
    pub engine: EngineChoice,
    /// `None` leaves it as it is; a new deployment needs no approval.
    pub requires_approval: Option<bool>,
    /// Seconds that a plan or an apply may take. `None`: as the worker has it.
    pub time_limit: Option<i64>,
    /// Refuse unless this is the present generation (0: there is no such deployment).
    pub if_generation: Option<i64>,
}

/// Belongs to one principal and one route. The body may hold secrets: a keyed hash of it is kept, and it is not printed.
#[derive(Clone)]
pub struct IdempotencyKey {
    pub principal: String,
    pub route: String,
    pub key: String,
    pub body: Vec<u8>,
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({:?} of {:?} for {:?})", self.key, self.principal, self.route)
    }
}

#[derive(Clone, Debug)]
pub struct Accepted {
    pub run: Run,
    /// False: this was asked for before, and `run` is the answer of then.
    pub fresh: bool,
}

/// A row of `generations`, opened.
pub(crate) struct Desired {
    pub(crate) kind: Kind,
    pub(crate) template: TemplateName,
    pub(crate) template_version: i64,
    pub(crate) inputs: Inputs,
    pub(crate) connections: Vec<Bound>,
    pub(crate) engine: EngineChoice,
    pub(crate) requires_approval: bool,
    pub(crate) time_limit: Option<i64>,
}

/// The columns of `generations g` that make a [`Desired`].
macro_rules! desired_columns {
    () => {
        "g.kind, g.template, g.template_version, g.inputs, g.engine, g.requires_approval, g.time_limit"
    };
}
pub(crate) use desired_columns;

impl Desired {
    pub(crate) fn from_row(
        row: &Row,
        sealer: &Sealer,
        generation: i64,
        connections: Vec<Bound>,
    ) -> Result<Desired, StoreError> {
        let inputs = sealer.open(keys::Kind::Inputs, &generation.to_string(), &row.blob("inputs")?)?;
        Ok(Desired {
            kind: view::kind(&row.text("kind")?)?,
            template: row.parsed("template")?,
            template_version: row.int("template_version")?,
            inputs: serde_json::from_slice(&inputs)?,
            connections,
            engine: row.parsed("engine")?,
            requires_approval: row.flag("requires_approval")?,
            time_limit: row.int_or_null("time_limit")?,
        })
    }

    /// The same bytes for the same desired state.
    fn canonical(&self) -> Vec<u8> {
        let head = format!(
            "{}\n{}\n{}\n{}\n{}\n",
            self.kind.as_str(),
            self.template,
            self.template_version,
            self.engine,
            self.requires_approval
        );
        let connections: String = self.connections.iter().map(|bound| format!("{}\n", bound.connection)).collect();
        // Left out where there is none, so that older generations keep their hash.
        let limit = self.time_limit.map(|seconds| format!("time limit {seconds}\n")).unwrap_or_default();
        [head.into_bytes(), self.inputs.canonical(), connections.into_bytes(), limit.into_bytes()].concat()
    }
}

impl Store {
    /// Creates or changes a deployment. The same desired state again is answered with the run of that generation, or
    /// with a new one if that did not get through.
    pub async fn put_deployment(
        &self,
        write: DeploymentWrite,
        key: Option<IdempotencyKey>,
        by: &Actor,
    ) -> Result<Accepted, StoreError> {
        let tenant_key = self.tenant_key(&write.tenant).await?;
        let mut tx = self.db().begin().await?;
        if let Some(run) = earlier_answer(&mut tx, &tenant_key, key.as_ref()).await? {
            // The answer may be of this very moment: it is given when it is on disk.
            tx.commit().await?;
            return Ok(Accepted { run, fresh: false });
        }
        let (template_version, declared) = resolve_template(&mut tx, &write.template, write.template_version).await?;
        let locked = match lock_by_name(&mut tx, &write.tenant, &write.name).await? {
            Some(locked) => locked,
            None => create_row(&mut tx, &write.tenant, &write.name).await?,
        };
        check_generation(&locked, write.if_generation)?;
        let sealer = tenant_key.sealer(locked.id);
        let newest = match locked.generation {
            0 => None,
            generation => load_desired(&mut tx, &sealer, locked.id, generation).await?,
        };
        let mut inputs = write.inputs.with_sensitive(|name| declared.is_sensitive(name));
        if let Some(newest) = &newest {
            inputs = inputs.over(&newest.inputs, |name| declared.may_have(name));
        }
        let connections = bind(&mut tx, &write.tenant, &write.connections, &declared, &inputs).await?;
        let provided: Vec<&str> = connections.iter().flat_map(|bound| &bound.variables).map(String::as_str).collect();
        self.inner.reader.check(&declared, &inputs, &provided)?;
        let desired = Desired {
            kind: Kind::Apply,
            template: write.template,
            template_version,
            inputs,
            connections,
            engine: write.engine,
            requires_approval: approval(newest.as_ref(), write.requires_approval, by)?,
            time_limit: write.time_limit,
        };
        self.accept(tx, locked, &sealer, desired, key, ("deployment.put", by)).await
    }

    /// Asks for the destruction of a deployment, with what its state was made with.
    pub async fn delete_deployment(
        &self,
        tenant: &TenantName,
        name: &DeploymentName,
        if_generation: Option<i64>,
        key: Option<IdempotencyKey>,
        by: &Actor,
    ) -> Result<Accepted, StoreError> {
        let tenant_key = self.tenant_key(tenant).await?;
        let mut tx = self.db().begin().await?;
        if let Some(run) = earlier_answer(&mut tx, &tenant_key, key.as_ref()).await? {
            // The answer may be of this very moment: it is given when it is on disk.
            tx.commit().await?;
            return Ok(Accepted { run, fresh: false });
        }
        let locked = lock_by_name(&mut tx, tenant, name).await?.ok_or_else(|| unknown_deployment(tenant, name))?;
        check_generation(&locked, if_generation)?;
        let sealer = tenant_key.sealer(locked.id);
        if locked.generation == 0 {
            // There is a state that somebody brought from outside, and no deployment yet.
            return Err(unknown_deployment(tenant, name));
        }
        let made_with = locked.state_generation.unwrap_or(locked.generation);
        let missing = || StoreError::Corrupt(format!("deployment {} has no desired state", locked.id));
        let made_with = load_desired(&mut tx, &sealer, locked.id, made_with).await?.ok_or_else(missing)?;
        let newest = load_desired(&mut tx, &sealer, locked.id, locked.generation).await?.ok_or_else(missing)?;
        let desired = Desired {
            kind: Kind::Destroy,
            engine: newest.engine,
            requires_approval: newest.requires_approval,
            time_limit: newest.time_limit,
            ..made_with
        };
        self.accept(tx, locked, &sealer, desired, key, ("deployment.delete", by)).await
    }

    pub(crate) async fn tenant_key(&self, tenant: &TenantName) -> Result<TenantKey, StoreError> {
        self.inner.keys.of(self.db(), tenant).await?.ok_or_else(|| unknown_tenant(tenant))
    }

    pub(crate) async fn accept(
        &self,
        mut tx: Tx,
        locked: Locked,
        sealer: &Sealer,
        desired: Desired,
        key: Option<IdempotencyKey>,
        (action, by): (&'static str, &Actor),
    ) -> Result<Accepted, StoreError> {
        let hash = sealer.hash(&desired.canonical());
        let mut generation = locked.generation;
        if is_newest(&mut tx, &locked, &hash).await? {
            let latest = latest_run(&mut tx, &locked, generation).await?;
            if let Some(run) = latest.filter(|run| !run.status.is_final() || run.status.is_success()) {
                remember_answer(&mut tx, key, run.id).await?;
                tx.commit().await?;
                return Ok(Accepted { run, fresh: false });
            }
        } else {
            generation += 1;
            insert_generation(&mut tx, &locked, sealer, generation, &desired, hash).await?;
        }
        let run = insert_run(&mut tx, &locked, generation, &desired, &RunRequest::default(), by).await?;
        let superseded = supersede_older(&mut tx, &locked, run.id).await?;
        let template = format!("{}@{}", desired.template, desired.template_version);
        let detail = json!({"generation": generation, "run": run.id, "template": template});
        let deed = Deed { action, tenant: Some(&locked.tenant), target: locked.name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        remember_answer(&mut tx, key, run.id).await?;
        tx.commit().await?;
        self.inner.bell.ring_for_work();
        if superseded {
            // Whoever waits for one of those is told of this one.
            self.inner.bell.ring();
        }
        Ok(Accepted { run, fresh: true })
    }
}

/// Whether the new generation needs approval. Taking that away is a decision of those who approve.
fn approval(newest: Option<&Desired>, wanted: Option<bool>, by: &Actor) -> Result<bool, StoreError> {
    let before = newest.is_some_and(|newest| newest.requires_approval);
    let wanted = wanted.unwrap_or(before);
    if before && !wanted && !by.may(Right::Approve) {
        let message = format!("the role {} cannot switch the approval of this deployment off", by.role);
        return Err(Problem::new(Code::ApprovalRequired, message).into());
    }
    Ok(wanted)
}

fn check_generation(locked: &Locked, wanted: Option<i64>) -> Result<(), StoreError> {
    match wanted {
        Some(wanted) if wanted != locked.generation => {
            let message = format!("the deployment is at generation {}, not {wanted}", locked.generation);
            Err(Problem::new(Code::GenerationMismatch, message).into())
        }
        _ => Ok(()),
    }
}

pub(crate) async fn create_row(tx: &mut Tx, tenant: &TenantName, name: &DeploymentName) -> Result<Locked, StoreError> {
    refuse_beyond_quota(tx, tenant).await?;
    tenants::hold(tx, tenant).await?;
    let id: DeploymentId = new_id(tx, DeploymentId::from_parts).await?;
    tx.execute(
        "INSERT INTO deployments (id, tenant, name, generation, paused, created_at, updated_at)
         SELECT $1, t.name, $3, 0, 2 * t.paused + 4 * s.paused, {now}, {now} FROM tenants t, switches s WHERE t.name = $2
         ON CONFLICT (tenant, name) DO NOTHING",
        params![id.to_string(), tenant.as_str(), name.as_str()],
    ).await?;
    // Somebody else may have made it in between; then theirs is taken.
    lock_by_name(tx, tenant, name).await?.ok_or_else(|| StoreError::Unavailable("the deployment went away".into()))
}

/// With a quota, the tenant's row is locked: of two who make the last deployment, one is told.
async fn refuse_beyond_quota(tx: &mut Tx, tenant: &TenantName) -> Result<(), StoreError> {
    let sql = "SELECT most_deployments FROM tenants WHERE name = $1 AND most_deployments IS NOT NULL {lock}";
    let Some(row) = tx.one(sql, params![tenant.as_str()]).await? else { return Ok(()) };
    let most = row.int("most_deployments")?;
    let sql = "SELECT COUNT(*) AS count FROM deployments WHERE tenant = $1";
    let count = tx.exactly_one(sql, params![tenant.as_str()]).await?.int("count")?;
    if count >= most {
        let message = format!("tenant `{tenant}` has {count} deployments, and may have {most}");
        return Err(Problem::new(Code::DeploymentQuota, message).into());
    }
    Ok(())
}

/// `most` is null without a quota. A deployment's own runs do not count: a newer one takes their place.
async fn refuse_beyond_waiting(tx: &mut Tx, locked: &Locked, most: Option<i64>) -> Result<(), StoreError> {
    let Some(most) = most else { return Ok(()) };
    let row = tx
        .exactly_one(
            "SELECT COUNT(*) AS count FROM (SELECT 1 FROM runs
                 WHERE tenant = $1 AND claimable <> 0 AND kind <> 'check' AND deployment <> $2 LIMIT $3) AS waiting",
            params![locked.tenant.as_str(), locked.id.to_string(), most],
        )
        .await?;
    if row.int("count")? >= most {
        let message = format!("{most} runs of tenant `{}` wait already, which is the most it may have", locked.tenant);
        return Err(Problem::new(Code::WaitingQuota, message).into());
    }
    Ok(())
}

/// Ids carry the database's time, so that they sort the same for everyone.
pub(crate) async fn new_id<T>(tx: &mut Tx, make: fn(u64, &[u8; 10]) -> T) -> Result<T, StoreError> {
    made_at(tx.exactly_one("SELECT {now} AS now", params![]).await?.int("now")?, make)
}

fn made_at<T>(now: i64, make: fn(u64, &[u8; 10]) -> T) -> Result<T, StoreError> {
    let mut random = [0u8; 10];
    fill_random(&mut random)?;
    Ok(make(now.unsigned_abs(), &random))
}

async fn is_newest(tx: &mut Tx, locked: &Locked, hash: &[u8]) -> Result<bool, StoreError> {
    if locked.generation == 0 {
        return Ok(false);
    }
    let row = tx
        .one(
            "SELECT hash FROM generations WHERE deployment = $1 AND generation = $2",
            params![locked.id.to_string(), locked.generation],
        )
        .await?;
    Ok(row.map(|row| row.blob("hash")).transpose()?.is_some_and(|newest| newest == hash))
}

async fn latest_run(tx: &mut Tx, locked: &Locked, generation: i64) -> Result<Option<Run>, StoreError> {
    let row = tx
        .one(
            "SELECT id FROM runs WHERE deployment = $1 AND generation = $2 AND plan_only = 0 ORDER BY id DESC LIMIT 1",
            params![locked.id.to_string(), generation],
        )
        .await?;
    match row {
        Some(row) => load_run(tx, row.parsed("id")?).await,
        None => Ok(None),
    }
}

async fn insert_generation(
    tx: &mut Tx,
    locked: &Locked,
    sealer: &Sealer,
    generation: i64,
    desired: &Desired,
    hash: Vec<u8>,
) -> Result<(), StoreError> {
    let inputs = serde_json::to_vec(&desired.inputs)?;
    tx.execute(
        "INSERT INTO generations (deployment, generation, kind, template, template_version, inputs, hash, engine,
            requires_approval, time_limit, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, {now})",
        params![
            locked.id.to_string(),
            generation,
            desired.kind.as_str(),
            desired.template.as_str(),
            desired.template_version,
            sealer.seal(keys::Kind::Inputs, &generation.to_string(), &inputs)?,
            hash,
            desired.engine.as_str(),
            desired.requires_approval,
            desired.time_limit,
        ],
    )
    .await?;
    tx.execute(
        "UPDATE deployments SET generation = $2, updated_at = {now} WHERE id = $1",
        params![locked.id.to_string(), generation],
    )
    .await?;
    keep_bound(tx, &locked.tenant, locked.id, generation, &desired.connections).await
}

pub(crate) async fn load_desired(
    tx: &mut Tx,
    sealer: &Sealer,
    deployment: DeploymentId,
    generation: i64,
) -> Result<Option<Desired>, StoreError> {
    let row = tx
        .one(
            concat!("SELECT ", desired_columns!(), " FROM generations g WHERE g.deployment = $1 AND g.generation = $2"),
            params![deployment.to_string(), generation],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let connections = load_bound(tx, deployment, generation).await?;
    Ok(Some(Desired::from_row(&row, sealer, generation, connections)?))
}

/// The fair order's present: just before the key that is next, or where nothing waits the highest that was claimed. The
/// highest alone would be wrong: a claim that passes over rows which are locked at that moment may take one from far behind.
/// Drift checks, whose keys begin at 2^60, are no part of it.
const NEXT_PLACE: &str = "UPDATE tenants SET queue_tag = 1 + CASE WHEN queue_tag > f.now THEN queue_tag ELSE f.now END
     FROM (SELECT COALESCE((SELECT MIN(r.order_key) - 1 FROM runs r WHERE r.claimable = 1
            AND r.order_key < 1152921504606846976),
        (SELECT MAX(reached) FROM queue_clock), 0) AS now) AS f
     WHERE name = $1 RETURNING queue_tag, most_waiting, {now} AS now";

/// A tenant's runs follow each other at distance 1 in the fair order, and a tenant that was idle starts at the order's
/// present: whoever queues many runs waits behind others' few.
pub(crate) async fn insert_run(
    tx: &mut Tx,
    locked: &Locked,
    generation: i64,
    desired: &Desired,
    request: &RunRequest,
    by: &Actor,
) -> Result<Run, StoreError> {
    let row = tx.exactly_one(NEXT_PLACE, params![locked.tenant.as_str()]).await?;
    let id = made_at(row.int("now")?, RunId::from_parts)?;
    let order_key = row.int("queue_tag")?;
    refuse_beyond_waiting(tx, locked, row.int_or_null("most_waiting")?).await?;
    let status = Status::Queued(Next::Plan);
    tx.execute(
        "INSERT INTO runs (id, deployment, tenant, name, kind, generation, requires_approval, status, detail,
            claimable, order_key, author, author_name, template, plan_only, replaces, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, $12, $13, $14, $15, {now})",
        params![
            id.to_string(),
            locked.id.to_string(),
            locked.tenant.as_str(),
            locked.name.as_str(),
            desired.kind.as_str(),
            generation,
            desired.requires_approval,
            status.word(),
            serde_json::to_string(&status)?,
            order_key,
            by.id.as_str(),
            by.name.as_str(),
            desired.template.as_str(),
            request.plan_only,
            serde_json::to_string(&request.replace)?,
        ],
    )
    .await?;
    append_events(tx, id, &[EventBody::Status(status)]).await?;
    load_run(tx, id).await?.ok_or_else(|| StoreError::Corrupt("a run vanished".into()))
}

/// Says whether there was any.
pub(crate) async fn supersede_older(tx: &mut Tx, locked: &Locked, by: RunId) -> Result<bool, StoreError> {
    let rows = tx
        .all(
            "SELECT id FROM runs WHERE deployment = $1 AND id <> $2
                AND status IN ('queued', 'planning', 'awaiting_approval')",
            params![locked.id.to_string(), by.to_string()],
        )
        .await?;
    let any = !rows.is_empty();
    for row in rows {
        let Some(run) = load_run(tx, row.parsed("id")?).await? else { continue };
        match advance(tx, locked.id, &run, Command::Supersede { by }, Means::default()).await {
            // A run that is being recovered goes first.
            Ok(_) | Err(StoreError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(any)
}

/// The run that this key got before. The row is taken first, so of two requests at the same moment one waits here.
async fn earlier_answer(
    tx: &mut Tx,
    tenant_key: &TenantKey,
    key: Option<&IdempotencyKey>,
) -> Result<Option<Run>, StoreError> {
    let Some(key) = key else { return Ok(None) };
    let body = tenant_key.hash_body(&key.body);
    let names = || params![key.principal.as_str(), key.route.as_str(), key.key.as_str()];
    let taken = tx
        .execute(
            "INSERT INTO idempotency_keys (principal, route, key, body, run, created_at)
             VALUES ($1, $2, $3, $4, '', {now}) ON CONFLICT (principal, route, key) DO NOTHING",
            [names(), params![body.clone()]].concat(),
        )
        .await?;
    if taken == 1 {
        return Ok(None);
    }
    let row = tx
        .exactly_one("SELECT body, run FROM idempotency_keys WHERE principal = $1 AND route = $2 AND key = $3", names())
        .await?;
    if row.blob("body")? != body {
        let message = format!("the Idempotency-Key {:?} was used for another request", key.key);
        return Err(Problem::new(Code::IdempotencyKeyReused, message).into());
    }
    load_run(tx, row.parsed("run")?).await
}

async fn remember_answer(tx: &mut Tx, key: Option<IdempotencyKey>, run: RunId) -> Result<(), StoreError> {
    if let Some(key) = key {
        tx.execute(
            "UPDATE idempotency_keys SET run = $4 WHERE principal = $1 AND route = $2 AND key = $3",
            params![key.principal, key.route, key.key, run.to_string()],
        )
        .await?;
    }
    Ok(())
}
