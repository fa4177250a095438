//! The evaluator: HCL's semantics, with unknown values and marks.

mod call;
mod collections;
mod conditional;
mod described;
mod operators;
mod start;
mod template;
mod traverse;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use landform_cty::{Number, Type, Value};

pub use described::{Blame, described, sides_of_equality};

use crate::diagnostics::Found;
use crate::source::{Source, TemplateSource};
use crate::{Budget, Diagnostic, Diagnostics, Expr, Reference, Scope, SourceRange};

/// The value of an expression. It may be unknown, and it carries the marks of everything it was made from.
pub fn evaluate(expr: &Expr, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Diagnostics> {
    evaluate_bound(expr, &[], scope, budget)
}

/// The same with names that mean something only here.
pub(crate) fn evaluate_bound(
    expr: &Expr,
    bound: &[(String, Value)],
    scope: &dyn Scope,
    budget: &mut Budget,
) -> Result<Value, Diagnostics> {
    Evaluator { scope, budget, source: &expr.source, bound: bound.to_vec() }.eval(&expr.node)
}

/// The text that a template makes, with the names that are bound in it.
pub(crate) fn evaluate_template(
    template: &TemplateSource,
    bound: Vec<(String, Value)>,
    scope: &dyn Scope,
    budget: &mut Budget,
) -> Result<Value, Diagnostics> {
    budget.enter()?;
    let mut evaluator = Evaluator { scope, budget, source: &template.source, bound };
    let result = evaluator.eval_template(&template.node);
    evaluator.budget.leave();
    result
}

struct Evaluator<'a> {
    scope: &'a dyn Scope,
    budget: &'a mut Budget,
    source: &'a Source,
    /// What `for` and `dynamic` blocks have bound, innermost last.
    bound: Vec<(String, Value)>,
}

impl Evaluator<'_> {
    fn eval(&mut self, expr: &Expression) -> Result<Value, Diagnostics> {
        self.budget.enter().map_err(|limit| limit.at(self.source.range(expr.span())))?;
        let result = self.eval_inner(expr).map_err(|diagnostics| self.placed(diagnostics, expr));
        self.budget.leave();
        result
    }

    /// Says where it was, and with what: the innermost expression says the most.
    fn placed(&mut self, diagnostics: Diagnostics, expr: &Expression) -> Diagnostics {
        let mut diagnostics = diagnostics.at(|| self.source.range(expr.span()));
        for diagnostic in diagnostics.0.iter_mut().filter(|diagnostic| diagnostic.seen.values.is_none()) {
            let part = described::parts(expr).into_iter().find(|part| diagnostic.range == Some(self.range(*part)));
            diagnostic.seen.values = Some(self.described(part.unwrap_or(expr), Blame::Neither));
        }
        diagnostics
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
                let (mut elements, mut found) = (Vec::new(), Found::default());
                for element in array {
                    elements.extend(found.keep(self.eval(element))?);
                }
                found.end()?;
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
