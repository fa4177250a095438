//! The waiting room before an account's budget: who waits is told when the time has come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use crate::budget::{Account, Ask, Full, Ticket, Window};
use crate::counts::lock;
use crate::past::Past;

/// A vendor's clock may be read a little later than the answer was sent, and tick a little faster than ours.
const SLACK: Duration = Duration::from_millis(20);
/// A call that nobody waits for any more may still be on its way.
const SLACK_AFTER_SILENCE: Duration = Duration::from_secs(2);

pub(crate) struct Desk {
    account: String,
    past: Arc<Past>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    account: Account,
    callers: HashMap<Ticket, oneshot::Sender<()>>,
    /// Somebody looks at the clock for those who wait.
    watched: bool,
}

impl Desk {
    pub(crate) fn new(account: &str, past: &Arc<Past>) -> Desk {
        let mut state = State::default();
        for (operation, ended) in past.of(account) {
            state.account.remember(operation, *ended);
        }
        let (account, past) = (account.to_owned(), past.clone());
        Desk { account, past, state: Mutex::new(state), changed: Notify::new() }
    }

    fn admit(&self, state: &mut State) {
        for ticket in state.account.admit(Instant::now()) {
            self.past.write(&self.account, state.account.operations(ticket));
            // A caller that is gone says so itself when it is dropped.
            state.callers.remove(&ticket).map(|caller| caller.send(()));
        }
    }

    pub(crate) fn ask(self: &Arc<Desk>, ask: Ask) -> Result<Turn, Full> {
        let mut state = lock(&self.state);
        let ticket = state.account.ask(ask)?;
        let (caller, called) = oneshot::channel();
        state.callers.insert(ticket, caller);
        self.admit(&mut state);
        self.watch(&mut state);
        Ok(Turn { desk: self.clone(), ticket, stage: Stage::Waiting(called) })
    }

    /// How long until these calls could be sent in one go.
    pub(crate) fn room_for(&self, operation: &str, windows: &[Window], calls: usize) -> Duration {
        lock(&self.state).account.room_for(operation, windows, calls, Instant::now())
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.state).account.is_idle(Instant::now())
    }

    fn change<T>(self: &Arc<Desk>, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        self.admit(&mut state);
        self.watch(&mut state);
        result
    }

    /// One task looks at the clock for as long as anybody waits.
    fn watch(self: &Arc<Desk>, state: &mut State) {
        if state.callers.is_empty() {
            return;
        }
        if state.watched {
            self.changed.notify_one();
            return;
        }
        state.watched = true;
        let desk = self.clone();
        tokio::spawn(async move {
            loop {
                let next = {
                    let mut state = lock(&desk.state);
                    desk.admit(&mut state);
                    if state.callers.is_empty() {
                        state.watched = false;
                        return;
                    }
                    state.account.next_change(Instant::now())
                };
                let later = async {
                    match next {
                        Some(next) => tokio::time::sleep_until(next.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = later => {}
                    () = desk.changed.notified() => {}
                }
            }
        });
    }
}

/// A call's place, from the queue to its answer. Dropped on the way, it leaves the queue, or counts as sent.
pub(crate) struct Turn {
    desk: Arc<Desk>,
    ticket: Ticket,
    stage: Stage,
}

enum Stage {
    Waiting(oneshot::Receiver<()>),
    Sending,
    Over,
}

/// Its turn does not come in time; it may come after this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotYet(pub(crate) Duration);

impl Turn {
    /// Returns when the call is to be sent.
    pub(crate) async fn wait(&mut self, until: Instant) -> Result<(), NotYet> {
        let Stage::Waiting(called) = &mut self.stage else { return Ok(()) };
        if called.try_recv().is_ok() {
            self.stage = Stage::Sending;
            return Ok(());
        }
        let expected = lock(&self.desk.state).account.expected_wait(self.ticket, Instant::now());
        // Who cannot be served in time need not stand in the way.
        if Instant::now() + expected > until {
            return Err(NotYet(expected));
        }
        if tokio::time::timeout_at(until.into(), &mut *called).await.is_ok() {
            self.stage = Stage::Sending;
            return Ok(());
        }
        let state = lock(&self.desk.state);
        // Under the lock nobody is called any more.
        if called.try_recv().is_ok() {
            self.stage = Stage::Sending;
            return Ok(());
        }
        Err(NotYet(state.account.expected_wait(self.ticket, Instant::now())))
    }

    pub(crate) fn answered(mut self) {
        self.stage = Stage::Over;
        let ticket = self.ticket;
        self.desk.change(|state| {
            state.account.welcome(ticket);
            state.account.done(ticket, Instant::now() + SLACK);
        });
    }

    /// The vendor has refused it for its rate: it waits again.
    pub(crate) fn limited(&mut self, wait: Option<Duration>) {
        let (caller, called) = oneshot::channel();
        let (ticket, now) = (self.ticket, Instant::now());
        self.stage = Stage::Waiting(called);
        self.desk.change(|state| {
            state.account.limited(ticket, now, now + SLACK, wait);
            state.callers.insert(ticket, caller);
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let ticket = self.ticket;
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if matches!(stage, Stage::Over) {
            return;
        }
        // There may be no runtime any more that could watch.
        let mut state = lock(&self.desk.state);
        state.callers.remove(&ticket);
        state.account.leave(ticket);
        state.account.done(ticket, Instant::now() + SLACK_AFTER_SILENCE);
        self.desk.admit(&mut state);
        drop(state);
        self.desk.changed.notify_one();
    }
}
