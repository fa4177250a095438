//! The Landforms on one database, and the door through which a client reaches whichever of them is alive.

use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landform_testkit::landform::{Landform, Setup};
use reqwest::Method;
use serde_json::Value;

/// How long anything may take that should happen.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Cluster {
    setups: Vec<Setup>,
    /// `None` while it is being started again.
    alive: Vec<Mutex<Option<Landform>>>,
    doors: Arc<RwLock<Vec<String>>>,
    token: String,
}

impl Cluster {
    /// The first one makes key and token; the others get copies, as an operator would give them.
    pub async fn start(setups: Vec<Setup>) -> Result<Cluster> {
        let (mut alive, mut doors) = (Vec::new(), Vec::new());
        for (number, setup) in setups.iter().enumerate() {
            std::fs::create_dir(&setup.data)?;
            for secret in ["master.key", "admin.token"].iter().filter(|_| number > 0) {
                std::fs::copy(setups[0].data.join(secret), setup.data.join(secret))?;
            }
            let landform = Landform::start(setup).await?;
            doors.push(landform.base().to_owned());
            alive.push(Mutex::new(Some(landform)));
        }
        let token = std::fs::read_to_string(setups[0].data.join("admin.token"))?.trim().to_owned();
        Ok(Cluster { setups, alive, doors: Arc::new(RwLock::new(doors)), token })
    }

    pub fn door(&self) -> Door {
        Door {
            http: landform_testkit::http_client(PATIENCE),
            doors: self.doors.clone(),
            token: self.token.clone(),
            turn: 0.into(),
        }
    }

    pub async fn push_template(&self, name: &str, files: &[(&str, &str)]) -> Result<()> {
        let landform = self.alive[0].lock().expect("no panic while held").take().context("it runs")?;
        landform.push_template(name, files).await?;
        *self.alive[0].lock().expect("no panic while held") = Some(landform);
        Ok(())
    }

    /// Kills one with SIGKILL and starts it again on the same folder. The database may be away meanwhile.
    pub async fn kill_one(&self, number: usize) -> Result<()> {
        let Some(landform) = self.alive[number].lock().expect("no panic while held").take() else { return Ok(()) };
        landform.kill()?;
        let begin = Instant::now();
        let again = loop {
            match Landform::start(&self.setups[number]).await {
                Ok(landform) => break landform,
                Err(error) if begin.elapsed() > PATIENCE => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        self.doors.write().expect("no panic while held")[number] = again.base().to_owned();
        *self.alive[number].lock().expect("no panic while held") = Some(again);
        Ok(())
    }

    pub async fn stop(self) -> Result<()> {
        for landform in self.alive {
            if let Some(landform) = landform.into_inner().expect("no panic while held") {
                landform.stop().await?;
            }
        }
        Ok(())
    }
}

/// A careful client: what gets no answer is sent again, to another Landform, with the same key.
pub struct Door {
    http: reqwest::Client,
    doors: Arc<RwLock<Vec<String>>>,
    token: String,
    turn: std::sync::atomic::AtomicUsize,
}

impl Door {
    /// The answer's body. Only what the server says no to is an error.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>, key: Option<&str>) -> Result<Value> {
        let method: Method = method.parse()?;
        let begin = Instant::now();
        loop {
            let url = {
                let doors = self.doors.read().expect("no panic while held");
                let turn = self.turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                format!("{}{path}", doors[turn % doors.len()])
            };
            let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
            request = request.timeout(Duration::from_secs(20));
            if let Some(body) = &body {
                request = request.json(body);
            }
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Ok(response) = request.send().await {
                let status = response.status();
                if let Ok(text) = response.text().await
                    && !status.is_server_error()
                    && status != 429
                {
                    let answer = serde_json::from_str(&text).unwrap_or(Value::Null);
                    // The judge has to see this one: a deployment without a state yet.
                    if status.is_success() || answer["code"] == "state_unknown" {
                        return Ok(answer);
                    }
                    bail!("{method} {path}: {status}: {text}");
                }
            }
            ensure!(begin.elapsed() < PATIENCE, "{method} {path}: nobody answers");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
