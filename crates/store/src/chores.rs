//! Chores: small, idempotent work beside the runs, such as deliveries, timers and retention.
//!
//! What is to be done stands in rows of its own (a delivery, an approval that expires), written by the transaction that makes
//! it necessary, so none is lost and none is for something that never happened. River, in the same database, sees to it
//! that somebody goes through those rows, one process at a time. A chore is done at least once: a process that dies in
//! the middle has it done again. Runs are no chores: they need fences and fairness, which River does not have.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use riverqueue::jiff::Timestamp;
use riverqueue::migrate::{PostgresMigrator, SqliteMigrator};
use riverqueue::{
    Client, ClientBuilder, InsertOpts, IntervalSchedule, Job, JobArgs, JobState, MaintenanceConfig, PeriodicJob,
    PeriodicJobOpts, QueueConfig, Retention, RunHandle, UniqueOpts, WorkContext, WorkError, WorkOutcome, Worker,
    Workers,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::db::Db;
use crate::error::StoreError;
use crate::open::Store;

/// One kind of chore; the value says which one. It is kept in clear, so it names secrets and does not hold them.
pub trait Chore: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// Stable, because the database has it.
    const KIND: &'static str;
    /// After so many attempts it is given up.
    const ATTEMPTS: u16;

    /// How long to wait after this attempt (the first is 1) has failed.
    fn retry_after(attempt: u16) -> Duration {
        Duration::from_secs(1 << attempt.clamp(1, 12))
    }
}

/// One attempt at a chore.
pub struct ChoreAttempt<C> {
    pub chore: C,
    /// Counts from 1.
    pub number: u16,
    /// If this one fails there is no other.
    pub last: bool,
}

/// How an attempt ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoreEnd {
    Done,
    /// There is more to do, after a pause. This is not a failure.
    Again(Duration),
    /// It makes no sense any more.
    GiveUp,
}

/// Why an attempt failed. It is kept with the chore, so it holds no secret.
pub type ChoreError = Box<dyn Error + Send + Sync>;

/// What a process does of the chores.
#[derive(Default)]
pub struct Chores {
    workers: Workers,
    periodic: Vec<PeriodicJob>,
    kinds: HashSet<&'static str>,
}

impl Chores {
    pub fn new() -> Chores {
        Chores::default()
    }

    /// Says how chores of one kind are done. Every process that does chores knows all kinds.
    pub fn on<C, F, Fut>(mut self, work: F) -> Chores
    where
        C: Chore,
        F: Fn(ChoreAttempt<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ChoreEnd, ChoreError>> + Send + 'static,
    {
        assert!(self.kinds.insert(C::KIND), "a chore has one way to be done: {}", C::KIND);
        self.workers.add(Doer { work, chore: std::marker::PhantomData::<fn() -> C> }).expect("a new, valid kind");
        self
    }

    /// The same, and it is to be done once in a while, by one process of all. Never twice at the same time.
    pub fn every<C, F, Fut>(mut self, interval: Duration, chore: C, work: F) -> Chores
    where
        C: Chore,
        F: Fn(ChoreAttempt<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ChoreEnd, ChoreError>> + Send + 'static,
    {
        let schedule = IntervalSchedule::new(interval).expect("a positive interval");
        let options = PeriodicJobOpts::new().with_id(C::KIND).with_run_on_start(true);
        let job = move || Some((Args(chore.clone()), InsertOpts::default().with_unique(one_at_a_time())));
        self.periodic.push(PeriodicJob::conditional_with_options(schedule, job, options));
        self.on(work)
    }
}

fn one_at_a_time() -> UniqueOpts {
    let waiting = [JobState::Available, JobState::Pending, JobState::Retryable, JobState::Running, JobState::Scheduled];
    UniqueOpts::new().with_by_state(waiting)
}

/// Does chores until it is stopped. Dropping it is like a crash.
pub struct ChoreRunner(RunHandle);

impl ChoreRunner {
    /// Takes nothing more and waits for what is being done, for a bounded time.
    pub async fn stop(mut self) {
        if let Err(error) = self.0.stop().await {
            tracing::warn!(%error, "the chores did not stop in order");
        }
    }
}

const QUEUE: &str = "landform";
const AT_ONCE: usize = 8;
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// What has ended well is of no interest; what was given up is kept a while for people who look.
const KEEP_DONE: Duration = Duration::from_secs(3600);

impl Store {
    /// Begins to do chores in this process.
    pub fn start_chores(&self, chores: Chores) -> Result<ChoreRunner, StoreError> {
        let maintenance = MaintenanceConfig::default().with_completed_job_retention(Retention::DeleteAfter(KEEP_DONE));
        let mut builder = builder(self.db())
            .workers(chores.workers)
            .queue(QUEUE, QueueConfig::new(AT_ONCE).with_fetch_poll_interval(LOOK_EVERY))
            .job_timeout(LONGEST)
            .soft_stop_timeout(STOP_WITHIN)
            .maintenance(maintenance);
        for job in chores.periodic {
            builder = builder.periodic_job(job);
        }
        Ok(ChoreRunner(builder.build().and_then(|client| client.start()).map_err(river)?))
    }
}

/// Brings River's own tables up to date.
pub(crate) async fn migrate(db: &Db) -> Result<(), StoreError> {
    let failed = |error: &dyn fmt::Display| {
        StoreError::Unavailable(format!("cannot bring the tables for chores up to date: {error}"))
    };
    match db {
        Db::Sqlite { river, .. } => {
            SqliteMigrator::new(river.clone()).migrate_up().await.map_err(|error| failed(&error))?;
        }
        Db::Postgres(pool) => {
            // Several processes may start at the same moment; River's migrations take no lock of their own.
            let mut lock = pool.acquire().await?;
            sqlx::query("SELECT pg_advisory_lock($1)").bind(MIGRATION_LOCK).execute(&mut *lock).await?;
            let done = PostgresMigrator::new(pool.clone()).migrate_up().await;
            sqlx::query("SELECT pg_advisory_unlock($1)").bind(MIGRATION_LOCK).execute(&mut *lock).await?;
            done.map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

const MIGRATION_LOCK: i64 = 0x6c61_6e64_666f_726d;

fn builder(db: &Db) -> ClientBuilder {
    let builder = match db {
        Db::Sqlite { river, .. } => Client::builder(river.clone()),
        Db::Postgres(pool) => Client::builder(pool.clone()),
    };
    // A NOTIFY for each chore would make commits wait in turn; looking twice a second is soon enough.
    builder.without_notifications().allow_unregistered_job_kinds()
}

fn river(error: riverqueue::Error) -> StoreError {
    StoreError::Unavailable(format!("the chores: {error}"))
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
#[serde(bound = "")]
struct Args<C: Chore>(C);

impl<C: Chore> JobArgs for Args<C> {
    const KIND: &'static str = C::KIND;

    fn default_insert_opts() -> InsertOpts {
        InsertOpts::default().with_queue(QUEUE).with_max_attempts(i32::from(C::ATTEMPTS))
    }
}

struct Doer<F, C> {
    work: F,
    chore: std::marker::PhantomData<fn() -> C>,
}

impl<C, F, Fut> Worker<Args<C>> for Doer<F, C>
where
    C: Chore,
    F: Fn(ChoreAttempt<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ChoreEnd, ChoreError>> + Send + 'static,
{
    type Error = ChoreError;

    fn next_retry(&self, job: &Job<Args<C>>, _error: &WorkError, _now: Timestamp) -> Option<Duration> {
        Some(C::retry_after(number(job)))
    }

    async fn work(&self, _context: WorkContext, job: Job<Args<C>>) -> Result<WorkOutcome, ChoreError> {
        let number = number(&job);
        let attempt = ChoreAttempt { chore: job.args.0, number, last: number >= C::ATTEMPTS };
        Ok(match (self.work)(attempt).await? {
            ChoreEnd::Done => WorkOutcome::Complete,
            ChoreEnd::Again(pause) => WorkOutcome::Snooze(pause),
            ChoreEnd::GiveUp => WorkOutcome::Discard,
        })
    }
}

fn number<C: Chore>(job: &Job<Args<C>>) -> u16 {
    u16::try_from(job.row.attempt).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use landform_base::seal::MasterKey;
    use landform_base::secret::SecretString;
    use tokio::sync::mpsc;

    use super::*;
    use crate::open::{Location, Options};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Greet {
        whom: String,
    }

    impl Chore for Greet {
        const KIND: &'static str = "greet";
        const ATTEMPTS: u16 = 3;

        fn retry_after(_attempt: u16) -> Duration {
            Duration::ZERO
        }
    }

    async fn open(location: Location) -> Store {
        Store::open(Options::new(location, MasterKey::generate().unwrap())).await.unwrap().store
    }

    fn greet(whom: &str) -> Greet {
        Greet { whom: whom.to_owned() }
    }

    /// Failures are tried again, and given up in the end.
    async fn chores_are_done(store: Store) {
        let inbox = builder(store.db()).build().unwrap();
        for whom in ["fickle", "hopeless"] {
            inbox.insert(Args(greet(whom))).await.unwrap();
        }
        let (sender, mut done) = mpsc::unbounded_channel();
        let tries = Arc::new(Mutex::new(Vec::new()));
        let chores = store.upkeep().on({
            let tries = tries.clone();
            move |attempt: ChoreAttempt<Greet>| {
                let (sender, whom) = (sender.clone(), attempt.chore.whom.clone());
                tries.lock().unwrap().push(whom.clone());
                async move {
                    if (whom == "fickle" && attempt.number < 2) || (whom == "hopeless" && !attempt.last) {
                        return Err("not now".into());
                    }
                    sender.send(whom.clone()).unwrap();
                    if whom == "hopeless" { Err("never".into()) } else { Ok(ChoreEnd::Done) }
                }
            }
        });
        let runner = store.start_chores(chores).unwrap();
        let mut ended = vec![done.recv().await.unwrap(), done.recv().await.unwrap()];
        runner.stop().await;
        ended.sort();
        assert_eq!(ended, ["fickle", "hopeless"]);
        let mut tries = std::mem::take(&mut *tries.lock().unwrap());
        tries.sort();
        assert_eq!(tries, ["fickle", "fickle", "hopeless", "hopeless", "hopeless"]);
        store.close().await;
    }

    #[tokio::test]
    async fn chores_are_done_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        chores_are_done(open(Location::Sqlite(folder.path().join("data"))).await).await;
    }

    #[tokio::test]
    async fn chores_are_done_on_postgres() {
        let server = landform_testkit::postgres::Server::start().unwrap();
        let url = SecretString::from(server.database("chores").await.unwrap());
        // Two at once: of processes that start at the same moment one brings the tables up to date.
        let (store, other) = tokio::join!(open(Location::Postgres(url.clone())), open(Location::Postgres(url.clone())));
        other.close().await;
        chores_are_done(store).await;
    }
}
