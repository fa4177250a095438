//! Which block a place of a file is in, for messages. It is told from the text alone, because the text may be wrong: then
//! that is what the message is about.

/// The header of the outermost block around a byte, as `resource "a" "b"`; in JSON the names on the way to it, as
/// `resource.a.b`.
pub fn block_around(file: &str, text: &str, offset: usize) -> Option<String> {
    if file.ends_with(".json") {
        return Some(json_path(text.as_bytes(), offset)).filter(|path| !path.is_empty());
    }
    let mut scanner = Scanner { text, at: 0 };
    scanner.block_around(offset)
}

/// The innermost bracket of this kind that is not closed by the end of the text, if it is the innermost of all.
pub(crate) fn unclosed(text: &str, kind: char) -> Option<usize> {
    let mut scanner = Scanner { text, at: 0 };
    let mut open = Vec::new();
    while let Some(next) = scanner.rest().chars().next() {
        match next {
            '{' | '[' | '(' => open.push((scanner.at, next)),
            '}' | ']' | ')' => drop(open.pop()),
            _ if scanner.skip_token(next) => continue,
            _ => {}
        }
        scanner.at += next.len_utf8();
    }
    open.last().filter(|(_, found)| *found == kind).map(|(at, _)| *at)
}

/// The objects and lists that are open at a byte.
fn json_path(text: &[u8], offset: usize) -> String {
    enum Open {
        Object(String),
        List(usize),
    }
    let (mut open, mut at): (Vec<Open>, usize) = (Vec::new(), 0);
    let mut word = String::new();
    while at <= offset && at < text.len() {
        match text[at] {
            b'{' => open.push(Open::Object(String::new())),
            b'[' => open.push(Open::List(0)),
            b'}' | b']' if at < offset => drop(open.pop()),
            b',' => {
                if let Some(Open::List(index)) = open.last_mut() {
                    *index += 1;
                }
            }
            b':' => {
                if let Some(Open::Object(name)) = open.last_mut() {
                    *name = std::mem::take(&mut word);
                }
            }
            b'"' => {
                let end = string_end(text, at);
                // It stands inside of a string: what holds that is what counts.
                if end > offset {
                    break;
                }
                word = String::from_utf8_lossy(&text[at + 1..end.saturating_sub(1).max(at + 1)]).into_owned();
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    // The innermost one has no name for the place inside of it.
    let steps = open.iter().take(open.len().saturating_sub(1)).map(|open| match open {
        Open::Object(name) => format!(".{name}"),
        Open::List(index) => format!("[{index}]"),
    });
    steps.collect::<String>().trim_start_matches('.').to_owned()
}

fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn block_around(&mut self, offset: usize) -> Option<String> {
        while self.at < self.text.len() && self.at <= offset {
            let start = self.at;
            match self.header() {
                Some(header) => {
                    self.skip_braces();
                    if (start..self.at).contains(&offset) {
                        return Some(header);
                    }
                }
                // No block begins here: on to the next line.
                None => {
                    self.at = start;
                    self.skip_line();
                }
            }
        }
        None
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Reads `type "label" name {` up to the brace.
    fn header(&mut self) -> Option<String> {
        let mut header = self.word()?.to_owned();
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
            match self.rest().chars().next()? {
                '{' => return Some(header),
                '"' => {
                    let end = string_end(self.text.as_bytes(), self.at);
                    let label = self.text.get(self.at..end).filter(|label| !label.contains('\n'))?;
                    header.push(' ');
                    header.push_str(label);
                    self.at = end;
                }
                _ => {
                    let label = format!(" {:?}", self.word()?);
                    header.push_str(&label);
                }
            }
        }
    }

    fn word(&mut self) -> Option<&str> {
        let inside = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|character| !inside(character)).unwrap_or(rest.len());
        let begins = rest.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if !begins || length == 0 {
            return None;
        }
        self.at += length;
        Some(&self.text[start..start + length])
    }

    /// To behind the brace that closes the one that is here, or to the end.
    fn skip_braces(&mut self) {
        let mut depth = 0_usize;
        while let Some(next) = self.rest().chars().next() {
            match next {
                '{' => depth += 1,
                '}' if depth <= 1 => {
                    self.at += 1;
                    return;
                }
                '}' => depth -= 1,
                _ if self.skip_token(next) => continue,
                _ => {}
            }
            self.at += next.len_utf8();
        }
    }

    fn skip_line(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            if next == '\n' {
                self.at += 1;
                return;
            }
            if !self.skip_token(next) {
                self.at += next.len_utf8();
            }
        }
    }

    /// What braces and lines count nothing in: comments, strings, heredocs.
    fn skip_token(&mut self, next: char) -> bool {
        let rest = self.rest();
        let length = match next {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            '<' if rest.starts_with("<<") => heredoc(rest),
            _ => 0,
        };
        self.at += length;
        length > 0
    }
}

/// How long a quoted text is, with the expressions in it. It ends with its line, closed or not.
fn quoted(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' => at += 2,
            b'$' | b'%' if bytes.get(at + 1) == Some(&b'{') && bytes[at - 1] != bytes[at] => {
                let mut inner = Scanner { text: &text[at + 1..], at: 0 };
                inner.skip_braces();
                at += 1 + inner.at;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn heredoc(text: &str) -> usize {
    let marker = text[2..].trim_start_matches('-').lines().next().unwrap_or_default().trim();
    if marker.is_empty() || !marker.chars().all(|character| character.is_alphanumeric() || "_-".contains(character)) {
        return 2;
    }
    let mut length = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        length += line.len();
        if index > 0 && line.trim() == marker {
            return length - (line.len() - line.trim_end_matches(['\n', '\r']).len());
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::block_around;

    #[test]
    fn blocks_are_told_from_the_text() {
        let text = "a = 1\nresource \"a\" b {\n  x = \"}${f(\"}\")}\" # }\n  y {\n  }\n  z = <<-E\n }\n E\n  here = 1\n}\nlocals {\n  there = ";
        let around = |word: &str| block_around("main.tf", text, text.find(word).unwrap());
        assert_eq!(around("here").as_deref(), Some("resource \"a\" \"b\""));
        assert_eq!(around("there").as_deref(), Some("locals"));
        assert_eq!(around("a = 1"), None);
        assert_eq!(around("resource").as_deref(), Some("resource \"a\" \"b\""));
        assert_eq!(block_around("main.tf", "output 5 {\n x\n}", 12), None);
    }

    #[test]
    fn in_json_the_names_are_the_way() {
        let text = r#"{"check": {"c": {"assert": [{"x": 1}, {"condition": "${y}"}]}}, "b": {"k": 1}}"#;
        let around = |word: &str| block_around("a.tf.json", text, text.find(word).unwrap());
        assert_eq!(around("${y}").as_deref(), Some("check.c.assert[1]"));
        assert_eq!(around("\"k\"").as_deref(), Some("b"));
        assert_eq!(around("\"check\""), None);
    }
}
