//! Where in the configuration something is wrong, with the line itself.

use std::fmt::Write as _;
use std::io::IsTerminal;

use landform_engine::native::difference_text;
use landform_engine::{Seen, SourceRange};
use serde_json::{Value, json};

/// `  on FILE line N, in BLOCK:` and the lines. Files are named from the folder of the command on. Where the line cannot be
/// shown, its place is said all the same.
pub fn snippet(range: &SourceRange, seen: &Seen) -> String {
    let text = std::fs::read_to_string(&range.file).unwrap_or_default();
    let marked = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut out = of_text(&text, range, marked);
    out.push_str(&seen_text(seen));
    out.push('\n');
    out
}

/// What the names stood for; and a comparison that does not hold.
fn seen_text(seen: &Seen) -> String {
    const RULE: &str = "    ├────────────────\n";
    let mut out = String::new();
    if !seen.values.is_empty() {
        out.push_str(RULE);
        for (name, value) in &seen.values {
            let _ = writeln!(out, "    │ {name} {value}");
        }
    }
    if let Some(difference) = &seen.difference {
        let text = format!("    {}", difference_text(difference));
        let _ = write!(out, "{RULE}    │ Diff: ");
        for line in text.lines() {
            let _ = write!(out, "\n    │ {line}");
        }
        out.push('\n');
    }
    out
}

fn of_text(text: &str, range: &SourceRange, marked: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = range.end.map_or(range.line, |(line, _)| line.max(range.line));
    let shown = range.line.checked_sub(1).and_then(|at| lines.get(at..last.min(lines.len())));
    let Some(shown) = shown.filter(|shown| !shown.is_empty()) else {
        return format!("  on {} line {}:\n  (source code not available)\n", range.file, range.line);
    };
    let mut out = format!("  on {} line {}", range.file, range.line);
    if let Some(block) = context(&lines, range) {
        let _ = write!(out, ", in {block}");
    }
    out.push_str(":\n");
    for (at, line) in shown.iter().enumerate() {
        let line = if marked && at == 0 { underlined(line, range.column) } else { (*line).to_owned() };
        let _ = writeln!(out, "{:>4}: {line}", range.line + at);
    }
    out
}

/// The same for programs: the range, and the lines themselves where they can be shown.
pub fn json_place(range: &SourceRange, seen: &Seen) -> (Value, Option<Value>) {
    let text = std::fs::read_to_string(&range.file).unwrap_or_default();
    let (end_line, end_column) = range.end.unwrap_or((range.line, range.column));
    let (start, end) = (offset(&text, range.line, range.column), offset(&text, end_line, end_column));
    let place = json!({
        "filename": range.file,
        "start": { "line": range.line, "column": range.column, "byte": start },
        "end": { "line": end_line, "column": end_column, "byte": end },
    });
    let lines: Vec<&str> = text.lines().collect();
    let code = lines.get(range.line - 1..end_line.max(range.line)).map(|lines| lines.join("\n"));
    let one = |(name, value): &(String, String)| json!({ "traversal": name, "statement": value });
    let values: Vec<Value> = seen.values.iter().map(one).collect();
    let snippet = code.map(|code| {
        let before = offset(&text, range.line, 1);
        json!({
            "context": context(&lines, range),
            "code": code,
            "start_line": range.line,
            "highlight_start_offset": start - before,
            "highlight_end_offset": end - before,
            "values": values,
        })
    });
    (place, snippet)
}

/// Where a place is, in bytes from the beginning.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// The block around a place; none around a header itself.
fn context<'a>(lines: &[&'a str], range: &SourceRange) -> Option<&'a str> {
    if range.column == 1 { None } else { enclosing(&lines[..range.line]) }
}

/// The header of the block around the last of these lines: in a file in the usual layout it begins at the margin.
fn enclosing<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let header = lines.iter().rev().find(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))?;
    let (name, _) = header.split_once('{')?;
    Some(name.trim())
}

/// The line with what is meant underlined, from where it begins.
fn underlined(line: &str, column: usize) -> String {
    let at = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let (before, meant) = line.split_at(at);
    if meant.is_empty() { before.to_owned() } else { format!("{before}\u{1b}[4m{meant}\u{1b}[0m") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "variable \"v\" {}\n\nresource \"a\" \"b\" {\n  name = var.x\n}\n";

    fn range(line: usize, column: usize) -> SourceRange {
        SourceRange { file: "main.tf".to_owned(), line, column, end: None }
    }

    #[test]
    fn the_line_is_shown_with_its_block() {
        assert_eq!(
            of_text(TEXT, &range(4, 10), false),
            "  on main.tf line 4, in resource \"a\" \"b\":\n   4:   name = var.x\n"
        );
        assert!(of_text(TEXT, &range(4, 10), true).ends_with("name = \u{1b}[4mvar.x\u{1b}[0m\n"));
        assert_eq!(of_text(TEXT, &range(1, 1), false), "  on main.tf line 1:\n   1: variable \"v\" {}\n");
    }

    #[test]
    fn places_are_counted_in_bytes_too() {
        assert_eq!(offset(TEXT, 4, 10), TEXT.find("var.x").unwrap());
        assert_eq!(offset("ä = 1\n", 1, 5), 5);
    }

    #[test]
    fn a_place_that_is_not_there_is_only_named() {
        assert_eq!(of_text("", &range(7, 1), true), "  on main.tf line 7:\n  (source code not available)\n");
        assert!(of_text(TEXT, &range(4, 99), true).contains("var.x"));
    }
}
