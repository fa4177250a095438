//! The language in JSON. A file becomes the text that it would be in HCL's own syntax, so that nothing behind the parser
//! knows the difference, but for one thing: whether a property of a resource is a block or an argument only the provider's
//! schema tells. Here it becomes an argument, and [`blocks`] makes blocks of it where the schema wants some.

mod blocks;
mod read;
mod shape;
mod template;

pub(crate) use blocks::with_blocks;

use hcl_edit::Ident;

use self::read::{Json, Member, Node};
use self::shape::Shape;
use crate::{Diagnostic, Diagnostics, Expr, SourceRange};

/// The text in HCL's own syntax; and for places in it where they were in the file.
pub(crate) fn to_native(
    text: &str,
    place: &dyn Fn(usize) -> SourceRange,
) -> Result<(String, Vec<(usize, usize)>), Diagnostics> {
    let json = read::read(text).map_err(|fault| {
        if fault.what == read::TOO_DEEP {
            return Diagnostic::unsupported("JSON nested this deeply").at(place(fault.at));
        }
        let detail = format!("{}.", fault.what);
        Diagnostic::new("Invalid JSON", detail).at(place(fault.at))
    })?;
    let mut writer = Writer { text: String::new(), origins: Vec::new(), found: Vec::new(), place };
    match &json.node {
        Node::Object(members) => writer.body(members, &shape::ROOT),
        Node::Array(elements) => {
            for element in elements {
                match &element.node {
                    Node::Object(members) => writer.body(members, &shape::ROOT),
                    _ => writer.wrong_type("a JSON object is required", element.at),
                }
            }
        }
        _ => writer.wrong_type("a JSON object is required", json.at),
    }
    Diagnostics::check(writer.found)?;
    Ok((writer.text, writer.origins))
}

struct Writer<'a> {
    text: String,
    origins: Vec<(usize, usize)>,
    found: Vec<Diagnostic>,
    place: &'a dyn Fn(usize) -> SourceRange,
}

/// What the strings inside of a value are.
#[derive(Clone, Copy, PartialEq)]
enum Strings {
    Templates,
    /// Nothing but text.
    Literal,
    /// Expressions: addresses, types, names.
    Verbatim,
}

impl Writer<'_> {
    /// What is written next comes from this place of the file.
    fn from(&mut self, at: usize) {
        self.origins.push((self.text.len(), at));
    }

    fn wrong_type(&mut self, detail: &str, at: usize) {
        let place = (self.place)(at);
        self.found.push(Diagnostic::new("Incorrect JSON value type", format!("{detail}.")).at(place));
    }

    fn body(&mut self, members: &[Member], shape: &Shape) {
        for member in members.iter().filter(|member| member.name != shape::COMMENT) {
            if let Some((labels, inner)) = shape.block(&member.name) {
                self.blocks(&member.name, labels, inner, &mut Vec::new(), &member.value);
                continue;
            }
            self.from(member.at);
            if Ident::try_new(member.name.as_str()).is_err() {
                let detail = format!("An argument named {:?} is not expected here.", member.name);
                self.found.push(Diagnostic::new("Unsupported argument", detail).at((self.place)(member.at)));
                continue;
            }
            self.text.push_str(&member.name);
            self.text.push_str(" = ");
            self.value(&member.value, shape.strings(&member.name));
            self.text.push('\n');
        }
    }

    /// One property for each label, or a list of such objects; behind the last label a body, or a list of them.
    fn blocks(&mut self, kind: &str, labels: usize, shape: &Shape, given: &mut Vec<String>, value: &Json) {
        match &value.node {
            Node::Null => {}
            Node::Array(elements) => {
                for element in elements {
                    match &element.node {
                        Node::Object(_) | Node::Null => self.blocks(kind, labels, shape, given, element),
                        _ => self.wrong_type("a JSON object is required, representing a block", element.at),
                    }
                }
            }
            Node::Object(members) if given.len() < labels => {
                for member in members {
                    if given.is_empty() && member.name == shape::COMMENT {
                        continue;
                    }
                    given.push(member.name.clone());
                    self.blocks(kind, labels, shape, given, &member.value);
                    given.pop();
                }
            }
            Node::Object(members) => {
                self.from(value.at);
                self.text.push_str(kind);
                for label in given.iter() {
                    self.text.push(' ');
                    template::quote(label, &mut self.text);
                }
                self.text.push_str(" {\n");
                self.body(members, shape);
                self.text.push_str("}\n");
            }
            _ => {
                if (1..labels).contains(&given.len()) {
                    // The first of two is a type, and all others are names.
                    let detail = "Either a JSON object or JSON array of objects is required here, to specify name labels for this \
                                  block";
                    self.wrong_type(detail, value.at);
                    let detail = format!(
                        "At least one object property is required, whose name represents the {kind} block's name."
                    );
                    self.found.push(Diagnostic::new("Missing block label", detail).at((self.place)(value.at)));
                    return;
                }
                let detail = "either a JSON object or an array of JSON objects is required, representing blocks";
                self.wrong_type(detail, value.at);
            }
        }
    }

    fn value(&mut self, json: &Json, strings: Strings) {
        self.from(json.at);
        match &json.node {
            Node::Null => self.text.push_str("null"),
            Node::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Node::Number(text) => self.text.push_str(text),
            Node::String(text) => self.string(text, strings, json.at),
            Node::Array(elements) => {
                self.text.push('[');
                for element in elements {
                    self.value(element, strings);
                    self.text.push_str(", ");
                }
                self.text.push(']');
            }
            Node::Object(members) => {
                self.text.push('{');
                for member in members {
                    if member.name == "dynamic" && strings == Strings::Templates && is_structure(&member.value) {
                        // Whether this is a block only the schema tells, and what its iterator is only the block.
                        let construct = Diagnostic::unsupported("dynamic block inside of a block in JSON");
                        self.found.push(construct.at((self.place)(member.at)));
                    }
                    self.from(member.at);
                    self.string(&member.name, strings, member.at);
                    self.text.push_str(" = ");
                    self.value(&member.value, strings);
                    self.text.push_str(", ");
                }
                self.text.push('}');
            }
        }
    }

    fn string(&mut self, text: &str, strings: Strings, at: usize) {
        match strings {
            Strings::Templates => template::write(text, &mut self.text),
            Strings::Literal => template::quote(text, &mut self.text),
            // One that is no expression must not become a part of what stands around it.
            Strings::Verbatim => match Expr::parse("string", text) {
                Ok(_) if !text.contains(['\n', '\r']) => self.text.push_str(text.trim()),
                _ => {
                    let detail = format!("{text:?} is not an address or a type.");
                    self.found.push(Diagnostic::new("Invalid expression", detail).at((self.place)(at)));
                }
            },
        }
    }
}

fn is_structure(json: &Json) -> bool {
    matches!(json.node, Node::Object(_) | Node::Array(_))
}

#[cfg(test)]
mod tests;
