//! What the real OpenTofu makes of expressions: asking it, and keeping the answers in files that a person can read.
//!
//! An entry of a recording is
//!
//! ```text
//! > the expression, as it stands in a file of cases
//! = the value, as the console writes it
//! : its type
//! ```
//!
//! or, for a mistake, `! summary: detail` after the expression. Further lines of any part begin with `|`.

mod ask;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use ask::ask;

/// What became of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Value { value: String, ty: String },
    Mistake { summary: String, detail: String },
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Value { value, ty } => write!(f, "{}{}", part('=', value), part(':', ty)),
            Answer::Mistake { summary, detail } => f.write_str(&part('!', &format!("{summary}: {detail}"))),
        }
    }
}

pub type Recording = BTreeMap<String, Answer>;

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console")
}

/// The expressions to ask about, by topic. A line that begins with `|` continues the one before.
pub fn cases() -> BTreeMap<String, Vec<String>> {
    let mut topics = BTreeMap::new();
    for entry in std::fs::read_dir(folder().join("cases")).expect("there are cases") {
        let path = entry.expect("a file").path();
        let topic = path.file_stem().expect("a name").to_str().expect("a plain name").to_owned();
        let text = std::fs::read_to_string(&path).expect("cases are text");
        let mut expressions: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            match line.strip_prefix('|') {
                Some(more) => {
                    let last = expressions.last_mut().expect("a line to continue");
                    last.push('\n');
                    last.push_str(more);
                }
                None => expressions.push(line.to_owned()),
            }
        }
        topics.insert(topic, expressions);
    }
    topics
}

fn path(version: &str, topic: &str) -> PathBuf {
    folder().join("recorded").join(version).join(format!("{topic}.txt"))
}

pub fn write(version: &str, topic: &str, expressions: &[String], recording: &Recording) {
    let entries: Vec<String> =
        expressions.iter().map(|expression| format!("{}{}", part('>', expression), recording[expression])).collect();
    let path = path(version, topic);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    std::fs::write(path, entries.join("\n")).expect("the recording can be written");
}

/// The recording of a topic; empty if there is none.
pub fn read(version: &str, topic: &str) -> Recording {
    let text = std::fs::read_to_string(path(version, topic)).unwrap_or_default();
    let mut recording = Recording::new();
    for entry in text.split("\n\n").filter(|entry| !entry.trim().is_empty()) {
        let mut parts: Vec<(char, String)> = Vec::new();
        for line in entry.trim_end_matches('\n').split('\n') {
            let (mark, rest) = (line.chars().next().expect("no empty line"), line.get(2..).unwrap_or_default());
            match parts.last_mut() {
                Some((_, part)) if mark == '|' => part.push_str(&format!("\n{rest}")),
                _ => parts.push((mark, rest.to_owned())),
            }
        }
        let (expression, answer) = match parts.as_slice() {
            [('>', expression), ('=', value), (':', ty)] => {
                (expression, Answer::Value { value: value.clone(), ty: ty.clone() })
            }
            [('>', expression), ('!', complaint)] => {
                let (summary, detail) = complaint.split_once(": ").expect("a summary and a detail");
                (expression, Answer::Mistake { summary: summary.to_owned(), detail: detail.to_owned() })
            }
            _ => panic!("{topic}: not an entry of a recording: {entry}"),
        };
        recording.insert(expression.clone(), answer);
    }
    recording
}

/// A part of an entry, in as many lines as it needs.
fn part(mark: char, text: &str) -> String {
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default();
    let more: String = lines.map(|line| format!("| {line}\n")).collect();
    format!("{mark} {first}\n{more}")
}
