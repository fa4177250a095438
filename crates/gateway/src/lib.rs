//! The gateway: the one way from this process to a vendor, so that a vendor's limits are kept whoever calls.
//!
//! A loopback HTTP server. A run takes a [`Seat`] for each vendor that it speaks to, and its provider is given the seat's
//! address in place of the vendor's. A call waits for its turn, is sent once, and its answer goes back as it is. A provider
//! in the same process may hand its call to [`Gateway::call`] instead of the socket; nothing else is different.
//!
//! Promises: never more calls of an account and operation than the vendor allows in any window, also when some are under
//! way; nothing is sent twice unless the vendor said that it did nothing; silence becomes a definite error; what may have
//! been carried out already and is not known to be repeatable is not sent again, however often a client asks; who has no
//! seat gets nothing through; windows outlive the process. Queues are bounded, fair between tenants, and a person comes
//! before a check.
//! Absent on purpose: what a vendor's calls mean, runs, tables. What is known about a vendor is data ([`Vendor`]).

pub mod budget;
mod counts;
mod desk;
mod forward;
mod handover;
mod once;
mod past;
mod seat;
mod serve;
pub mod vendor;

pub use budget::Urgency;
pub use counts::{Outcome, Tally, Total};
pub use handover::Handover;
pub use seat::{Booking, NoSeat, Seat};
pub use serve::Gateway;
pub use vendor::{Asked, Vendor, VendorError};
