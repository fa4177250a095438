//! A worker is killed in the middle of an apply; another one finds its run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use landform_testkit::landform::{Landform, Setup};
use serde_json::{Value, json};

use crate::Figure;
use crate::stage::{Kind, Place};

/// A create that takes long enough to be killed in.
const SLOW: &str = "
terraform {
  required_providers {
    time = {
      source = \"hashicorp/time\"
    }
  }
}

resource \"time_sleep\" \"this\" {
  create_duration = \"300s\"
}
";

const PATIENCE: Duration = Duration::from_secs(120);

pub async fn measure() -> Result<Vec<Figure>> {
    let place = Place::make(Kind::Postgres).await?;
    let door = Landform::start(&place.setup(1, &["--role", "api"])?).await?;
    door.push_template("slow", &[("main.tf", SLOW)]).await?;
    door.call("PUT", "/v1/tenants/acme", Some(json!({}))).await?;
    eprintln!("takeover: a worker is killed in the middle of an apply …");
    let first = Landform::start(&worker(&place, "first")?).await?;
    let body = json!({"template": "slow", "engine": "native", "inputs": {}});
    let accepted = door.call("PUT", "/v1/tenants/acme/deployments/slow", Some(body)).await?;
    let run = accepted["run"]["id"].as_str().unwrap_or_default().to_owned();
    until(&door, &run, |run| run["status"] == "applying").await?;
    let _second = Landform::start(&worker(&place, "second")?).await?;
    first.kill()?;
    let begin = Instant::now();
    until(&door, &run, |run| run["attempt"].as_u64() == Some(2)).await?;
    let taken = begin.elapsed().as_secs_f64();
    Ok(vec![Figure {
        what: "from a worker's death to its run's next attempt by another".into(),
        store: Kind::Postgres.name(),
        measured: format!("{taken:.1} s"),
        goal: "60 s",
        held: taken <= 60.0,
    }])
}

/// It serves REST too, so that it can be seen to be ready.
fn worker(place: &Place, name: &str) -> Result<Setup> {
    let setup = place.setup(1, &[])?;
    let data = place.data().join(name);
    std::fs::create_dir(&data)?;
    for file in ["master.key", "admin.token"] {
        std::fs::copy(place.data().join(file), data.join(file))?;
    }
    Ok(Setup { data, ..setup })
}

async fn until(door: &Landform, run: &str, done: impl Fn(&Value) -> bool) -> Result<()> {
    let begin = Instant::now();
    loop {
        let seen = door.call("GET", &format!("/v1/runs/{run}"), None).await?;
        if done(&seen) {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "the run is {seen}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
