use hcl_edit::template::{Element, StringTemplate, Template};
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
        self.eval_elements(&elements)
    }

    pub(super) fn eval_heredoc(&mut self, template: &Template) -> Result<Value, Diagnostics> {
        self.eval_elements(&template.iter().collect::<Vec<_>>())
    }

    fn eval_elements(&mut self, elements: &[&Element]) -> Result<Value, Diagnostics> {
        let mut text = String::new();
        let mut known = true;
        let mut marks = Marks::new();
        for element in elements {
            match element {
                Element::Literal(literal) => {
                    if known {
                        text.push_str(literal);
                    }
                }
                Element::Interpolation(interpolation) => {
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
                        text.push_str(part);
                    }
                }
                Element::Directive(_) => return Err(Diagnostic::unsupported("template directive").into()),
            }
            self.budget.spend_bytes(text.len().min(1 << 20))?;
        }
        let result = if known { Value::string(&text) } else { unknown_with_prefix(&text) };
        self.pay(result.with_marks(&marks))
    }
}

/// An unknown string that is certain to begin with `text`, and not to be null.
pub(crate) fn unknown_with_prefix(text: &str) -> Value {
    let cut = &text[..text.floor_char_boundary(MAX_PREFIX)];
    let normal = normalize(cut);
    let prefix = safe_known_prefix(&normal);
    let string_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
    Value::unknown_refined(Type::String, Refinement { string_prefix, ..Refinement::not_null() })
}
