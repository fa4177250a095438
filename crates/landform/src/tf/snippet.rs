//! Where in the configuration something is wrong, with the line itself.

use std::fmt::Write as _;
use std::io::IsTerminal;

use landform_engine::SourceRange;

/// `  on FILE line N, in BLOCK:` and the line. Files are named from the folder of the command on. Where the line cannot be
/// shown, its place is said all the same.
pub fn snippet(range: &SourceRange) -> String {
    let text = std::fs::read_to_string(&range.file).unwrap_or_default();
    let marked = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    of_text(&text, range, marked)
}

fn of_text(text: &str, range: &SourceRange, marked: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = format!("\n  on {} line {}", range.file, range.line);
    let Some(line) = range.line.checked_sub(1).and_then(|at| lines.get(at)) else {
        out.push('\n');
        return out;
    };
    if let Some(block) = enclosing(&lines[..range.line]) {
        let _ = write!(out, ", in {block}");
    }
    let line = if marked { underlined(line, range.column) } else { (*line).to_owned() };
    let _ = writeln!(out, ":\n{:>4}: {line}", range.line);
    out
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
        SourceRange { file: "main.tf".to_owned(), line, column }
    }

    #[test]
    fn the_line_is_shown_with_its_block() {
        assert_eq!(
            of_text(TEXT, &range(4, 10), false),
            "\n  on main.tf line 4, in resource \"a\" \"b\":\n   4:   name = var.x\n"
        );
        assert!(of_text(TEXT, &range(4, 10), true).ends_with("name = \u{1b}[4mvar.x\u{1b}[0m\n"));
        assert_eq!(
            of_text(TEXT, &range(1, 1), false),
            "\n  on main.tf line 1, in variable \"v\":\n   1: variable \"v\" {}\n"
        );
    }

    #[test]
    fn a_place_that_is_not_there_is_only_named() {
        assert_eq!(of_text("", &range(7, 1), true), "\n  on main.tf line 7\n");
        assert!(of_text(TEXT, &range(4, 99), true).contains("var.x"));
    }
}
