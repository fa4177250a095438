//! `docs/cli.md` names commands that exist, and says the exit codes that the binary says.

use std::collections::BTreeSet;
use std::process::Command;

fn help(path: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_landform")).args(path).arg("--help").output().unwrap();
    assert!(output.status.success(), "landform {path:?} --help");
    String::from_utf8(output.stdout).unwrap()
}

/// The names under "Commands:".
fn commands(help: &str) -> BTreeSet<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    list.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_page_about_the_command_line_is_true() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    let top = help(&[]);
    let known = commands(&top);
    let mut named = BTreeSet::new();
    for text in page.split('`').filter_map(|text| text.strip_prefix("landform ")) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some(first) = words.first().filter(|word| **word != "COMMAND") else { continue };
        assert!(known.contains(*first), "`landform {text}`: there is no such command");
        if let Some(second) = words.get(1) {
            assert!(commands(&help(&[first])).contains(*second), "`landform {text}`: there is no such command");
        }
        named.insert((*first).to_owned());
    }
    let missing: Vec<_> = known.iter().filter(|name| *name != "help" && !named.contains(*name)).collect();
    assert!(missing.is_empty(), "the page does not name {missing:?}");
    let codes = top.split("Exit codes:\n").nth(1).expect("--help ends with the exit codes").trim_end();
    assert!(page.contains(codes), "the page has other exit codes than --help:\n{codes}");
}
