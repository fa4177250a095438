//! Strings of JSON as quoted templates of HCL: what is text is escaped, what is an expression stays as it is.

/// Writes text that is a template. An expression in it ends where its brace is closed, not at one inside of a string.
pub fn write(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("$${") || rest.starts_with("%%{") {
            out.push_str(&rest[..3]);
            rest = &rest[3..];
        } else if rest.starts_with("${") || rest.starts_with("%{") {
            let end = sequence_end(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            escape(next, out);
            rest = &rest[next.len_utf8()..];
        }
    }
    out.push('"');
}

/// Writes text in which nothing is an expression.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for (at, next) in text.char_indices() {
        if text[at + next.len_utf8()..].starts_with('{') && (next == '$' || next == '%') {
            out.push(next);
        }
        escape(next, out);
    }
    out.push('"');
}

fn escape(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => out.push(other),
    }
}

/// Where the sequence ends with which the text begins: behind the brace that closes it, or at the end of the text.
fn sequence_end(text: &str) -> usize {
    // Inside of what: a brace, or a string. Braces inside of a string open a sequence of their own.
    let mut open = vec!['{'];
    let mut at = 2;
    while let Some(next) = text[at..].chars().next() {
        let in_string = open.last() == Some(&'"');
        match next {
            '\\' if in_string => at += 1,
            '"' if in_string => drop(open.pop()),
            '"' => open.push('"'),
            '$' | '%' if in_string && text[at + 1..].starts_with('{') && !text[..at].ends_with(next) => {
                open.push('{');
                at += 1;
            }
            '{' if !in_string => open.push('{'),
            '}' if !in_string => drop(open.pop()),
            _ => {}
        }
        at += next.len_utf8();
        // What a backslash stands before may be longer than a byte.
        while at < text.len() && !text.is_char_boundary(at) {
            at += 1;
        }
        if open.is_empty() {
            return at;
        }
        if at > text.len() {
            break;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    fn written(text: &str) -> String {
        let mut out = String::new();
        super::write(text, &mut out);
        out
    }

    #[test]
    fn text_is_escaped_and_expressions_are_not() {
        assert_eq!(written("a \"b\" \\ ${x[\"}\"]} é\n"), r#""a \"b\" \\ ${x["}"]} é\n""#);
        assert_eq!(written("$${not} %{ if a }b\"%{ endif }"), r#""$${not} %{ if a }b\"%{ endif }""#);
        assert_eq!(written("${\"x${ {a = \"}\"}.a }\"}\""), r#""${"x${ {a = "}"}.a }"}\"""#);
        assert_eq!(written("${unclosed \\"), "\"${unclosed \\\"");
        assert_eq!(written("${\"\\é\"}"), "\"${\"\\é\"}\"");
    }

    #[test]
    fn literal_text_has_no_expressions() {
        let mut out = String::new();
        super::quote("${x} $y %{z", &mut out);
        assert_eq!(out, r#""$${x} $y %%{z""#);
    }
}
