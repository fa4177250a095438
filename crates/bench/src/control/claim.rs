//! Runs that change nothing, claimed and completed by the store's own path, as workers do it, from a queue of a million.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use landform_domain::EngineName;
use landform_domain::run::PlanSummary;
use landform_store::{Claim, EngineChosen, Planned, Store, WorkerId};
use landform_testkit::figures::Times;

use crate::stage::{Kind, Place, furnish};
use crate::{Figure, Options};

pub const TENANTS: usize = 10_000;
pub const DEPLOYMENTS_EACH: usize = 10;

/// Each queued run nine times more: the order goes on where the tenant's last one stands. Ids end in digits of their own.
pub const COPIES: &str =
    "INSERT INTO runs (id, deployment, tenant, name, kind, generation, requires_approval, status, detail,
        claimable, order_key, last_event, template, created_at)
    SELECT substr(r.id, 1, 33) || 'f0' || c.digit, r.deployment, r.tenant, r.name, r.kind, r.generation,
        r.requires_approval, r.status, r.detail, 1, r.order_key + 10 * c.step, 1, r.template, r.created_at
    FROM runs r CROSS JOIN (SELECT '1' AS digit, 1 AS step UNION ALL SELECT '2', 2 UNION ALL SELECT '3', 3
        UNION ALL SELECT '4', 4 UNION ALL SELECT '5', 5 UNION ALL SELECT '6', 6 UNION ALL SELECT '7', 7
        UNION ALL SELECT '8', 8 UNION ALL SELECT '9', 9) c
    WHERE true ON CONFLICT (id) DO NOTHING;
    UPDATE tenants SET queue_tag = queue_tag + 90";

/// Processes with so many runs at once each, as `--workers` says.
const WORKERS: usize = 4;
const RUNS_AT_ONCE: usize = 32;

pub async fn measure(options: &Options, kind: Kind) -> Result<Vec<Figure>> {
    let place = Place::make(kind).await?;
    eprintln!("claim, {}: filling the queue …", kind.name());
    let store = place.open().await?;
    let tenants = options.scaled(TENANTS, 100);
    furnish(&store, tenants, DEPLOYMENTS_EACH).await?;
    store.close().await;
    drop(store);
    place.run_sql(COPIES).await?;
    if kind == Kind::Postgres {
        // What autovacuum does by itself within a minute of such a change.
        place.run_sql("VACUUM ANALYZE").await?;
    }
    let store = place.open().await?;
    let queued = tenants * DEPLOYMENTS_EACH * 10;
    let seconds = Duration::from_secs_f64((20.0 * options.size).clamp(3.0, 20.0));
    eprintln!("claim, {}: {queued} queued, working for {seconds:?} …", kind.name());
    let (done, begin) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut workers = tokio::task::JoinSet::new();
    for number in 0..WORKERS {
        let (store, done) = (store.clone(), done.clone());
        workers.spawn(work(store, WorkerId::new(format!("bench-{number}")), begin + seconds, done));
    }
    let mut claims = Vec::new();
    while let Some(worker) = workers.join_next().await {
        claims.extend(worker??);
    }
    let rate = done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    store.close().await;
    let claims = Times::new(claims);
    ensure!(done.load(Ordering::Relaxed) < queued, "the queue ran empty; this needs a larger --size");
    Ok(vec![Figure {
        what: format!("claim and complete runs without changes, {queued} queued over {tenants} tenants"),
        store: kind.name(),
        measured: format!("{rate:.0}/s; a claim takes {:.1} ms (p50)", claims.percentile(0.5)),
        goal: "1,000/s",
        held: rate >= 1000.0,
    }])
}

/// As the worker's own loop: whatever slots are free are filled by one claim, and each run ends by itself.
async fn work(store: Store, id: WorkerId, until: Instant, done: Arc<AtomicUsize>) -> Result<Vec<Duration>> {
    let slots = Arc::new(tokio::sync::Semaphore::new(RUNS_AT_ONCE));
    let mut times = Vec::new();
    let mut runs = tokio::task::JoinSet::new();
    while Instant::now() < until {
        let mut taken = vec![slots.clone().acquire_owned().await?];
        taken.extend(std::iter::from_fn(|| slots.clone().try_acquire_owned().ok()).take(15));
        let asked = Instant::now();
        let claims = store.claim_up_to(&id, taken.len()).await?;
        times.push(asked.elapsed());
        ensure!(!claims.is_empty(), "nothing was due");
        for (claim, slot) in claims.into_iter().zip(taken) {
            let (store, done) = (store.clone(), done.clone());
            runs.spawn(async move {
                complete(&store, claim).await?;
                done.fetch_add(1, Ordering::Relaxed);
                drop(slot);
                anyhow::Ok(())
            });
        }
        while let Some(run) = runs.try_join_next() {
            run??;
        }
    }
    while let Some(run) = runs.join_next().await {
        run??;
    }
    Ok(times)
}

async fn complete(store: &Store, claim: Claim) -> Result<()> {
    let engine = EngineChosen { engine: EngineName::Native, version: "bench".into(), reasons: Vec::new() };
    let planned = Planned {
        reports: Vec::new(),
        engines: vec![engine],
        summary: PlanSummary::default(),
        effective: false,
        plan: Vec::new(),
        json: None,
        outputs: Some(Default::default()),
        memory: None,
    };
    let status = store.planned(&claim.lease, planned).await?;
    ensure!(status.is_success(), "the run is {status}");
    Ok(())
}
