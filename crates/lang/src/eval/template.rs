use std::borrow::Cow;
use std::ops::Range;

use hcl_edit::template::{Element, Interpolation, StringTemplate, Template};
use landform_cty::{Marks, Refinement, Type, Value, normalize, safe_known_prefix};

use super::Evaluator;
use crate::{Diagnostic, Diagnostics};

/// Longer prefixes of unknown strings are not kept: what is sent to providers must be what HCL would send.
const MAX_PREFIX: usize = 128;

impl Evaluator<'_> {
    pub(super) fn eval_string_template(&mut self, template: &StringTemplate) -> Result<Value, Diagnostics> {
        let elements: Vec<&Element> = template.iter().collect();
        // A template of one interpolation and nothing else is the value itself, of whatever type.
        if let [Element::Interpolation(interpolation)] = elements.as_slice() {
            return self.eval(&interpolation.expr);
        }
        self.eval_parts(&elements.into_iter().map(Part::from).collect::<Vec<_>>())
    }

    pub(super) fn eval_heredoc(
        &mut self,
        template: &Template,
        span: Option<Range<usize>>,
    ) -> Result<Value, Diagnostics> {
        let mut parts: Vec<Part<'_>> = template.iter().map(Part::from).collect();
        if self.source.is_flush(span) {
            parts = flush(parts);
        }
        self.eval_parts(&parts)
    }

    fn eval_parts(&mut self, parts: &[Part<'_>]) -> Result<Value, Diagnostics> {
        let mut text = String::new();
        let mut known = true;
        let mut marks = Marks::new();
        for part in parts {
            match part {
                Part::Literal(literal) => {
                    self.budget.spend_bytes(literal.len())?;
                    if known {
                        text.push_str(literal);
                    }
                }
                Part::Interpolation(interpolation) => {
                    if interpolation.strip != hcl_edit::template::Strip::None {
                        return Err(Diagnostic::unsupported("template strip marker").into());
                    }
                    let value = self.eval(&interpolation.expr)?;
                    let range = self.range(&interpolation.expr);
                    let invalid = |detail: String| {
                        Diagnostic::new("Invalid template interpolation value", detail).at(range.clone())
                    };
                    if value.is_null() {
                        let detail = "The expression result is null. Cannot include a null value in a string template.";
                        return Err(invalid(detail.to_owned()).into());
                    }
                    let (value, value_marks) = value.unmark();
                    marks.extend(value_marks);
                    if !value.is_known() {
                        known = false;
                        continue;
                    }
                    let converted = value.convert(&Type::String).map_err(|error| {
                        invalid(format!("Cannot include the given value in a string template: {error}."))
                    })?;
                    if let (true, Some(part)) = (known, converted.as_str()) {
                        self.budget.spend_bytes(part.len())?;
                        text.push_str(part);
                    }
                }
                Part::Directive => return Err(Diagnostic::unsupported("template directive").into()),
            }
        }
        let result = if known { Value::string(&text) } else { unknown_with_prefix(&text) };
        self.pay(result.with_marks(&marks))
    }
}

/// A piece of a template.
enum Part<'a> {
    Literal(Cow<'a, str>),
    Interpolation(&'a Interpolation),
    Directive,
}

impl<'a> From<&'a Element> for Part<'a> {
    fn from(element: &'a Element) -> Part<'a> {
        match element {
            Element::Literal(literal) => Part::Literal(Cow::Borrowed(literal.as_str())),
            Element::Interpolation(interpolation) => Part::Interpolation(interpolation),
            Element::Directive(_) => Part::Directive,
        }
    }
}

/// Takes away the indentation that all lines have in common. A blank line has no say in it and stays as it is.
fn flush(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut pieces = Vec::new();
    for part in parts {
        match part {
            Part::Literal(literal) => {
                let lines = literal.split_inclusive('\n').map(|line| Part::Literal(Cow::Owned(line.to_owned())));
                pieces.extend(lines.collect::<Vec<_>>());
            }
            other => pieces.push(other),
        }
    }
    let mut common = usize::MAX;
    let mut indented = Vec::new();
    let mut at_line_start = true;
    for (index, piece) in pieces.iter().enumerate() {
        let literal = match piece {
            Part::Literal(literal) => Some(literal),
            _ => None,
        };
        if at_line_start {
            match literal {
                Some(literal) if literal.trim_start().is_empty() && literal.ends_with('\n') => {}
                Some(literal) => {
                    common = common.min(literal.chars().take_while(|character| character.is_whitespace()).count());
                    indented.push(index);
                }
                None => common = 0,
            }
        }
        at_line_start = literal.is_some_and(|literal| literal.ends_with('\n'));
    }
    for index in indented {
        if let Part::Literal(literal) = &mut pieces[index] {
            *literal = Cow::Owned(literal.chars().skip(common).collect());
        }
    }
    pieces
}

/// An unknown string that is certain to begin with `text`, and not to be null.
fn unknown_with_prefix(text: &str) -> Value {
    let cut = &text[..text.floor_char_boundary(MAX_PREFIX)];
    let normal = normalize(cut);
    let prefix = safe_known_prefix(&normal);
    let string_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
    Value::unknown_refined(Type::String, Refinement { string_prefix, ..Refinement::not_null() })
}
