use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use landform_domain::run::Kind;
use landform_engine::Stop;
use landform_engine::policy::Policy;
use landform_gateway::Gateway;
use landform_store::metrics::VendorCalls;
use landform_store::{Claim, Claimed, Store, StoreError, WorkerId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use crate::attempt::{Attempt, End, Shop};
use crate::choose::Engines;
use crate::folders::Folders;
use crate::identity::Identity;
use crate::keeper::Keeper;
use crate::memory::Memory;
use crate::ports::Reports;
use crate::prepared::Prepared;
use crate::report;
use crate::seats::{Booth, Seats};
use crate::spool::Spool;
use crate::threads::Place;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The worker's own folder: its identity, unpacked templates, and what runs need on disk.
    pub folder: PathBuf,
    /// So many runs at once, and for a moment one more, of a tenant that has nothing under way.
    pub concurrency: usize,
    /// What the processes of all runs may take of memory, in bytes; `None` is without a limit.
    pub memory: Option<u64>,
    /// How often to look for work when no doorbell rings.
    pub poll: Duration,
    /// What providers may see of an environment.
    pub environment: BTreeMap<String, String>,
    /// Names of environment variables that a connection may set.
    pub connection_environment: BTreeSet<String>,
    /// How long a plan or an apply may take, where its deployment does not say otherwise.
    pub time_limit: Duration,
    /// How long whatever was asked to stop may take to save its state: a run that is cancelled, a child that our
    /// predecessor's death has left behind.
    pub grace: Duration,
    /// Whole plans are made also where nobody has to approve them. It costs an engine its shorter way.
    pub keep_plans: bool,
    /// What templates may do besides describing objects.
    pub policy: Policy,
}

impl Settings {
    pub fn new(folder: impl Into<PathBuf>) -> Settings {
        Settings {
            folder: folder.into(),
            concurrency: 4,
            memory: None,
            poll: Duration::from_secs(2),
            environment: BTreeMap::new(),
            connection_environment: BTreeSet::new(),
            time_limit: Duration::from_secs(6 * 3600),
            grace: Duration::from_secs(60),
            keep_plans: false,
            policy: Policy::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another worker works in {}", .0.display())]
    InUse(PathBuf),
    #[error("the worker's folder {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("the gateway to vendors: {0}")]
    Gateway(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Claims runs and carries them out until it is drained or dropped. Dropping is like a crash: whatever was under way is
/// recovered by the next worker.
pub struct Worker {
    id: WorkerId,
    gateway: Gateway,
    /// No new runs are claimed.
    closing: Stop,
    /// Runs under way stop at the next safe point.
    stopping: Stop,
    /// Everything ends at once.
    abandoning: Stop,
    main: Option<JoinHandle<()>>,
}

impl Worker {
    pub async fn start(store: Store, engines: Engines, settings: Settings) -> Result<Worker, StartError> {
        let failed = |source| StartError::Folder { folder: settings.folder.clone(), source };
        let folders = Folders::make(&settings.folder).map_err(failed)?;
        let identity = Identity::acquire(&settings.folder).map_err(failed)?;
        let identity = identity.ok_or_else(|| StartError::InUse(settings.folder.clone()))?;
        let id = identity.id.clone();
        // Before anybody can take up what an earlier life of this worker was doing, its children have come to their end:
        // another worker would not see them, and would ask about objects that are still being made.
        for run in folders.leftovers().map_err(failed)? {
            landform_base::child::sweep(&folders.scratch(run), settings.grace).await.map_err(failed)?;
        }
        let spool = Spool::open(&settings.folder.join("spool")).map_err(failed)?;
        let voided = take_over(&store, &spool, &id).await?;
        if voided > 0 {
            tracing::info!(worker = %id, voided, "taking up what an earlier life of this worker left");
        }
        let gateway =
            Gateway::start(Some(&settings.folder.join("gateway/calls"))).await.map_err(StartError::Gateway)?;
        let counted = gateway.clone();
        store.watch_vendor_calls(move || vendor_calls(&counted));
        let (closing, stopping, abandoning) = (Stop::new(), Stop::new(), Stop::new());
        let Settings { environment, connection_environment, time_limit, grace, keep_plans, policy, .. } = settings;
        let booth = Booth::new(gateway.clone(), store.clone(), id.clone());
        let shop = Shop {
            store,
            engines,
            folders,
            prepared: Prepared::default(),
            spool,
            booth,
            environment,
            connection_environment,
            time_limit,
            grace,
            keep_plans,
            policy,
        };
        let shop = Arc::new(shop);
        let memory = Memory::of(settings.memory);
        if settings.memory.is_some() {
            let memory = memory.clone();
            shop.store.watch_room(move || memory.room());
        }
        let floor = Floor {
            shop,
            identity,
            memory,
            slots: Arc::new(Semaphore::new(settings.concurrency.max(1))),
            newcomers: Arc::new(Semaphore::new(1)),
            checks: Arc::new(Semaphore::new((settings.concurrency / 2).max(1))),
            concurrency: settings.concurrency,
            poll: settings.poll,
            closing: closing.clone(),
            stopping: stopping.clone(),
        };
        let main = tokio::spawn(floor.work(abandoning.clone()));
        Ok(Worker { id, gateway, closing, stopping, abandoning, main: Some(main) })
    }

    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// The way of its runs to vendors.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Claims nothing more and waits for what is under way; after `patience` that is asked to stop at the next safe
    /// point, and waited for.
    pub async fn drain(mut self, patience: Duration) {
        self.closing.cancel();
        let Some(mut main) = self.main.take() else { return };
        if tokio::time::timeout(patience, &mut main).await.is_err() {
            self.stopping.cancel();
            let _ = main.await;
        }
    }

    /// Ends at once and leaves everything as it is, like a crash. Returns when nothing runs any more.
    pub async fn abandon(mut self) {
        self.abandoning.cancel();
        if let Some(main) = self.main.take() {
            let _ = main.await;
        }
    }
}

/// Ends what an earlier life of this worker held. What that life has learnt comes before anybody asks about it. A store that
/// is away for a moment is asked again: all of it may be done twice.
async fn take_over(store: &Store, spool: &Spool, id: &WorkerId) -> Result<usize, StoreError> {
    let begin = Instant::now();
    loop {
        let taken = async {
            spool.bring(store).await?;
            store.void_leases(id).await
        };
        match taken.await {
            Err(error) if error.is_transient() && begin.elapsed() < PATIENCE_AT_START => {
                tracing::warn!(%error, "the worker waits for the store");
                tokio::time::sleep(AFTER_AN_ERROR).await;
            }
            taken => return taken,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(main) = &self.main {
            main.abort();
        }
    }
}

/// Where the work is done. Everything it starts ends with it.
struct Floor {
    shop: Arc<Shop>,
    identity: Identity,
    slots: Arc<Semaphore>,
    /// A place beside them for a tenant that has nothing under way: however long the others' runs take, it need not wait
    /// for the end of one. The next of theirs that is free is then its own, so that it need not share the machine with one
    /// more than anybody else.
    newcomers: Arc<Semaphore>,
    /// Of the slots, so many at most for drift checks: whoever wants a change finds a place although everything is being
    /// looked at.
    checks: Arc<Semaphore>,
    memory: Arc<Memory>,
    concurrency: usize,
    poll: Duration,
    closing: Stop,
    stopping: Stop,
}

/// A claim's transaction stays short.
const MOST_AT_ONCE: usize = 16;

const AFTER_AN_ERROR: Duration = Duration::from_secs(1);

/// How long a worker that starts waits for a store that is away.
const PATIENCE_AT_START: Duration = Duration::from_secs(30);

impl Floor {
    async fn work(self, abandoning: Stop) {
        let mut attempts = JoinSet::new();
        tokio::select! {
            () = self.serve(&mut attempts) => {}
            () = abandoning.cancelled() => attempts.shutdown().await,
        }
    }

    async fn serve(&self, attempts: &mut JoinSet<()>) {
        attempts.spawn(clean_up(self.shop.clone()));
        // Ends with this function, and not before the last attempt.
        let mut keeping = JoinSet::new();
        let shop = self.shop.clone();
        keeping.spawn(async move { shop.booth.accounts.keep().await });
        let mut doorbell = self.shop.store.doorbell();
        while !self.closing.is_cancelled() {
            let slot = tokio::select! {
                biased;
                slot = self.slots.clone().acquire_owned() => slot.expect("the semaphore is never closed"),
                () = self.closing.cancelled() => break,
                // Also when the newcomers' place is taken: whoever leaves it rings, too.
                () = doorbell.rung(self.poll) => {
                    self.let_a_newcomer_in(attempts).await;
                    continue;
                }
            };
            // What has ended is forgotten, so that the set does not grow.
            while attempts.try_join_next().is_some() {}
            // Whatever else is free is filled by the same claim.
            let more = std::iter::from_fn(|| self.slots.clone().try_acquire_owned().ok()).take(MOST_AT_ONCE - 1);
            let slots: Vec<OwnedSemaphorePermit> = std::iter::once(slot).chain(more).collect();
            let checks = std::iter::from_fn(|| self.checks.clone().try_acquire_owned().ok()).take(slots.len());
            let mut checks: Vec<OwnedSemaphorePermit> = checks.collect();
            let asked = Instant::now();
            let Some(claimed) = self.claim(slots.len(), checks.len()).await else { break };
            match claimed {
                Ok(Claimed { claims, .. }) if !claims.is_empty() => {
                    for (claim, slot) in claims.into_iter().zip(slots) {
                        let check = if claim.kind == Kind::Check { checks.pop() } else { None };
                        self.begin(attempts, claim, asked, async move { (slot, check) });
                    }
                }
                Ok(Claimed { no_room, .. }) => {
                    drop((slots, checks));
                    tokio::select! {
                        // The next one needs what others have: whoever ends makes room, or another worker takes it.
                        () = self.memory.freed(), if no_room => {}
                        () = tokio::time::sleep(self.poll), if no_room => {}
                        () = doorbell.rung(self.poll), if !no_room => {}
                        () = self.closing.cancelled() => {}
                    }
                }
                Err(error) => {
                    drop((slots, checks));
                    tracing::warn!(%error, "no run could be claimed");
                    tokio::select! {
                        () = tokio::time::sleep(AFTER_AN_ERROR) => {}
                        () = self.closing.cancelled() => {}
                    }
                }
            }
        }
        while attempts.join_next().await.is_some() {}
        keeping.shutdown().await;
        // A store that does not answer is not waited for: the accounts are free when their lease runs out.
        let giving_up = self.shop.booth.accounts.give_up();
        if let Ok(Err(error)) = tokio::time::timeout(AFTER_AN_ERROR, giving_up).await {
            tracing::warn!(%error, "the vendors' accounts could not be given up");
        }
    }

    /// What `places` comes to is its own for as long as it takes; it does not wait for that.
    fn begin<T: Send + 'static>(
        &self,
        attempts: &mut JoinSet<()>,
        claim: Claim,
        asked: Instant,
        places: impl Future<Output = T> + Send + 'static,
    ) {
        let (shop, stop) = (self.shop.clone(), self.stopping.child_token());
        let memory = self.memory.reserve(claim.memory);
        let place = Place::take(self.concurrency);
        let thread = place.handle();
        // Not on the run's own thread: a lease is renewed, and a time limit kept, however busy that one is.
        let limit = claim.time_limit.unwrap_or(shop.time_limit);
        let keeper = Keeper::start(shop.store.clone(), claim.lease.clone(), asked, stop, limit);
        let work = async move {
            let mut work = std::pin::pin!(carry_out(&shop, claim, keeper));
            tokio::select! {
                biased;
                places = places => {
                    work.await;
                    drop(places);
                }
                () = &mut work => {}
            }
            drop((memory, place));
        };
        attempts.spawn_on(work, thread);
    }

    /// All places are taken, and somebody may have come who has none of them.
    async fn let_a_newcomer_in(&self, attempts: &mut JoinSet<()>) {
        let Ok(place) = self.newcomers.clone().try_acquire_owned() else { return };
        let asked = Instant::now();
        let claiming = async {
            self.shop.spool.bring(&self.shop.store).await?;
            self.shop.store.claim_newcomer(&self.identity.id, self.memory.room()).await
        };
        match self.unless_closing(claiming).await {
            Some(Ok(Some(claim))) => {
                let mut next = Box::pin(self.slots.clone().acquire_owned());
                // In the row from now on, before whoever takes further runs.
                let free = futures::poll!(&mut next);
                self.begin(attempts, claim, asked, async move {
                    let slot = match free {
                        Poll::Ready(slot) => slot,
                        Poll::Pending => next.await,
                    };
                    drop(place);
                    slot
                });
            }
            Some(Err(error)) => tracing::warn!(%error, "no run could be claimed"),
            Some(Ok(None)) | None => {}
        }
    }

    async fn claim(&self, most: usize, checks: usize) -> Option<Result<Claimed, StoreError>> {
        let claiming = async {
            // First what is known, so that nobody is asked about it.
            self.shop.spool.bring(&self.shop.store).await?;
            self.shop.store.claim_with_checks(&self.identity.id, most, checks, self.memory.room()).await
        };
        self.unless_closing(claiming).await
    }

    /// `None`: the worker closes, and a store that does not answer is not waited for. Whatever it may still grant is void
    /// at the next start.
    async fn unless_closing<T>(
        &self,
        claiming: impl Future<Output = Result<T, StoreError>>,
    ) -> Option<Result<T, StoreError>> {
        let given_up = async {
            self.closing.cancelled().await;
            tokio::time::sleep(AFTER_AN_ERROR).await;
        };
        tokio::select! {
            claimed = claiming => Some(claimed),
            () = given_up => None,
        }
    }
}

async fn carry_out(shop: &Shop, claim: Claim, keeper: Keeper) {
    let (lease, run) = (claim.lease.clone(), claim.lease.run);
    tracing::info!(%run, attempt = claim.attempt, "taking up a run");
    let clock = keeper.clock().clone();
    let reports =
        Reports::start(shop.store.clone(), lease.clone(), report::redactor(&claim.inputs, &claim.connections));
    let (tried, doubted, seats) = (Mutex::default(), Vec::new(), Seats::default());
    let attempt = Attempt { shop, claim, clock: clock.clone(), reports, tried, doubted, seats };
    // A panic is that run's misfortune and nobody else's.
    let work = AssertUnwindSafe(attempt.run()).catch_unwind();
    let end = tokio::select! {
        end = work => end.unwrap_or_else(|_| {
            tracing::error!(%run, "an attempt panicked");
            End::Leave
        }),
        // Dropping the work ends its children.
        () = clock.over.cancelled() => End::Lost,
    };
    drop(keeper);
    match end {
        End::Clean => shop.folders.remove_scratch(run, lease.epoch),
        End::Leave => {}
        End::Lost => tracing::warn!(%run, "the lease is lost"),
        given_back => {
            let given = match given_back {
                End::GiveUp => shop.store.give_up(&lease, "its time limit").await,
                End::Elsewhere(owner) => shop.store.bind_to(&lease, &owner).await,
                End::Later { wait, reason } => {
                    shop.store.give_back_until(&lease, SystemTime::now() + wait, &reason).await
                }
                _ => shop.store.release(&lease).await,
            };
            if let Err(StoreError::Fenced) = given {
                tracing::warn!(%run, "the lease is lost");
            } else if let Err(error) = given {
                tracing::warn!(%run, %error, "a run could not be given back; its lease will run out");
            }
        }
    }
}

fn vendor_calls(gateway: &Gateway) -> Vec<VendorCalls> {
    let calls = |total: landform_gateway::Total| VendorCalls {
        vendor: total.vendor,
        operation: total.operation,
        outcomes: total.outcomes.iter().map(|(outcome, count)| (outcome.word(), *count)).collect(),
        held: total.held,
    };
    gateway.totals().into_iter().map(calls).collect()
}

/// Scratch folders of runs that ended elsewhere, or whose last attempt died after its last word.
async fn clean_up(shop: Arc<Shop>) {
    let runs = shop.folders.leftovers().unwrap_or_default();
    for run in runs {
        let is_final = match shop.store.run(run).await {
            Ok(run) => run.status.is_final(),
            Err(StoreError::Refused(_)) => true,
            Err(_) => false,
        };
        if is_final {
            if let Err(error) = landform_base::child::sweep(&shop.folders.scratch(run), shop.grace).await {
                tracing::warn!(%run, %error, "children of a run that has ended");
            }
            shop.folders.remove_scratch(run, i64::MAX);
        }
    }
}
