//! The engine's ports, implemented on the store.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use landform_base::redact::Redactor;
use landform_base::secret::SecretString;
use landform_domain::EventBody;
use landform_engine::{
    Diagnostic, Intent, IntentAction, IntentId, Journal, Progress, ProgressEvent, Refused, Settlement,
};
use landform_store::{Lease, SpooledSettlement, Store, StoreError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::at_work::AtWork;
use crate::keeper::Clock;
use crate::seats::Seats;
use crate::spool::Spool;

/// Lossless: returns when the entry is on disk, or refuses. While the store is away it is asked again, until the lease
/// forbids it.
pub(crate) struct FencedJournal {
    pub(crate) store: Store,
    pub(crate) lease: Lease,
    pub(crate) clock: Arc<Clock>,
    pub(crate) spool: Spool,
    pub(crate) seats: Seats,
    /// Objects that are being made, with the calls that were in doubt before.
    pub(crate) creates: Mutex<HashMap<i64, (String, u64)>>,
}

const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A store that takes longer than this may be gone.
const SPOOL_AFTER: Duration = Duration::from_secs(1);

#[async_trait]
impl Journal for FencedJournal {
    async fn intend(&self, intents: Vec<Intent>) -> Result<Vec<IntentId>, Refused> {
        let bytes: Vec<Vec<u8>> = intents.iter().map(encode).collect::<Result<_, _>>()?;
        loop {
            if self.clock.is_late() {
                return Err(Refused::LeaseLost);
            }
            match self.store.intend(&self.lease, &bytes).await {
                // The lease may have become late while the store took its time; then the calls are not made, and the
                // entries are closed by recovery.
                Ok(_) if self.clock.is_late() => return Err(Refused::LeaseLost),
                Ok(ids) => {
                    self.remember_creates(&ids, &intents);
                    return Ok(ids.into_iter().map(IntentId).collect());
                }
                Err(error) => self.refuse_or_wait(error).await?,
            }
        }
    }

    /// What has happened is written down also when the lease is late: it is knowledge, not a new call. While the store is
    /// away it is kept in the spool, where it stays if the lease ends first.
    async fn settle(&self, intent: IntentId, settlement: Settlement) -> Result<(), Refused> {
        let bytes = encode(&settlement)?;
        let create = self.creates.lock().expect("no panic while held").remove(&intent.0);
        if let (Some((address, before)), Settlement::Untouched) = (create, &settlement)
            && self.seats.doubts() > before
        {
            // The provider says that it failed, and cannot know: the vendor may have made it. The intent stays open.
            return Err(Refused::Unavailable(format!("the vendor did not say whether {address} was made")));
        }
        let (mut kept, mut away) = (None, false);
        loop {
            let mut writing = std::pin::pin!(self.store.settle(&self.lease, intent.0, &bytes));
            let written = match tokio::time::timeout(SPOOL_AFTER, &mut writing).await {
                Ok(written) => written,
                Err(_) => {
                    self.keep(&mut kept, intent, &bytes).await;
                    writing.await
                }
            };
            match written {
                Ok(()) => {
                    kept.inspect(|kept| self.spool.drop_entry(kept));
                    return Ok(());
                }
                Err(error) => {
                    if error.is_transient() {
                        away = true;
                        self.keep(&mut kept, intent, &bytes).await;
                    } else if !away {
                        // It was there all the time, and said no: a worker that stood still has nothing to add.
                        kept.take().inspect(|kept| self.spool.drop_entry(kept));
                    }
                    self.refuse_or_wait(error).await?;
                }
            }
        }
    }
}

impl FencedJournal {
    fn remember_creates(&self, ids: &[i64], intents: &[Intent]) {
        let doubts = self.seats.doubts();
        let creates = ids.iter().zip(intents).filter(|(_, intent)| intent.action == IntentAction::Create);
        let creates = creates.map(|(id, intent)| (*id, (intent.address.clone(), doubts)));
        self.creates.lock().expect("no panic while held").extend(creates);
    }

    /// For an engine that does not tell object by object: something that was to be made is not in the state, and of
    /// calls meanwhile nobody knows whether they were carried out.
    pub(crate) fn leaves_doubt(&self, state: &[u8]) -> bool {
        let doubts = self.seats.doubts();
        let creates = self.creates.lock().expect("no panic while held");
        let missing = |address: &str| !landform_engine::state::has_object(state, address, None).unwrap_or(false);
        creates.values().any(|(address, before)| doubts > *before && missing(address))
    }

    /// Once. If not even the disk takes it, the intent stays open, and its object is in doubt.
    async fn keep(&self, kept: &mut Option<SpooledSettlement>, intent: IntentId, settlement: &[u8]) {
        if kept.is_some() {
            return;
        }
        let sealed = self.store.seal_settlement(&self.lease, intent.0, settlement).await;
        let done = sealed.map_err(|error| error.to_string()).and_then(|sealed| {
            self.spool.keep(&sealed).map_err(|error| error.to_string())?;
            Ok(sealed)
        });
        match done {
            Ok(sealed) => *kept = Some(sealed),
            Err(error) => tracing::error!(run = %self.lease.run, error, "a result could not be kept on disk"),
        }
    }

    async fn refuse_or_wait(&self, error: StoreError) -> Result<(), Refused> {
        match error {
            StoreError::Fenced => Err(Refused::Fenced),
            error if error.is_transient() && !self.clock.over.is_cancelled() => {
                tracing::warn!(run = %self.lease.run, %error, "the journal waits for the store");
                tokio::time::sleep(ASK_AGAIN_AFTER).await;
                Ok(())
            }
            error => Err(Refused::Unavailable(error.to_string())),
        }
    }
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, Refused> {
    serde_json::to_vec(value).map_err(|error| Refused::Unavailable(error.to_string()))
}

/// Lossy: never waits. What does not fit into its queue, or into the run's log, is counted.
pub(crate) struct Reports {
    store: Store,
    lease: Lease,
    belt: Mutex<Belt>,
    dropped: Arc<AtomicU64>,
    peak_memory: AtomicU64,
    redactor: RwLock<Redactor>,
    /// The newest diagnostics, so that none is told twice.
    told: Mutex<VecDeque<Diagnostic>>,
    at_work: AtWork,
}

/// What brings events to the store.
struct Belt {
    sender: mpsc::Sender<Value>,
    pump: JoinHandle<Vec<EventBody>>,
}

impl Belt {
    fn start(store: Store, lease: Lease, dropped: Arc<AtomicU64>) -> Belt {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Belt { sender, pump: tokio::spawn(pump(store, lease, receiver, dropped)) }
    }

    /// Nothing more will come. Returns what is not written yet.
    async fn stop(self) -> Vec<EventBody> {
        drop(self.sender);
        self.pump.await.unwrap_or_default()
    }
}

const QUEUE: usize = 1_024;
const AT_ONCE: usize = 128;
/// How long an event may wait for others: a transaction for each would cost more than what they tell of.
const GATHER: Duration = Duration::from_millis(100);
/// The same where nobody in this process follows the run. Many runs are over by then, and their end takes it along; whoever
/// asks for the log from time to time is not kept waiting.
const GATHER_UNSEEN: Duration = Duration::from_millis(300);
const REMEMBERED: usize = 100;

impl Reports {
    pub(crate) fn start(store: Store, lease: Lease, redactor: Redactor) -> Reports {
        let dropped = Arc::new(AtomicU64::new(0));
        let belt = Mutex::new(Belt::start(store.clone(), lease.clone(), dropped.clone()));
        let (peak_memory, redactor) = (AtomicU64::new(0), RwLock::new(redactor));
        let (told, at_work) = (Mutex::default(), AtWork::default());
        Reports { store, lease, belt, dropped, peak_memory, redactor, told, at_work }
    }

    /// Reports what takes long, again and again; never ends.
    pub(crate) async fn give_signs_of_life(&self) -> Infallible {
        loop {
            let (notes, quiet) = self.at_work.due(std::time::Instant::now());
            notes.into_iter().for_each(|note| self.report(note));
            tokio::time::sleep(quiet).await;
        }
    }

    /// Hides these from now on, too.
    pub(crate) fn hide<'a>(&self, secrets: impl IntoIterator<Item = &'a SecretString>) {
        let mut redactor = self.redactor.write().expect("no panic while held");
        *redactor = std::mem::take(&mut *redactor).with(secrets);
    }

    pub(crate) fn tell(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            let told = self.told.lock().expect("no panic while held").contains(diagnostic);
            if !told {
                self.report(ProgressEvent::Diagnostic { diagnostic: diagnostic.clone() });
            }
        }
    }

    /// The most that the processes of the run have had so far, in bytes; 0 if nobody knows.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.peak_memory.load(Ordering::Relaxed)
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.read().expect("no panic while held").redact(text)
    }

    /// What is not written yet, for whoever writes next: it must not come behind that.
    pub(crate) async fn so_far(&self) -> Vec<EventBody> {
        let next = Belt::start(self.store.clone(), self.lease.clone(), self.dropped.clone());
        let belt = std::mem::replace(&mut *self.belt.lock().expect("no panic while held"), next);
        belt.stop().await
    }

    /// The same, and nothing more will come.
    pub(crate) async fn flush(self) -> Vec<EventBody> {
        let mut left = self.belt.into_inner().expect("no panic while held").stop().await;
        let count = self.dropped.load(Ordering::Relaxed);
        if count > 0 {
            left.push(EventBody::Dropped { count });
        }
        left
    }
}

impl Progress for Reports {
    fn memory(&self, bytes: u64) {
        self.peak_memory.fetch_max(bytes, Ordering::Relaxed);
    }

    fn report(&self, event: ProgressEvent) {
        if let ProgressEvent::Diagnostic { diagnostic } = &event {
            let mut told = self.told.lock().expect("no panic while held");
            if told.len() == REMEMBERED {
                told.pop_front();
            }
            told.push_back(diagnostic.clone());
        }
        self.at_work.hear(&event, std::time::Instant::now());
        let Ok(mut value) = serde_json::to_value(&event) else { return };
        redact(&mut value, &self.redactor.read().expect("no panic while held"));
        if self.belt.lock().expect("no panic while held").sender.try_send(value).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redactor)),
        Value::Object(map) => map.values_mut().for_each(|item| redact(item, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Writes events for as long as more may come, and returns what is left then.
async fn pump(
    store: Store,
    lease: Lease,
    mut receiver: mpsc::Receiver<Value>,
    dropped: Arc<AtomicU64>,
) -> Vec<EventBody> {
    let mut batch = Vec::new();
    let patience = || if store.is_followed(lease.run) { GATHER } else { GATHER_UNSEEN };
    while gather(&mut receiver, &mut batch, patience).await {
        let events: Vec<EventBody> = batch.drain(..).map(EventBody::Progress).collect();
        match store.report(&lease, &events).await {
            Ok(over) => drop(dropped.fetch_add(over as u64, Ordering::Relaxed)),
            Err(StoreError::Fenced) => return Vec::new(),
            Err(error) => {
                tracing::warn!(run = %lease.run, %error, "reports were dropped");
                dropped.fetch_add(events.len() as u64, Ordering::Relaxed);
            }
        }
    }
    batch.into_iter().map(EventBody::Progress).collect()
}

/// Fills a batch, for a moment from its first event on. False: nothing more will come.
async fn gather(receiver: &mut mpsc::Receiver<Value>, batch: &mut Vec<Value>, patience: impl Fn() -> Duration) -> bool {
    if receiver.recv_many(batch, AT_ONCE).await == 0 {
        return false;
    }
    let until = Instant::now() + patience();
    while batch.len() < AT_ONCE {
        match timeout_at(until, receiver.recv_many(batch, AT_ONCE - batch.len())).await {
            Ok(0) => return false,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use landform_base::seal::MasterKey;
    use landform_domain::template::Files;
    use landform_domain::{Actor, EngineChoice, Inputs};
    use landform_engine::{IntentAction, Stop};
    use landform_store::{DeploymentWrite, Location, Options, TenantSettings, WorkerId};

    use super::*;

    async fn claimed(folder: &std::path::Path) -> (Store, Lease) {
        let options = Options::new(Location::Sqlite(folder.to_owned()), MasterKey::generate().unwrap());
        let store = Store::open(options).await.unwrap().store;
        store.put_tenant(&"acme".parse().unwrap(), TenantSettings::default(), &Actor::local("eve")).await.unwrap();
        let files = Files::new([("main.tf".to_string(), Vec::new())]).unwrap();
        store.push_template(&"net".parse().unwrap(), &files, false, &Actor::local("eve")).await.unwrap();
        let write = DeploymentWrite {
            tenant: "acme".parse().unwrap(),
            name: "site".parse().unwrap(),
            template: "net".parse().unwrap(),
            template_version: None,
            inputs: Inputs::default(),
            engine: EngineChoice::Auto,
            requires_approval: None,
            time_limit: None,
            connections: Vec::new(),
            if_generation: None,
        };
        store.put_deployment(write, None, &Actor::local("eve")).await.unwrap();
        let lease = store.claim(&WorkerId::new("w")).await.unwrap().unwrap().lease;
        (store, lease)
    }

    fn intent() -> Intent {
        Intent {
            address: "thing.a".into(),
            deposed: None,
            action: IntentAction::Create,
            type_name: "thing".into(),
            provider: "p".into(),
            prior: None,
            planned: None,
            private: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_late_lease_begins_nothing_but_still_tells_what_happened() {
        let folder = tempfile::tempdir().unwrap();
        let (store, lease) = claimed(folder.path()).await;
        let journal = |age: Duration| FencedJournal {
            store: store.clone(),
            lease: lease.clone(),
            clock: Arc::new(Clock::aged(store.lease(), Instant::now().checked_sub(age).unwrap(), Stop::new())),
            spool: Spool::open(&folder.path().join("spool")).unwrap(),
            seats: Seats::default(),
            creates: Mutex::default(),
        };
        let in_time = journal(Duration::ZERO);
        let late = journal(store.lease() * 2 / 3);
        let id = in_time.intend(vec![intent()]).await.unwrap()[0];
        assert_eq!(late.intend(vec![intent()]).await.unwrap_err(), Refused::LeaseLost);
        late.settle(id, Settlement::Untouched).await.unwrap();
        store.void_leases(&WorkerId::new("w")).await.unwrap();
        assert_eq!(in_time.intend(vec![intent()]).await.unwrap_err(), Refused::Fenced);
        assert_eq!(in_time.settle(id, Settlement::Gone).await.unwrap_err(), Refused::Fenced);
    }

    #[tokio::test]
    async fn reports_never_wait_and_are_counted_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let (store, lease) = claimed(folder.path()).await;
        let run = lease.run;
        let secret = landform_base::secret::SecretString::from("hunter22");
        let reports = Reports::start(store.clone(), lease.clone(), Redactor::new([&secret]));
        // One task runs at a time here, so nothing is taken out of the queue meanwhile.
        for n in 0..QUEUE + 7 {
            reports.report(ProgressEvent::Note { text: format!("hunter22 {n}") });
        }
        let left = reports.flush().await;
        store.report(&lease, &left).await.unwrap();
        let events = store.events(run, 0, 10_000).await.unwrap();
        assert_eq!(events.last().unwrap().body, EventBody::Dropped { count: 7 });
        let first = serde_json::json!({"note": {"text": "(redacted) 0"}});
        assert_eq!(events[2].body, EventBody::Progress(first));
    }
}
