use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use landform_testkit::parts;

use super::{Answer, Recording};

/// Asks the real OpenTofu about expressions, in a folder with a configuration that they may refer to.
///
/// A console ends with the first mistake, so a plan finds the mistakes first: there every expression is an output of its
/// own. But a plan knows less about what an expression refers to, so those with references are left to the console, which
/// is started again behind every mistake.
pub fn ask(folder: &Path, expressions: &[String]) -> Recording {
    let mut recording = Recording::new();
    // A round may find what cannot be parsed, or what is wrong before anything is evaluated, and then nothing else.
    loop {
        let open = |expression: &&String| !recording.contains_key(*expression) && !refers(expression);
        let rest: Vec<&String> = expressions.iter().filter(open).collect();
        let mistakes = plan(folder, &rest);
        if mistakes.is_empty() {
            break;
        }
        recording.extend(mistakes.into_iter().map(|(at, answer)| (rest[at].clone(), answer)));
    }
    let rest: BTreeSet<String> =
        expressions.iter().filter(|expression| !recording.contains_key(*expression)).cloned().collect();
    recording.extend(console(folder, rest.into_iter().collect()));
    recording
}

/// What a plan complains about first for each expression, by its number.
fn plan(folder: &Path, expressions: &[&String]) -> BTreeMap<usize, Answer> {
    let file = |at: usize| folder.join(format!("expression_{at}.tf"));
    for (at, expression) in expressions.iter().enumerate() {
        let text = format!("output \"o{at}\" {{\n  sensitive = true\n  value = {expression}\n}}\n");
        std::fs::write(file(at), text).expect("the folder can be written to");
    }
    let output = tofu(folder)
        .args(["plan", "-json", "-input=false", "-lock=false", "-parallelism=1"])
        .output()
        .expect("tofu can be started");
    for at in 0..expressions.len() {
        std::fs::remove_file(file(at)).expect("it was written above");
    }
    let mut mistakes = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("JSON is text").lines() {
        let json: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let diagnostic = &json["diagnostic"];
        if diagnostic["severity"] != "error" {
            continue;
        }
        let text = |name: &str| diagnostic[name].as_str().unwrap_or_default().to_owned();
        let name = diagnostic["range"]["filename"].as_str().unwrap_or_default();
        let at = name.strip_prefix("expression_").and_then(|name| name.strip_suffix(".tf")?.parse().ok());
        let at = at.unwrap_or_else(|| panic!("a complaint about no expression: {line}"));
        let answer = Answer::Mistake { summary: text("summary"), detail: text("detail") };
        mistakes.entry(at).or_insert(answer);
    }
    mistakes
}

fn refers(expression: &str) -> bool {
    ["var.", "local.", "terraform_data."].iter().any(|root| expression.contains(root))
}

fn console(folder: &Path, expressions: Vec<String>) -> Recording {
    let mut recording = Recording::new();
    let mut rest = expressions.as_slice();
    while !rest.is_empty() {
        let (answers, complaint) = console_until_mistake(folder, rest);
        let answered = answers.len();
        recording.extend(rest.iter().cloned().zip(answers));
        rest = &rest[answered..];
        if let Some((wrong, others)) = rest.split_first() {
            recording.insert(wrong.clone(), mistake(&complaint));
            rest = others;
        }
    }
    recording
}

/// The answers up to the first mistake, and what was said about that.
fn console_until_mistake(folder: &Path, expressions: &[String]) -> (Vec<Answer>, String) {
    // Between any two answers stands one that cannot be mistaken for anything else.
    const MARK: &str = "\"~~~~\"";
    let questions = expressions.iter().flat_map(|expression| [expression.clone(), format!("type({expression}\n)")]);
    let input: String = questions.map(|question| format!("{question}\n{MARK}\n")).collect();
    let mut child = tofu(folder)
        .args(["console", "-no-color"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tofu can be started");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("tofu ends");
    writer.join().expect("the input can be written");
    let text = String::from_utf8(output.stdout).expect("values are text");
    let answers: Vec<&str> = text.split(&format!("{MARK}\n")).map(|answer| answer.trim_end_matches('\n')).collect();
    let pairs = answers[..answers.len() - 1].chunks_exact(2);
    let pairs = pairs.map(|pair| Answer::Value { value: pair[0].into(), ty: pair[1].into() }).collect();
    (pairs, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A complaint as the console prints it: a summary, a place, and a detail in lines of limited width.
fn mistake(complaint: &str) -> Answer {
    let complaint = complaint.trim();
    let (summary, rest) = complaint.split_once("\n\n").unwrap_or((complaint, ""));
    let detail = rest.split_once("\n\n").map_or(rest, |(_, detail)| detail);
    let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
    Answer::Mistake { summary: summary.trim_start_matches("Error: ").to_owned(), detail }
}

fn tofu(folder: &Path) -> Command {
    let mut command = Command::new(parts::tofu());
    command.current_dir(folder).env_clear().env("HOME", folder);
    command
}
