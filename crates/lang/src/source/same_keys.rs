//! Objects with the same key twice: the last one counts. The parser does not read them, so a key that is there already is
//! written in another way that means the same: `a`, `"a"`, `("a")`, `(("a"))`.

use super::{Part, Source};

/// Each is found by parsing everything once more, so whoever has more of them is no person.
const MOST: usize = 100;

impl Source {
    /// Writes the key that the parser stumbled over in another way; false if that was not what it stumbled over.
    pub(super) fn tell_keys_apart(&mut self, error: &hcl_edit::parser::Error) -> bool {
        let begin = error.location().offset();
        if !error.message().contains("redefined object key") || self.parts.len() > 2 * MOST {
            return false;
        }
        // What a file in JSON says twice is a mistake there.
        if self.part(begin).file.json {
            return false;
        }
        let Some((length, name)) = self.text.get(begin..).and_then(key_length) else { return false };
        if !self.text[begin + length..].trim_start().starts_with(['=', ':']) {
            return false;
        }
        let (open, close) = if name { ("\"", "\"") } else { ("(", ")") };
        let end = begin + length;
        let (at_begin, at_end) = (self.origin(begin), self.origin(end));
        self.text.insert_str(end, close);
        self.text.insert_str(begin, open);
        for part in &mut self.parts {
            part.begin += usize::from(part.begin > begin) + usize::from(part.begin > end);
        }
        self.parts.push(Part { begin: begin + 1, ..at_begin });
        self.parts.push(Part { begin: end + 2, ..at_end });
        self.parts.sort_by_key(|part| part.begin);
        true
    }

    /// Where this place of the text comes from.
    fn origin(&self, offset: usize) -> Part {
        let part = self.part(offset);
        Part { begin: offset, file: part.file.clone(), offset: part.offset + (offset - part.begin) }
    }
}

/// How long a key is, and whether it is a bare name; none for keys that are made of other things.
fn key_length(text: &str) -> Option<(usize, bool)> {
    let first = text.chars().next()?;
    if first == '"' {
        return plain_string(text).map(|length| (length, false));
    }
    if first == '(' {
        // One that was told apart before: nothing but brackets around a plain string.
        let brackets = text.bytes().take_while(|byte| *byte == b'(').count();
        let inner = plain_string(&text[brackets..])?;
        let after = text.get(brackets + inner..2 * brackets + inner)?;
        return after.bytes().all(|byte| byte == b')').then_some((2 * brackets + inner, false));
    }
    let other = |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '-'));
    let length = text.find(other).unwrap_or(text.len());
    (length > 0).then_some((length, !first.is_ascii_digit()))
}

/// The length of a string in quotes without anything to evaluate in it.
fn plain_string(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, character) in inside.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (!inside[..at].contains(['$', '%'])).then_some(at + 2),
            '\n' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::source::Source;
    use crate::{Budget, Expr};

    #[test]
    fn the_last_of_several_keys_counts_and_places_stay_as_they_were() {
        let text = "{ a = 1, \"a\" = 2, b = 0, a = 3, a = local.x }";
        let body = Source::new("main.tf", format!("o = {text}\np = local.y\n")).parse_body().unwrap();
        let place = |name: &str| body.argument(name).unwrap().range();
        assert_eq!((place("o").column, place("o").end), (5, (1, 5 + text.len() as u32)));
        assert_eq!((place("p").line, place("p").column, place("p").end), (2, 5, (2, 12)));
        let value = |text: &str| {
            let expr = Expr::parse("test", text).unwrap();
            crate::evaluate(&expr, &crate::NoReferences, &mut Budget::default()).unwrap()
        };
        assert_eq!(value("{ a = 1, a = 2, \"a\" = 3 }"), value("{ a = 3 }"));
        assert_eq!(
            value("{ \"x y\" = 1, z = { k = 1, k = 2 }, \"x y\" = 2 }"),
            value("{ \"x y\" = 2, z = { k = 2 } }")
        );
    }
}
