//! Which runs are taken next. A claim is one scan of the index of what is due, in the fair order, and a handful of
//! statements for all the runs that it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use landform_domain::TenantName;
use landform_domain::memory::{Room, UNSEEN};
use landform_domain::run::{Command, Kind, Status};

use super::load::load_claims;
use super::take::{Taken, take_all};
use super::waiting::{FOR_DEPLOYMENT, FOR_SLOT, free_slots, park};
use super::{ASKED_CHECKS, Claim, WorkerId};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::memory::memory_needed;
use crate::open::Store;
use crate::transition::{Locked, Means, advance, locked_columns, run_columns};
use crate::view::Run;

impl Store {
    /// The next run that is due; see [`Store::claim_up_to`].
    pub async fn claim(&self, worker: &WorkerId) -> Result<Option<Claim>, StoreError> {
        Ok(self.claim_up_to(worker, 1).await?.pop())
    }

    /// The next runs that are due, fairly between tenants, in one transaction. What a silent worker held is due too,
    /// and comes first, because its place in the order is an old one.
    pub async fn claim_up_to(&self, worker: &WorkerId, most: usize) -> Result<Vec<Claim>, StoreError> {
        Ok(self.claim_within(worker, most, Room::UNLIMITED).await?.claims)
    }

    /// The same, as long as there is room for what they are thought to need. Nobody overtakes a run that does not fit: it
    /// would wait for ever behind smaller ones.
    pub async fn claim_within(&self, worker: &WorkerId, most: usize, room: Room) -> Result<Claimed, StoreError> {
        self.claim_with_checks(worker, most, most, room).await
    }

    /// The same with at most so many drift checks among them, which come after everything else that is due.
    pub async fn claim_with_checks(
        &self,
        worker: &WorkerId,
        most: usize,
        checks: usize,
        room: Room,
    ) -> Result<Claimed, StoreError> {
        let before = if checks == 0 { ASKED_CHECKS } else { i64::MAX };
        for _ in 0..MOST_LOOKS {
            // A look that takes no locks, so that waiting workers cost nothing.
            let due = self.db().read_one(DUE, params![worker.as_str(), before]).await?;
            let due = due.ok_or_else(|| StoreError::Corrupt("a count without a row".into()))?;
            let comes_back = self.bring_back(&due).await?;
            let bound = due.flag("bound")?;
            if !(comes_back || bound || due.flag("queued")?) {
                return Ok(Claimed::default());
            }
            // Whatever cannot be taken yet is put aside, and the next look does not see it.
            let Scan { claims, no_room, .. } = loop {
                match self.claim_queued(QUEUED, worker, (most, checks), room, bound).await? {
                    Scan { claims, put_aside: true, no_room: false } if claims.is_empty() => {}
                    scan => break scan,
                }
            };
            self.tell_of(&claims);
            if no_room {
                self.inner.meter.held_back();
            }
            if no_room || !claims.is_empty() {
                return Ok(Claimed { claims, no_room });
            }
            // Something is due, but its row is locked: by another claim, which is over in a moment, or by a
            // transaction that was refused and is being rolled back.
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok(Claimed::default())
    }

    /// A run of a tenant that has nothing under way, if there is one among the first that are due: for a worker whose
    /// places are all taken by others, and who has one more for such a run.
    pub async fn claim_newcomer(&self, worker: &WorkerId, room: Room) -> Result<Option<Claim>, StoreError> {
        // A look that takes no locks, as for any claim.
        if self.db().read_one(NEWCOMER_DUE, params![ASKED_CHECKS]).await?.is_none() {
            return Ok(None);
        }
        let Scan { mut claims, .. } = self.claim_queued(NEWCOMERS, worker, (1, 0), room, false).await?;
        self.tell_of(&claims);
        Ok(claims.pop())
    }

    fn tell_of(&self, claims: &[Claim]) {
        for claim in claims {
            self.inner.bell.ring_for(claim.lease.run, &Status::Planning);
        }
    }

    /// Puts back what has waited long enough, or for somebody who is gone.
    async fn bring_back(&self, due: &Row) -> Result<bool, StoreError> {
        let (lapsed, ownerless, in_time) = (due.flag("lapsed")?, due.flag("ownerless")?, due.flag("in_time")?);
        if lapsed {
            self.take_back_lapsed().await?;
        }
        if ownerless {
            self.free_lapsed_accounts().await?;
        }
        if in_time {
            self.put_back_in_time().await?;
        }
        Ok(lapsed || ownerless || in_time)
    }

    /// Ends the leases of workers that went silent, so that their runs are in the queue again.
    async fn take_back_lapsed(&self) -> Result<(), StoreError> {
        for row in self.db().read_all(LAPSED, params![]).await? {
            let mut tx = self.db().begin().await?;
            let locked = tx
                .one(
                    concat!(
                        "SELECT ",
                        run_columns!(),
                        " FROM deployments d JOIN runs r ON r.id = d.active_run
                         WHERE d.id = $1 AND d.lease_until < {now} {lock_or_skip}"
                    ),
                    params![row.text("id")?],
                )
                .await?;
            let Some(run) = locked.as_ref().map(Run::from_row).transpose()? else { continue };
            tracing::warn!(run = %run.id, worker = row.text("lease_worker")?, "a worker went silent; its run is taken up");
            self.inner.meter.lease_lost();
            advance(&mut tx, row.parsed("id")?, &run, Command::LeaseLost, Means::default()).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// `queued` says which runs are looked at. `bound`: there may be runs that only this worker may take.
    async fn claim_queued(
        &self,
        queued: &'static str,
        worker: &WorkerId,
        (most, mut checks): (usize, usize),
        mut room: Room,
        bound: bool,
    ) -> Result<Scan, StoreError> {
        let most = most.max(1);
        let before = if checks == 0 { ASKED_CHECKS } else { i64::MAX };
        let mut tx = self.db().begin().await?;
        let mut scan = tx.all(queued, params![most as i64, before]).await?;
        if bound {
            let own = tx.all(BOUND_TO, params![most as i64, before, worker.as_str()]).await?;
            scan = in_fair_order(scan, own, most)?;
        }
        let mut slots = Slots::look(&mut tx, &scan).await?;
        let (mut taken, mut held, mut without_slot): (Vec<Taken>, Vec<Row>, Vec<Row>) = Default::default();
        let (mut reached, mut waited, mut no_room) = (0, Vec::new(), false);
        for row in scan.drain(..) {
            let locked = Locked::from_row(&row)?;
            // Of two runs of one deployment the first goes first.
            if !row.flag("free")? || taken.iter().any(|taken| taken.locked.id == locked.id) {
                held.push(row);
                continue;
            }
            let order_key = row.int("order_key")?;
            let is_check = order_key >= ASKED_CHECKS;
            if is_check && checks == 0 {
                // It stays due, for a worker with room for it.
                continue;
            }
            // What a dead worker left is looked after at once, whatever the limit.
            if !row.flag("taken_up_again")? && !slots.take(&locked.tenant) {
                without_slot.push(row);
                continue;
            }
            let memory = row.int_or_null("memory")?.map(i64::unsigned_abs);
            if !room.take(memory.unwrap_or(UNSEEN)) {
                no_room = true;
                break;
            }
            // Checks are no part of the fair order between tenants.
            if is_check {
                checks -= 1;
            } else {
                reached = reached.max(order_key);
            }
            waited.push(Duration::from_millis(row.int("waited")?.max(0).unsigned_abs()));
            let replaces = serde_json::from_str(&row.text("replaces")?)?;
            taken.push(Taken { locked, run: Run::from_row(&row)?, replaces, memory });
        }
        park(&mut tx, &held, FOR_DEPLOYMENT).await?;
        park(&mut tx, &without_slot, FOR_SLOT).await?;
        let put_aside = !(held.is_empty() && without_slot.is_empty());
        if taken.is_empty() {
            if put_aside {
                tx.commit().await?;
            }
            return Ok(Scan { claims: Vec::new(), put_aside, no_room });
        }
        let taken = take_all(&mut tx, worker, self.lease_millis(), taken).await?;
        set_clock(&mut tx, worker, reached).await?;
        let claims = load_claims(&mut tx, &self.inner.keys, taken).await?;
        tx.commit().await?;
        for (claim, waited) in claims.iter().zip(waited) {
            let first = claim.attempt == 1 && claim.kind != Kind::Check;
            self.inner.meter.claimed(claim.lease.run, first.then_some(waited));
        }
        Ok(Scan { claims, put_aside, no_room })
    }
}

/// What a worker has got.
#[derive(Default)]
pub struct Claimed {
    pub claims: Vec<Claim>,
    /// The next one needs more memory than is left.
    pub no_room: bool,
}

struct Scan {
    claims: Vec<Claim>,
    /// Runs that cannot be taken yet are out of the way now.
    put_aside: bool,
    no_room: bool,
}

/// What the tenants of a scan have left of their slots. Those without a limit are not in it.
struct Slots(BTreeMap<TenantName, i64>);

impl Slots {
    /// The rows of tenants with a limit are locked, in the order of their names, so that two claims neither share a slot
    /// nor wait for each other.
    async fn look(tx: &mut Tx, scan: &[Row]) -> Result<Slots, StoreError> {
        let mut slots = BTreeMap::new();
        for row in scan {
            if row.int_or_null("slots")?.is_some() {
                slots.insert(row.parsed("tenant")?, 0);
            }
        }
        for (tenant, left) in &mut slots {
            *left = free_slots(tx, tenant).await?.unwrap_or(i64::MAX);
        }
        Ok(Slots(slots))
    }

    fn take(&mut self, tenant: &TenantName) -> bool {
        match self.0.get_mut(tenant) {
            None => true,
            Some(left) => {
                *left -= 1;
                *left >= 0
            }
        }
    }
}

const MOST_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const DUE: &str = "SELECT
    (SELECT COUNT(*) FROM (SELECT 1 FROM accounts a WHERE a.lease_until < {now} LIMIT 1) AS a) AS ownerless,
    (SELECT COUNT(*) FROM (SELECT 1 FROM runs r WHERE r.claimable = 5 AND r.not_before <= {now} LIMIT 1) AS t) AS in_time,
    (SELECT COUNT(*) FROM (SELECT 1 FROM runs r WHERE r.claimable = 4 AND r.bound_worker = $1 AND r.order_key < $2 LIMIT 1) AS b) AS bound,
    (SELECT COUNT(*) FROM (SELECT 1 FROM deployments d
        WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL LIMIT 1) AS l) AS lapsed,
    (SELECT COUNT(*) FROM (SELECT 1 FROM runs r WHERE r.claimable = 1 AND r.order_key < $2 LIMIT 1) AS q) AS queued";

const LAPSED: &str = "SELECT d.id, d.lease_worker FROM deployments d
     WHERE d.lease_until IS NOT NULL AND d.lease_until < {now} AND d.active_run IS NOT NULL
     ORDER BY d.lease_until LIMIT 100";

/// What a claim looks at, in the fair order.
macro_rules! queued_where {
    ($($condition:tt)*) => { concat!(
    "SELECT ",
    locked_columns!(),
    ", ",
    run_columns!(),
    ", r.order_key, r.replaces, t.slots, {now} - r.created_at AS waited,
     ",
    memory_needed!(),
    ",
     CAST(CASE WHEN d.active_run = r.id THEN 1 ELSE 0 END AS BIGINT) AS taken_up_again,
     CAST(CASE WHEN d.active_run = r.id OR d.active_run IS NULL AND d.paused = 0 THEN 1 ELSE 0 END AS BIGINT) AS free
     FROM runs r JOIN deployments d ON d.id = r.deployment JOIN tenants t ON t.name = r.tenant
     WHERE ",
    $($condition)*,
    " ORDER BY r.order_key, r.id LIMIT $1 {lock_or_skip}"
    ) };
}

/// Both rows are locked, so both are as they are now, whatever was committed since the statement began.
const QUEUED: &str = queued_where!("r.claimable = 1 AND r.order_key < $2");

/// Only the first ones are looked at: whoever has nothing under way is among them, and the queue may have a million.
macro_rules! newcomer_before {
    ($key:literal) => {
        concat!(
            "r.claimable = 1 AND r.id IN (SELECT f.id FROM runs f WHERE f.claimable = 1 AND f.order_key < ",
            $key,
            " ORDER BY f.order_key, f.id LIMIT 32)
     AND NOT EXISTS (SELECT 1 FROM deployments u WHERE u.tenant = r.tenant AND u.lease_until IS NOT NULL)"
        )
    };
}

const NEWCOMER_DUE: &str = concat!("SELECT r.id FROM runs r WHERE ", newcomer_before!("$1"), " LIMIT 1");

const NEWCOMERS: &str = queued_where!(newcomer_before!("$2"));

const BOUND_TO: &str = queued_where!("r.claimable = 4 AND r.order_key < $2 AND r.bound_worker = $3");

/// The first `most` of both. The others are locked for no longer than the claim takes.
fn in_fair_order(mut scan: Vec<Row>, own: Vec<Row>, most: usize) -> Result<Vec<Row>, StoreError> {
    scan.extend(own);
    let mut rows: Vec<(i64, String, Row)> = Vec::with_capacity(scan.len());
    for row in scan {
        rows.push((row.int("order_key")?, row.text("id")?, row));
    }
    rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    Ok(rows.into_iter().take(most).map(|(.., row)| row).collect())
}

/// The highest key that was claimed: the fair order's present where nothing waits. Each worker has a row of its own, so that
/// claims do not wait for each other.
async fn set_clock(tx: &mut Tx, worker: &WorkerId, reached: i64) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO queue_clock (worker, reached) VALUES ($1, $2)
         ON CONFLICT (worker) DO UPDATE SET reached = CASE
             WHEN queue_clock.reached > excluded.reached THEN queue_clock.reached ELSE excluded.reached END",
        params![worker.as_str(), reached],
    )
    .await?;
    Ok(())
}
