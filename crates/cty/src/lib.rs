//! Terraform's values: what a configuration evaluates to, what a provider is sent and what a state holds.
//!
//! A [`Value`] always has a [`Type`]; it may be null, unknown (with what is known about it), or marked.
//! Promise: encoding and decoding are exact. A number is never rounded, an unknown never becomes a null.
//! Absent on purpose: HCL (see `lang`) and gRPC (see `protocol`).

mod codec;
mod convert;
mod equals;
mod json;
mod msgpack;
mod number;
mod path;
mod set;
mod text;
mod ty;
mod value;

pub use codec::CodecError;
pub use convert::{ConvertError, Safety, Unified, is_possible, mismatch_message, unify};
pub use number::{NotANumber, Number};
pub use path::{Path, Step};
pub use text::{normalize, quote_as_go, safe_known_prefix};
pub use ty::{NotAType, Type};
pub use value::{Data, Mark, Marks, Refinement, Value};
