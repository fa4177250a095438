//! A sign of life of what takes long. OpenTofu gives one every ten seconds, which the CLI engine hands on; for the native
//! engine it is made here.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use landform_engine::{ProgressEvent, Stage};

const EVERY: Duration = Duration::from_secs(10);

/// Objects that a provider is busy with.
#[derive(Debug, Default)]
pub(crate) struct AtWork(Mutex<BTreeMap<String, Busy>>);

#[derive(Debug)]
struct Busy {
    since: Instant,
    /// How often it was said.
    said: u32,
}

impl AtWork {
    pub(crate) fn hear(&self, event: &ProgressEvent, now: Instant) {
        let ProgressEvent::Object { address, stage, .. } = event else { return };
        let mut busy = self.0.lock().expect("no panic while held");
        match stage {
            Stage::Started => drop(busy.insert(address.clone(), Busy { since: now, said: 0 })),
            Stage::Done | Stage::Failed => drop(busy.remove(address)),
            Stage::Planned => {}
        }
    }

    /// What is to be said now, and how long nothing will be. In the words of the CLI engine.
    pub(crate) fn due(&self, now: Instant) -> (Vec<ProgressEvent>, Duration) {
        let mut notes = Vec::new();
        let mut quiet = EVERY;
        for (address, busy) in self.0.lock().expect("no panic while held").iter_mut() {
            let passed = now.saturating_duration_since(busy.since);
            if passed >= EVERY * (busy.said + 1) {
                busy.said = u32::try_from(passed.as_secs() / EVERY.as_secs()).unwrap_or(u32::MAX - 1);
                let seconds = u64::from(busy.said) * EVERY.as_secs();
                notes.push(ProgressEvent::Note { text: format!("{address}: still at work after {seconds} s") });
            }
            quiet = quiet.min((EVERY * (busy.said + 1)).saturating_sub(passed));
        }
        (notes, quiet)
    }
}

#[cfg(test)]
mod tests {
    use landform_engine::Action;

    use super::*;

    #[test]
    fn whoever_is_at_work_for_long_is_named_every_ten_seconds() {
        let (all, start) = (AtWork::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let tell = |address: &str, stage, at| {
            let address = address.to_owned();
            all.hear(&ProgressEvent::Object { address, action: Action::Create, stage, millis: None }, after(at));
        };
        let said = |at| {
            let (notes, quiet) = all.due(after(at));
            let text = |note: &ProgressEvent| match note {
                ProgressEvent::Note { text } => text.clone(),
                other => panic!("{other:?}"),
            };
            (notes.iter().map(text).collect::<Vec<_>>(), quiet.as_secs())
        };
        assert_eq!(said(0), (vec![], 10));
        tell("a.planned", Stage::Planned, 0);
        tell("a.slow", Stage::Started, 1);
        tell("a.quick", Stage::Started, 2);
        assert_eq!(said(9), (vec![], 2));
        tell("a.quick", Stage::Done, 10);
        assert_eq!(said(11), (vec!["a.slow: still at work after 10 s".to_owned()], 10));
        tell("a.late", Stage::Started, 12);
        assert_eq!(said(13), (vec![], 8));
        // A thread that was held up says the newest only.
        let late = ["a.late: still at work after 20 s", "a.slow: still at work after 30 s"].map(str::to_owned);
        assert_eq!(said(34), (late.to_vec(), 7));
        tell("a.slow", Stage::Failed, 35);
        tell("a.late", Stage::Done, 35);
        assert_eq!(said(90), (vec![], 10));
    }
}
