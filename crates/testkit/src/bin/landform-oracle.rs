//! Holds the native engine to OpenTofu, story by story. See docs/oracle.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use landform_protocol::wire::Version;
use landform_testkit::oracle::{
    Bench, Case, Engine, Recording, Side, Told, UNSUPPORTED, Variant, check_end, corpus, differences, hand_over,
    invent, listen, live_through, stream_differences,
};
use landform_testkit::transcript::Source;

#[derive(Parser)]
struct Options {
    /// Only cases whose names contain one of these.
    names: Vec<String>,
    /// Runs OpenTofu and keeps what it does as the recordings.
    #[arg(long)]
    record: bool,
    /// Runs OpenTofu beside the native engine, in place of the recordings.
    #[arg(long)]
    live: bool,
    /// A folder with other stories than ours.
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// However OpenTofu ends a step is right, whatever the story says.
    #[arg(long)]
    any_end: bool,
    /// So many stories made up at random in place of ours; live, and however OpenTofu ends their steps.
    #[arg(long)]
    invent: Option<u64>,
    /// Of the first of those; the next ones have the next seeds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder where those that fail are kept, to be looked at.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Only every Nth case: a sample.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Shows what the engines print.
    #[arg(long)]
    show: bool,
    /// Differences shown of each case.
    #[arg(long, default_value_t = 8)]
    limit: usize,
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// The binary under test; by default the one beside this program.
    #[arg(long)]
    landform: Option<PathBuf>,
}

/// How a case ended that is as it should be.
enum Verdict {
    Native,
    LeftToCli,
    KnownDifference,
    Recorded,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut options = Options::parse();
    if options.invent.is_some() {
        (options.live, options.any_end) = (true, true);
    }
    let options = options;
    let beside = std::env::current_exe()?.with_file_name("landform");
    let landform = options.landform.clone().unwrap_or(beside);
    let chosen = |case: &Case| options.names.is_empty() || options.names.iter().any(|name| case.name.contains(name));
    let cases = match options.invent {
        Some(count) => invent(options.seed, count)?,
        None => Case::all(&options.corpus.clone().unwrap_or_else(corpus))?,
    };
    let mut variants: Vec<Variant> =
        cases.iter().filter(|case| chosen(case)).step_by(options.every.max(1)).flat_map(Case::variants).collect();
    if Source::aws().is_none() {
        let (without, possible) = variants.into_iter().partition(|it| it.case.providers.iter().any(|one| one == "aws"));
        variants = possible;
        let without: Vec<Variant> = without;
        without.iter().for_each(|it| println!("{}: NOT TESTED, hashicorp/aws is not on this machine", it.name()));
        if variants.is_empty() && !without.is_empty() {
            return Ok(());
        }
    }
    ensure!(!variants.is_empty(), "no case has such a name");
    let sources = sources(&variants);
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.clamp(1, 8))
            .map(|_| scope.spawn(|| work(&options, &landform, &sources, &variants, &next, &results)))
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    summary(results.into_inner().expect("no worker panicked"))
}

fn sources(variants: &[Variant]) -> Vec<Source> {
    let uses = |name: &str| variants.iter().any(|variant| variant.case.providers.iter().any(|one| one == name));
    let mut sources = Vec::new();
    if uses("probe") {
        sources.extend([Source::probe(Version::V5), Source::probe(Version::V6)]);
    }
    for (name, address) in [("time", "hashicorp/time"), ("coder", "coder/coder")] {
        if uses(name) {
            sources.push(Source::part(address));
        }
    }
    if uses("aws") {
        sources.extend(Source::aws());
    }
    sources
}

type Results = Mutex<Vec<(Variant, Result<Verdict>)>>;

fn work(
    options: &Options,
    landform: &Path,
    sources: &[Source],
    variants: &[Variant],
    next: &AtomicUsize,
    results: &Results,
) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let bench = runtime.block_on(Bench::new(landform, sources))?;
    while let Some(variant) = variants.get(next.fetch_add(1, Ordering::Relaxed)) {
        let verdict = judge(options, &bench, variant);
        let word = match &verdict {
            Ok(Verdict::Native) => "agrees".to_owned(),
            Ok(Verdict::LeftToCli) => "left to the CLI".to_owned(),
            Ok(Verdict::KnownDifference) => "differs, as is known".to_owned(),
            Ok(Verdict::Recorded) => "recorded".to_owned(),
            Err(error) => format!("FAILS\n{}", indented(&format!("{error:#}"))),
        };
        println!("{}: {word}", variant.name());
        if let (Some(folder), Err(_)) = (&options.keep, &verdict) {
            std::fs::create_dir_all(folder)?;
            std::fs::write(folder.join(format!("{}.case", variant.case.name)), &variant.case.text)?;
        }
        results.lock().expect("no worker panicked").push((variant.clone(), verdict));
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// A head that says more than is true hides the next fault, so it fails as an unknown difference does.
fn judge(options: &Options, bench: &Bench, variant: &Variant) -> Result<Verdict> {
    match (&variant.case.engine, compare(options, bench, variant)) {
        (Engine::Differs(_) | Engine::Cli(_), Ok(Verdict::Native)) => {
            bail!("agrees by now: take the line out of its head that says otherwise")
        }
        (Engine::Differs(known), Err(error)) => match error.downcast_ref::<Differ>() {
            Some(found) if found.place == *known => Ok(Verdict::KnownDifference),
            Some(found) => {
                let place = found.place.clone();
                Err(error.context(format!("its head says {known:?}, the first difference is {place:?}")))
            }
            None => Err(error),
        },
        (_, verdict) => verdict,
    }
}

/// The engines do not agree.
#[derive(Debug)]
struct Differ {
    /// Where they differ first.
    place: String,
    text: String,
}

impl std::fmt::Display for Differ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Differ {}

fn compare(options: &Options, bench: &Bench, variant: &Variant) -> Result<Verdict> {
    let recording = if options.record || options.live {
        let recording = record(options, bench, variant)?;
        if options.record {
            recording.write(variant)?;
            return Ok(Verdict::Recorded);
        }
        recording
    } else {
        Recording::of(variant)?
            .with_context(|| format!("no recording of this story: cargo xtask oracle --record {}", variant.case.name))?
    };
    let native = live_through(bench, variant, Side::Native)?;
    if options.show {
        println!("--- landform tf\n{}", native.printed);
    }
    let refused = native.observed.last().is_some_and(|last| last.planned.code == UNSUPPORTED);
    match (&variant.case.engine, refused) {
        (Engine::Cli(_), true) => return Ok(Verdict::LeftToCli),
        (_, true) => bail!("is refused by the native engine:\n{}", last_words(&native)),
        (_, false) => {}
    }
    let mut found = differences(&recording.observed, &native.observed);
    if variant.case.streams {
        found.extend(stream_differences(&recording.streams, &listen(bench, variant, Side::Native)?));
    }
    let known = &variant.case.other_words;
    if let Some(gone) = known.iter().find(|place| !found.iter().any(|one| one.place == **place)) {
        bail!("agrees by now: take {gone:?} out of its head");
    }
    found.retain(|one| !known.contains(&one.place) || !is_of_words(&one.place));
    if let Some(first) = found.first() {
        let shown: Vec<String> = found.iter().take(options.limit).map(ToString::to_string).collect();
        let (count, shown) = (found.len(), shown.join("\n"));
        let text = format!("OpenTofu (left) and native (right) differ in {count} places:\n{shown}");
        bail!(Differ { place: first.place.clone(), text });
    }
    if let (Some(left), Some(again)) = (&recording.left, recording.again) {
        let (code, printed) = hand_over(bench, variant, Side::Native, left)?;
        let text = || format!("on OpenTofu's state the native plan ends with {code}, not {again}:\n{printed}");
        ensure!(code == again, Differ { place: "hand-over to native".to_owned(), text: text() });
    }
    if options.live
        && let (Some(left), Some(again)) = (&native.left, recording.again)
    {
        let (code, printed) = hand_over(bench, variant, Side::Tofu, left)?;
        let text = || format!("on the native state OpenTofu's plan ends with {code}, not {again}:\n{printed}");
        ensure!(code == again, Differ { place: "hand-over to OpenTofu".to_owned(), text: text() });
    }
    Ok(Verdict::Native)
}

/// Only what is printed can be excused: never a call, a plan, a state or an end.
fn is_of_words(place: &str) -> bool {
    let what = place.split_once(": ").map_or(place, |(_, what)| what);
    what.starts_with("text of ") || what.starts_with("stream of ")
}

fn record(options: &Options, bench: &Bench, variant: &Variant) -> Result<Recording> {
    let Told { observed, left, printed } = live_through(bench, variant, Side::Tofu)?;
    if options.show {
        println!("--- tofu\n{printed}");
    }
    for (step, observed) in variant.case.steps.iter().zip(&observed).filter(|_| !options.any_end) {
        check_end(step, observed)?;
    }
    let again = match &left {
        Some(left) => Some(hand_over(bench, variant, Side::Tofu, left)?.0),
        None => None,
    };
    let streams = if variant.case.streams { listen(bench, variant, Side::Tofu)? } else { Vec::new() };
    Ok(Recording { key: Recording::key(variant), observed, streams, left, again })
}

fn last_words(told: &Told) -> String {
    let last = told.printed.rfind("$ plan").unwrap_or(0);
    told.printed[last..].trim().to_owned()
}

fn summary(results: Vec<(Variant, Result<Verdict>)>) -> Result<()> {
    let count = |is: fn(&Result<Verdict>) -> bool| results.iter().filter(|(_, verdict)| is(verdict)).count();
    let native = count(|verdict| matches!(verdict, Ok(Verdict::Native)));
    let left = count(|verdict| matches!(verdict, Ok(Verdict::LeftToCli)));
    let known = count(|verdict| matches!(verdict, Ok(Verdict::KnownDifference)));
    let recorded = count(|verdict| matches!(verdict, Ok(Verdict::Recorded)));
    let mut failed: Vec<String> =
        results.iter().filter(|(_, verdict)| verdict.is_err()).map(|(variant, _)| variant.name()).collect();
    failed.sort();
    if recorded > 0 {
        println!("{recorded} stories recorded, {} failed", failed.len());
    } else {
        let share = 100 * native / results.len().max(1);
        println!(
            "{} stories: {native} agree ({share} % native), {left} left to the CLI, {known} known to differ, {} failed",
            results.len(),
            failed.len()
        );
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(" "));
    Ok(())
}
