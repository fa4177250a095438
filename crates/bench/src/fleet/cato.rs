//! Many accounts at Cato at their published limits, through the vendor's own provider: how much of what the vendor allows
//! is used, and whether anything goes beyond it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landform_testkit::figures::Times;
use landform_testkit::parts;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::stage::{Fleet, Vendor, deploy, landform, tenant};
use crate::{Figure, Options};

const TEMPLATE: &str = "cato-ipsec-site";

/// The operation that runs out first: making a site takes several of these, and a minute has so many.
const BINDING: &str = "entityLookup";
const A_MINUTE: f64 = 30.0;

/// Sites that each tenant asks for at one time: enough that there is always something to do.
const ASKED_FOR: usize = 3;

pub async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let Some(provider) = parts::cato_provider() else {
        eprintln!("NOT MEASURED: accounts at Cato; set LANDFORM_TEST_CATO_PROVIDER to Cato's own provider");
        return Ok(Vec::new());
    };
    let vendor = Vendor::start(&["cato", "--limits", "published"])?;
    let folder = tempfile::tempdir()?;
    let mirror = folder.path().join("mirror");
    let mut add = Command::new(landform()?);
    add.args(["provider", "add"]).arg(&provider).args(["--source", "catonetworks/cato", "--version", "0.0.1"]);
    let added = add.arg("--providers").arg(&mirror).output()?;
    ensure!(added.status.success(), "provider add: {}", String::from_utf8_lossy(&added.stderr));
    let mut fleet = Fleet::start(options.workers, Some(mirror)).await?;
    fleet.push(TEMPLATE).await?;
    let credentials = |number: usize| json!({"cato_url": vendor.endpoint, "cato_token": format!("token of {number}"), "cato_account_id": account(number)});
    fleet.grow(options.accounts, credentials).await?;
    let fleet = Arc::new(fleet);
    eprintln!("{} accounts for {} minutes …", options.accounts, options.minutes);
    let deadline = Instant::now() + Duration::from_secs(60 * options.minutes);
    let mut clients = JoinSet::new();
    for number in 0..options.accounts {
        for client in 0..ASKED_FOR {
            clients.spawn(sites(fleet.clone(), number, client, deadline));
        }
    }
    let mut times: BTreeMap<usize, Vec<Duration>> = BTreeMap::new();
    let (mut runs, mut failed) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (number, ended) = client?;
        for end in ended {
            runs += 1;
            match end {
                Ok(time) => times.entry(number).or_default().push(time),
                Err(error) => {
                    eprintln!("  failed: {error:#}");
                    failed += 1;
                }
            }
        }
    }
    let asked = Asked::read(&vendor, 60_000 * options.minutes).await?;
    let share = asked.binding as f64 / (A_MINUTE * (options.minutes * options.accounts as u64) as f64);
    let p95: Vec<f64> = times.into_values().map(|times| Times::new(times).percentile(0.95)).collect();
    let (least, most) = p95.iter().fold((f64::MAX, 0.0), |(least, most), p95| (p95.min(least), p95.max(most)));
    let figure = |what: &str, measured: String, goal: &str, held: bool| Figure {
        what: format!("{} accounts at Cato for {} minutes: {what}", options.accounts, options.minutes),
        measured,
        goal: goal.to_owned(),
        held,
    };
    Ok(vec![
        figure(
            &format!("the budget of {BINDING} that was used"),
            format!("{:.0} % ({} calls)", share * 100.0, asked.binding),
            "≥ 95 %",
            share >= 0.95,
        ),
        figure("calls over any window", format!("{} of {}", asked.over, asked.all), "none", asked.over == 0),
        figure("runs that failed", format!("{failed} of {runs}"), "none", failed == 0 && runs > 0),
        figure(
            "the slowest tenant's p95 against the quickest one's",
            format!("{:.1} × ({:.0} s, {:.0} s)", most / least, most / 1000.0, least / 1000.0),
            "≤ 2 ×",
            most <= 2.0 * least,
        ),
    ])
}

fn account(number: usize) -> String {
    format!("{}", 10_000 + number)
}

/// One site after the other until the time is over.
async fn sites(fleet: Arc<Fleet>, number: usize, client: usize, deadline: Instant) -> (usize, Vec<Result<Duration>>) {
    let mut ended = Vec::new();
    for site in 0.. {
        if Instant::now() >= deadline {
            break;
        }
        let begin = Instant::now();
        ended.push(one_site(&fleet, number, client, site).await.map(|()| begin.elapsed()));
    }
    (number, ended)
}

async fn one_site(fleet: &Fleet, number: usize, client: usize, site: usize) -> Result<()> {
    let mut inputs: Value = serde_json::from_str(include_str!("../../../../templates/cato-ipsec-site/example.json"))?;
    let name = format!("s{client}-{site}");
    inputs["name"] = name.as_str().into();
    deploy(&fleet.landform, &tenant(number), &name, TEMPLATE, inputs).await
}

/// What the vendor was asked.
#[derive(Default)]
struct Asked {
    all: u64,
    /// Of the operation that runs out first, within the time that was measured.
    binding: u64,
    /// Refused, because the account had used up what the vendor allows.
    over: u64,
}

impl Asked {
    async fn read(vendor: &Vendor, until_ms: u64) -> Result<Asked> {
        let (mut asked, mut after, mut begin) = (Asked::default(), 0, None);
        loop {
            let page = vendor.ask(&format!("calls?after={after}&limit=10000")).await?;
            let calls = page["calls"].as_array().context("calls")?;
            let Some(last) = calls.last() else { return Ok(asked) };
            after = last["number"].as_u64().context("a number")?;
            for call in calls {
                let at = call["at_ms"].as_u64().context("a time")?;
                let begin = *begin.get_or_insert(at);
                asked.all += 1;
                asked.over += u64::from(call["outcome"] == "rate_limited");
                let binding = call["operations"].as_array().is_some_and(|all| all.iter().any(|it| it == BINDING));
                asked.binding += u64::from(binding && at - begin < until_ms);
            }
        }
    }
}
