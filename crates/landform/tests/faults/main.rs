//! Faults, each by breaking the real thing. After each of them what exists (the provider's ledger) is what the state
//! has, once. `docs/reliability.md` says which test stands for which fault.

mod clock;
mod database;
mod deaths;
mod disk;
mod hostile;
mod house;
mod load;
mod memory;
mod mirror;
mod races;
mod restarts;
