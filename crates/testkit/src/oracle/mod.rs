//! The judge of the native engine: the same story, told by the real OpenTofu and by `landform tf`, side by side.
//!
//! A [`Case`] is a text file of the corpus. Both engines live through its steps, each in a folder of its own, with
//! providers that are recorded; what can be seen of a step is an [`Observed`], free of what may differ from run to run.
//! OpenTofu's side is kept as a [`Recording`], so that the test command needs no OpenTofu for most of it.

mod case;
mod compare;
mod invent;
mod normal;
mod observe;
mod recording;
mod sides;
mod words;

pub use case::{Case, End, Engine, Step, Variant, corpus};
pub use compare::{differences, stream_differences};
pub use invent::invent;
pub use observe::{Ended, Observed, Streams};
pub use recording::Recording;
pub use sides::{Bench, Left, Side, Told, UNSUPPORTED, check_end, hand_over, listen, live_through};
