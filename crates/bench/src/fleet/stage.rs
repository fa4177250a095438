//! Where the rows are measured: vendors as processes of their own, and a Landform with many tenants.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landform_testkit::landform::{Landform, Setup, answer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A program of this workspace, beside this one.
pub fn landform() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.parent().context("a program lies in a folder")?.join("landform"))
}

/// `landform sim`, which ends when this is dropped.
pub struct Vendor {
    process: Child,
    pub endpoint: String,
    control: String,
    http: reqwest::Client,
}

impl Vendor {
    pub fn start(words: &[&str]) -> Result<Vendor> {
        let mut command = Command::new(landform()?);
        command.arg("sim").args(words).arg("--json").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().context("starting a simulator")?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("its output")?).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).with_context(|| format!("the simulator said {line:?}"))?;
        let text = |name: &str| said[name].as_str().map(|text| text.trim_end_matches('/').to_owned()).context("text");
        let http = landform_testkit::http_client(Duration::from_secs(60));
        Ok(Vendor { process, endpoint: text("endpoint")?, control: text("control")?, http })
    }

    /// A Director without limits, whose tasks are over at once: what takes time then is not the vendor.
    pub fn at_once() -> Result<Vendor> {
        Vendor::start(&["versa", "--limits", "none", "--task-ms", "0"])
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub async fn ask(&self, path: &str) -> Result<Value> {
        answer(self.http.get(format!("{}/{path}", self.control))).await
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A Landform with tenants, each with credentials of its own. It goes when dropped.
pub struct Fleet {
    pub landform: Landform,
    _folder: TempDir,
    tenants: usize,
}

impl Fleet {
    pub async fn start(workers: usize, providers: Option<PathBuf>) -> Result<Fleet> {
        let folder = tempfile::Builder::new().prefix("landform-fleet-").tempdir()?;
        let setup = Setup {
            binary: landform()?,
            data: folder.path().to_owned(),
            database: None,
            providers: providers.unwrap_or_else(|| folder.path().join("mirror")),
            tofu: None,
            workers,
            more: Vec::new(),
        };
        let landform = Landform::start(&setup).await?;
        Ok(Fleet { landform, _folder: folder, tenants: 0 })
    }

    /// Pushes a template as the repository has it.
    pub async fn push(&self, name: &str) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates").join(name);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let file = path.file_name().and_then(|name| name.to_str()).context("a file's name")?.to_owned();
            files.push((file, std::fs::read_to_string(&path)?));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        self.landform.push_template(name, &files).await?;
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.tenants
    }

    /// Until there are so many tenants. `credentials` makes the variables of the connection `vendor` of each.
    pub async fn grow(&mut self, tenants: usize, credentials: impl Fn(usize) -> Value) -> Result<()> {
        const WRITERS: usize = 16;
        eprintln!("making {} tenants …", tenants.saturating_sub(self.tenants));
        let bodies: Vec<Value> =
            (self.tenants..tenants).map(|number| json!({"variables": credentials(number)})).collect();
        let next = AtomicUsize::new(0);
        let (landform, first) = (&self.landform, self.tenants);
        let writer = async || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(body) = bodies.get(number) else { return anyhow::Ok(()) };
                let tenant = format!("/v1/tenants/{}", tenant(first + number));
                landform.call("PUT", &tenant, Some(json!({}))).await?;
                landform.call("PUT", &format!("{tenant}/connections/vendor"), Some(body.clone())).await?;
            }
        };
        futures::future::try_join_all((0..WRITERS).map(|_| writer())).await?;
        self.tenants = tenants;
        Ok(())
    }
}

pub fn tenant(number: usize) -> String {
    format!("t{number}")
}

/// From the request to the outputs, however long it takes.
pub async fn deploy(landform: &Landform, tenant: &str, name: &str, template: &str, inputs: Value) -> Result<()> {
    let path = format!("/v1/tenants/{tenant}/deployments/{name}");
    let body = json!({"template": template, "engine": "native", "connections": ["vendor"], "inputs": inputs});
    let request = landform.request(reqwest::Method::PUT, &path).header("prefer", "wait=100").json(&body);
    let mut ended = answer(request).await?;
    let run = format!("/v1/runs/{}", ended["run"]["id"].as_str().context("a run has an id")?);
    while ended["run"]["finished"] != true {
        tokio::time::sleep(Duration::from_millis(250)).await;
        ended["run"] = landform.call("GET", &run, None).await?;
    }
    ensure!(ended["run"]["status"] == "succeeded", "{ended}");
    if ended["outputs"].is_null() {
        ended["outputs"] = landform.call("GET", &format!("{path}/outputs"), None).await?;
    }
    ensure!(!ended["outputs"]["site_id"]["value"].is_null(), "{ended}");
    Ok(())
}
