//!

pub mod providers;
