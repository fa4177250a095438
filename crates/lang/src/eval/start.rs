//! Where an expression begins, as HCL counts: the part of it that a message underlines.

use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall};

use super::Evaluator;
use crate::SourceRange;

impl Evaluator<'_> {
    pub(super) fn start(&self, expr: &Expression) -> SourceRange {
        let first = |length: usize| {
            let span = expr.span();
            self.source.range(span.map(|span| span.start..span.end.min(span.start + length)))
        };
        match expr {
            Expression::Array(_) | Expression::Object(_) | Expression::ForExpr(_) => first(1),
            Expression::BinaryOp(operation) => self.start(&operation.lhs_expr),
            Expression::Conditional(conditional) => self.start(&conditional.cond_expr),
            Expression::UnaryOp(_) => first(1),
            Expression::FuncCall(call) => self.start_of_call(call),
            // Without the quotes, up to the first expression inside.
            Expression::String(_) => {
                let inside =
                    |span: std::ops::Range<usize>| span.start + 1..span.end.saturating_sub(1).max(span.start + 1);
                self.source.range(expr.span().map(inside))
            }
            Expression::StringTemplate(template) => match template.iter().next() {
                Some(hcl_edit::template::Element::Literal(text)) => self.range(text),
                Some(hcl_edit::template::Element::Interpolation(part)) if template.len() > 1 => self.start(&part.expr),
                _ => self.range(expr),
            },
            _ => self.range(expr),
        }
    }

    /// The name and the parenthesis behind it.
    pub(super) fn start_of_call(&self, call: &FuncCall) -> SourceRange {
        let begin = call.name.namespace.first().and_then(Span::span).or_else(|| call.name.name.span());
        let end = call.name.name.span().map(|span| span.end + 1);
        self.source.range(begin.zip(end).map(|(begin, end)| begin.start..end))
    }
}
