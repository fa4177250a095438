//! The waiting room before an account's budget: who waits is told when the time has come.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use crate::budget::{Account, Ask, Full, Ticket, Window};
use crate::counts::lock;
use crate::handover::Calls;
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
    /// Runs that were told to come back, in the order in which they came first.
    put_off: Vec<PutOff>,
    /// Calls may be sent until then: after that, another process may count this account's calls.
    ours_until: Option<Instant>,
    sent: u64,
}

/// A run that wants so many calls and was told to come back.
struct PutOff {
    run: String,
    calls: BTreeMap<String, u64>,
    forgotten: Instant,
}

/// Who was told to come back and does not come has lost its place after this.
const PLACE_KEPT: Duration = Duration::from_secs(15);

/// What a run that wants to be let in is to expect.
pub(crate) struct Wish<'a> {
    pub(crate) run: &'a str,
    pub(crate) calls: &'a BTreeMap<String, u64>,
    /// What it finds full, it leaves to others.
    pub(crate) background: bool,
    /// It may wait so long in here before its first call.
    pub(crate) at_first: Duration,
    /// And so long before its last one.
    pub(crate) on_the_way: Duration,
}

impl Desk {
    pub(crate) fn new(account: &str, past: &Arc<Past>) -> Desk {
        let mut state = State::default();
        for (operation, ended, longest) in past.of(account) {
            state.account.remember(operation, *ended, *longest);
        }
        let (account, past) = (account.to_owned(), past.clone());
        Desk { account, past, state: Mutex::new(state), changed: Notify::new() }
    }

    fn admit(&self, state: &mut State) {
        for ticket in state.account.admit(Instant::now()) {
            self.past.write(&self.account, state.account.operations(ticket));
            state.sent += 1;
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

    /// Lets a run in, if there is room for what it is going to call, beside what is `outstanding` of those inside and what
    /// those want who came before. Otherwise it has a place in the queue, and is told when to come back.
    ///
    /// It need not find room for all its calls at once. Runs of four calls in a window of thirty would leave two of them
    /// unused every time; so one run begins with these, and has the others a little later.
    pub(crate) fn let_in(
        &self,
        wish: &Wish<'_>,
        windows: impl Fn(&str) -> Vec<Window>,
        outstanding: impl Fn(&str) -> u64,
    ) -> Result<(), Duration> {
        let now = Instant::now();
        let mut state = lock(&self.state);
        state.put_off.retain(|other| other.forgotten > now);
        let place = state.put_off.iter().position(|other| other.run == wish.run);
        let before = place.unwrap_or(state.put_off.len());
        let (mut first_wait, mut last_wait) = (Duration::ZERO, Duration::ZERO);
        for (operation, calls) in wish.calls {
            let windows = windows(operation);
            // More than a window ever takes comes in several goes, and none of them need be waited for.
            let most = windows.iter().map(|window| window.calls).min().unwrap_or(usize::MAX);
            let first = state.put_off[..before].iter().filter_map(|other| other.calls.get(operation)).sum::<u64>();
            let others = usize::try_from(outstanding(operation).saturating_add(first)).unwrap_or(usize::MAX);
            let calls = usize::try_from(*calls).unwrap_or(usize::MAX).min(most);
            let mut wait_for =
                |calls: usize| state.account.room_for(operation, &windows, calls.saturating_add(others), now);
            first_wait = first_wait.max(wait_for(calls.min(1)));
            last_wait = last_wait.max(wait_for(calls));
        }
        let wait = first_wait.max(last_wait.saturating_sub(wish.on_the_way));
        if wait <= wish.at_first {
            place.map(|place| state.put_off.remove(place));
            return Ok(());
        }
        let forgotten = now + wait + PLACE_KEPT;
        match place {
            Some(place) => state.put_off[place].forgotten = forgotten,
            None if wish.background => {}
            None => state.put_off.push(PutOff { run: wish.run.to_owned(), calls: wish.calls.clone(), forgotten }),
        }
        Err(wait)
    }

    pub(crate) fn ours_until(&self, until: Instant) {
        lock(&self.state).ours_until = Some(until);
    }

    pub(crate) fn is_ours(&self) -> bool {
        lock(&self.state).ours_until.is_none_or(|until| Instant::now() < until)
    }

    pub(crate) fn sent(&self) -> u64 {
        lock(&self.state).sent
    }

    /// What the next who counts here has to know.
    pub(crate) fn past(&self) -> BTreeMap<String, Calls> {
        lock(&self.state).account.past(Instant::now())
    }

    /// Calls that another has made, so long ago. They outlive this process as its own do.
    pub(crate) fn inherit(&self, operation: &str, longest: Duration, age: Duration, calls: usize) {
        // What was before this machine started is in no window.
        let Some(ended) = Instant::now().checked_sub(age).filter(|_| age < longest) else { return };
        let mut state = lock(&self.state);
        for _ in 0..calls {
            state.account.remember(operation, ended, longest);
            self.past.inherit(&self.account, operation, longest, age);
        }
    }

    pub(crate) fn used_by_others(&self) {
        lock(&self.state).account.used_by_others(Instant::now());
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_UP: &str = "entityLookup";

    fn minute() -> Vec<Window> {
        vec![Window { calls: 30, length: Duration::from_secs(60) }]
    }

    /// A desk whose account has sent so many calls, some seconds ago.
    fn desk(sent: &[(usize, u64)]) -> Arc<Desk> {
        let desk = Arc::new(Desk::new("account", &Arc::new(Past::default())));
        for (calls, seconds_ago) in sent {
            desk.inherit(LOOK_UP, Duration::from_secs(60), Duration::from_secs(*seconds_ago), *calls);
        }
        desk
    }

    fn let_in(desk: &Desk, run: &str, calls: u64, outstanding: u64) -> Result<(), Duration> {
        let calls = BTreeMap::from([(LOOK_UP.to_owned(), calls)]);
        let (at_first, on_the_way) = (Duration::from_secs(1), Duration::from_secs(10));
        let wish = Wish { run, calls: &calls, background: false, at_first, on_the_way };
        desk.let_in(&wish, |_| minute(), |_| outstanding)
    }

    #[test]
    fn what_is_left_of_a_window_is_not_left_lying() {
        // Two of thirty are free, and the next come in five seconds.
        let desk = desk(&[(4, 55), (24, 30)]);
        assert_eq!(let_in(&desk, "a", 4, 0), Ok(()));
        // The first one has not sent its calls yet: the second would find nothing to begin with.
        assert!(let_in(&desk, "b", 4, 4).is_err());
    }

    #[test]
    fn nobody_sits_inside_for_long() {
        // Two are free, the next come in half a minute.
        let desk = desk(&[(28, 30)]);
        let wait = let_in(&desk, "a", 4, 0).unwrap_err();
        assert!((Duration::from_secs(15)..Duration::from_secs(25)).contains(&wait), "{wait:?}");
        assert!(let_in(&desk, "b", 1, 0).is_err(), "who came first is let in first");
    }
}
