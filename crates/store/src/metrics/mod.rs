//! Figures about the work, for those who watch it. What the database knows is asked of it; what happens in this process
//! is counted here, where every step of a run passes.

mod meter;

use std::time::Duration;

use landform_domain::memory::Room;
use landform_domain::run::Status;

use crate::db::params;
use crate::error::StoreError;
use crate::open::Store;

pub(crate) use meter::Meter;

macro_rules! metrics {
    ($($variant:ident $name:literal $kind:literal $scope:literal $labels:literal $help:literal,)*) => {
        /// Everything that is measured. `docs/metrics.md` is made from this list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $($variant,)*
        }

        impl Metric {
            pub const ALL: &[Metric] = &[$(Metric::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Metric::$variant => $name,)* }
            }

            /// Prometheus's word for it.
            pub fn kind(self) -> &'static str {
                match self { $(Metric::$variant => $kind,)* }
            }

            /// Whose figure it is: the whole installation's, or this process's own.
            pub fn scope(self) -> &'static str {
                match self { $(Metric::$variant => $scope,)* }
            }

            pub fn labels(self) -> &'static str {
                match self { $(Metric::$variant => $labels,)* }
            }

            pub fn help(self) -> &'static str {
                match self { $(Metric::$variant => $help,)* }
            }
        }
    };
}

metrics! {
    RunsWaiting "landform_runs_waiting" "gauge" "all" "for" "Runs that wait: for a worker, for their deployment (held or paused), for a slot of their tenant, for the owner of their vendor's account, or for a time.",
    OldestWaitingSeconds "landform_oldest_waiting_seconds" "gauge" "all" "" "Age of the oldest run that waits for a worker.",
    RunsUnfinished "landform_runs_unfinished" "gauge" "all" "status" "Runs that have not ended, by status.",
    Paused "landform_paused" "gauge" "all" "what" "Switches that hold runs back: 1 if everything is paused, and the number of tenants that are.",
    LeasesHeld "landform_leases_held" "gauge" "all" "" "Deployments that a worker works on.",
    IntentsOpen "landform_intents_open" "gauge" "all" "" "Calls to providers of which nobody knows yet how they ended.",
    DeliveriesPending "landform_webhook_deliveries_pending" "gauge" "all" "" "Webhook deliveries that are still to be made.",
    DeliveriesFailing "landform_webhook_deliveries_failing" "gauge" "all" "" "Of those, the ones that have failed at least once.",
    DeliveriesGivenUp "landform_webhook_deliveries_given_up" "gauge" "all" "" "Webhook deliveries that were given up and are still listed.",
    RunsClaimed "landform_runs_claimed_total" "counter" "process" "" "Attempts that began.",
    RunsEnded "landform_runs_ended_total" "counter" "process" "status, engine" "Runs that a worker brought to an end, or to needs_recovery.",
    PhaseSeconds "landform_phase_seconds" "histogram" "process" "phase" "Time that attempts took: wait (from the request to the first attempt), plan, apply, recover; check is a whole drift check.",
    LeasesLost "landform_leases_lost_total" "counter" "process" "" "Leases of silent workers that were ended, and own ones that somebody else took.",
    ProviderProcesses "landform_provider_processes" "gauge" "process" "" "Provider processes in use.",
    MemoryBudget "landform_memory_budget_bytes" "gauge" "process" "" "Memory that the processes of runs may take together.",
    MemoryReserved "landform_memory_reserved_bytes" "gauge" "process" "" "Of that, what the runs under way are thought to need.",
    ClaimsHeldBack "landform_claims_held_back_total" "counter" "process" "" "Times that no further run was taken because the next one needs more memory than is left.",
    VendorCalls "landform_vendor_calls_total" "counter" "process" "vendor, operation, outcome" "Calls to vendors through the gateway: answered, rate_limited (by the vendor), refused (by the gateway, not sent), silence (sent, no answer), unclear (sent, and the answer leaves open whether it was carried out), again (not sent: the same call was, and nobody knows whether it was carried out), unreachable.",
    VendorHeldSeconds "landform_vendor_held_seconds_total" "counter" "process" "vendor, operation" "Time that calls to vendors have waited for their turn.",
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub metric: Metric,
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

/// Calls of one operation at a vendor, since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct VendorCalls {
    pub vendor: String,
    pub operation: String,
    pub outcomes: Vec<(&'static str, u64)>,
    pub held: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    /// How many were at most so large, for each bound.
    Histogram {
        buckets: Vec<(f64, u64)>,
        sum: f64,
        count: u64,
    },
}

impl Sample {
    fn number(metric: Metric, labels: Vec<(&'static str, String)>, number: f64) -> Sample {
        Sample { metric, labels, value: Value::Number(number) }
    }
}

/// How long a store that answers may take to say that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(3);

const WAITING: &str = "SELECT claimable, COUNT(*) AS count FROM runs WHERE claimable <> 0 GROUP BY claimable";

/// The oldest among the first in the order, which are those that have waited longest.
const OLDEST: &str = "SELECT COALESCE({now} - MIN(w.created_at), 0) AS age FROM (
    SELECT created_at FROM runs WHERE claimable = 1 ORDER BY order_key, id LIMIT 1000) AS w";

const UNFINISHED: &str = "SELECT COUNT(*) AS count FROM runs WHERE status = $1";

const COUNTS: &str = "SELECT
    (SELECT COUNT(*) FROM deployments WHERE lease_until IS NOT NULL) AS leases,
    (SELECT COUNT(*) FROM intents WHERE status = 'open') AS intents,
    (SELECT COUNT(*) FROM switches WHERE paused = 1) AS everything,
    (SELECT COUNT(*) FROM tenants WHERE paused = 1) AS tenants,
    (SELECT COUNT(*) FROM deliveries WHERE status = 'pending') AS pending,
    (SELECT COUNT(*) FROM deliveries WHERE status = 'pending' AND attempts > 0) AS failing,
    (SELECT COUNT(*) FROM deliveries WHERE status = 'given_up') AS given_up";

impl Store {
    /// All figures as they are now.
    pub async fn metrics(&self) -> Result<Vec<Sample>, StoreError> {
        let mut samples = Vec::new();
        let waiting = self.db().read_all(WAITING, params![]).await?;
        for (reason, word) in [(1, "worker"), (2, "deployment"), (3, "slot"), (4, "owner"), (5, "time")] {
            let mut count = 0;
            for row in &waiting {
                if row.int("claimable")? == reason {
                    count = row.int("count")?;
                }
            }
            samples.push(Sample::number(Metric::RunsWaiting, vec![("for", word.into())], count as f64));
        }
        let missing = || StoreError::Corrupt("a count without a row".into());
        let age = self.db().read_one(OLDEST, params![]).await?.ok_or_else(missing)?.int("age")?;
        samples.push(Sample::number(Metric::OldestWaitingSeconds, vec![], age.max(0) as f64 / 1000.0));
        for status in Status::UNFINISHED {
            let count = self.db().read_one(UNFINISHED, params![*status]).await?.ok_or_else(missing)?.int("count")?;
            let labels = vec![("status", (*status).to_owned())];
            samples.push(Sample::number(Metric::RunsUnfinished, labels, count as f64));
        }
        let counts = self.db().read_one(COUNTS, params![]).await?.ok_or_else(missing)?;
        for what in ["everything", "tenants"] {
            samples.push(Sample::number(Metric::Paused, vec![("what", what.into())], counts.int(what)? as f64));
        }
        for (metric, column) in [
            (Metric::LeasesHeld, "leases"),
            (Metric::IntentsOpen, "intents"),
            (Metric::DeliveriesPending, "pending"),
            (Metric::DeliveriesFailing, "failing"),
            (Metric::DeliveriesGivenUp, "given_up"),
        ] {
            samples.push(Sample::number(metric, vec![], counts.int(column)? as f64));
        }
        samples.extend(self.inner.meter.samples());
        Ok(samples)
    }

    /// Where it is known how much memory this process has for runs.
    pub fn watch_room(&self, room: impl Fn() -> Room + Send + Sync + 'static) {
        self.inner.meter.watch_room(Box::new(room));
    }

    /// Where the number of provider processes of this process is known.
    pub fn watch_provider_processes(&self, count: impl Fn() -> usize + Send + Sync + 'static) {
        self.inner.meter.watch_provider_processes(Box::new(count));
    }

    /// Where the calls of this process to vendors are known.
    pub fn watch_vendor_calls(&self, calls: impl Fn() -> Vec<VendorCalls> + Send + Sync + 'static) {
        self.inner.meter.watch_vendor_calls(Box::new(calls));
    }

    /// Whether a write can be made now; otherwise why not. It makes one that changes nothing, so a full disk is noticed.
    pub async fn ready(&self) -> Result<(), String> {
        let write = async {
            let mut tx = self.db().begin().await?;
            tx.execute("UPDATE switches SET paused = paused", params![]).await?;
            tx.commit().await
        };
        match tokio::time::timeout(READY_WITHIN, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the store does not answer within {} s", READY_WITHIN.as_secs())),
        }
    }
}
