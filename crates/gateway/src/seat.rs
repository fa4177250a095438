//! Seats: the right to call one vendor, for one run, while it lasts.
//!
//! A seat's address is the same for every holder that comes after, so that a warm provider keeps its configuration. Runs
//! that hold the same connection at once have seats of their own: every call is one run's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use landform_base::secret::SecretString;
use sha2::Sha256;

use crate::budget::{Ask, Urgency};
use crate::counts::{Outcome, Tally, lock};
use crate::desk::{Desk, Turn, Wish};
use crate::once::Once;
use crate::serve::Inner;
use crate::vendor::Vendor;

/// A run that could go on so soon is let in: to put it off would take as long.
const WAITS_AT_FIRST: Duration = Duration::from_secs(1);
/// So long it may wait inside for the rest of its calls. Longer would keep a worker's place from others for little.
const WAITS_ON_THE_WAY: Duration = Duration::from_secs(10);

/// Who wants to call a vendor.
#[derive(Clone, Debug)]
pub struct Booking {
    pub tenant: String,
    pub urgency: Urgency,
    pub vendor: Arc<Vendor>,
    /// The vendor's own address.
    pub endpoint: SecretString,
    /// The account that limits belong to; see [`Vendor::account_key`].
    pub account: String,
    /// The certificate of the vendor's authority, in PEM.
    pub authority: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum NoSeat {
    #[error("the vendor's address is no http or https address without a query")]
    NotAnAddress,
}

/// A seat that is taken. Dropping it ends the right to call.
pub struct Seat {
    gateway: Arc<Inner>,
    secret: String,
    address: SecretString,
    pub(crate) held: Arc<Held>,
}

/// What the gateway knows about whoever has a seat.
pub(crate) struct Held {
    pub(crate) booking: Booking,
    pub(crate) desk: Arc<Desk>,
    tally: Mutex<Tally>,
    /// A seat is one run's attempt: whoever comes after it has looked what became of its calls, and may repeat them.
    pub(crate) once: Once,
    /// What it was let in for, by operation.
    expected: Mutex<BTreeMap<String, u64>>,
}

impl Seat {
    pub(crate) fn take(gateway: &Arc<Inner>, booking: Booking) -> Result<Seat, NoSeat> {
        check(booking.endpoint.expose())?;
        let desk = gateway.desk(&booking.account);
        let held = Held { booking, desk, tally: Mutex::default(), once: Once::default(), expected: Mutex::default() };
        let held = Arc::new(held);
        let mut seats = lock(&gateway.seats);
        let mut number = 0u32;
        let secret = loop {
            let secret = secret_of(gateway, &held.booking, number);
            if !seats.contains_key(&secret) {
                break secret;
            }
            number += 1;
        };
        seats.insert(secret.clone(), held.clone());
        let address = SecretString::from(format!("http://{}/{secret}", gateway.address));
        drop(seats);
        Ok(Seat { gateway: gateway.clone(), secret, address, held })
    }

    /// What the provider is given in place of the vendor's address.
    pub fn address(&self) -> &SecretString {
        &self.address
    }

    pub fn vendor(&self) -> &Vendor {
        &self.held.booking.vendor
    }

    pub fn tally(&self) -> Tally {
        lock(&self.held.tally).clone()
    }

    /// The account that limits belong to.
    pub fn account(&self) -> &str {
        &self.held.booking.account
    }

    /// Lets a run in if the account's budget can carry so many calls of these operations, beside what others were let in
    /// for and have not sent yet. Otherwise it keeps its place in the queue, and this is when to come back.
    pub fn admit(&self, run: &str, calls: &BTreeMap<String, u64>) -> Result<(), Duration> {
        let Booking { vendor, urgency, .. } = &self.held.booking;
        let same_desk = |other: &&Arc<Held>| Arc::ptr_eq(&other.desk, &self.held.desk);
        let seats = lock(&self.gateway.seats);
        let others: Vec<&Arc<Held>> =
            seats.values().filter(same_desk).filter(|other| !Arc::ptr_eq(other, &self.held)).collect();
        let outstanding = |operation: &str| others.iter().map(|other| other.outstanding(operation)).sum();
        let background = *urgency == Urgency::Background;
        // Others may come before what runs in the background, so nobody knows when its last call could go.
        let on_the_way = if background { Duration::ZERO } else { WAITS_ON_THE_WAY.min(vendor.hold() / 2) };
        let wish = Wish { run, calls, background, at_first: WAITS_AT_FIRST, on_the_way };
        self.held.desk.let_in(&wish, |operation| vendor.windows(operation), outstanding)?;
        lock(&self.held.expected).clone_from(calls);
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.gateway.seats).remove(&self.secret);
    }
}

impl Held {
    /// Calls that it was let in for and has not sent yet.
    fn outstanding(&self, operation: &str) -> u64 {
        let expected = lock(&self.expected).get(operation).copied().unwrap_or_default();
        expected.saturating_sub(lock(&self.tally).sent.get(operation).copied().unwrap_or_default())
    }

    pub(crate) fn ask(&self, operations: &[String]) -> Result<Turn, crate::budget::Full> {
        let Booking { tenant, urgency, vendor, .. } = &self.booking;
        let windows = |operation: &String| (operation.clone(), vendor.windows(operation));
        self.desk.ask(Ask {
            tenant: tenant.clone(),
            urgency: *urgency,
            operations: operations.iter().map(windows).collect(),
            concurrency: vendor.concurrency,
        })
    }

    pub(crate) fn count(&self, gateway: &Inner, operations: &[String], outcome: Outcome, held: Duration) {
        for operation in operations {
            lock(&self.tally).add(operation, outcome, held);
            gateway.totals.add(&self.booking.vendor.vendor, operation, outcome, held);
        }
    }
}

fn check(endpoint: &str) -> Result<(), NoSeat> {
    let url = reqwest::Url::parse(endpoint).map_err(|_| NoSeat::NotAnAddress)?;
    let good = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    if good { Ok(()) } else { Err(NoSeat::NotAnAddress) }
}

fn secret_of(gateway: &Inner, booking: &Booking, number: u32) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(gateway.key.expose()).expect("any length is a key");
    let Booking { tenant, vendor, endpoint, account, authority, .. } = booking;
    let authority = authority.as_deref().unwrap_or_default();
    for part in [tenant, &vendor.vendor, account, endpoint.expose(), authority, &number.to_string()] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.finalize().into_bytes()[..20].iter().map(|byte| format!("{byte:02x}")).collect()
}
