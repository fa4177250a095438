//! An attempt's seats at the gateway: where its calls to vendors go, and what became of them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landform_base::secret::SecretString;
use landform_domain::run::Kind;
use landform_domain::template::Files;
use landform_domain::{Code, Problem};
use landform_engine::Variable;
use landform_gateway::{Booking, Gateway, Seat, Tally, Urgency};
use landform_store::{Claim, Store, StoreError, WorkerId};
use serde_json::Value;

use crate::accounts::Accounts;
use crate::vendors::{self, Spoken};

/// Templates whose vendors are remembered.
const MOST_REMEMBERED: usize = 256;
/// With each run this part of what earlier ones asked for is forgotten.
const FORGOTTEN_PART: u64 = 10;

/// The gateway, which vendors templates speak to, and what their runs ask of them.
pub(crate) struct Booth {
    gateway: Gateway,
    pub(crate) accounts: Accounts,
    known: Mutex<HashMap<String, Arc<Vec<Spoken>>>>,
    habits: Mutex<HashMap<Habit, BTreeMap<String, u64>>>,
}

/// Runs that ask about the same of a vendor: of a template's version, of one kind.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Habit {
    template: String,
    kind: Kind,
    vendor: String,
}

impl Habit {
    fn of(claim: &Claim, seat: &Seat) -> Habit {
        let template = format!("{}@{}", claim.template, claim.template_version);
        Habit { template, kind: claim.kind, vendor: seat.vendor().vendor.clone() }
    }
}

/// What becomes of a run that wants to call its vendors.
pub(crate) enum Admission {
    Go,
    /// This worker owns the account.
    Elsewhere(WorkerId),
    /// The account's budget cannot carry it yet.
    Later {
        wait: Duration,
        reason: String,
    },
}

impl Booth {
    pub(crate) fn new(gateway: Gateway, store: Store, me: WorkerId) -> Booth {
        let accounts = Accounts::new(store, me, gateway.clone());
        Booth { gateway, accounts, known: Mutex::default(), habits: Mutex::default() }
    }

    /// Whether a run may go on here and now, as far as its vendors are concerned.
    pub(crate) async fn admit(&self, seats: &Seats, claim: &Claim) -> Result<Admission, StoreError> {
        let mut counted: Vec<&Seat> = seats.0.iter().filter(|seat| seat.vendor().counts_calls()).collect();
        counted.sort_by_key(|seat| seat.account());
        for (place, seat) in counted.iter().enumerate() {
            match self.accounts.own(seat.account()).await? {
                Some(owner) if place == 0 => return Ok(Admission::Elsewhere(owner)),
                // Two accounts with two owners: sent to and fro, the run would never begin.
                Some(_) | None => {}
            }
        }
        for seat in counted {
            let expected = self.habits().get(&Habit::of(claim, seat)).cloned().unwrap_or_default();
            if let Err(wait) = seat.admit(&claim.lease.run.to_string(), &expected) {
                let reason = format!("the limits of {} are used up for now", seat.vendor().vendor);
                return Ok(Admission::Later { wait, reason });
            }
        }
        Ok(Admission::Go)
    }

    /// What this run has asked for, others like it will ask for: the most of late.
    pub(crate) fn learn(&self, seats: &Seats, claim: &Claim) {
        for seat in seats.0.iter().filter(|seat| seat.vendor().counts_calls()) {
            let sent = seat.tally().sent;
            if sent.is_empty() {
                continue;
            }
            let mut habits = self.habits();
            if habits.len() >= MOST_REMEMBERED {
                habits.clear();
            }
            let habit = habits.entry(Habit::of(claim, seat)).or_default();
            for calls in habit.values_mut() {
                *calls -= calls.div_ceil(FORGOTTEN_PART);
            }
            for (operation, calls) in sent {
                let habit = habit.entry(operation).or_default();
                *habit = calls.max(*habit);
            }
            habit.retain(|_, calls| *calls > 0);
        }
    }

    fn habits(&self) -> MutexGuard<'_, HashMap<Habit, BTreeMap<String, u64>>> {
        self.habits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat for each vendor, and puts its address where the template takes the vendor's from.
    pub(crate) fn take(
        &self,
        tenant: &str,
        urgency: Urgency,
        (files, folder): (&Files, &Path),
        variables: &mut BTreeMap<String, Variable>,
    ) -> Result<Seats, Problem> {
        let mut seats = Vec::new();
        for Spoken { vendor, defaults } in &*self.spoken(files, folder)? {
            let value = |name: &String| {
                let given = variables.get(name).map(|variable| &variable.value).or_else(|| defaults.get(name));
                let text = given.and_then(text);
                text.ok_or_else(|| unfit(format!("the variable `{name}`, which {} needs, has no text", vendor.vendor)))
            };
            let account = vendor.account.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            let account: Vec<&str> = account.iter().map(String::as_str).collect();
            let booking = Booking {
                tenant: tenant.to_owned(),
                urgency,
                endpoint: SecretString::from(value(&vendor.endpoint.variable)?),
                account: vendor.account_key(&account),
                authority: vendor.endpoint.authority.as_ref().and_then(|name| value(name).ok()),
                vendor: vendor.clone(),
            };
            let seat = self.gateway.take_seat(booking);
            let seat = seat.map_err(|error| unfit(format!("`{}`: {error}", vendor.endpoint.variable)))?;
            let address = Value::String(seat.address().expose().clone());
            variables.insert(vendor.endpoint.variable.clone(), Variable::new(address, true));
            seats.push(seat);
        }
        Ok(Seats(Arc::new(seats)))
    }

    fn spoken(&self, files: &Files, folder: &Path) -> Result<Arc<Vec<Spoken>>, Problem> {
        let digest = files.digest();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(digest.as_str()) {
            return Ok(found.clone());
        }
        let found = Arc::new(vendors::of(files, folder)?);
        let mut known = known();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(digest.as_str().to_owned(), found.clone());
        Ok(found)
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn unfit(message: String) -> Problem {
    Problem::new(Code::ConnectionInvalid, message)
}

/// What an attempt holds at the gateway. Its calls end with the last of these.
#[derive(Clone, Default)]
pub(crate) struct Seats(Arc<Vec<Seat>>);

impl Seats {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &SecretString> {
        self.0.iter().map(Seat::address)
    }

    /// Calls that may have been carried out, or not, and of which nobody finds out what became of them.
    pub(crate) fn doubts(&self) -> u64 {
        self.0.iter().filter(|seat| !seat.vendor().looks_up_after_silence).map(|seat| seat.tally().doubts()).sum()
    }

    /// What was asked of each vendor, for the run's log.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.iter().filter_map(|seat| note(&seat.vendor().vendor, &seat.tally())).collect()
    }
}

fn note(vendor: &str, tally: &Tally) -> Option<String> {
    if *tally == Tally::default() {
        return None;
    }
    let sent: Vec<String> = tally.sent.iter().map(|(operation, count)| format!("{operation} {count}")).collect();
    let mut note = format!("calls to {vendor}: {}", sent.join(", "));
    if tally.held.as_millis() >= 100 {
        note += &format!("; they waited {:.1} s for their turn", tally.held.as_secs_f64());
    }
    for (count, what) in [
        (tally.rate_limited, "met the vendor's rate limit"),
        (tally.refused, "put off to keep the vendor's limits"),
        (tally.silences, "without an answer"),
        (tally.unclear, "with an answer that leaves open whether they were carried out"),
        (tally.again, "not sent again, since nobody knows whether the first was carried out"),
    ] {
        if count > 0 {
            note += &format!("; {count} {what}");
        }
    }
    Some(note)
}
