//! The product as its users meet it: the real binary as a process, spoken to over HTTP and by its own commands.

mod access;
mod commands;
mod connections;
mod drill;
mod installation;
mod interrupted;
mod newcomer;
mod operators;
mod refusals;
mod rest;
mod roles;
mod sharing;
mod state;
mod state_edits;
mod templates;
mod webhooks;

use std::path::PathBuf;

use landform_testkit::landform::{Landform, Setup};
use landform_testkit::{parts, postgres};

/// A running server with its data folder, and its database if it has one of its own.
struct Door {
    landform: Landform,
    setup: Setup,
    data: tempfile::TempDir,
    _postgres: Option<postgres::Server>,
}

#[derive(Clone, Copy, Debug)]
enum Memory {
    Sqlite,
    Postgres,
}

impl Door {
    async fn open(memory: Memory) -> Door {
        Door::open_with(memory, parts::tofu()).await
    }

    async fn open_with(memory: Memory, tofu: PathBuf) -> Door {
        // Some templates here need something that fails, or takes its time.
        Door::open_all(memory, tofu, &["--allow", "local-exec", "--allow-webhook-host", "127.0.0.1"]).await
    }

    async fn open_as(memory: Memory, more: &[&str]) -> Door {
        Door::open_all(memory, parts::tofu(), more).await
    }

    async fn open_all(memory: Memory, tofu: PathBuf, more: &[&str]) -> Door {
        let data = tempfile::tempdir().unwrap();
        let postgres = match memory {
            Memory::Sqlite => None,
            Memory::Postgres => Some(postgres::Server::start().unwrap()),
        };
        let setup = Setup {
            binary: binary(),
            data: data.path().to_owned(),
            database: postgres.as_ref().map(|server| server.url()),
            providers: parts::mirror(),
            tofu: Some(tofu),
            workers: 2,
            more: more.iter().map(|&argument| argument.to_owned()).collect(),
        };
        let landform = Landform::start(&setup).await.unwrap();
        Door { landform, setup, data, _postgres: postgres }
    }

    /// Stops the server as an operator would, and starts it again on the same data.
    async fn restart(self) -> Door {
        self.landform.stop().await.unwrap();
        let landform = Landform::start(&self.setup).await.unwrap();
        Door { landform, ..self }
    }
}

impl Door {
    /// Stops the server, runs a command that needs it to be stopped, and starts it again.
    async fn stop_and(self, args: &[&str]) -> Door {
        self.landform.stop().await.unwrap();
        let mut command = std::process::Command::new(binary());
        command.args(args).arg("--data").arg(self.data.path());
        if let Some(url) = &self.setup.database {
            command.args(["--database", url]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        let landform = Landform::start(&self.setup).await.unwrap();
        Door { landform, ..self }
    }
}

/// A server in a folder, with SQLite and without a CLI.
fn plain_setup(data: &std::path::Path) -> Setup {
    Setup {
        binary: binary(),
        data: data.to_owned(),
        database: None,
        providers: parts::mirror(),
        tofu: None,
        workers: 1,
        more: Vec::new(),
    }
}

/// A client without a token.
fn http() -> reqwest::Client {
    landform_testkit::http_client(std::time::Duration::from_secs(120))
}

fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_landform").into()
}
