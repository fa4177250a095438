//! The server and the commands of the demo, as processes of this very binary.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::process::{Child, Command};

use super::folder;
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    folder: PathBuf,
    program: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Stage {
    /// A folder of its own, with these files in it.
    pub fn set(files: &[(&str, &str)]) -> Result<Stage, Failure> {
        let folder = folder()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(broken)?.port();
        let stage = Stage { folder, program: std::env::current_exe().map_err(broken)?, port, server: None };
        files.iter().try_for_each(|(name, text)| stage.write(name, text))?;
        Ok(stage)
    }

    /// A file that commands of the demo name.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let place = self.folder.join(name);
        let made = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&place, text)).map_err(broken)
    }

    pub fn say(&self, text: &str) {
        println!("\n# {text}");
    }

    pub async fn start_server(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        println!("$ landform serve");
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("serve.log"));
        let server = self
            .command(&["serve", "--listen", &format!("127.0.0.1:{}", self.port)])
            .stdout(Stdio::null())
            .stderr(log.map_err(broken)?)
            .spawn()
            .map_err(broken)?;
        self.server = Some(server);
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let server = self.server.as_mut().expect("it was just started");
            if server.try_wait().map_err(broken)?.is_some() || begin.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.folder.join("serve.log")).unwrap_or_default();
                return Err(surprise(format!("the server did not start:\n{log}")));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!("  ready ({})", millis(begin));
        Ok(())
    }

    pub async fn kill_server(&mut self) -> Result<(), Failure> {
        let mut server = self.server.take().ok_or_else(|| surprise("no server runs"))?;
        let id = server.id().ok_or_else(|| surprise("the server has ended by itself"))?;
        println!("$ kill -9 {id}");
        signal(id, rustix::process::Signal::KILL)?;
        server.wait().await.map_err(broken)?;
        Ok(())
    }

    pub async fn stop_server(mut self) -> Result<(), Failure> {
        let mut server = self.server.take().ok_or_else(|| surprise("no server runs"))?;
        if let Some(id) = server.id() {
            signal(id, rustix::process::Signal::TERM)?;
        }
        server.wait().await.map_err(broken)?;
        std::fs::remove_dir_all(&self.folder).map_err(broken)
    }

    /// Leaves the server to the person who asked for it, until Ctrl-C.
    pub async fn stay(mut self) -> Result<(), Failure> {
        println!("\nThe server runs until Ctrl-C. Speak to it with:");
        println!("  export LANDFORM_SERVER=http://127.0.0.1:{} LANDFORM_DATA={}", self.port, self.data().display());
        println!("  the token is in {}", crate::connection::token_file(&self.data()).display());
        let server = self.server.as_mut().ok_or_else(|| surprise("no server runs"))?;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => self.stop_server().await,
            ended = server.wait() => Err(surprise(format!("the server ended: {ended:?}"))),
        }
    }

    /// Runs a command as a person would see it; it must succeed.
    pub async fn run(&self, words: &[impl AsRef<str>]) -> Result<(), Failure> {
        let begin = Instant::now();
        println!("$ landform {}", line(words));
        let output = self.command(words).output().await.map_err(broken)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(6) {
            println!("  {line}");
        }
        if lines.len() > 6 {
            println!("  … {} more lines", lines.len() - 6);
        }
        if !output.status.success() {
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(surprise(format!("`landform {}` failed: {problem}", line(words))));
        }
        println!("  ({})", millis(begin));
        Ok(())
    }

    /// Runs a command with `--json`, without showing it.
    pub async fn ask(&self, words: &[impl AsRef<str>]) -> Result<Value, Failure> {
        let output = self.command(words).arg("--json").output().await.map_err(broken)?;
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            surprise(format!("`landform {}` failed: {problem}", line(words)))
        })
    }

    /// Runs a command and shows those of its lines that hold this text; there must be some.
    pub async fn show_lines(&self, words: &[impl AsRef<str>], text: &str) -> Result<(), Failure> {
        println!("$ landform {} | grep '{text}'", line(words));
        let output = self.command(words).output().await.map_err(broken)?;
        let all = String::from_utf8_lossy(&output.stdout);
        let found: Vec<&str> = all.lines().filter(|line| line.contains(text)).collect();
        if !output.status.success() || found.is_empty() {
            return Err(surprise(format!("it said: {all}{}", String::from_utf8_lossy(&output.stderr))));
        }
        found.iter().for_each(|line| println!("  {line}"));
        Ok(())
    }

    /// Makes a request that nobody waits for; the id of its run.
    pub async fn accepted(&self, words: &[impl AsRef<str>]) -> Result<String, Failure> {
        println!("$ landform {}", line(words));
        let accepted = self.ask(words).await?;
        let run = accepted["run"]["id"].as_str().ok_or_else(|| surprise(format!("no run in {accepted}")))?;
        println!("  run {run}");
        Ok(run.to_owned())
    }

    /// Looks at a run until it is as wanted.
    pub async fn until(&self, run: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, Failure> {
        let begin = Instant::now();
        loop {
            let now = self.ask(&["run", "show", run]).await?;
            if wanted(&now) {
                println!("  run {} after {}", now["status"].as_str().unwrap_or_default(), millis(begin));
                return Ok(now);
            }
            if begin.elapsed() > PATIENCE || now["finished"] == true {
                return Err(surprise(format!("the run went another way: {now}")));
            }
        }
    }

    pub async fn show_output(&self, deployment: &str, name: &str) -> Result<(), Failure> {
        println!("$ landform output {deployment}");
        let outputs = self.ask(&["output", deployment]).await?;
        println!("  {name} = {}", outputs[name]["value"]);
        if outputs[name]["value"].is_null() { Err(surprise("there is no such output")) } else { Ok(()) }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn command(&self, words: &[impl AsRef<str>]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words.iter().map(AsRef::as_ref))
            .current_dir(&self.folder)
            .env("LANDFORM_SERVER", format!("http://127.0.0.1:{}", self.port))
            .env("LANDFORM_DATA", self.data())
            .env_remove("LANDFORM_TOKEN")
            .env_remove("LANDFORM_DATABASE")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // After a failure the folder stays, with the server's log in it.
        if let Some(server) = &mut self.server {
            let _ = server.start_kill();
            eprintln!("the server's log: {}", Path::new(&self.folder).join("serve.log").display());
        }
    }
}

/// The demo did not go as it should: a bug, or a machine that is too slow or too full.
pub fn surprise(detail: impl Into<String>) -> Failure {
    Failure::broken(detail, "Please report this, with the server's log.")
}

fn broken(error: std::io::Error) -> Failure {
    surprise(error.to_string())
}

fn signal(id: u32, signal: rustix::process::Signal) -> Result<(), Failure> {
    let pid = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| surprise("a process without a number"))?;
    rustix::process::kill_process(pid, signal).map_err(|error| broken(error.into()))
}

fn line(words: &[impl AsRef<str>]) -> String {
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}

fn millis(begin: Instant) -> String {
    format!("{} ms", begin.elapsed().as_millis())
}
