use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::Window;
use crate::handover::Calls;

/// Without a word of the vendor about how long, an operation is closed for so long at first, then for twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// As long as any vendor's short window.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A past that is handed on has so many steps for the longest window.
const STEPS: u32 = 300;

/// The calls of one operation that still count.
#[derive(Debug, Default)]
pub(super) struct Log {
    under_way: usize,
    /// When calls ended, the oldest first; those that no window can see are gone.
    ended: VecDeque<Instant>,
    longest: Duration,
    asked: bool,
    closed_until: Option<Instant>,
    /// Rate-limit answers since the vendor last let one through.
    pub(super) setbacks: u32,
}

impl Log {
    /// True if nobody has asked for this operation before.
    pub(super) fn keep_for(&mut self, windows: &[Window]) -> bool {
        self.longest = windows.iter().map(|window| window.length).fold(self.longest, Duration::max);
        !std::mem::replace(&mut self.asked, true)
    }

    pub(super) fn send(&mut self, now: Instant) {
        self.under_way += 1;
        while self.ended.front().is_some_and(|ended| *ended + self.longest <= now) {
            self.ended.pop_front();
        }
    }

    /// A call that was made before anybody counted here; a window of this length can see it.
    pub(super) fn inherit(&mut self, ended: Instant, longest: Duration) {
        self.longest = self.longest.max(longest);
        self.remember(ended);
    }

    pub(super) fn remember(&mut self, ended: Instant) {
        // Ends come in order but for the slack that some of them get.
        let place = self.ended.partition_point(|other| *other <= ended);
        self.ended.insert(place, ended);
    }

    /// `at` may be yet to come: it says nothing about which of the others are over.
    pub(super) fn done(&mut self, at: Instant) {
        self.under_way = self.under_way.saturating_sub(1);
        self.remember(at);
    }

    pub(super) fn close(&mut self, now: Instant, wait: Option<Duration>, windows: &[Window]) {
        let longest = windows.iter().map(|window| window.length).min().unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        let pause = wait.unwrap_or_else(|| (FIRST_PAUSE * 2u32.saturating_pow(self.setbacks.min(10))).min(longest));
        self.setbacks = self.setbacks.saturating_add(1);
        self.closed_until = self.closed_until.max(Some(now + pause));
    }

    pub(super) fn has_room(&self, windows: &[Window], calls: usize, now: Instant) -> bool {
        self.closed_until.is_none_or(|until| until <= now)
            && windows.iter().all(|window| self.over(window, calls, self.inside(window, now)) == 0)
    }

    /// How many must leave a window before so many calls fit in. What is more than a window ever takes, takes all of it.
    fn over(&self, window: &Window, calls: usize, inside: usize) -> usize {
        (self.under_way + inside + calls.min(window.calls)).saturating_sub(window.calls)
    }

    /// When there is room, if nothing has to end for it first.
    pub(super) fn opens(&self, windows: &[Window], calls: usize, now: Instant) -> Option<Instant> {
        let mut opens = self.closed_until.unwrap_or(now).max(now);
        for window in windows {
            let inside = self.inside(window, now);
            let must_go = self.over(window, calls, inside);
            if must_go == 0 {
                continue;
            }
            let first_inside = self.ended.len() - inside;
            let last_to_go = (must_go <= inside).then(|| self.ended[first_inside + must_go - 1])?;
            opens = opens.max(last_to_go + window.length);
        }
        Some(opens)
    }

    /// When there is room for one more behind so many others, reckoned as if all that is under way ended now.
    pub(super) fn expected_wait(&self, windows: &[Window], before: usize, now: Instant) -> Duration {
        let closed = self.closed_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let wait = |window: &Window| {
            let inside = self.inside(window, now);
            let must_go = (self.under_way + inside + before + 1).saturating_sub(window.calls);
            match must_go {
                0 => Duration::ZERO,
                _ if must_go <= inside => {
                    let last_to_go = self.ended[self.ended.len() - inside + must_go - 1];
                    (last_to_go + window.length).saturating_duration_since(now)
                }
                // Whole windows more, each with its number of calls: a place that is taken again is free one window later.
                _ => {
                    let rounds = (must_go - inside).div_ceil(window.calls);
                    let first = must_go.saturating_sub(rounds * window.calls);
                    let begin = first.checked_sub(1).map_or(Duration::ZERO, |place| {
                        let ended = self.ended[self.ended.len() - inside + place];
                        (ended + window.length).saturating_duration_since(now)
                    });
                    begin.saturating_add(window.length.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)))
                }
            }
        };
        windows.iter().map(wait).fold(closed, Duration::max)
    }

    /// The calls that a window can still see, by how long ago they ended; one that is under way ends now.
    pub(super) fn past(&self, now: Instant) -> Calls {
        // A call may be taken to have ended later than it did, never earlier.
        let step = (self.longest / STEPS).max(Duration::from_secs(1)).as_millis();
        let mut steps: BTreeMap<u128, usize> = BTreeMap::new();
        for ended in self.ended.iter().filter(|ended| **ended + self.longest > now) {
            *steps.entry(now.saturating_duration_since(*ended).as_millis() / step).or_default() += 1;
        }
        if self.under_way > 0 {
            *steps.entry(0).or_default() += self.under_way;
        }
        let age = |steps: u128| Duration::from_millis(u64::try_from(steps * step).unwrap_or(u64::MAX));
        let ended = steps.into_iter().map(|(steps, calls)| (age(steps), calls)).collect();
        Calls { longest: self.longest, ended }
    }

    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.under_way == 0
            && self.closed_until.is_none_or(|until| until <= now)
            && self.ended.back().is_none_or(|ended| *ended + self.longest <= now)
    }

    fn inside(&self, window: &Window, now: Instant) -> usize {
        self.ended.len() - self.ended.partition_point(|ended| *ended + window.length <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also of an operation without limits, which a client may call for ever.
    #[test]
    fn what_no_window_sees_is_forgotten() {
        let minute = Window { calls: 2, length: Duration::from_secs(60) };
        for (windows, most) in [(&[][..], 1), (&[minute], 60)] {
            let (mut log, start) = (Log::default(), Instant::now());
            log.keep_for(windows);
            for second in 0..1_000 {
                let now = start + Duration::from_secs(second);
                log.send(now);
                log.done(now);
                assert!(log.ended.len() <= most, "{} after {second} s", log.ended.len());
            }
        }
    }
}
