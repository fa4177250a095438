//! Stands in a provider mirror in place of a provider, passes every call on as it is, and writes down what was said.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use async_trait::async_trait;
use landform_plugin::{Binary, Launch, Process, Schemas, Surroundings};
use landform_protocol::wire::Version;
use landform_provider_kit::{Handler, serve};
use landform_testkit::transcript::{Call, ProxyConfig, Response, is_process_bound};
use prost::bytes::Bytes;
use tonic::Status;

#[tokio::main]
async fn main() -> ExitCode {
    match record().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recording proxy: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn record() -> anyhow::Result<()> {
    let config = ProxyConfig::path_for(&std::env::current_exe()?);
    let config = std::fs::read(&config).with_context(|| config.display().to_string())?;
    let config: ProxyConfig = serde_json::from_slice(&config)?;
    // The provider sees what its caller shows it, but for the caller's side of this proxy's own handshake.
    let environment = std::env::vars().filter(|(name, _)| !name.starts_with("PLUGIN_")).collect();
    let surroundings = Surroundings { environment, folder: Some(std::env::current_dir()?) };
    let launch = Launch { surroundings, ..Launch::new(&config.binary) };
    let binary = Binary { path: config.binary, sha256: String::new() };
    let process = Process::start(binary, launch, Arc::new(Schemas::in_memory())).await?;
    serve(Arc::new(Proxy { process, provider: config.provider, transcript: config.transcript })).await?;
    Ok(())
}

struct Proxy {
    process: Process,
    provider: String,
    transcript: PathBuf,
}

#[async_trait]
impl Handler for Proxy {
    fn version(&self) -> Version {
        self.process.version()
    }

    async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status> {
        let arrived = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let target = path.parse().map_err(|_| Status::unimplemented(path))?;
        let answer = self.process.client().forward(target, message.clone()).await;
        if !is_process_bound(path) {
            let call = Call {
                provider: self.provider.clone(),
                protocol: self.version().number(),
                arrived,
                method: path.to_owned(),
                request: message.into(),
                response: match &answer {
                    Ok(message) => Response::Message(message.to_vec()),
                    Err(status) => {
                        Response::Status { code: status.code().into(), message: status.message().to_owned() }
                    }
                },
            };
            // Before the answer: whoever has the answer finds the call in the transcript.
            call.append_to(&self.transcript).map_err(|error| Status::internal(format!("transcript: {error}")))?;
        }
        answer
    }
}
