//! All that the attempts of one claim need, a statement for each kind of thing.

use std::collections::HashMap;
use std::time::Duration;

use landform_domain::RunId;
use landform_domain::run::{Kind, Phase, Status};

use super::take::Taken;
use super::{Adoption, Claim, Lease, Work};
use crate::accept::{Desired, desired_columns};
use crate::connection::{Bound, open_bound};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::journal::load_journal;
use crate::keys::{self, Keys, Sealer};
use crate::transition::Locked;
use crate::view::Run;

/// `taken` has the deployments' rows as they were before the claim, which has raised their epochs, and the runs as they
/// are after it.
pub(super) async fn load_claims(tx: &mut Tx, keys: &Keys, taken: Vec<Taken>) -> Result<Vec<Claim>, StoreError> {
    let runs: Vec<String> = taken.iter().map(|taken| taken.run.id.to_string()).collect();
    let runs = serde_json::to_string(&runs)?;
    let mut desired = by_run(tx, DESIRED, &runs).await?;
    // Few have any of these.
    let mut bound = by_run_if(tx, &desired, "has_bound", BOUND, &runs).await?;
    let mut adoptions = by_run_if(tx, &desired, "has_adoptions", ADOPTIONS, &runs).await?;
    let mut doubted = by_run_if(tx, &desired, "has_doubted", DOUBTED, &runs).await?;
    keys.open_all(tx, taken.iter().map(|taken| &taken.locked.tenant)).await?;
    let mut claims = Vec::with_capacity(taken.len());
    for Taken { locked, run, replaces, memory } in taken {
        let missing = |what: &str| StoreError::Corrupt(format!("run {} has no {what}", run.id));
        let rows_of = |rows: &mut HashMap<RunId, Vec<Row>>| rows.remove(&run.id).unwrap_or_default();
        let sealer = keys.within(tx, &locked.tenant).await?.sealer(locked.id);
        let connections: Vec<Bound> = rows_of(&mut bound).iter().map(Bound::from_row).collect::<Result<_, _>>()?;
        let row = rows_of(&mut desired).pop().ok_or_else(|| missing("desired state"))?;
        let state = match (locked.state_version, row.blob_or_null("state")?) {
            (None, _) => None,
            (Some(_), None) => return Err(missing("state")),
            (Some(version), Some(state)) => Some(sealer.open(keys::Kind::State, &version.to_string(), &state)?),
        };
        let desired = Desired::from_row(&row, &sealer, run.generation, connections)?;
        claims.push(Claim {
            lease: Lease { tenant: locked.tenant.clone(), deployment: locked.id, run: run.id, epoch: locked.epoch + 1 },
            deployment: locked.name.clone(),
            attempt: run.attempts,
            kind: run.kind,
            generation: run.generation,
            template: desired.template,
            template_version: desired.template_version,
            inputs: desired.inputs,
            connections: open_bound(tx, &sealer, &locked.tenant, &desired.connections).await?,
            engine: desired.engine,
            requires_approval: run.requires_approval,
            time_limit: desired.time_limit.map(|seconds| Duration::from_secs(seconds.unsigned_abs())),
            memory,
            engine_before: run.engine,
            state,
            // A drift check takes nothing over.
            adopt: match run.kind {
                Kind::Check => Vec::new(),
                _ => rows_of(&mut adoptions).iter().map(adoption).collect::<Result<_, _>>()?,
            },
            replace: replaces,
            doubted: rows_of(&mut doubted).iter().map(|row| open_intent(row, &sealer)).collect::<Result<_, _>>()?,
            plan_only: run.plan_only,
            work: load_work(tx, &sealer, &locked, &run).await?,
        });
    }
    Ok(claims)
}

const DESIRED: &str = concat!(
    "SELECT r.id AS run, ",
    desired_columns!(),
    ", s.state AS state,
     CAST(CASE WHEN EXISTS (SELECT 1 FROM generation_connections c
        WHERE c.deployment = r.deployment AND c.generation = r.generation) THEN 1 ELSE 0 END AS BIGINT) AS has_bound,
     CAST(CASE WHEN EXISTS (SELECT 1 FROM adoptions a
        WHERE a.deployment = r.deployment) THEN 1 ELSE 0 END AS BIGINT) AS has_adoptions,
     CAST(CASE WHEN EXISTS (SELECT 1 FROM intents i WHERE i.deployment = r.deployment
        AND i.status <> 'closed' AND i.status = 'doubted') THEN 1 ELSE 0 END AS BIGINT) AS has_doubted
     FROM runs r JOIN generations g ON g.deployment = r.deployment AND g.generation = r.generation
        JOIN deployments d ON d.id = r.deployment
        LEFT JOIN states s ON s.deployment = d.id AND s.version = d.state_version
     WHERE r.id IN (SELECT e.value FROM {strings $1})"
);

const BOUND: &str = "SELECT r.id AS run, c.connection, c.variables
     FROM runs r JOIN generation_connections c ON c.deployment = r.deployment AND c.generation = r.generation
     WHERE r.id IN (SELECT e.value FROM {strings $1}) ORDER BY c.connection";

const ADOPTIONS: &str = "SELECT r.id AS run, a.address, a.object_id, a.after_doubt
     FROM runs r JOIN adoptions a ON a.deployment = r.deployment
     WHERE r.id IN (SELECT e.value FROM {strings $1}) ORDER BY a.address";

const DOUBTED: &str = "SELECT r.id AS run, i.run AS interrupted, i.intent
     FROM runs r JOIN intents i ON i.deployment = r.deployment AND i.status <> 'closed' AND i.status = 'doubted'
     WHERE r.id IN (SELECT e.value FROM {strings $1}) ORDER BY i.id";

/// Asks only if one of these rows says that there is something.
async fn by_run_if(
    tx: &mut Tx,
    rows: &HashMap<RunId, Vec<Row>>,
    flag: &str,
    sql: &'static str,
    runs: &str,
) -> Result<HashMap<RunId, Vec<Row>>, StoreError> {
    for row in rows.values().flatten() {
        if row.flag(flag)? {
            return by_run(tx, sql, runs).await;
        }
    }
    Ok(HashMap::new())
}

/// `sql` takes a list of runs and says of each row which run it is for.
async fn by_run(tx: &mut Tx, sql: &'static str, runs: &str) -> Result<HashMap<RunId, Vec<Row>>, StoreError> {
    let mut rows: HashMap<RunId, Vec<Row>> = HashMap::new();
    for row in tx.all(sql, params![runs]).await? {
        rows.entry(row.parsed("run")?).or_default().push(row);
    }
    Ok(rows)
}

async fn load_work(tx: &mut Tx, sealer: &Sealer, locked: &Locked, run: &Run) -> Result<Work, StoreError> {
    Ok(match &run.status {
        Status::Applying(Phase::Recovering) => Work::Recover { journal: load_journal(tx, sealer, locked).await? },
        Status::Applying(Phase::Running) => {
            let row = tx.exactly_one("SELECT plan FROM runs WHERE id = $1", params![run.id.to_string()]).await?;
            let sealed = row.blob_or_null("plan")?;
            let sealed = sealed.ok_or_else(|| StoreError::Corrupt(format!("run {} has no plan", run.id)))?;
            Work::Apply { plan: sealer.open(keys::Kind::Plan, &run.id.to_string(), &sealed)? }
        }
        _ => Work::Plan,
    })
}

fn open_intent(row: &Row, sealer: &Sealer) -> Result<Vec<u8>, StoreError> {
    sealer.open(keys::Kind::Intent, &row.text("interrupted")?, &row.blob("intent")?)
}

fn adoption(row: &Row) -> Result<Adoption, StoreError> {
    Ok(Adoption { address: row.text("address")?, id: row.text("object_id")?, after_doubt: row.flag("after_doubt")? })
}
