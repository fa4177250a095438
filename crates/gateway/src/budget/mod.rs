//! What may be sent now. Pure: time comes in as an argument.
//!
//! A vendor counts a call when it arrives, which is somewhere between the moment it was sent and the moment its answer was
//! here. So a call takes its place in a window from before it is sent until the window's length after its answer: whatever
//! the way takes, no window at the vendor can hold more than its number.

mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use log::Log;

use crate::handover::Calls;

/// At most so many calls in any stretch of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub calls: usize,
    pub length: Duration,
}

/// Who comes first. The order of the variants is the order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Somebody waits for it.
    Person,
    /// It uses what others leave.
    Background,
}

/// A call that wants to be sent.
#[derive(Clone, Debug)]
pub struct Ask {
    pub tenant: String,
    pub urgency: Urgency,
    /// The operations that the vendor will count it as, with the windows of each. One that stands here twice counts twice.
    pub operations: Vec<(String, Vec<Window>)>,
    /// So many calls of the account may be under way at once.
    pub concurrency: Option<usize>,
}

impl Ask {
    fn times(&self, operation: &str) -> usize {
        self.operations.iter().filter(|(name, _)| name == operation).count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Too many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Calls of one account that may wait at once, and how many of them one tenant may have.
pub const MOST_WAITING: usize = 1_024;
pub const MOST_WAITING_OF_A_TENANT: usize = 256;

struct Waiting {
    ask: Ask,
    /// Its place between tenants: the same for the first call of each, one more for the second.
    turn: u64,
}

/// One account at a vendor: what was sent, and who waits.
#[derive(Default)]
pub struct Account {
    logs: HashMap<String, Log>,
    waiting: HashMap<Ticket, Waiting>,
    under_way: HashMap<Ticket, Waiting>,
    /// The turn after the newest call of a tenant.
    turns: HashMap<String, u64>,
    /// The turn that was served last.
    now_serving: u64,
    last_ticket: u64,
    /// Somebody called until then and could not say how often.
    unknown_until: Option<Instant>,
}

/// So long an owner that died may have called without anybody having heard of it.
const UNHEARD: Duration = Duration::from_secs(60);

/// The most that can have been sent within that time. Where a window is longer, its share of it.
fn most_unheard(windows: &[Window]) -> usize {
    let within = |window: &Window| match UNHEARD.as_secs_f64() / window.length.as_secs_f64() {
        share if share >= 1.0 => window.calls,
        share => (window.calls as f64 * share).ceil() as usize,
    };
    let (short, long): (Vec<&Window>, Vec<&Window>) = windows.iter().partition(|window| window.length <= UNHEARD);
    let short = short.into_iter().map(within).max();
    short.or_else(|| long.into_iter().map(within).min()).unwrap_or_default()
}

impl Account {
    /// Takes a place in the queue; [`Account::admit`] says when its turn has come.
    pub fn ask(&mut self, ask: Ask) -> Result<Ticket, Full> {
        let of_tenant = self.waiting.values().filter(|waiting| waiting.ask.tenant == ask.tenant).count();
        if self.waiting.len() >= MOST_WAITING || of_tenant >= MOST_WAITING_OF_A_TENANT {
            return Err(Full);
        }
        let now_serving = self.now_serving;
        self.turns.retain(|_, turn| *turn > now_serving);
        let next = self.turns.entry(ask.tenant.clone()).or_insert(now_serving);
        let turn = *next;
        *next += 1;
        for (operation, windows) in &ask.operations {
            self.log(operation, windows);
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.waiting.insert(ticket, Waiting { ask, turn });
        Ok(ticket)
    }

    fn log(&mut self, operation: &str, windows: &[Window]) -> &mut Log {
        let unknown_until = self.unknown_until;
        let log = self.logs.entry(operation.to_owned()).or_default();
        if log.keep_for(windows)
            && let Some(ended) = unknown_until
        {
            (0..most_unheard(windows)).for_each(|_| log.remember(ended));
        }
        log
    }

    /// Somebody has used the account until now, and nobody knows how much: as much as it was allowed to.
    pub fn used_by_others(&mut self, until: Instant) {
        self.unknown_until = Some(until);
    }

    /// What others have to know who count here next: calls by operation.
    pub fn past(&self, now: Instant) -> BTreeMap<String, Calls> {
        let all = self.logs.iter().map(|(operation, log)| (operation.clone(), log.past(now)));
        all.filter(|(_, calls)| !calls.ended.is_empty()).collect()
    }

    /// A call that was made before anybody counted here, of an operation whose longest window has this length: it is
    /// handed on also if nobody here asks for the operation.
    pub fn remember(&mut self, operation: &str, ended: Instant, longest: Duration) {
        self.logs.entry(operation.to_owned()).or_default().inherit(ended, longest);
    }

    /// What a call that is under way was asked as.
    pub fn operations(&self, ticket: Ticket) -> &[(String, Vec<Window>)] {
        self.under_way.get(&ticket).map(|sent| sent.ask.operations.as_slice()).unwrap_or_default()
    }

    /// Who wants to wait no longer.
    pub fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Those that are to be sent at once, in this order. They count from now on.
    pub fn admit(&mut self, now: Instant) -> Vec<Ticket> {
        let mut order: Vec<(Urgency, u64, Ticket)> =
            self.waiting.iter().map(|(ticket, waiting)| (waiting.ask.urgency, waiting.turn, *ticket)).collect();
        order.sort_unstable();
        let mut admitted = Vec::new();
        // Nobody overtakes who waits for the same operation.
        let mut held: BTreeSet<String> = BTreeSet::new();
        for (_, turn, ticket) in order {
            let ask = &self.waiting[&ticket].ask;
            let overtakes = ask.operations.iter().any(|(operation, _)| held.contains(operation));
            if overtakes || !self.has_room(ask, now) {
                held.extend(ask.operations.iter().map(|(operation, _)| operation.clone()));
                continue;
            }
            let waiting = self.waiting.remove(&ticket).expect("it was just there");
            for (operation, _) in &waiting.ask.operations {
                self.logs.entry(operation.clone()).or_default().send(now);
            }
            self.under_way.insert(ticket, waiting);
            self.now_serving = self.now_serving.max(turn);
            admitted.push(ticket);
        }
        admitted
    }

    /// The answer is here, or nobody waits for it any more; `at` is when it stops to count as being under way.
    pub fn done(&mut self, ticket: Ticket, at: Instant) {
        let Some(sent) = self.under_way.remove(&ticket) else { return };
        for (operation, _) in &sent.ask.operations {
            if let Some(log) = self.logs.get_mut(operation) {
                log.done(at);
            }
        }
    }

    /// The vendor has answered, and not with its rate limit.
    pub fn welcome(&mut self, ticket: Ticket) {
        let Some(sent) = self.under_way.get(&ticket) else { return };
        for (operation, _) in &sent.ask.operations {
            if let Some(log) = self.logs.get_mut(operation) {
                log.setbacks = 0;
            }
        }
    }

    /// The vendor has refused it for its rate: its operations are closed for a while, and it waits again in its old place.
    pub fn limited(&mut self, ticket: Ticket, now: Instant, at: Instant, wait: Option<Duration>) {
        let Some(sent) = self.under_way.remove(&ticket) else { return };
        for (operation, windows) in &sent.ask.operations {
            if let Some(log) = self.logs.get_mut(operation) {
                log.done(at);
                log.close(now, wait, windows);
            }
        }
        self.waiting.insert(ticket, sent);
    }

    /// When [`Account::admit`] may have another answer although nothing was asked and nothing has ended.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        // Who has room already waits for somebody else, not for the time.
        self.waiting.values().filter_map(|waiting| self.opens(&waiting.ask, now)).filter(|opens| *opens > now).min()
    }

    /// How long a call will have to wait, as far as can be told: those before it are counted.
    pub fn expected_wait(&self, ticket: Ticket, now: Instant) -> Duration {
        let Some(waiting) = self.waiting.get(&ticket) else { return Duration::ZERO };
        let place = |waiting: &Waiting, ticket: Ticket| (waiting.ask.urgency, waiting.turn, ticket);
        let mine = place(waiting, ticket);
        let wait = |(operation, windows): &(String, Vec<Window>)| {
            let of_it = |other: &Waiting| other.ask.operations.iter().any(|(name, _)| name == operation);
            let before = self.waiting.iter().filter(|(t, other)| place(other, **t) < mine && of_it(other)).count();
            self.logs.get(operation).map_or(Duration::ZERO, |log| log.expected_wait(windows, before, now))
        };
        waiting.ask.operations.iter().map(wait).max().unwrap_or_default()
    }

    /// How long until so many more calls of an operation could be sent in one go, if nobody else came.
    pub fn room_for(&mut self, operation: &str, windows: &[Window], calls: usize, now: Instant) -> Duration {
        self.log(operation, windows).expected_wait(windows, calls.saturating_sub(1), now)
    }

    /// Nothing here matters any more.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.waiting.is_empty()
            && self.under_way.is_empty()
            && self.unknown_until.is_none_or(|until| until + UNHEARD <= now)
            && self.logs.values().all(|log| log.is_idle(now))
    }

    fn has_room(&self, ask: &Ask, now: Instant) -> bool {
        let free = ask.concurrency.is_none_or(|most| self.under_way.len() < most);
        free && ask.operations.iter().all(|(operation, windows)| {
            self.logs.get(operation).is_none_or(|log| log.has_room(windows, ask.times(operation), now))
        })
    }

    /// When all its operations have room, if only time stands between.
    fn opens(&self, ask: &Ask, now: Instant) -> Option<Instant> {
        let mut opens = now;
        for (operation, windows) in &ask.operations {
            if let Some(log) = self.logs.get(operation) {
                opens = opens.max(log.opens(windows, ask.times(operation), now)?);
            }
        }
        Some(opens)
    }
}
