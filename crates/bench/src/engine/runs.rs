//! Runs per minute, of everybody in turns: a machine whose speed changes by the minute changes it for all of them.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::future::BoxFuture;
use landform_runner::known::KnownProviders;
use landform_testkit::figures::{Times, cpu_seconds_of_tree};
use landform_testkit::parts;
use serde_json::Value;

use crate::stage::{Desk, TEMPLATE, providers, unshared_mirror};
use crate::{Figure, Options, alone, rest};

/// What is done again and again, with a number that was not there before.
pub type Job = Box<dyn Fn(u64) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// What came of one turn.
#[derive(Clone, Copy)]
struct Turn {
    per_minute: f64,
    p50: f64,
    /// Of this program and of all that it has started, for each run, in milliseconds. It says more than the clock where the
    /// machine has other things to do.
    cpu: f64,
}

/// Somebody who takes turns.
struct Candidate {
    what: &'static str,
    work: Work,
    turns: Vec<Turn>,
}

enum Work {
    Job(Arc<Job>),
    TerraformExec,
}

impl Candidate {
    fn new(what: &'static str, job: Job) -> Candidate {
        Candidate { what, work: Work::Job(Arc::new(job)), turns: Vec::new() }
    }

    fn is_wanted(&self, options: &Options) -> bool {
        options.only.as_ref().is_none_or(|part| self.what.contains(part))
    }

    fn median(&self, figure: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(figure).collect())
    }

    /// How many times another's runs these are, turn by turn.
    fn times(&self, other: &Candidate) -> f64 {
        median(self.turns.iter().zip(&other.turns).map(|(own, other)| own.per_minute / other.per_minute).collect())
    }

    /// What came of its runs, without how many there were.
    fn each(&self) -> String {
        format!("p50 {:.0} ms, {:.1} ms of CPU each", self.median(|turn| turn.p50), self.median(|turn| turn.cpu))
    }

    fn measured(&self) -> String {
        format!("{:.0}/min, {}", self.median(|turn| turn.per_minute), self.each())
    }

    fn against(&self, other: &Candidate, goal: f64) -> Figure {
        let times = self.times(other);
        Figure {
            what: self.what.to_owned(),
            measured: format!("{:.0}/min = {times:.1} ×, {}", self.median(|turn| turn.per_minute), self.each()),
            goal: format!("≥ {goal:.0} × {}", other.what),
            held: times >= goal,
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => 0.0,
        even if even % 2 == 0 => (figures[even / 2 - 1] + figures[even / 2]) / 2.0,
        odd => figures[odd / 2],
    }
}

pub async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let unshared = unshared_mirror(folder.path())?;
    let data = |name: &str| folder.path().join(name);
    let desk = |mirror: &Path| Desk::new(providers(mirror, KnownProviders::listed()), TEMPLATE);
    let mut candidates = [
        Candidate { what: "terraform-exec", work: Work::TerraformExec, turns: Vec::new() },
        Candidate::new("through REST, process shared", rest::runs(options, &parts::mirror(), &data("shared")).await?),
        Candidate::new("engine alone, process shared", alone::runs(desk(&parts::mirror())?).await?),
        Candidate::new("through REST, a process for each run", rest::runs(options, &unshared, &data("own")).await?),
        Candidate::new("engine alone, a process for each run", alone::runs(desk(&unshared)?).await?),
        Candidate::new("spawn, handshake, configure, exit: the floor", alone::floor()?),
        Candidate::new(
            "the floor with a certificate, as OpenTofu starts a provider: up to the greeting alone",
            alone::floor_with_certificate()?,
        ),
    ];
    let numbers = Arc::new(AtomicU64::new(1));
    for number in 1..=options.turns {
        for candidate in candidates.iter_mut().filter(|candidate| candidate.is_wanted(options)) {
            eprintln!("turn {number} of {}: {} …", options.turns, candidate.what);
            let turn = match &candidate.work {
                Work::Job(job) => turn(options, job.clone(), numbers.clone()).await?,
                Work::TerraformExec => terraform_exec(options)?,
            };
            candidate.turns.push(turn);
        }
    }
    if options.only.is_some() {
        let wanted = candidates.iter().filter(|candidate| candidate.is_wanted(options));
        return Ok(wanted.map(|candidate| Figure::base(candidate.what, candidate.measured())).collect());
    }
    let [peer, shared_rest, shared_alone, own_rest, own_alone, floor, certified] = &candidates;
    let share = |what: &str, floor: &Candidate| {
        let share = own_alone.times(floor);
        Figure {
            what: format!("the same against {what}"),
            measured: format!("{:.0} % of {}", share * 100.0, floor.measured()),
            goal: "≥ 70 %".to_owned(),
            held: share >= 0.7,
        }
    };
    Ok(vec![
        Figure::base(peer.what, peer.measured()),
        shared_rest.against(peer, 30.0),
        shared_alone.against(peer, 50.0),
        own_rest.against(peer, 15.0),
        own_alone.against(peer, 15.0),
        share(
            "the floor (spawn, handshake, configure, exit) as OpenTofu starts a provider, with a certificate; up to the greeting alone",
            certified,
        ),
        share("the floor without a certificate, as Landform starts it", floor),
    ])
}

/// Repeats a job on so many tasks for so long.
async fn turn(options: &Options, job: Arc<Job>, numbers: Arc<AtomicU64>) -> Result<Turn> {
    let cpu = cpu_seconds_of_tree(std::process::id());
    let begin = Instant::now();
    let deadline = begin + options.turn();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..options.workers {
        let (job, numbers) = (job.clone(), numbers.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < deadline {
                let started = Instant::now();
                job(numbers.fetch_add(1, Ordering::Relaxed)).await?;
                times.push(started.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let per_minute = times.len() as f64 / begin.elapsed().as_secs_f64() * 60.0;
    let cpu = (cpu_seconds_of_tree(std::process::id()) - cpu) * 1000.0 / times.len() as f64;
    Ok(Turn { per_minute, p50: Times::new(times).percentile(0.5), cpu })
}

fn terraform_exec(options: &Options) -> Result<Turn> {
    let folder = tempfile::tempdir()?;
    let (config, template) = (folder.path().join("cli.tfrc"), folder.path().join("main.tf"));
    std::fs::write(&template, TEMPLATE)?;
    let mirror = parts::mirror();
    let text =
        format!("provider_installation {{\n  filesystem_mirror {{\n    path = {:?}\n  }}\n}}\n", mirror.display());
    std::fs::write(&config, text)?;
    let mut command = Command::new(&options.peer);
    command.arg("-tofu").arg(parts::tofu()).arg("-config").arg(&config).arg("-template").arg(&template);
    let seconds = options.turn().as_secs().max(1);
    command.args(["-workers", &options.workers.to_string(), "-seconds", &seconds.to_string()]);
    let cpu = cpu_seconds_of_tree(std::process::id());
    let output = command.output().context("starting the terraform-exec program")?;
    let cpu = cpu_seconds_of_tree(std::process::id()) - cpu;
    ensure!(output.status.success(), "terraform-exec: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| result[name].as_f64().with_context(|| name.to_owned());
    Ok(Turn {
        per_minute: number("runs")? / number("seconds")? * 60.0,
        p50: number("p50")? * 1000.0,
        cpu: cpu * 1000.0 / number("runs")?,
    })
}
