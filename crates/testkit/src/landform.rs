//! The real binary as a process, spoken to over plain HTTP: an outside judge must not share code with what it judges.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// How long anything that should happen may take before the judge says that it did not.
const PATIENCE: Duration = Duration::from_secs(120);

/// What stays the same over restarts.
pub struct Setup {
    pub binary: PathBuf,
    pub data: PathBuf,
    /// A PostgreSQL URL; `None` is SQLite in the data folder.
    pub database: Option<String>,
    pub providers: PathBuf,
    pub tofu: Option<PathBuf>,
    pub workers: usize,
    /// More arguments of `landform serve`.
    pub more: Vec<String>,
}

/// A running `landform serve`. Dropping it kills it.
pub struct Landform {
    process: Child,
    base: String,
    token: String,
    http: reqwest::Client,
}

impl Landform {
    pub async fn start(setup: &Setup) -> Result<Landform> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::options().create(true).append(true).open(setup.data.join("serve.log"))?;
        let mut command = Command::new(&setup.binary);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--workers", &setup.workers.to_string()]);
        command.arg("--data").arg(&setup.data).arg("--providers").arg(&setup.providers);
        command.args(&setup.more);
        if let Some(url) = &setup.database {
            command.args(["--database", url]);
        }
        if let Some(tofu) = &setup.tofu {
            command.arg("--tofu").arg(tofu);
        }
        let process = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", setup.binary.display()))?;
        let mut landform = Landform {
            process,
            base: format!("http://127.0.0.1:{port}"),
            token: String::new(),
            http: crate::http_client(PATIENCE),
        };
        landform.wait_until_ready(&setup.data).await?;
        Ok(landform)
    }

    async fn wait_until_ready(&mut self, data: &Path) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                let log = std::fs::read_to_string(data.join("serve.log")).unwrap_or_default();
                bail!("landform serve ended at its start ({status}):\n{}", tail(&log, 20));
            }
            let answer = self.http.get(format!("{}/healthz", self.base)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                let token = std::fs::read_to_string(data.join("admin.token")).context("the admin token")?;
                self.token = token.trim().to_owned();
                return Ok(());
            }
            ensure!(begin.elapsed() < PATIENCE, "landform serve did not become ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Where it listens.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it runs no more, by whatever hand.
    pub fn has_ended(&self) -> Result<bool> {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())) else { return Ok(true) };
        let state = text.rsplit_once(") ").context("/proc/PID/stat has a name")?.1;
        // Dead, but not yet asked for how it died.
        Ok(state.starts_with(['Z', 'X']))
    }

    /// SIGKILL: the process gets no chance to do anything.
    pub fn kill(mut self) -> Result<()> {
        self.kill_in_place()
    }

    /// The same for who is about to put another one in its place. When it returns, nothing is held by the process any more.
    pub fn kill_in_place(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// SIGTERM, and the process must end by itself.
    pub async fn stop(mut self) -> Result<()> {
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        let begin = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(begin.elapsed() < PATIENCE, "landform serve did not end after SIGTERM");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// A request whose answer must be a success; the body as JSON (null if there is none).
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let mut request = self.request(method.parse()?, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        answer(request).await
    }

    pub async fn push_template(&self, name: &str, files: &[(&str, &str)]) -> Result<Value> {
        let path = format!("/v1/templates/{name}");
        let request = self.request(reqwest::Method::PUT, &path).header("content-type", "application/gzip");
        answer(request.body(archive(files)?)).await
    }
}

impl Drop for Landform {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request whose answer must be a success; the body as JSON (null if there is none).
pub async fn answer(request: reqwest::RequestBuilder) -> Result<Value> {
    let (client, request) = request.build_split();
    let request = request?;
    let what = format!("{} {}", request.method(), request.url().path());
    let response = client.execute(request).await.with_context(|| what.clone())?;
    let status = response.status();
    let text = response.text().await.with_context(|| what.clone())?;
    ensure!(status.is_success(), "{what}: {status}: {text}");
    if text.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&text)?) }
}

/// A template as it is pushed.
pub fn archive(files: &[(&str, &str)]) -> Result<Vec<u8>> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
