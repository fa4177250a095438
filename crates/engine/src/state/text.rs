//! The text form that OpenTofu gives a state file: indented by two, and with the characters escaped that Go's encoder
//! escapes. Working on text keeps attributes exactly as they were read, the order of their keys included.

/// Nothing that is meant is nested deeper than this. Every line of a file is indented by its depth, so what is nested without
/// end in some kilobytes would be written as gigabytes.
pub const DEEPEST: usize = 160;

/// How deep JSON text is nested.
pub fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut inside, mut escaped) = (0usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ if inside => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Lays out JSON text anew. `text` must be valid JSON. Two line ends close the file, as OpenTofu has it.
pub fn indent(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                copy_string(&mut characters, &mut out);
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(close) = characters.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out.push_str("\n\n");
    out
}

/// The same without any layout: all in one line, which a line end closes.
pub fn in_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                copy_string(&mut characters, &mut out);
            }
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out.push('\n');
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn copy_string(characters: &mut impl Iterator<Item = char>, out: &mut String) {
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                return;
            }
            '\\' => {
                out.push('\\');
                out.extend(characters.next());
            }
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{in_one_line, indent};

    #[test]
    fn layout_is_that_of_go() {
        let text = r#"{"a":{ },"b":[ ],"c":[1, {"d":"x: {,}\" <&>"}]}"#;
        let want = "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"x: {,}\\\" \\u003c\\u0026\\u003e\"\n    }\n  ]\n}\n\n";
        assert_eq!(indent(text), want);
        assert_eq!(indent(&indent(text)), want, "laying out twice changes nothing");
        let line = "{\"a\":{},\"b\":[],\"c\":[1,{\"d\":\"x: {,}\\\" \\u003c\\u0026\\u003e\"}]}\n";
        assert_eq!(in_one_line(want), line);
    }
}
