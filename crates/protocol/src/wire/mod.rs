//! The protocol as it travels: messages, method names, and the one conversion between them and this crate's words.
//!
//! Protocols 5 and 6 share every message but the schema's, see `proto/`, so each conversion exists once.

mod call;
mod method;
mod raw;
mod schema;
mod value;

pub use call::{Call, StopProvider, ValidateDataConfig, ValidateProviderConfig};
pub use method::{Method, Version};
pub use raw::RawCodec;
pub use schema::{identities_from_wire, identities_to_wire, schema_from_wire, schema_to_wire};
pub use value::{Types, WireError, from_dynamic, to_dynamic};

/// By this environment variable a provider knows that it was started as one, and not by a person.
pub const MAGIC_COOKIE: (&str, &str) =
    ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2");

/// Messages may be this large in either direction; the largest schemas known have several megabytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

pub mod tfplugin {
    tonic::include_proto!("tfplugin");
}

pub mod tfplugin5 {
    tonic::include_proto!("tfplugin5");
}

pub mod tfplugin6 {
    tonic::include_proto!("tfplugin6");
}
