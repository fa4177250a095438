use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use landform_base::child::{self, Child, Spec, Stream};
use landform_protocol::wire::MAGIC_COOKIE;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use crate::client::Client;
use crate::handshake::Handshake;
use crate::tail::Tail;

/// Handed down from our own environment because a provider cannot reach anything without them. None is a credential.
const INHERITED: &[&str] = &[
    "PATH",
    "LANG",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// What the Go SDKs log of themselves. Left alone they log everything to their error output, for a CLI that sorts it out:
/// for a small provider that is two thirds of what its calls cost. Warnings and errors stay, for last words.
const SDK_LOGS: &[&str] =
    &["TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_SDK_HELPER_SCHEMA", "TF_LOG_SDK_MUX", "TF_LOG_SDK_PROTO"];

/// Go looks for garbage as soon as what is in use has doubled, and a provider of a few megabytes does that several times in
/// a run: nearly a third of its CPU. Five times is some 15 MB more for such a one, and hundreds for a large one.
const GARBAGE: (&str, &str) = ("GOGC", "400");

/// What a provider holds grows with its schemas, and so does its binary: that of hashicorp/aws has some 700 MB.
const SMALL_BINARY_BYTES: u64 = 64 << 20;

/// The level of the provider's own log, under the name that the SDKs look for: `TF_LOG_PROVIDER_AWS`.
fn provider_log(binary: &Path) -> Option<String> {
    let file = binary.file_name()?.to_str()?.strip_prefix("terraform-provider-")?;
    let name = file.split('_').next()?;
    Some(format!("TF_LOG_PROVIDER_{}", name.replace('-', "_").to_uppercase()))
}

/// A greeting is one line; a binary that prints more without a line break is no provider.
const GREETING_BYTES: u64 = 16 * 1024;

/// Why a provider's process cannot be had. The message is meant for people.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{} cannot be started: {source}", binary.display())]
    Spawn { binary: PathBuf, source: io::Error },
    #[error("{} is not a provider: {detail}", binary.display())]
    NotAProvider { binary: PathBuf, detail: String },
    #[error("{} ended before it was ready ({status}){}", binary.display(), said(stderr))]
    Ended { binary: PathBuf, status: String, stderr: String },
    #[error("{} was not ready within {} s{}", binary.display(), timeout.as_secs_f32(), said(stderr))]
    Timeout { binary: PathBuf, timeout: Duration, stderr: String },
    #[error("{} is ready but cannot be reached: {detail}", binary.display())]
    Unreachable { binary: PathBuf, detail: String },
    /// More would be refused by the machine at a worse moment.
    #[error("{limit} provider processes are in use already, which is the limit")]
    TooMany { limit: usize },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") }
}

/// What a provider sees of the machine when it starts; none of it can be changed later. The default is neutral: it
/// shows nothing of ours.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Set for the provider, on top of a few variables that are no secrets. Nothing else of ours is handed down.
    pub environment: BTreeMap<String, String>,
    /// The folder that it works in; by default one of its own, which goes with the process. Some providers take
    /// relative paths from their configuration, and some write files wherever they are.
    pub folder: Option<PathBuf>,
}

/// The values may be secrets.
impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.environment.keys().collect();
        f.debug_struct("Surroundings").field("environment", &names).field("folder", &self.folder).finish()
    }
}

/// How to start one provider process.
#[derive(Debug)]
pub struct Launch {
    pub binary: PathBuf,
    pub surroundings: Surroundings,
    pub timeout: Duration,
    /// Where the process is registered while it lives, see [`landform_base::child::sweep`].
    pub register: Option<PathBuf>,
}

impl Launch {
    pub fn new(binary: impl Into<PathBuf>) -> Launch {
        Launch {
            binary: binary.into(),
            surroundings: Surroundings::default(),
            timeout: Duration::from_secs(60),
            register: None,
        }
    }

    pub(crate) async fn start(self) -> Result<Started, StartError> {
        let spawn = |source| StartError::Spawn { binary: self.binary.clone(), source };
        // Its mode is 0700, which is what protects the plaintext socket inside for as long as that has a name.
        let folder = tempfile::Builder::new().prefix("landform-").tempdir().map_err(spawn)?;
        let mut environment: BTreeMap<_, _> = [
            (MAGIC_COOKIE.0.into(), MAGIC_COOKIE.1.into()),
            ("PLUGIN_PROTOCOL_VERSIONS".into(), "5,6".into()),
            ("PLUGIN_UNIX_SOCKET_DIR".into(), folder.path().into()),
            // Files in the home folder are credentials too; who wants them shared names HOME in the environment.
            ("HOME".into(), folder.path().into()),
            ("TMPDIR".into(), folder.path().into()),
        ]
        .into();
        let logs = SDK_LOGS.iter().map(|name| (*name).to_owned()).chain(provider_log(&self.binary));
        environment.extend(logs.map(|name| (name.into(), "WARN".into())));
        if std::fs::metadata(&self.binary).is_ok_and(|binary| binary.len() < SMALL_BINARY_BYTES) {
            environment.insert(GARBAGE.0.into(), GARBAGE.1.into());
        }
        environment.extend(self.surroundings.environment.iter().map(|(name, value)| (name.into(), value.into())));
        let work = folder.path().join("work");
        std::fs::create_dir(&work).map_err(spawn)?;
        let spec = || Spec {
            folder: Some(self.surroundings.folder.clone().unwrap_or_else(|| work.clone())),
            environment: environment.clone(),
            inherit: INHERITED.iter().map(Into::into).collect(),
            stdout: Stream::Piped,
            stderr: Stream::Piped,
            register: self.register.clone(),
            belongings: Some(folder.path().to_owned()),
            ..Spec::new(&self.binary)
        };
        let mut child = spawn_patiently(spec).await.map_err(spawn)?;
        let no_output = || spawn(io::Error::other("it has no output"));
        let tail = Tail::of(child.take_stderr().ok_or_else(no_output)?);
        let stdout = BufReader::new(child.take_stdout().ok_or_else(no_output)?);
        let client = match timeout(self.timeout, self.greet(&mut child, stdout, &tail)).await {
            Ok(client) => client?,
            Err(_) => {
                let stderr = tail.text();
                return Err(StartError::Timeout { binary: self.binary, timeout: self.timeout, stderr });
            }
        };
        Ok(Started { client, child, tail, folder })
    }

    async fn greet(
        &self,
        child: &mut Child,
        mut stdout: BufReader<ChildStdout>,
        tail: &Tail,
    ) -> Result<Client, StartError> {
        let mut line = Vec::new();
        let read = (&mut stdout).take(GREETING_BYTES).read_until(b'\n', &mut line).await;
        if read.is_err() || !line.ends_with(b"\n") && line.len() < GREETING_BYTES as usize {
            return Err(self.ended(child, tail, &line).await);
        }
        let not_a_provider = |detail| StartError::NotAProvider { binary: self.binary.clone(), detail };
        let handshake = Handshake::parse(&String::from_utf8_lossy(&line)).map_err(not_a_provider)?;
        tokio::spawn(discard(stdout));
        let unreachable = |detail| StartError::Unreachable { binary: self.binary.clone(), detail };
        let client = Client::connect(handshake.socket.clone(), handshake.version, self.timeout).await;
        let client = client.map_err(|error| unreachable(error_chain(&error)))?;
        client.ping().await.map_err(|status| unreachable(status.to_string()))?;
        // One connection is all it ever needs, and without a name nobody can make another: neither a program that may not
        // see the folder but has learnt the name, nor one of the same user.
        match std::fs::remove_file(&handshake.socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreachable(error.to_string())),
            _ => Ok(client),
        }
    }

    /// The output ended without a greeting: wait for the process, to say how it ended.
    async fn ended(&self, child: &mut Child, tail: &Tail, line: &[u8]) -> StartError {
        let status = describe(child.wait().await);
        let mut stderr = tail.last_words().await;
        if stderr.is_empty() {
            stderr = String::from_utf8_lossy(line).trim().to_owned();
        }
        StartError::Ended { binary: self.binary.clone(), status, stderr }
    }
}

/// A binary that was just written may still be open for writing in a child of ours that has not got to its own program
/// yet; the kernel then refuses to start it. That passes within milliseconds.
async fn spawn_patiently(spec: impl Fn() -> Spec) -> io::Result<Child> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match child::spawn(spec()).await {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
    child::spawn(spec()).await
}

/// A provider process that has greeted.
pub(crate) struct Started {
    pub client: Client,
    pub child: Child,
    pub tail: Tail,
    /// Holds the socket; goes with the process.
    pub folder: tempfile::TempDir,
}

/// A provider that prints to its output later on would stop at a full pipe.
async fn discard(mut stdout: BufReader<ChildStdout>) {
    let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
}

pub(crate) fn describe(status: io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
