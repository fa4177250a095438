use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use landform_engine::Stop;
use landform_store::{Lease, Store, StoreError};
use tokio::task::JoinHandle;

/// Renews a lease for as long as it lives, and says when to stop.
///
/// Time is this process's monotonic clock, counted from before each renewal was sent: the lease in the database is
/// never shorter than what is reckoned here.
pub(crate) struct Keeper {
    clock: Arc<Clock>,
    task: JoinHandle<()>,
}

pub(crate) struct Clock {
    lease: Duration,
    renewed: Mutex<Instant>,
    /// Stop at the next safe point: somebody wants it, or the lease is late.
    pub(crate) stop: Stop,
    /// It has taken longer than it may.
    pub(crate) overtime: Stop,
    /// The lease is gone or about to be: drop everything.
    pub(crate) over: Stop,
}

impl Clock {
    /// `renewed` is a moment before the lease was last asked for.
    pub(crate) fn aged(lease: Duration, renewed: Instant, stop: Stop) -> Clock {
        Clock { lease, renewed: Mutex::new(renewed), stop, overtime: Stop::new(), over: Stop::new() }
    }

    /// Two thirds of the lease have passed without renewal: no further call is started.
    pub(crate) fn is_late(&self) -> bool {
        self.age() >= self.lease * 2 / 3
    }

    fn age(&self) -> Duration {
        self.renewed.lock().expect("no panic while held").elapsed()
    }

    fn is_over(&self) -> bool {
        self.age() >= self.lease * 9 / 10
    }
}

impl Keeper {
    /// `claimed` is a moment before the claim was asked for. After `limit` the work is asked to stop.
    pub(crate) fn start(store: Store, lease: Lease, claimed: Instant, stop: Stop, limit: Duration) -> Keeper {
        let clock = Arc::new(Clock::aged(store.lease(), claimed, stop));
        let limited = {
            let clock = clock.clone();
            async move {
                tokio::time::sleep(limit).await;
                clock.overtime.cancel();
                clock.stop.cancel();
            }
        };
        let kept = keep(store, lease, clock.clone());
        let task = tokio::spawn(async move {
            tokio::join!(kept, limited);
        });
        Keeper { clock, task }
    }

    pub(crate) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(store: Store, lease: Lease, clock: Arc<Clock>) {
    let rhythm = clock.lease / 6;
    loop {
        tokio::time::sleep(rhythm).await;
        let asked = Instant::now();
        // A store that does not answer must not keep us from noticing that the lease runs out.
        match tokio::time::timeout(rhythm, store.renew(&lease)).await {
            Ok(Ok(renewed)) => {
                *clock.renewed.lock().expect("no panic while held") = asked;
                if renewed.cancel_requested {
                    clock.stop.cancel();
                }
            }
            Ok(Err(StoreError::Fenced)) => {
                clock.stop.cancel();
                clock.over.cancel();
                return;
            }
            Ok(Err(error)) => tracing::warn!(run = %lease.run, %error, "a lease could not be renewed"),
            Err(_) => tracing::warn!(run = %lease.run, "the store did not answer in time"),
        }
        if clock.is_late() {
            clock.stop.cancel();
        }
        if clock.is_over() {
            clock.over.cancel();
            return;
        }
    }
}
