use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use landform_base::file::{self, FileLock};
use landform_engine::Engine;
use landform_engine::cli::{Cli, CliSettings, Confine};
use landform_engine::native::Native;
use landform_engine::policy::{Permission, Policy};
use landform_plugin::{Limits, Pool, Schemas};
use landform_registry::Places;
use landform_runner::known::KnownProviders;
use landform_runner::providers::LocalProviders;
use landform_runner::{Engines, FormatEditor, LanguageReader, Settings, Worker};
use landform_server::Tls;
use landform_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, DEFAULT_LISTEN, address, token_file};
use crate::engine::InUse;
use crate::failure::Failure;
use crate::house;
use crate::inside::ToGateway;

#[derive(Args, Debug)]
pub struct Options {
    /// The address to listen on
    #[arg(long, env = "LANDFORM_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS", value_parser = address)]
    listen: SocketAddr,
    /// A further address, for /metrics, /healthz and /readyz only: the way to watch a process with --role worker
    #[arg(long, env = "LANDFORM_METRICS_LISTEN", value_name = "ADDRESS", value_parser = address)]
    metrics_listen: Option<SocketAddr>,
    /// A certificate chain in PEM: speak https
    #[arg(long, env = "LANDFORM_TLS_CERTIFICATE", requires = "tls_key", value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, env = "LANDFORM_TLS_KEY", requires = "tls_certificate", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// A PostgreSQL URL [default: SQLite in the data folder]
    #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
    /// A folder in the layout of a filesystem mirror, the only place that providers come from [default: `mirror` in the
    /// data folder]
    #[arg(long, env = "LANDFORM_PROVIDERS", value_name = "DIR")]
    providers: Option<PathBuf>,
    /// A provider whose configured process may serve several runs, as NAMESPACE/TYPE@VERSION; see docs/providers.md
    #[arg(long, env = "LANDFORM_SHARE_PROVIDERS", value_delimiter = ',', value_name = "PROVIDER")]
    share_provider: Vec<String>,
    /// The `tofu` binary for the CLI engine [default: the one in PATH]
    #[arg(long, env = "LANDFORM_TOFU", value_name = "FILE")]
    tofu: Option<PathBuf>,
    /// A host that webhooks may reach although its address is not public; may be given several times
    #[arg(long, value_name = "HOST")]
    allow_webhook_host: Vec<String>,
    /// An environment variable that connections may set for providers; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_environment: Vec<String>,
    /// Runs that are carried out at the same time
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_024))]
    workers: usize,
    /// Mebibytes of memory that the processes of all runs may take together: a run is begun when what its template took
    /// before fits [default: three quarters of what the machine, or the control group, has]
    #[arg(long, env = "LANDFORM_MEMORY", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    memory: Option<u64>,
    /// Make a whole plan also where nobody has to approve it; the CLI engine then needs three processes instead of one
    #[arg(long, env = "LANDFORM_KEEP_PLANS")]
    keep_plans: bool,
    /// Whether runs of the CLI engine see only what they need of the file system
    #[arg(long, env = "LANDFORM_CONFINE", default_value = "auto", value_enum)]
    confine: Confinement,
    /// A file or folder that runs of the CLI engine may read; can be repeated
    #[arg(long, value_name = "PATH")]
    cli_may_read: Vec<PathBuf>,
    /// A file or folder that runs of the CLI engine may read and write; can be repeated
    #[arg(long, value_name = "PATH")]
    cli_may_write: Vec<PathBuf>,
    /// What templates may do besides describing objects: local-exec, remote-exec, file, external, remote-modules; can
    /// be repeated
    #[arg(long = "allow", env = "LANDFORM_ALLOW", value_delimiter = ',', value_name = "NAME")]
    allow: Vec<Permission>,
    /// Seconds that a run may take to stop when it is asked to; then it is ended, and what it was doing is in doubt
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    grace: u64,
    /// Seconds that a plan or an apply may take, where the deployment does not say otherwise; then it is stopped
    #[arg(long, default_value_t = 21_600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    time_limit: u64,
    /// Seconds that a plan waits for approval; then its run has expired
    #[arg(long, default_value_t = 604_800, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    approval_expiry: u64,
    /// What this process does; several processes share one PostgreSQL
    #[arg(long, env = "LANDFORM_ROLE", default_value = "all", value_enum)]
    role: Role,
    /// Days that ended runs and their logs are kept; a deployment's newest run always is
    #[arg(long, default_value_t = 90, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36500))]
    keep_runs: u64,
    /// Versions of each state that are kept
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_states: u32,
    /// Seconds after which a silent worker's run is taken up by another
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=600))]
    lease: u64,
}

impl Options {
    fn policy(&self) -> Policy {
        Policy::allowing(self.allow.iter().copied())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Everything
    All,
    /// The REST door only
    Api,
    /// Carries runs and chores out, and listens nowhere but at --metrics-listen
    Worker,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Confinement {
    /// They see what the server sees
    Off,
    /// Where the kernel can do it; elsewhere the log says that it cannot
    Auto,
    /// Where the kernel cannot, there is no CLI engine
    Required,
}

impl From<Confinement> for Confine {
    fn from(confinement: Confinement) -> Confine {
        match confinement {
            Confinement::Off => Confine::Off,
            Confinement::Auto => Confine::Auto,
            Confinement::Required => Confine::Required,
        }
    }
}

/// A run that needs more providers than this may find none left, and fails with a reason.
const PROVIDERS_A_RUN: usize = 16;

/// How long runs under way may take to end by themselves when the server is asked to stop; then they stop at the next
/// safe point.
const PATIENCE: Duration = Duration::from_secs(5);

pub async fn run(options: Options, connection: &Connection) -> Result<(), Failure> {
    log_to_stderr();
    landform_api::install_cryptography();
    let data = connection.data_folder()?;
    let in_data = |e: std::io::Error| {
        Failure::broken(format!("the data folder {}: {e}", data.display()), "Name another one with --data.")
    };
    file::private_folder(&data).map_err(in_data)?;
    let lock = FileLock::try_acquire(&data.join("serve.lock")).map_err(in_data)?;
    let _lock = lock.ok_or_else(|| {
        Failure::broken(
            format!("another server works on {}", data.display()),
            "Stop it, or name another folder with --data.",
        )
    })?;
    if options.role != Role::All && options.database.is_none() {
        return Err(Failure::usage(
            "SQLite is for one process, which does everything",
            "Name a PostgreSQL with --database, or leave --role out.",
        ));
    }
    let tls = tls(&options)?;
    let store = open_store(&options, &data).await?;
    let stopping = CancellationToken::new();
    stop_on_signals(stopping.clone()).map_err(in_data)?;
    let listener = match options.role {
        Role::Worker => None,
        Role::All | Role::Api => Some(bind(options.listen, "--listen").await?),
    };
    let figures = match options.metrics_listen {
        Some(address) => Some(bind(address, "--metrics-listen").await?),
        None => None,
    };
    let serving = async {
        match listener {
            Some(listener) => {
                if tls.is_none() && !options.listen.ip().is_loopback() {
                    tracing::warn!(
                        "tokens travel in clear text: give --tls-certificate, or put a proxy with TLS before it"
                    );
                }
                tracing::info!(address = %options.listen, "listening");
                landform_server::serve(listener, store.clone(), tls.clone(), stopping.clone()).await;
                stopping.cancel();
            }
            None => stopping.cancelled().await,
        }
    };
    let telling = async {
        if let Some(listener) = figures {
            landform_server::serve_figures(listener, store.clone(), tls.clone(), stopping.clone()).await;
        }
    };
    // The door opens at once; finding the engines may take a moment, and runs wait for it in the queue.
    let working = async {
        let worked = match options.role {
            Role::Api => Ok(()),
            Role::All | Role::Worker => work(&options, &data, &store, &stopping).await,
        };
        if worked.is_err() {
            stopping.cancel();
        }
        worked
    };
    let ((), (), worked) = tokio::join!(serving, telling, working);
    store.close().await;
    tracing::info!("stopped");
    worked
}

async fn bind(address: SocketAddr, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|e| {
        Failure::broken(format!("cannot listen on {address}: {e}"), format!("Name another address with {option}."))
    })
}

/// Carries out runs and chores until it is time to stop, and comes to an end in order.
async fn work(options: &Options, data: &Path, store: &Store, stopping: &CancellationToken) -> Result<(), Failure> {
    let (worker, _in_use) = start_worker(options, data, store).await?;
    let allowed = options.allow_webhook_host.iter().cloned().collect();
    let chores = store.start_chores(landform_runner::deliver_webhooks(store.upkeep(), store, allowed));
    let chores = chores.map_err(|e| Failure::broken(e.to_string(), "The log above may say more."))?;
    tracing::info!(worker = %worker.id(), "ready for runs");
    stopping.cancelled().await;
    tokio::join!(worker.drain(PATIENCE), chores.stop());
    Ok(())
}

fn tls(options: &Options) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (&options.tls_certificate, &options.tls_key) else { return Ok(None) };
    let tls = Tls::from_files(certificate, key);
    tls.map(Some)
        .map_err(|e| Failure::usage(format!("no TLS: {e}"), "Name a certificate chain and its key, both in PEM."))
}

async fn start_worker(options: &Options, data: &Path, store: &Store) -> Result<(Worker, InUse), Failure> {
    let mirror = mirror(options, data);
    if options.providers.is_none() {
        file::private_folder(&mirror).map_err(|e| {
            Failure::broken(format!("the mirror {}: {e}", mirror.display()), "Name another one with --providers.")
        })?;
    } else if !mirror.is_dir() {
        tracing::warn!(mirror = %mirror.display(), "--providers names no folder: no run finds a provider there");
    }
    let shortcut = ToGateway::default();
    let native: Arc<dyn Engine> = Arc::new(native_engine(options, data, store, shortcut.clone()).await?);
    let engines = Engines { native: Some(native), clis: cli_engines(options, data).await? };
    let versions: Vec<String> = engines.clis.iter().map(|engine| engine.version()).collect();
    let in_use = InUse::write_down(data, &versions).map_err(|e| {
        Failure::broken(format!("{}: {e}", data.display()), "Is there room, and may this user write there?")
    })?;
    let mut settings = Settings::new(data.join("worker"));
    settings.concurrency = options.workers;
    let share = || landform_base::memory::limit().map(|bytes| bytes / 4 * 3);
    settings.memory = options.memory.map(|mebibytes| mebibytes << 20).or_else(share);
    settings.keep_plans = options.keep_plans;
    settings.time_limit = Duration::from_secs(options.time_limit);
    settings.grace = Duration::from_secs(options.grace);
    settings.policy = options.policy();
    settings.connection_environment = options.allow_environment.iter().cloned().collect();
    let worker = Worker::start(store.clone(), engines, settings).await;
    let worker = worker.map_err(|e| {
        Failure::broken(format!("the worker cannot start: {e}"), "Is another server using this folder?")
    })?;
    shortcut.open(worker.gateway().clone());
    Ok((worker, in_use))
}

async fn native_engine(options: &Options, data: &Path, store: &Store, shortcut: ToGateway) -> Result<Native, Failure> {
    // What an earlier process left behind serves nobody any more; the kernel has killed most of it already.
    let register = data.join("providers");
    let swept = landform_base::child::sweep(&register, Duration::ZERO).await;
    swept.map_err(|e| Failure::broken(format!("providers of an earlier start: {e}"), "Look for them with `ps`."))?;
    let limits = Limits::default();
    let limits = Limits { in_use: limits.in_use.max(PROVIDERS_A_RUN * options.workers), ..limits };
    let pool = Pool::new(limits, Schemas::in_folder(data.join("schemas")), Some(register));
    let counted = pool.clone();
    store.watch_provider_processes(move || counted.in_use());
    let places = places(options, data);
    let mut known = KnownProviders::listed();
    for provider in &options.share_provider {
        known.share(provider).map_err(|e| Failure::broken(e.to_string(), "See --share-provider."))?;
    }
    let providers = LocalProviders::in_places(places, known, pool).with(crate::inside::built_in(Some(shortcut)));
    // Templates are unpacked into folders that are named by their content.
    Ok(Native::new(Arc::new(providers)).of_fixed_folders())
}

/// The binary that was named, or the one in PATH, and all that were added; the newest first. A missing CLI matters only
/// to runs that need it: they say so.
async fn cli_engines(options: &Options, data: &Path) -> Result<Vec<Arc<dyn Engine>>, Failure> {
    let named = options.tofu.clone().or_else(|| in_path("tofu"));
    let mut binaries: Vec<PathBuf> = named.into_iter().collect();
    binaries.extend(crate::engine::on_shelf(data)?.into_iter().map(|found| found.path));
    let mut engines: Vec<Arc<dyn Engine>> = Vec::new();
    for binary in binaries {
        let settings = CliSettings {
            binary: binary.clone(),
            mirror: Some(mirror(options, data)),
            cache: data.join("cli"),
            confinement: options.confine.into(),
            may_read: options.cli_may_read.clone(),
            may_write: options.cli_may_write.clone(),
        };
        match Cli::detect(settings).await {
            Ok(engine) => {
                tracing::info!(version = engine.version(), "a CLI engine is ready");
                engines.push(Arc::new(engine));
            }
            Err(error) => tracing::warn!(%error, binary = %binary.display(), "this is no CLI engine"),
        }
    }
    Ok(engines)
}

fn mirror(options: &Options, data: &Path) -> PathBuf {
    options.providers.clone().unwrap_or_else(|| data.join(crate::provider::DEFAULT))
}

fn places(options: &Options, data: &Path) -> Places {
    Places::mirrors([mirror(options, data)]).unpacking_into(data.join("packages"))
}

pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

async fn open_store(options: &Options, data: &Path) -> Result<Store, Failure> {
    let location = house::location(options.database.as_deref(), data)?;
    let mut store_options = landform_store::Options::new(location, house::master_key(data)?);
    let providers = Some(places(options, data));
    store_options.reader = Arc::new(LanguageReader { policy: options.policy(), providers });
    store_options.editor = Arc::new(FormatEditor);
    store_options.approval = Duration::from_secs(options.approval_expiry);
    store_options.lease = Duration::from_secs(options.lease);
    store_options.retention.runs = Duration::from_secs(options.keep_runs * 24 * 3600);
    store_options.retention.state_versions = options.keep_states;
    let path = token_file(data);
    store_options.keep_admin_token = Box::new(move |token| {
        file::write_private(&path, format!("{}\n", token.expose()).as_bytes())?;
        tracing::info!(path = %path.display(), "made an admin token");
        Ok(())
    });
    let store = Store::open(store_options).await.map_err(house::not_opened)?.store;
    store.check_master_key().await.map_err(|e| {
        Failure::broken(
            format!("the master key does not open what is in this store: {e}"),
            "All processes on one store have the same master key: copy `master.key`, or set LANDFORM_MASTER_KEY.",
        )
    })?;
    if store.is_paused().await.map_err(|e| house::broken(e.to_string()))? {
        tracing::warn!("all runs are paused, as after a restore; `landform resume` lets them go on");
    }
    Ok(store)
}

/// Lines for people on a terminal, JSON elsewhere. `LANDFORM_LOG` filters, as in `landform_server=debug`.
fn log_to_stderr() {
    use std::io::IsTerminal;
    let filter = tracing_subscriber::EnvFilter::try_from_env("LANDFORM_LOG").unwrap_or_else(|_| "info".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().init();
    }
}

/// SIGTERM and Ctrl-C ask for the end once; a second one ends the process at once.
fn stop_on_signals(stopping: CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        next().await;
        tracing::info!("stopping: no new work is taken, what is being done comes to its end");
        stopping.cancel();
        next().await;
        tracing::warn!("stopping at once");
        std::process::exit(130);
    });
    Ok(())
}
