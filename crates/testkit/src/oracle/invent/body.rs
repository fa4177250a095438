//! What is written into a block, once for both syntaxes.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use super::expressions::KEYS;

/// A line of a block, or a block inside of it.
#[derive(Clone)]
pub enum Part {
    /// An argument and its expression.
    Argument(String, String),
    /// An argument whose value may be nothing but a literal: a default.
    Literal(&'static str, String),
    /// An argument that is no expression but a word: a reference, a type.
    Word(&'static str, String),
    /// Likewise, several in brackets.
    Words(&'static str, Vec<String>),
    /// Likewise, in pairs: `providers`.
    Pairs(&'static str, Vec<(String, String)>),
    /// With its type, its labels and what is inside.
    Block(&'static str, Vec<String>, Vec<Part>),
}

pub fn argument(name: impl Into<String>, value: impl Into<String>) -> Part {
    Part::Argument(name.into(), value.into())
}

pub fn block<const N: usize>(kind: &'static str, labels: [&str; N], parts: Vec<Part>) -> Part {
    Part::Block(kind, labels.map(str::to_owned).into(), parts)
}

impl Part {
    /// In the native syntax, so deep.
    pub fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        let _ = match self {
            Part::Argument(name, value) => writeln!(text, "{indent}{name} = {value}"),
            Part::Literal(name, word) | Part::Word(name, word) => writeln!(text, "{indent}{name} = {word}"),
            Part::Words(name, words) => writeln!(text, "{indent}{name} = [{}]", words.join(", ")),
            Part::Pairs(name, pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, word)| format!("{key} = {word}")).collect();
                writeln!(text, "{indent}{name} = {{ {} }}", pairs.join(", "))
            }
            Part::Block(kind, labels, parts) => {
                let labels: String = labels.iter().map(|label| format!(" \"{label}\"")).collect();
                let _ = writeln!(text, "{indent}{kind}{labels} {{");
                parts.iter().for_each(|part| part.write(text, depth + 1));
                writeln!(text, "{indent}}}")
            }
        };
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }
}

/// In JSON: blocks by their type and labels, several of the same in a list.
pub fn in_json(parts: &[Part]) -> Json {
    let mut object = Map::new();
    for part in parts {
        match part {
            Part::Argument(name, value) => {
                object.insert(name.clone(), expression_in_json(value));
            }
            Part::Literal(name, literal) => {
                let value = serde_json::from_str(&literal_in_json(literal)).unwrap_or_default();
                object.insert((*name).to_owned(), value);
            }
            Part::Word(name, word) => {
                object.insert((*name).to_owned(), word.clone().into());
            }
            Part::Words(name, words) => {
                object.insert((*name).to_owned(), words.clone().into());
            }
            Part::Pairs(name, pairs) => {
                let pairs = pairs.iter().map(|(key, word)| (key.clone(), word.clone().into()));
                object.insert((*name).to_owned(), Json::Object(pairs.collect()));
            }
            Part::Block(kind, labels, parts) => {
                let path = std::iter::once(*kind).chain(labels.iter().map(String::as_str));
                place(&mut object, &path.collect::<Vec<_>>(), in_json(parts));
            }
        }
    }
    Json::Object(object)
}

fn place(object: &mut Map<String, Json>, path: &[&str], body: Json) {
    match path {
        [] => {}
        [last] => match object.get_mut(*last) {
            Some(Json::Array(several)) => several.push(body),
            Some(one) => *one = Json::Array(vec![one.take(), body]),
            None => {
                object.insert((*last).to_owned(), body);
            }
        },
        [first, rest @ ..] => {
            let inner = object.entry(*first).or_insert_with(|| Json::Object(Map::new()));
            if let Some(inner) = inner.as_object_mut() {
                place(inner, rest, body);
            }
        }
    }
}

/// A literal of ours is one in JSON but for how its keys are written.
pub fn literal_in_json(literal: &str) -> String {
    ["one", "more", "size"].iter().chain(KEYS).fold(literal.to_owned(), |text, key| {
        text.replace(&format!("{{ {key} = "), &format!("{{ \"{key}\": "))
            .replace(&format!(", {key} = "), &format!(", \"{key}\": "))
    })
}

fn expression_in_json(value: &str) -> Json {
    match serde_json::from_str(value) {
        Ok(plain @ (Json::Null | Json::Bool(_))) => plain,
        Ok(Json::Number(number)) if number.is_i64() => Json::Number(number),
        // A text is a template there, as it is here.
        Ok(Json::String(text)) if !value.contains('\\') => text.into(),
        _ => format!("${{{value}}}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_in_json() {
        let text = literal_in_json("{ one = { a = \"x\", b = \"y\" }, more = [{ size = \"4\" }, {}] }");
        let value: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(value["one"]["b"], "y");
        assert_eq!(value["more"][0]["size"], "4");
    }

    #[test]
    fn a_block_is_written_in_both_syntaxes() {
        let inner = || block("rule", [], vec![argument("n", "1"), argument("t", "var.x")]);
        let part = block("resource", ["a", "b"], vec![inner(), inner(), Part::Words("depends_on", vec!["a.c".into()])]);
        let lines = "  rule {\n    n = 1\n    t = var.x\n  }\n";
        assert_eq!(part.text(), format!("resource \"a\" \"b\" {{\n{lines}{lines}  depends_on = [a.c]\n}}\n"));
        let rule = serde_json::json!({"n": 1, "t": "${var.x}"});
        let body = serde_json::json!({"rule": [rule, rule], "depends_on": ["a.c"]});
        assert_eq!(in_json(&[part]), serde_json::json!({"resource": {"a": {"b": body}}}));
    }
}
