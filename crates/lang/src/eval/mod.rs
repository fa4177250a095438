//! The evaluator: HCL's semantics, with unknown values and marks.

mod collections;
mod conditional;
mod operators;
mod template;
mod traverse;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use landform_cty::{Number, Type, Value};

use crate::source::Source;
use crate::{Budget, Diagnostic, Diagnostics, Expr, Reference, Scope, SourceRange, functions};

/// The value of an expression. It may be unknown, and it carries the marks of everything it was made from.
pub fn evaluate(expr: &Expr, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Diagnostics> {
    Evaluator { scope, budget, source: &expr.source, bound: Vec::new() }.eval(&expr.node)
}

struct Evaluator<'a> {
    scope: &'a dyn Scope,
    budget: &'a mut Budget,
    source: &'a Source,
    /// What `for` has bound, innermost last.
    bound: Vec<(String, Value)>,
}

impl Evaluator<'_> {
    fn eval(&mut self, expr: &Expression) -> Result<Value, Diagnostics> {
        self.budget.enter().map_err(|limit| limit.at(self.source.range(expr.span())))?;
        let result = self.eval_inner(expr).map_err(|diagnostics| diagnostics.at(|| self.source.range(expr.span())));
        self.budget.leave();
        result
    }

    fn eval_inner(&mut self, expr: &Expression) -> Result<Value, Diagnostics> {
        match expr {
            Expression::Null(_) => Ok(Value::null(Type::Dynamic)),
            Expression::Bool(value) => Ok(Value::bool(*value.value())),
            Expression::Number(number) => {
                // The parsed number may be rounded; its text is not.
                let text = number.as_repr().map_or_else(|| number.value().to_string(), |text| text.to_string());
                let number = Number::parse(text.trim())
                    .map_err(|_| Diagnostic::new("Invalid number", "This number cannot be represented."))?;
                Ok(Value::number(number))
            }
            Expression::String(text) => self.pay(Value::string(text.value())),
            Expression::Array(array) => {
                let elements = array.iter().map(|element| self.eval(element)).collect::<Result<Vec<_>, _>>()?;
                self.pay(Value::tuple(elements))
            }
            Expression::Object(object) => self.eval_object(object),
            Expression::StringTemplate(template) => self.eval_string_template(template),
            Expression::HeredocTemplate(heredoc) => self.eval_heredoc(&heredoc.template, expr.span()),
            Expression::Parenthesis(inner) => self.eval(inner.inner()),
            Expression::Variable(name) => self.eval_traversal(expr, name.as_str(), &[]),
            Expression::Traversal(traversal) => match &traversal.expr {
                Expression::Variable(name) => self.eval_traversal(expr, name.as_str(), &traversal.operators),
                root => {
                    let value = self.eval(root)?;
                    self.apply_operators(value, &traversal.operators)
                }
            },
            Expression::Conditional(conditional) => self.eval_conditional(conditional),
            Expression::FuncCall(call) => self.eval_call(call),
            Expression::UnaryOp(operation) => self.eval_unary(operation),
            Expression::BinaryOp(operation) => self.eval_binary(operation),
            Expression::ForExpr(for_expr) => self.eval_for(for_expr),
        }
    }

    fn eval_call(&mut self, call: &hcl_edit::expr::FuncCall) -> Result<Value, Diagnostics> {
        let name = call.name.name.as_str();
        let function = if call.name.is_namespaced() { None } else { functions::find(name) };
        let Some(function) = function else {
            return Err(Diagnostic::unsupported(format!("function {name}")).at(self.range(&call.name.name)).into());
        };
        let mut arguments = Vec::new();
        let mut ranges = Vec::new();
        let last = call.args.len().saturating_sub(1);
        for (index, argument) in call.args.iter().enumerate() {
            let value = self.eval(argument)?;
            let range = self.range(argument);
            if !(call.args.expand_final() && index == last) {
                arguments.push(value);
                ranges.push(range);
                continue;
            }
            let invalid = |detail: &str| Diagnostic::new("Invalid expanding argument value", detail).at(range.clone());
            if value.is_null() {
                return Err(invalid("The expanding argument (indicated by ...) must not be null.").into());
            }
            if !value.is_known() || value.ty == Type::Dynamic {
                // How many arguments there are is not known, so neither is anything about the result.
                return Ok(Value::unknown(Type::Dynamic).with_marks(&value.marks));
            }
            let (value, marks) = value.unmark();
            let Some(elements) = value.as_sequence() else {
                return Err(invalid(
                    "The expanding argument (indicated by ...) must be of a tuple, list, or set type.",
                )
                .into());
            };
            for element in elements {
                arguments.push(element.clone().with_marks(&marks));
                ranges.push(range.clone());
            }
        }
        let result = functions::call(name, function, arguments, self.budget).map_err(|failure| {
            let diagnostic = failure.diagnostic;
            match failure.argument.and_then(|index| ranges.get(index)) {
                Some(range) => diagnostic.at(range.clone()),
                None => diagnostic,
            }
        })?;
        self.pay(result)
    }

    fn resolve(&mut self, reference: &Reference) -> Result<Value, Diagnostics> {
        // What the scope has was paid for when it was made, and is shared from here on.
        self.budget.step()?;
        Ok(self.scope.resolve(reference)?)
    }

    fn pay(&mut self, value: Value) -> Result<Value, Diagnostics> {
        self.budget.spend_value(&value)?;
        Ok(value)
    }

    fn range(&self, node: &impl Span) -> SourceRange {
        self.source.range(node.span())
    }
}

#[cfg(test)]
mod tests;
