use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use landform_protocol::Provider;

use crate::Diagnostic;

/// Where the native engine gets its providers from. Implemented over a registry and a pool of processes.
#[async_trait]
pub trait Providers: Send + Sync {
    /// Finds the binary that serves a requirement in the given folder of `.tf` files. Nothing is started.
    async fn locate(&self, folder: &Path, requirement: &Requirement) -> Result<Located, Diagnostic>;

    /// A provider of its own: not configured yet, used by nobody else, and ended when the last handle is dropped.
    async fn start(
        &self,
        located: &Located,
        environment: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Provider>, Diagnostic>;
}

/// A provider that a configuration or a state asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The full source address, for instance `registry.opentofu.org/hashicorp/time`.
    pub source: String,
    /// What `required_providers` says about the version; empty: any.
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub source: String,
    pub version: String,
    /// Names the binary's content; a plan is stale when it differs.
    pub digest: String,
    /// Where the binary is; empty for a provider without one.
    pub path: PathBuf,
}
