//! Heredocs without any line. The parser overlooks their end and reads on to the next line that looks like one, so they
//! are turned into what they mean before it sees them.

use std::borrow::Cow;
use std::ops::Range;

/// The same text with `""` in place of every heredoc that has no line. Everything else stays where it is.
pub(crate) fn without_empty(text: &str) -> Cow<'_, str> {
    let looks_empty = |(at, _): (usize, &str)| opening(text, at).is_some_and(|heredoc| heredoc.is_empty(text));
    if !text.match_indices("<<").any(looks_empty) {
        return Cow::Borrowed(text);
    }
    let mut bytes = text.as_bytes().to_vec();
    for range in empty(text) {
        let start = range.start;
        for byte in &mut bytes[range] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        bytes[start..start + 2].copy_from_slice(b"\"\"");
    }
    Cow::Owned(String::from_utf8(bytes).expect("whole characters were replaced by spaces"))
}

/// The first line of a heredoc.
struct Opening<'t> {
    delimiter: &'t str,
    /// Where the line after it begins.
    body: usize,
}

impl Opening<'_> {
    fn is_empty(&self, text: &str) -> bool {
        ending(text, self.body, self.delimiter).is_some()
    }
}

/// The heredoc that begins here, if one does.
fn opening(text: &str, at: usize) -> Option<Opening<'_>> {
    let rest = text[at..].strip_prefix("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (line, _) = rest.split_once('\n')?;
    let delimiter = line.strip_suffix('\r').unwrap_or(line);
    let word = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
    let begins = delimiter.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let body = text.len() - rest.len() + line.len() + 1;
    (begins && delimiter.chars().all(word)).then_some(Opening { delimiter, body })
}

/// Where the line that begins here ends a heredoc with this delimiter, if it does.
fn ending(text: &str, line: usize, delimiter: &str) -> Option<usize> {
    let whole = text[line..].split('\n').next().unwrap_or_default();
    (whole.trim_matches([' ', '\t', '\r']) == delimiter).then(|| line + whole.trim_end_matches([' ', '\t', '\r']).len())
}

/// What the scanner is in.
enum Inside<'t> {
    /// An expression; how many braces are open.
    Code(usize),
    Quotes,
    Heredoc(&'t str),
}

/// Every heredoc without a line that is not part of a comment, a string or another heredoc.
fn empty(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut stack = vec![Inside::Code(0)];
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let to = |end: Option<usize>| end.map_or(text.len(), |end| at + end);
        let depth = stack.len();
        let mut next = at + first.len_utf8();
        match stack.last_mut() {
            Some(Inside::Code(braces)) => match first {
                '#' => next = to(rest.find('\n')),
                '/' if rest.starts_with("//") => next = to(rest.find('\n')),
                '/' if rest.starts_with("/*") => next = to(rest.find("*/").map(|end| end + 2)),
                '"' => stack.push(Inside::Quotes),
                '{' => *braces += 1,
                '}' if *braces > 0 => *braces -= 1,
                '}' if depth > 1 => drop(stack.pop()),
                '<' => {
                    if let Some(heredoc) = opening(text, at) {
                        match ending(text, heredoc.body, heredoc.delimiter) {
                            Some(end) => {
                                found.push(at..end);
                                next = end;
                            }
                            None => {
                                next = heredoc.body;
                                stack.push(Inside::Heredoc(heredoc.delimiter));
                            }
                        }
                    }
                }
                _ => {}
            },
            Some(Inside::Quotes) => match first {
                '\\' => next += text[next..].chars().next().map_or(0, char::len_utf8),
                '"' => drop(stack.pop()),
                _ => next = within_text(rest, at, next, &mut stack),
            },
            Some(Inside::Heredoc(delimiter)) => {
                let starts_line = text[..at].ends_with('\n');
                match ending(text, at, delimiter).filter(|_| starts_line) {
                    Some(end) => {
                        stack.pop();
                        next = end;
                    }
                    None => next = within_text(rest, at, next, &mut stack),
                }
            }
            None => break,
        }
        at = next;
    }
    found
}

/// A step through text that may have expressions in it: `${` and `%{` begin one, doubled they stand for themselves.
fn within_text(rest: &str, at: usize, next: usize, stack: &mut Vec<Inside<'_>>) -> usize {
    match rest.as_bytes() {
        [b'$', b'$', b'{', ..] | [b'%', b'%', b'{', ..] => at + 3,
        [b'$', b'{', ..] | [b'%', b'{', ..] => {
            stack.push(Inside::Code(0));
            at + 2
        }
        _ => next,
    }
}

#[cfg(test)]
mod tests {
    use super::without_empty;

    #[test]
    fn heredocs_without_lines_become_quotes() {
        assert_eq!(without_empty("a = <<X\nX\nb = 1\n"), "a = \"\" \n \nb = 1\n");
        assert_eq!(without_empty("a = [<<-X\r\n  X\r\n]"), "a = [\"\"  \r\n   \r\n]");
        assert_eq!(without_empty("a = <<X\n${<<Y\nY\n}\nX\n"), "a = <<X\n${\"\" \n \n}\nX\n");
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for text in [
            "a = <<X\ntext\nX\n",
            "# <<X\nX = 1\n",
            "a = <<X\n<<Y\nY\nX\n",
            "a = \"<<X\nX\n\"",
            "/* <<X\nX\n*/",
            "a = 1 << X\nX",
        ] {
            assert_eq!(without_empty(text), text);
        }
    }
}
