use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landform_domain::memory::Room;
use landform_domain::run::Status;
use landform_domain::{EngineName, RunId};

use super::{Metric, Sample, Value, VendorCalls};

/// Upper bounds in seconds: a small plan takes some 50 ms, a large apply an hour.
const BOUNDS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0, 3600.0];

/// An attempt that was lost without a word is forgotten after this.
const FORGET_AFTER: Duration = Duration::from_secs(24 * 3600);
const MOST_REMEMBERED: usize = 10_000;

type LookAtRoom = Box<dyn Fn() -> Room + Send + Sync>;
type Count = Box<dyn Fn() -> usize + Send + Sync>;
type Calls = Box<dyn Fn() -> Vec<VendorCalls> + Send + Sync>;

/// What happens in this process.
#[derive(Default)]
pub(crate) struct Meter {
    claimed: AtomicU64,
    leases_lost: AtomicU64,
    held_back: AtomicU64,
    inner: Mutex<Inner>,
    provider_processes: Mutex<Option<Count>>,
    room: Mutex<Option<LookAtRoom>>,
    vendor_calls: Mutex<Option<Calls>>,
}

#[derive(Default)]
struct Inner {
    ended: BTreeMap<(&'static str, &'static str), u64>,
    phases: BTreeMap<&'static str, Histogram>,
    /// When the phase began that an attempt is in.
    under_way: HashMap<RunId, Instant>,
}

#[derive(Default)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    sum: f64,
    count: u64,
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.sum += seconds;
        self.count += 1;
        for (bound, count) in BOUNDS.iter().zip(&mut self.counts) {
            *count += u64::from(seconds <= *bound);
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}

impl Meter {
    /// An attempt begins. `waited` is since the run was made, if it is its first one.
    pub(crate) fn claimed(&self, run: RunId, waited: Option<Duration>) {
        self.claimed.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.inner.lock().expect("no panic while held");
        if let Some(waited) = waited {
            inner.phases.entry("wait").or_default().add(waited);
        }
        if inner.under_way.len() >= MOST_REMEMBERED {
            inner.under_way.retain(|_, begun| begun.elapsed() < FORGET_AFTER);
        }
        inner.under_way.insert(run, Instant::now());
    }

    /// The attempt has made its plan, or has come to its end; `phase` is what it was in until now.
    pub(crate) fn moved(&self, run: RunId, phase: &'static str, status: &Status, engine: Option<EngineName>) {
        let mut inner = self.inner.lock().expect("no panic while held");
        if let Some(begun) = inner.under_way.remove(&run) {
            inner.phases.entry(phase).or_default().add(begun.elapsed());
        }
        if let Status::Applying(_) = status {
            inner.under_way.insert(run, Instant::now());
        }
        // A drift check is no change, and is not counted as one.
        if phase == "check" {
            return;
        }
        if status.is_final() || matches!(status, Status::NeedsRecovery { .. }) {
            let engine = engine.map_or("none", EngineName::as_str);
            *inner.ended.entry((status.word(), engine)).or_default() += 1;
        }
    }

    pub(crate) fn lease_lost(&self) {
        self.leases_lost.fetch_add(1, Ordering::Relaxed);
    }

    /// The next run needs more memory than the worker has left.
    pub(crate) fn held_back(&self) {
        self.held_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn watch_room(&self, room: LookAtRoom) {
        *self.room.lock().expect("no panic while held") = Some(room);
    }

    pub(crate) fn watch_provider_processes(&self, count: Count) {
        *self.provider_processes.lock().expect("no panic while held") = Some(count);
    }

    pub(crate) fn watch_vendor_calls(&self, calls: Calls) {
        *self.vendor_calls.lock().expect("no panic while held") = Some(calls);
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        let count =
            |metric, counter: &AtomicU64| Sample::number(metric, vec![], counter.load(Ordering::Relaxed) as f64);
        let mut samples = vec![
            count(Metric::RunsClaimed, &self.claimed),
            count(Metric::LeasesLost, &self.leases_lost),
            count(Metric::ClaimsHeldBack, &self.held_back),
        ];
        if let Some(room) = &*self.room.lock().expect("no panic while held") {
            let Room { budget, reserved } = room();
            samples.push(Sample::number(Metric::MemoryBudget, vec![], budget as f64));
            samples.push(Sample::number(Metric::MemoryReserved, vec![], reserved as f64));
        }
        let inner = self.inner.lock().expect("no panic while held");
        for ((status, engine), count) in &inner.ended {
            let labels = vec![("status", (*status).to_owned()), ("engine", (*engine).to_owned())];
            samples.push(Sample::number(Metric::RunsEnded, labels, *count as f64));
        }
        for (phase, histogram) in &inner.phases {
            samples.push(Sample {
                metric: Metric::PhaseSeconds,
                labels: vec![("phase", (*phase).to_owned())],
                value: Value::Histogram {
                    buckets: BOUNDS.iter().copied().zip(histogram.counts).collect(),
                    sum: histogram.sum,
                    count: histogram.count,
                },
            });
        }
        if let Some(processes) = &*self.provider_processes.lock().expect("no panic while held") {
            samples.push(Sample::number(Metric::ProviderProcesses, vec![], processes() as f64));
        }
        if let Some(calls) = &*self.vendor_calls.lock().expect("no panic while held") {
            for VendorCalls { vendor, operation, outcomes, held } in calls() {
                let labels = vec![("vendor", vendor), ("operation", operation)];
                for (outcome, count) in outcomes {
                    let labels = [labels.clone(), vec![("outcome", outcome.to_owned())]].concat();
                    samples.push(Sample::number(Metric::VendorCalls, labels, count as f64));
                }
                samples.push(Sample::number(Metric::VendorHeldSeconds, labels, held.as_secs_f64()));
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_measured_phase_by_phase() {
        let (meter, run) = (Meter::default(), RunId::from_parts(1, &[0; 10]));
        meter.claimed(run, Some(Duration::from_millis(70)));
        let applying = Status::Applying(landform_domain::run::Phase::Running);
        meter.moved(run, "plan", &applying, Some(EngineName::Native));
        meter.moved(run, "apply", &Status::Succeeded, Some(EngineName::Native));
        let samples = meter.samples();
        let phases: Vec<&str> = samples
            .iter()
            .filter(|sample| sample.metric == Metric::PhaseSeconds)
            .map(|sample| sample.labels[0].1.as_str())
            .collect();
        assert_eq!(phases, ["apply", "plan", "wait"]);
        let ended = samples.iter().find(|sample| sample.metric == Metric::RunsEnded).unwrap();
        assert_eq!(ended.labels, [("status", "succeeded".to_owned()), ("engine", "native".to_owned())]);
        let wait = samples.iter().find(|sample| sample.labels == [("phase", "wait".to_owned())]).unwrap();
        let Value::Histogram { buckets, count, .. } = &wait.value else { panic!("a histogram") };
        assert_eq!((buckets[0], buckets[1], *count), ((0.05, 0), (0.1, 1), 1));
    }
}
