//! How much memory a run may take, from what its template took before.

/// What a run is thought to need whose template nobody has seen at work, in bytes: a CLI with one small provider.
pub const UNSEEN: u64 = 192 << 20;

/// What a worker has for its runs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub budget: u64,
    pub reserved: u64,
}

impl Room {
    pub const UNLIMITED: Room = Room { budget: u64::MAX, reserved: 0 };

    /// A run that is larger than the whole budget runs alone: refused, it would wait for ever.
    pub fn admits(&self, needs: u64) -> bool {
        self.reserved == 0 || self.reserved.saturating_add(needs) <= self.budget
    }

    /// Takes what a run needs, if there is room for it.
    pub fn take(&mut self, needs: u64) -> bool {
        let admitted = self.admits(needs);
        if admitted {
            self.reserved = self.reserved.saturating_add(needs);
        }
        admitted
    }
}

/// Whether a measurement is worth writing down: the first one, and what differs by more than a quarter.
pub fn is_news(known: Option<u64>, measured: u64) -> bool {
    measured > 0 && known.is_none_or(|known| measured.abs_diff(known) > known / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_runs_alone_and_nothing_else_goes_over_the_budget() {
        let mut room = Room { budget: 100, reserved: 0 };
        assert!(room.take(60) && !room.take(41) && room.take(40) && !room.take(1));
        let mut empty = Room { budget: 100, reserved: 0 };
        assert!(empty.take(1000) && !empty.take(1));
        let mut unlimited = Room::UNLIMITED;
        assert!(unlimited.take(u64::MAX) && unlimited.take(u64::MAX));
    }

    #[test]
    fn small_differences_are_no_news() {
        assert!(is_news(None, 1) && !is_news(None, 0) && !is_news(Some(100), 0));
        assert!(!is_news(Some(100), 125) && !is_news(Some(100), 75));
        assert!(is_news(Some(100), 126) && is_news(Some(100), 74));
    }
}
