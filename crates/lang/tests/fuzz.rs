//! Nothing that somebody writes may end the process: recorded expressions and small configurations are changed at random,
//! parsed and evaluated.
//! A panic or a stack overflow is a failing test. `FUZZ_MINUTES` makes it run for longer than a moment.

use std::time::{Duration, Instant};

use landform_cty::{Mark, Type, Value};
use landform_lang::{Budget, Diagnostic, Expr, Impure, Reference, Scope, World, evaluate, load};

/// Rounds without `FUZZ_MINUTES`.
const ROUNDS: u64 = 15_000;

struct Anything(tempfile::TempDir);

impl Scope for Anything {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        Ok(match reference {
            Reference::Variable(name) if name == "secret" => Value::from("s3cret").with_mark(Mark::Sensitive),
            Reference::Variable(name) if name == "nothing" => Value::null(Type::String),
            Reference::Variable(_) => Value::list(Type::String, vec!["a".into(), "b".into()]),
            Reference::Local(_) => Value::object([("a", Value::number(1)), ("é", Value::from("ü"))]),
            _ => Value::unknown(Type::Dynamic),
        })
    }

    fn world(&self) -> World<'_> {
        World { folder: Some(self.0.path()), plan_time: Some("2026-01-02T03:04:05Z"), impure: Impure::Unknown }
    }
}

/// Small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().filter(|line| !line.starts_with(['#', '|'])).map(str::to_owned).collect()
}

/// Pieces that are likely to lead somewhere.
const PIECES: [&str; 40] = [
    "\"",
    "${",
    "%{ if true }",
    "%{ endif }",
    "%{ for x in [1] }",
    "%{ endfor }",
    "}",
    "(",
    ")",
    "[",
    "]",
    "{",
    "...",
    "[*]",
    ".*",
    ".0",
    "[for x in ",
    " : x]",
    " => ",
    "null",
    "-1",
    "1e99",
    "99999999999",
    "é",
    "\u{301}",
    "👨‍👩‍👧",
    "\\u0000",
    "\\\\",
    "<<E\n",
    "\nE\n",
    "%s",
    "%[2]v",
    "%.99f",
    "var.secret",
    "sensitive(",
    "try(",
    "0x",
    "::/0",
    "T24:00:00Z",
    "\\\\x{",
];

fn mutate(dice: &mut Dice, corpus: &[String]) -> String {
    let mut text: Vec<char> = corpus[dice.roll(corpus.len())].chars().collect();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(text.len() + 1);
        let end = (at + dice.roll(8)).min(text.len());
        match dice.roll(5) {
            0 => drop(text.drain(at..end)),
            1 => {
                let copied: Vec<char> = text[at..end].to_vec();
                text.splice(at..at, copied);
            }
            2 => {
                let other: Vec<char> = corpus[dice.roll(corpus.len())].chars().collect();
                let start = dice.roll(other.len());
                let stop = (start + dice.roll(20)).min(other.len());
                text.splice(at..end, other[start..stop].iter().copied());
            }
            3 => drop(text.splice(at..at, PIECES[dice.roll(PIECES.len())].chars())),
            _ => {
                if at < text.len() {
                    text[at] = char::from_u32(dice.roll(0x3000) as u32).unwrap_or('x');
                }
            }
        }
    }
    text.into_iter().collect()
}

#[test]
fn no_expression_ends_the_process() {
    let scope = Anything(tempfile::tempdir().unwrap());
    survives(ROUNDS, &corpus(), |text| {
        if let Ok(expr) = Expr::parse("fuzz", text) {
            let _ = evaluate(&expr, &scope, &mut Budget::new(200_000, 1 << 20, 100));
        }
    });
}

/// Files in JSON and override files go through readers of their own.
#[test]
fn no_file_ends_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let corpus: Vec<String> = FILES.iter().map(ToString::to_string).collect();
    survives(ROUNDS / 10, &corpus, |text| {
        let json = text.trim_start().starts_with(['{', '[']);
        let name = if json { "main.tf.json" } else { "main_override.tf" };
        std::fs::write(place("main.tf"), FILES[0]).unwrap();
        std::fs::write(place(name), text).unwrap();
        let _ = load(folder.path());
        std::fs::remove_file(place(name)).unwrap();
    });
}

/// Configurations to begin with, in both syntaxes.
const FILES: [&str; 3] = [
    "variable \"v\" {\n  default = [1]\n}\nlocals {\n  a = var.v\n}\nresource \"t\" \"a\" {\n  x = local.a\n  dynamic \"b\" \
     {\n    for_each = var.v\n    content {\n      y = b.value\n    }\n  }\n  lifecycle {\n    ignore_changes = [x]\n  }\n}\n",
    r#"{"variable": {"w": {"type": "list(string)", "default": ["${x}"]}}, "locals": [{"b": "%{ if true }\"${var.w[0]}\"%{ endif }"}],
        "resource": {"t": {"b": [{"count": 2, "depends_on": ["t.a"], "n": {"k-${count.index}": null},
        "dynamic": {"c": {"for_each": [1], "iterator": "it", "content": {"z": "${it.value}"}}}}, {}]}}, "//": -1.5e3}"#,
    r#"{"module": {"m": {"source": "./m", "providers": {"p.x": "p.y"}}}, "output": {"o": {"value": "${jsonencode({a = "}"})}"}}}"#,
];

/// Goes on for the rounds, or for the minutes that `FUZZ_MINUTES` says.
fn survives(rounds: u64, corpus: &[String], try_it: impl Fn(&str) + std::panic::RefUnwindSafe) {
    let minutes: Option<u64> = std::env::var("FUZZ_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let end = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let seed = minutes.map_or(1, |_| u64::from(std::process::id()) | 1);
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut round = 0;
    while end.map_or(round < rounds, |end| Instant::now() < end) {
        round += 1;
        let text = mutate(&mut dice, corpus);
        let result = std::panic::catch_unwind(|| try_it(&text));
        assert!(result.is_ok(), "this ends the process: {text:?}");
    }
}

/// The first levels that a parser or an evaluator goes down are paid for with its stack.
#[test]
fn deep_nesting_is_a_diagnostic() {
    let folder = tempfile::tempdir().unwrap();
    for (open, middle, close) in [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{ a = ", "1", " }"),
        ("-", "1", ""),
        ("!", "true", ""),
        ("\"${", "1", "}\""),
        ("upper(", "1", ")"),
        ("true ? ", "1", " : 2"),
        ("[for x in [1] : ", "x", "]"),
        ("\"%{ if true }", "x", "%{ endif }\""),
    ] {
        let text = format!("{}{middle}{}", open.repeat(10_000), close.repeat(10_000));
        assert!(Expr::parse("deep", &text).is_err(), "{open}");
        std::fs::write(folder.path().join("main.tf"), format!("output \"o\" {{\n  value = {text}\n}}\n")).unwrap();
        let loaded = load(folder.path());
        assert!(loaded.is_err() || !loaded.unwrap().unsupported.is_empty(), "{open}");
    }
    let blocks = format!("{}{}", "a {\n".repeat(10_000), "}\n".repeat(10_000));
    std::fs::write(folder.path().join("main.tf"), blocks).unwrap();
    let loaded = load(folder.path());
    assert!(loaded.is_err() || !loaded.unwrap().unsupported.is_empty());
}

/// A chain is as long as it is written, and has its own way to be deep.
#[test]
fn long_chains_are_evaluated_or_refused() {
    let scope = Anything(tempfile::tempdir().unwrap());
    for text in [
        vec!["1"; 5_000].join(" + "),
        vec!["true"; 5_000].join(" && "),
        format!("local.x{}", ".a".repeat(5_000)),
        format!("[1]{}", "[0]".repeat(5_000)),
        format!("[[1]]{}", "[*]".repeat(5_000)),
        format!("jsondecode(\"{}{}\")", "[".repeat(20_000), "]".repeat(20_000)),
        format!("yamldecode(\"{}{}\")", "[".repeat(20_000), "]".repeat(20_000)),
        format!("regex(\"{}a{}\", \"a\")", "(".repeat(20_000), ")".repeat(20_000)),
    ] {
        if let Ok(expr) = Expr::parse("long", &text) {
            let _ = evaluate(&expr, &scope, &mut Budget::default());
        }
    }
}
