//! What there is one of: secrets that cannot be printed, redaction by value, sealing, private files and locks, which
//! addresses are public, how much memory there is, the spawning of children, and their confinement.
//!
//! Promises: a [`secret::Secret`] never reaches a log by accident; what is sealed is opened only under the same
//! context; a child never outlives this process unnoticed, and a confined one sees only what it was given.
//! Absent on purpose: anything of this product. A tenant or a run is a word of `domain`.

pub mod address;
pub mod child;
pub mod confine;
pub mod file;
pub mod memory;
pub mod redact;
pub mod seal;
pub mod secret;
