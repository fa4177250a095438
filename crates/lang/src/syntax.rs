//! What is wrong with text that cannot be parsed, in the words of HCL's own parser, as far as the place and what our parser
//! has expected there tell the common mistakes apart.

const ARGUMENT_OR_BLOCK: &str = "Argument or block definition required";
const NEWLINE: (&str, &str) = ("Missing newline after argument", "An argument definition must end with a newline.");
const MULTI_LINE: (&str, &str) = (
    "Invalid multi-line string",
    "Quoted strings may not be split over multiple lines. To produce a multi-line string, either use the \\n escape to \
     represent a newline character or use the \"heredoc\" multi-line template syntax.",
);
const UNTERMINATED: (&str, &str) = ("Unterminated template string", "No closing marker was found for the string.");

/// Summaries and details; none, if this is none of the common mistakes.
pub(crate) fn mistakes(text: &str, offset: usize, message: &str) -> Vec<(&'static str, String)> {
    let offset = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let (before, rest) = text.split_at(offset);
    let line_before = before.rsplit('\n').next().unwrap_or_default();
    let line = format!("{line_before}{}", rest.lines().next().unwrap_or_default());
    let next = rest.trim_start_matches([' ', '\t']).chars().next();
    let said = |mistakes: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        mistakes.iter().map(|(summary, detail)| (*summary, (*detail).to_owned())).collect()
    };
    if message.contains("redefined attribute") {
        return redefined(before, &line);
    }
    if message.contains("escape sequence") {
        // The parser may have stopped behind it.
        let line_start = before.len() - line_before.len();
        let selector = text[line_start..].lines().next().and_then(|line| bad_escape(line, line_before.len()));
        let symbol = selector.or(next).unwrap_or_default();
        let detail = format!("The symbol \"{symbol}\" is not a valid escape sequence selector.");
        return vec![("Invalid escape sequence", detail)];
    }
    if message.contains("heredoc end delimiter") {
        return said(&[UNTERMINATED]);
    }
    if message == "expected `}`" && line.contains("${") {
        let unclosed = (
            "Unclosed template interpolation sequence",
            "There is no closing brace for this interpolation sequence before the end of the quoted template. This might be \
             caused by incorrect nesting inside the given expression.",
        );
        return said(&[unclosed, MULTI_LINE]);
    }
    if quotes(&line) % 2 == 1 && !message.contains("template") {
        return said(&[MULTI_LINE, UNTERMINATED]);
    }
    if message.contains("newline or eof") && next == Some(',') {
        let detail = "Argument definitions must be separated by newlines, not commas. An argument definition must end with a \
                      newline.";
        return said(&[("Unexpected comma after argument", detail)]);
    }
    if message.contains("newline or eof") {
        return [foreign(next), said(&[NEWLINE])].concat();
    }
    if message.starts_with("expected `]`") {
        return said(&[("Missing item separator", "Expected a comma to mark the beginning of the next item.")]);
    }
    if message.starts_with("expected `)`") {
        let detail = "A comma is required to separate each function argument from the next.";
        return said(&[("Missing argument separator", detail)]);
    }
    if message.contains("object item") {
        let detail = "Expected a newline or comma to mark the beginning of the next attribute.";
        return said(&[("Missing attribute separator", detail)]);
    }
    if message == "expected `:`" {
        return match line_before.rfind("for ") > line_before.rfind('?') {
            true => {
                let detail = "For expression requires a colon after the collection expression.";
                said(&[("Invalid 'for' expression", detail)])
            }
            false => {
                let detail =
                    "The conditional operator (...?...:...) requires a false expression, delimited by a colon.";
                said(&[("Missing false expression in conditional", detail)])
            }
        };
    }
    if message.starts_with("invalid traversal operator") {
        return said(&[("Invalid attribute name", "An attribute name is required after a dot.")]);
    }
    if message.starts_with("invalid expression") && !before.ends_with('=') {
        let detail = "Expected the start of an expression, but found an invalid expression token.";
        return [foreign(next), said(&[("Invalid expression", detail)])].concat();
    }
    if message.starts_with("invalid expression") && next != Some('=') {
        let detail = "Expected the start of an expression, but found an invalid expression token.";
        return [foreign(next), said(&[("Invalid expression", detail)])].concat();
    }
    if message.starts_with("invalid structure") || message.starts_with("invalid expression") {
        let detail = "An argument or block definition is required here. To set an argument, use the equals sign \"=\" to \
                      introduce the argument value.";
        return said(&[(ARGUMENT_OR_BLOCK, detail)]);
    }
    if message == "expected `{`" {
        let detail = "A block definition must have block content delimited by \"{\" and \"}\", starting on the same line as \
                      the block header.";
        return said(&[("Invalid block definition", detail)]);
    }
    if message.starts_with("invalid attribute; expected `=`") {
        let name = line_before.split_whitespace().next_back().unwrap_or_default();
        let detail = format!(
            "A single-line block definition can contain only a single argument. If you meant to define argument {name:?}, use \
             an equals sign to assign it a value. To define a nested block, place it on a line of its own within its parent \
             block."
        );
        return vec![("Argument definition required", detail)];
    }
    if message.starts_with("unexpected token") || message.starts_with("invalid block body") {
        return match next {
            Some('"') => said(&[("Invalid argument name", "Argument names must not be quoted.")]),
            Some(',') => {
                let detail = "Single-line block syntax can include only one argument definition. To define multiple \
                              arguments, use the multi-line block syntax with one argument definition per line.";
                said(&[("Invalid single-argument block definition", detail)])
            }
            Some('&' | '|') => [foreign(next), said(&[NEWLINE])].concat(),
            Some('}' | '0'..='9') => said(&[(ARGUMENT_OR_BLOCK, "An argument or block definition is required here.")]),
            _ => Vec::new(),
        };
    }
    Vec::new()
}

/// What follows the backslash that begins no escape sequence: the nearest one before the place, or on it.
fn bad_escape(line: &str, at: usize) -> Option<char> {
    let mut characters = line.char_indices().peekable();
    let mut found = None;
    while let Some((index, character)) = characters.next() {
        if character != '\\' || index > at {
            continue;
        }
        let (_, selector) = characters.next()?;
        if !matches!(selector, 'n' | 'r' | 't' | '"' | '\\' | 'u' | 'U') {
            found = found.or(Some(selector));
        }
    }
    found
}

/// Where HCL's parser places a mistake of this name that ours has found at `offset`, and from where on it shows the text.
pub(crate) fn place(text: &str, offset: usize, summary: &str) -> (std::ops::Range<usize>, Option<usize>) {
    let here = offset..offset;
    let before = text.get(..offset).unwrap_or(text);
    match summary {
        "Unclosed configuration block" => {
            let open = crate::context::unclosed(text, '{');
            (open.map_or(here, |at| at..at + 1), None)
        }
        "Missing item separator" => (here, crate::context::unclosed(before, '[')),
        "Missing argument separator" => {
            let open = crate::context::unclosed(before, '(');
            let name = |at: usize| before[..at].rfind(|one: char| !(one.is_alphanumeric() || "_-:".contains(one)));
            (here, open.map(|at| name(at).map_or(0, |behind| behind + 1)))
        }
        // It is missing where the line ends, not where the next one begins.
        "Invalid attribute name" => {
            let end = before.trim_end().len();
            (end..end + 1, None)
        }
        _ => (here, None),
    }
}

/// A character that the language has no use for, or not this one.
fn foreign(character: Option<char>) -> Vec<(&'static str, String)> {
    let (summary, detail) = match character {
        Some('\'') => ("Invalid character", "Single quotes are not valid. Use double quotes (\") to enclose strings."),
        Some(';') => (
            "Invalid character",
            "The \";\" character is not valid. Use newlines to separate arguments and blocks, and commas to separate items in \
             collection values.",
        ),
        Some('&') => {
            ("Unsupported operator", "Bitwise operators are not supported. Did you mean boolean AND (\"&&\")?")
        }
        Some('|') => ("Unsupported operator", "Bitwise operators are not supported. Did you mean boolean OR (\"||\")?"),
        Some('@' | '#' | '$' | '`' | '\\') => ("Invalid character", "This character is not used within the language."),
        _ => return Vec::new(),
    };
    vec![(summary, detail.to_owned())]
}

/// Stands for the name of the file.
pub(crate) const FILE: &str = "\u{0}";

fn redefined(before: &str, line: &str) -> Vec<(&'static str, String)> {
    let name = line.trim_start().split([' ', '=', '\t']).next().unwrap_or_default();
    let earlier = before.lines().enumerate().collect::<Vec<_>>().into_iter().rev().skip(1).find(|(_, line)| {
        let rest = line.trim_start().strip_prefix(name);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    });
    let place = earlier.map(|(at, line)| {
        let column = line.len() - line.trim_start().len() + 1;
        format!(" at {FILE}:{},{column}-{}", at + 1, column + name.chars().count())
    });
    let detail = format!(
        "The argument {name:?} was already set{}. Each argument may be set only once.",
        place.unwrap_or_default()
    );
    vec![("Attribute redefined", detail)]
}

/// How many quotes there are that begin or end a string.
fn quotes(line: &str) -> usize {
    let (mut count, mut escaped) = (0, false);
    for character in line.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    fn summaries(text: &str) -> Vec<String> {
        let wrong = Source::new("main.tf", text).parse_body().unwrap_err();
        wrong.0.into_iter().map(|one| one.summary).collect()
    }

    #[test]
    fn common_mistakes_have_the_names_that_people_know() {
        for (line, wanted) in [
            ("value = [1 2]", "Missing item separator"),
            ("value = lower(\"x\"", "Missing argument separator"),
            ("value = 1 sensitive = true", "Missing newline after argument"),
            ("value 1", "Argument or block definition required"),
            ("value = ", "Invalid expression"),
            ("value = { a = 1 b = 2 }", "Missing attribute separator"),
            ("value = true ? 1", "Missing false expression in conditional"),
            ("value = [for x in [1] x]", "Invalid 'for' expression"),
            ("value = local.", "Invalid attribute name"),
            ("value = \"a\\qb\"", "Invalid escape sequence"),
            ("value = 1\n value = 2", "Attribute redefined"),
        ] {
            assert_eq!(summaries(&format!("output \"o\" {{\n {line}\n}}\n")), [wanted], "{line}");
        }
        assert_eq!(summaries("output \"o\" {\n value = 'a'\n}"), ["Invalid character", "Invalid expression"]);
        assert_eq!(summaries("output \"o\" {\n value = 1\n}\n}\n"), ["Argument or block definition required"]);
        assert_eq!(summaries("output \"o\"\n{\n}\n"), ["Invalid block definition"]);
    }
}
