use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use landform_plugin::{Binary, Launch, Process, Schemas};
use landform_protocol::wire::Version;
use landform_protocol::{Provider, ProviderSchema};

use super::{ProxyConfig, Transcript};
use crate::{ledger, parts, probe, programs};

/// A provider to be recorded.
#[derive(Clone, Debug)]
pub struct Source {
    /// Such as `hashicorp/time`.
    pub address: String,
    pub version: String,
    pub binary: PathBuf,
}

impl Source {
    /// A provider of the mirror of real parts.
    pub fn part(address: &str) -> Source {
        let version = parts::provider_version(address);
        Source { address: address.into(), version, binary: parts::provider(address) }
    }

    /// hashicorp/aws, where this machine has it.
    pub fn aws() -> Option<Source> {
        let parts::Aws { mirror, source, version } = parts::aws()?;
        let folder = mirror.join(source).join(&version).join(parts::platform());
        let is_provider = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("terraform-provider-aws"))
        };
        let binary = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(is_provider)?;
        Some(Source { address: "hashicorp/aws".into(), version, binary })
    }

    pub fn probe(version: Version) -> Source {
        let (address, binary) = (probe::source(version).into(), probe::program(version));
        Source { address, version: probe::VERSION.into(), binary }
    }

    pub fn ledger() -> Source {
        let binary = programs::path("terraform-provider-ledger");
        Source { address: ledger::SOURCE.into(), version: ledger::VERSION.into(), binary }
    }
}

/// A provider mirror in which every provider is recorded.
#[derive(Debug)]
pub struct Recorder {
    mirror: PathBuf,
    transcript: PathBuf,
    schemas: BTreeMap<String, Arc<ProviderSchema>>,
}

impl Recorder {
    /// Makes the mirror inside of `folder`. The providers are asked for their schemas now, so that the recording does
    /// not depend on whether the recorded caller asks.
    pub async fn new(folder: &Path, sources: &[Source]) -> anyhow::Result<Recorder> {
        let (mirror, transcript) = (folder.join("mirror"), folder.join("transcript.jsonl"));
        let mut schemas = BTreeMap::new();
        for source in sources {
            let provider = Binary::at(&source.binary).with_context(|| source.binary.display().to_string())?;
            let launch = Launch::new(&source.binary);
            let process = Process::start(provider, launch, Arc::new(Schemas::in_memory())).await?;
            schemas.insert(source.address.clone(), process.schema().await?);
            process.retire().await;

            let name = source.address.rsplit('/').next().unwrap_or_default();
            let package = mirror.join("registry.opentofu.org").join(&source.address).join(&source.version);
            let package = package.join(parts::platform());
            std::fs::create_dir_all(&package)?;
            let proxy = package.join(format!("terraform-provider-{name}"));
            personal_copy(&programs::path("recording-proxy"), &proxy, &source.address)?;
            let config = ProxyConfig {
                provider: source.address.clone(),
                binary: source.binary.clone(),
                transcript: transcript.clone(),
            };
            std::fs::write(ProxyConfig::path_for(&proxy), serde_json::to_vec(&config)?)?;
        }
        Ok(Recorder { mirror, transcript, schemas })
    }

    /// The mirror, in the unpacked layout.
    pub fn mirror(&self) -> &Path {
        &self.mirror
    }

    /// What was recorded since the last time. All callers must have ended.
    pub fn take(&self) -> anyhow::Result<Transcript> {
        let text = match std::fs::read_to_string(&self.transcript) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error.into()),
        };
        let calls: Result<Vec<super::Call>, _> = text.lines().map(serde_json::from_str).collect();
        let mut calls = calls.context("the transcript has an unreadable line")?;
        calls.sort_by_key(|call| call.arrived);
        if self.transcript.exists() {
            std::fs::remove_file(&self.transcript)?;
        }
        Ok(Transcript { calls, schemas: self.schemas.clone() })
    }
}

/// A provider is known by the content of its binary, so each proxy gets a name at its end. A shell writes it: a file that
/// this process had open for writing could not be started while another thread is starting something.
fn personal_copy(from: &Path, to: &Path, name: &str) -> anyhow::Result<()> {
    let script = "cat \"$1\" > \"$2\" && printf %s \"$3\" >> \"$2\" && chmod 755 \"$2\"";
    let status = std::process::Command::new("sh").args(["-c", script, "sh"]).args([from, to]).arg(name).status()?;
    anyhow::ensure!(status.success(), "{} could not be copied", from.display());
    Ok(())
}
