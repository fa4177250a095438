use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use landform_base::file;
use landform_base::seal::MasterKey;
use landform_base::secret::SecretString;
use landform_store::{Location, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, DEFAULT_LISTEN, token_file};
use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct Options {
    /// The address to listen on
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// A PostgreSQL URL [default: SQLite in the data folder]
    #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
    database: Option<String>,
    /// A folder in the layout of a filesystem mirror, the only place that providers come from
    #[arg(long, env = "LANDFORM_PROVIDERS", value_name = "DIR")]
    providers: Option<PathBuf>,
    /// The `tofu` binary for the CLI engine [default: the one in PATH]
    #[arg(long, env = "LANDFORM_TOFU", value_name = "FILE")]
    tofu: Option<PathBuf>,
    /// Runs that are carried out at the same time
    #[arg(long, default_value_t = 4, value_name = "N")]
    workers: usize,
    /// Seconds after which a silent worker's run is taken up by another
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=600))]
    lease: u64,
}

pub async fn run(options: Options, connection: &Connection) -> Result<(), Failure> {
    log_to_stderr();
    let data = connection.data_folder()?;
    let in_data = |e: std::io::Error| {
        Failure::broken(format!("the data folder {}: {e}", data.display()), "Name another one with --data.")
    };
    file::private_folder(&data).map_err(in_data)?;
    let store = open_store(&options, &data).await?;
    let stopping = CancellationToken::new();
    stop_on_signals(stopping.clone()).map_err(in_data)?;
    let listener = TcpListener::bind(options.listen).await.map_err(|e| {
        Failure::broken(format!("cannot listen on {}: {e}", options.listen), "Name another address with --listen.")
    })?;
    tracing::info!(address = %options.listen, "listening");
    let served = landform_server::serve(listener, store.clone(), stopping.clone()).await;
    store.close().await;
    tracing::info!("stopped");
    served.map_err(|e| Failure::broken(format!("the server ended: {e}"), ""))
}

async fn open_store(options: &Options, data: &std::path::Path) -> Result<Store, Failure> {
    let broken = |detail: String| Failure::broken(detail, "The log above may say more.");
    let master_key = match std::env::var("LANDFORM_MASTER_KEY") {
        Ok(text) => MasterKey::from_base64(&SecretString::from(text)),
        Err(_) => MasterKey::load_or_create(&data.join("master.key")),
    };
    let location = match &options.database {
        Some(url) => Location::Postgres(SecretString::from(url.as_str())),
        None => Location::Sqlite(data.to_owned()),
    };
    let mut store_options = landform_store::Options::new(location, master_key.map_err(|e| broken(e.to_string()))?);
    store_options.lease = Duration::from_secs(options.lease);
    let opened = Store::open(store_options).await.map_err(|e| broken(e.to_string()))?;
    if let Some(token) = opened.admin_token {
        let path = token_file(data);
        file::write_private(&path, format!("{}\n", token.expose()).as_bytes())
            .map_err(|e| broken(format!("{}: {e}", path.display())))?;
        tracing::info!(path = %path.display(), "made an admin token");
    }
    Ok(opened.store)
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
