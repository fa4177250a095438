//! A real PostgreSQL of one's own: a private data folder, a private port, gone when dropped.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::parts;

/// `initdb` and `postgres` refuse to run as root; under root they run as this user.
const NOBODY: u32 = 65534;

pub struct Server {
    folder: TempDir,
    binaries: PathBuf,
    port: u16,
    durable: bool,
    process: Option<Child>,
}

impl Server {
    /// For tests that are not about crashes of the database: commits are not flushed to disk.
    pub fn start() -> Result<Server> {
        Server::create(false)
    }

    /// Every commit is flushed, as in production.
    pub fn start_durable() -> Result<Server> {
        Server::create(true)
    }

    fn create(durable: bool) -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("landform-pg-").tempdir()?;
        let binaries = parts::postgres();
        if is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let output = as_user(&binaries.join("initdb"))
            .args(["--username=landform", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--pgdata"])
            .arg(folder.path().join("data"))
            .output()
            .context("starting initdb")?;
        ensure!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
        let port = free_port()?;
        let mut server = Server { folder, binaries, port, durable, process: None };
        server.launch()?;
        Ok(server)
    }

    /// The URL of a fresh, empty database. `name` is a plain identifier.
    pub async fn database(&self, name: &str) -> Result<String> {
        self.create_database(name, "template1").await
    }

    /// The URL of a fresh copy of a database that nobody is connected to.
    pub async fn copy_of(&self, original: &str, name: &str) -> Result<String> {
        self.create_database(name, original).await
    }

    async fn create_database(&self, name: &str, template: &str) -> Result<String> {
        use sqlx::Connection;
        let mut connection = sqlx::PgConnection::connect(&self.url()).await?;
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await?;
        connection.close().await?;
        Ok(self.url_of(name))
    }

    /// The URL of the database that every server has from the start.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://landform@127.0.0.1:{}/{database}", self.port)
    }

    /// Ends the server at once, as a crash would, and starts it again on the same data.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        self.crash();
        self.restart()
    }

    /// Ends the server at once.
    pub fn crash(&mut self) {
        self.end("KILL");
    }

    /// Starts a server that has ended on the same data.
    pub fn restart(&mut self) -> Result<()> {
        // Backends notice the postmaster's death by themselves; its lock file must not stop the successor.
        let pid_file = self.folder.path().join("data/postmaster.pid");
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let _ = std::fs::remove_file(&pid_file);
            match self.launch() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let log = std::fs::File::create(self.folder.path().join("log"))?;
        let fsync = if self.durable { "on" } else { "off" };
        let mut process = as_user(&self.binaries.join("postgres"))
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .arg("-k")
            .arg(self.folder.path())
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"])
            .args(["-c", &format!("fsync={fsync}"), "-c", &format!("synchronous_commit={fsync}")])
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting postgres")?;
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let ready = std::fs::read_to_string(self.folder.path().join("data/postmaster.pid"))
                .is_ok_and(|text| text.lines().nth(7).is_some_and(|status| status.trim() == "ready"));
            if ready {
                self.process = Some(process);
                return Ok(());
            }
            if process.try_wait()?.is_some() || Instant::now() > deadline {
                let _ = process.kill();
                let _ = process.wait();
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("postgres did not start: {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self, signal: &str) {
        if let Some(mut process) = self.process.take() {
            let _ = Command::new("kill").args([&format!("-{signal}"), &process.id().to_string()]).status();
            let _ = process.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT is PostgreSQL's immediate shutdown: no waiting for clients, all children end.
        self.end("QUIT");
    }
}

/// Runs SQL as an outsider would.
pub async fn run(url: &str, sql: &'static str) -> Result<()> {
    use sqlx::Connection;
    let mut connection = sqlx::PgConnection::connect(url).await?;
    sqlx::raw_sql(sql).execute(&mut connection).await?;
    Ok(connection.close().await?)
}

fn as_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir("/");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_has_databases_and_survives_a_crash() {
        let mut server = Server::start().expect("starts");
        let url = server.database("fresh").await.expect("creates");
        assert!(url.ends_with("/fresh"), "{url}");
        server.crash_and_restart().expect("restarts");
        server.database("fresh").await.expect_err("the database is still there");
    }
}
