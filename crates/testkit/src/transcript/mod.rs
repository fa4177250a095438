//! What was said between a caller and its providers, and whether two callers said the same.
//!
//! A [`Recorder`] makes a provider mirror in which a proxy stands for each provider. Whoever uses that mirror, the
//! real CLI or our engine, is recorded. [`compare`] then says where two recordings differ, after both are brought
//! into a [`canonical`] form: readable, free of what may differ from run to run, and of nothing else.

pub mod canonical;
mod compare;
mod readable;
mod recorder;
mod symbols;

pub(crate) use compare::compare_json;
pub use compare::{Difference, compare, compare_canonical};
pub use recorder::{Recorder, Source};

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landform_protocol::ProviderSchema;
use landform_protocol::wire::Version;
use serde::{Deserialize, Serialize};

/// The recorded calls of one or more providers, in the order in which they were made.
#[derive(Clone, Debug)]
pub struct Transcript {
    pub calls: Vec<Call>,
    /// By provider; without it nothing of a call could be read.
    pub schemas: BTreeMap<String, Arc<ProviderSchema>>,
}

/// One call as it travelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The source address, for instance `hashicorp/time`.
    pub provider: String,
    /// 5 or 6.
    pub protocol: u32,
    /// When it arrived at the proxy, in nanoseconds; calls overlap and are written when they end.
    pub arrived: u64,
    /// The path of the gRPC request.
    pub method: String,
    #[serde(with = "base64_bytes")]
    pub request: Vec<u8>,
    pub response: Response,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    Message(#[serde(with = "base64_bytes")] Vec<u8>),
    Status { code: i32, message: String },
}

impl Call {
    pub fn version(&self) -> Version {
        Version::from_number(self.protocol).expect("the proxy records protocols 5 and 6")
    }

    /// One write, so that several proxies can share a file.
    pub fn append_to(&self, path: &Path) -> io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(self)?);
        std::fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
    }
}

/// Calls about the process, not about an object. How often they are made is the caller's own affair.
pub fn is_process_bound(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let bound = [
        "GetMetadata",
        "GetSchema",
        "GetProviderSchema",
        "GetResourceIdentitySchemas",
        "GetFunctions",
        "Stop",
        "StopProvider",
    ];
    bound.contains(&name)
}

/// What the proxy finds in a file beside itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProxyConfig {
    pub provider: String,
    pub binary: PathBuf,
    pub transcript: PathBuf,
}

impl ProxyConfig {
    pub fn path_for(proxy: &Path) -> PathBuf {
        proxy.with_file_name("recording-proxy.json")
    }
}

mod base64_bytes {
    use super::*;
    use serde::{Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
