//! Where in the configuration something is wrong, with the lines themselves: for people and for programs.

use std::fmt::Write as _;

use landform_engine::native::{Ink, block_around, difference_text};
use landform_engine::{Diagnostic, SourceRange};
use serde_json::{Value, json};

/// The place of a diagnostic, and what stands there.
pub struct Place {
    range: Value,
    file: String,
    line: usize,
    /// None, where the file cannot be read any more.
    lines: Option<Lines>,
}

struct Lines {
    context: Option<String>,
    code: String,
    start: usize,
    /// What is meant, in bytes of the code.
    highlight: (usize, usize),
}

/// A range of a text in bytes.
type Span = (usize, usize);

impl Place {
    pub fn of(diagnostic: &Diagnostic) -> Option<Place> {
        let range = diagnostic.range.as_ref()?;
        let text = std::fs::read_to_string(&range.file).ok();
        Some(Place::in_text(range, diagnostic.seen.around.as_ref(), text.as_deref()))
    }

    fn in_text(range: &SourceRange, around: Option<&SourceRange>, text: Option<&str>) -> Place {
        let known = text.unwrap_or_default();
        let (end_line, mut end_column) = range.end.unwrap_or((range.line, range.column));
        let mut meant = span(known, range);
        if meant.0 == meant.1 {
            // Nothing at all could not be underlined.
            meant.1 += 1;
            end_column += 1;
        }
        let json = json!({
            "filename": range.file,
            "start": { "line": range.line, "column": range.column, "byte": meant.0 },
            "end": { "line": end_line, "column": end_column, "byte": meant.1 },
        });
        let lines = text.map(|text| lines(text, range, meant, around));
        Place { range: json, file: range.file.clone(), line: range.line, lines }
    }

    /// For programs: the range, and the lines with what was seen.
    pub fn json(&self, diagnostic: &Diagnostic) -> (Value, Option<Value>) {
        let seen = &diagnostic.seen;
        let one = |(name, value): &(String, String)| json!({ "traversal": name, "statement": value });
        let snippet = self.lines.as_ref().map(|lines| {
            let mut snippet = json!({
                "context": lines.context,
                "code": lines.code,
                "start_line": lines.start,
                "highlight_start_offset": lines.highlight.0,
                "highlight_end_offset": lines.highlight.1,
                "values": seen.values.iter().map(one).collect::<Vec<_>>(),
            });
            if let Some(call) = &seen.call {
                snippet["function_call"] = json!({ "called_as": call.called_as });
                if let Some(signature) = &call.signature {
                    snippet["function_call"]["signature"] = signature.clone();
                }
            }
            snippet
        });
        (self.range.clone(), snippet)
    }

    /// `  on FILE line N, in BLOCK:` and the lines. Files are named from the folder of the command on. Where the line
    /// cannot be shown, its place is said all the same.
    pub fn text(&self, diagnostic: &Diagnostic, ink: Ink) -> String {
        let mut out = format!("  on {} line {}", self.file, self.line);
        let Some(lines) = &self.lines else { return out + ":\n  (source code not available)\n\n" };
        if let Some(block) = &lines.context {
            let _ = write!(out, ", in {block}");
        }
        out.push_str(":\n");
        let (start, end) = lines.highlight;
        let (before, rest) = lines.code.split_at(floor(&lines.code, start));
        let (meant, after) = rest.split_at(floor(rest, end.saturating_sub(start)));
        // The text itself may have brackets in it that are no colours.
        let (on, off) = match ink {
            Ink::Plain => ("", ""),
            Ink::Coloured => ("\u{1b}[4m", "\u{1b}[0m"),
        };
        let code = format!("{before}{on}{meant}{off}{after}{off}");
        for (at, line) in code.split('\n').enumerate() {
            let _ = writeln!(out, "{:>4}: {line}", lines.start + at);
        }
        out.push_str(&seen_text(diagnostic, ink));
        out.push('\n');
        out
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The lines that have something of the range in them, and of what is to be shown around it. An empty line has nothing.
fn lines(text: &str, range: &SourceRange, meant: Span, around: Option<&SourceRange>) -> Lines {
    let around = around.map_or(meant, |around| span(text, around));
    let shown = (around.0.min(meant.0), around.1.max(meant.1));
    let first = around_line(range, around, meant, text);
    let (mut code, mut from, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        let bare = bare.strip_suffix('\r').unwrap_or(bare);
        let (start, end) = (at, at + bare.len());
        at += line.len();
        let holds = |span: Span, offset: usize| span.0 <= offset && offset < span.1;
        let touches = |one: Span, other: Span| holds(one, other.0) || holds(one, other.1);
        if start < end && (touches((start, end), shown) || touches(shown, (start, end))) {
            from.get_or_insert(start);
            code.push(bare);
        }
    }
    let code = code.join("\n");
    let from = from.unwrap_or(0);
    let inside = |offset: usize| offset.saturating_sub(from).min(code.len());
    let start = inside(meant.0);
    let highlight = (start, (meant.0.saturating_sub(from) + meant.1 - meant.0).min(code.len()).max(start));
    let context = meant.0.checked_sub(1).and_then(|before| block_around(&range.file, text, before));
    Lines { context, code, start: first, highlight }
}

/// The line that what is shown begins on.
fn around_line(range: &SourceRange, around: Span, meant: Span, text: &str) -> usize {
    if around.0 >= meant.0 {
        return range.line;
    }
    text[..floor(text, around.0)].matches('\n').count() + 1
}

/// A range in bytes of its text.
fn span(text: &str, range: &SourceRange) -> Span {
    let start = offset(text, range.line, range.column);
    let end = range.end.map_or(start, |(line, column)| offset(text, line, column));
    (start, end.max(start))
}

/// Where a place is, in bytes from the beginning.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// Which function was called, what the names stood for, and a comparison that does not hold.
fn seen_text(diagnostic: &Diagnostic, ink: Ink) -> String {
    let rule = || ink.say("    [dark_gray]├────────────────[reset]\n");
    let bar = "    [dark_gray]│[reset] ";
    let seen = &diagnostic.seen;
    let mut out = String::new();
    let call = seen.call.as_ref().and_then(|call| Some((&call.called_as, call.signature.as_ref()?)));
    if call.is_some() || !seen.values.is_empty() {
        out.push_str(&rule());
    }
    if let Some((name, signature)) = call {
        let named = |parameter: &Value| parameter["name"].as_str().unwrap_or_default().to_owned();
        let mut names: Vec<String> = signature["params"].as_array().into_iter().flatten().map(named).collect();
        names.extend(signature.get("variadic_param").map(|rest| format!("{}...", named(rest))));
        let called = ink.say(&format!("{bar}while calling [bold]{name}[reset]("));
        let _ = writeln!(out, "{called}{})", names.join(", "));
    }
    for (name, value) in &seen.values {
        let line = ink.say(&format!("{bar}[bold]\u{0}[reset] \u{1}\n"));
        out.push_str(&line.replace('\u{0}', name).replace('\u{1}', value));
    }
    if let Some(difference) = &seen.difference {
        let text = format!("    {}", difference_text(difference, ink));
        let _ = write!(out, "{}{}", rule(), ink.say(&format!("{bar}[bold]Diff: [reset]")));
        for line in text.lines() {
            let _ = write!(out, "{}{line}", ink.say(&format!("\n{bar}")));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "variable \"v\" {}\n\nresource \"a\" \"b\" {\n  name = var.x\n\n  other = 1\n}\n";

    fn range(line: usize, column: usize, end: (usize, usize)) -> SourceRange {
        SourceRange { file: "main.tf".to_owned(), line, column, end: Some(end) }
    }

    fn text(range: &SourceRange, around: Option<&SourceRange>, ink: Ink) -> String {
        Place::in_text(range, around, Some(TEXT)).text(&Diagnostic::error("", ""), ink)
    }

    #[test]
    fn the_line_is_shown_with_its_block() {
        assert_eq!(
            text(&range(4, 10, (4, 15)), None, Ink::Plain),
            "  on main.tf line 4, in resource \"a\" \"b\":\n   4:   name = var.x\n\n"
        );
        let coloured = text(&range(4, 10, (4, 13)), None, Ink::Coloured);
        assert!(coloured.ends_with("name = \u{1b}[4mvar\u{1b}[0m.x\u{1b}[0m\n\n"), "{coloured:?}");
        assert_eq!(text(&range(1, 1, (1, 13)), None, Ink::Plain), "  on main.tf line 1:\n   1: variable \"v\" {}\n\n");
    }

    #[test]
    fn lines_around_are_shown_and_empty_ones_are_not() {
        let around = range(3, 1, (6, 12));
        let shown = text(&range(4, 10, (4, 15)), Some(&around), Ink::Plain);
        assert!(shown.contains("   3: resource \"a\" \"b\" {\n   4:   name = var.x\n   5:   other = 1\n"), "{shown}");
        assert!(text(&range(4, 15, (5, 1)), None, Ink::Plain).contains("   4:   name = var.x\n\n"));
    }

    #[test]
    fn places_are_counted_in_bytes_too() {
        assert_eq!(offset(TEXT, 4, 10), TEXT.find("var.x").unwrap());
        assert_eq!(offset("ä = 1\n", 1, 5), 5);
    }

    #[test]
    fn a_place_that_is_not_there_is_only_named() {
        let shown = Place::in_text(&range(7, 1, (7, 1)), None, None).text(&Diagnostic::error("", ""), Ink::Coloured);
        assert_eq!(shown, "  on main.tf line 7:\n  (source code not available)\n\n");
        assert!(text(&range(4, 99, (4, 99)), None, Ink::Plain).contains("main.tf line 4"));
    }
}
