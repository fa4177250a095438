use hcl_edit::expr::{BinaryOp, BinaryOperator, Expression, UnaryOp, UnaryOperator};
use landform_cty::{Data, Number, Type, Value};

use super::Evaluator;
use super::conditional::Branch;
use crate::diagnostics::Found;
use crate::{Diagnostic, Diagnostics};

impl Evaluator<'_> {
    pub(super) fn eval_unary(&mut self, operation: &UnaryOp) -> Result<Value, Diagnostics> {
        let ty = match operation.operator.value() {
            UnaryOperator::Neg => Type::Number,
            UnaryOperator::Not => Type::Bool,
        };
        let operand = self.eval(&operation.expr)?;
        let operand = operand.convert(&ty).map_err(|error| {
            let detail = format!("Unsuitable value for unary operand: {error}.");
            Diagnostic::new("Invalid operand", detail).at(self.range(&operation.expr))
        })?;
        if operand.is_null() {
            return Err(null_operand().into());
        }
        let (operand, marks) = operand.unmark();
        let result = match (operand.as_bool(), operand.as_number()) {
            (Some(value), _) => Value::bool(!value),
            (_, Some(number)) => Value::number(number.negate()),
            _ => Value::unknown_not_null(ty),
        };
        Ok(result.with_marks(&marks))
    }

    pub(super) fn eval_binary(&mut self, operation: &BinaryOp) -> Result<Value, Diagnostics> {
        let operator = *operation.operator.value();
        match operator {
            BinaryOperator::And | BinaryOperator::Or => return self.eval_logic(operation),
            BinaryOperator::Eq | BinaryOperator::NotEq => {
                let mut found = Found::default();
                let left = found.keep(self.eval(&operation.lhs_expr))?;
                let right = found.keep(self.eval(&operation.rhs_expr))?;
                let (Some(left), Some(right)) = (left, right) else { return Err(Diagnostics(found.0)) };
                let ((left, left_marks), (right, right_marks)) = (left.unmark_deep(), right.unmark_deep());
                let equal = left.equals(&right);
                let result = match (operator, equal.as_bool()) {
                    (BinaryOperator::NotEq, Some(value)) => Value::bool(!value),
                    _ => equal,
                };
                return Ok(result.with_marks(&left_marks).with_marks(&right_marks));
            }
            _ => {}
        }
        let mut found = Found::default();
        let left = found.keep(self.operand(&operation.lhs_expr, &Type::Number, "left"))?;
        let right = found.keep(self.operand(&operation.rhs_expr, &Type::Number, "right"))?;
        let (Some(left), Some(right)) = (left, right) else { return Err(Diagnostics(found.0)) };
        if left.is_null() || right.is_null() {
            return Err(null_operand().into());
        }
        let (left, mut marks) = left.unmark();
        let (right, right_marks) = right.unmark();
        marks.extend(right_marks);
        let comparison = matches!(
            operator,
            BinaryOperator::Less | BinaryOperator::LessEq | BinaryOperator::Greater | BinaryOperator::GreaterEq
        );
        let result = match (left.as_number(), right.as_number()) {
            (Some(left), Some(right)) => calculate(operator, left, right)?,
            _ if comparison => match surely_less(&left, &right) {
                Some(less) => {
                    let wants_less = matches!(operator, BinaryOperator::Less | BinaryOperator::LessEq);
                    Value::bool(less == wants_less)
                }
                None => Value::unknown_not_null(Type::Bool),
            },
            // What was known about the bounds is lost here in OpenTofu, too.
            _ => Value::unknown_not_null(Type::Number),
        };
        Ok(result.with_marks(&marks))
    }

    fn operand(&mut self, expr: &Expression, ty: &Type, side: &str) -> Result<Value, Diagnostics> {
        let value = self.eval(expr)?;
        self.convert_operand(&value, expr, ty, side)
    }

    fn convert_operand(&self, value: &Value, expr: &Expression, ty: &Type, side: &str) -> Result<Value, Diagnostics> {
        value.convert(ty).map_err(|error| {
            let detail = format!("Unsuitable value for {side} operand: {error}.");
            Diagnostic::new("Invalid operand", detail).at(self.range(expr)).into()
        })
    }

    /// One side can decide alone, and then what is wrong with the other does not matter.
    fn eval_logic(&mut self, operation: &BinaryOp) -> Result<Value, Diagnostics> {
        let deciding = matches!(operation.operator.value(), BinaryOperator::Or);
        let (left, left_failure) = self.logic_operand(&operation.lhs_expr, "left")?;
        let (right, right_failure) = self.logic_operand(&operation.rhs_expr, "right")?;
        let (left, mut marks) = left.unmark();
        let (right, right_marks) = right.unmark();
        marks.extend(right_marks);
        // A null counts as false here, but only where the other side does not have the last word.
        let says = |value: &Value, wanted: bool| value.is_known() && (value.as_bool() == Some(true)) == wanted;
        let unknown = || Value::unknown_not_null(Type::Bool);
        let (result, failures) = if !left.is_known() && !right.is_known() {
            match left_failure {
                None => (unknown(), vec![]),
                failure => (unknown(), vec![failure, right_failure]),
            }
        } else if says(&left, deciding) {
            (Value::bool(deciding), vec![left_failure])
        } else if says(&right, deciding) {
            (Value::bool(deciding), vec![right_failure])
        } else if !left.is_known() && says(&right, !deciding) {
            (unknown(), vec![left_failure])
        } else if !right.is_known() && says(&left, !deciding) {
            (unknown(), vec![right_failure])
        } else if left.is_null() || right.is_null() {
            return Err(null_operand().into());
        } else {
            (Value::bool(!deciding), vec![left_failure, right_failure])
        };
        match failures.into_iter().flatten().next() {
            Some(failure) => Err(failure),
            None => Ok(result.with_marks(&marks)),
        }
    }

    fn logic_operand(&mut self, expr: &Expression, side: &str) -> Result<(Value, Option<Diagnostics>), Diagnostics> {
        let (value, failure) = self.eval_branch(Branch::Expression(expr))?;
        Ok((self.convert_operand(&value, expr, &Type::Bool, side)?, failure))
    }
}

fn calculate(operator: BinaryOperator, left: &Number, right: &Number) -> Result<Value, Diagnostic> {
    Ok(match operator {
        BinaryOperator::Plus => Value::number(left.add(right)),
        BinaryOperator::Minus => Value::number(left.subtract(right)),
        BinaryOperator::Mul => Value::number(left.multiply(right)),
        BinaryOperator::Mod => Value::number(left.modulo(right)),
        BinaryOperator::Div => match left.divide(right) {
            Some(quotient) => Value::number(quotient),
            None if left.is_zero() => {
                let detail = "Error during operation: can't divide zero by zero or infinity by infinity.";
                return Err(Diagnostic::new("Operation failed", detail));
            }
            // OpenTofu goes on with infinity, which no encoding has.
            None => return Err(Diagnostic::unsupported("division by zero")),
        },
        BinaryOperator::Less => Value::bool(left < right),
        BinaryOperator::LessEq => Value::bool(left <= right),
        BinaryOperator::Greater => Value::bool(left > right),
        BinaryOperator::GreaterEq => Value::bool(left >= right),
        BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Eq | BinaryOperator::NotEq => {
            unreachable!("handled before")
        }
    })
}

/// Whether the left one is less, or more, whatever the two will be: that is known where their ranges do not even touch.
fn surely_less(left: &Value, right: &Value) -> Option<bool> {
    let ((left_min, left_max), (right_min, right_max)) = (bounds(left), bounds(right));
    let below = |max: &Option<Number>, min: &Option<Number>| matches!((max, min), (Some(max), Some(min)) if max < min);
    if below(&left_max, &right_min) {
        Some(true)
    } else if below(&right_max, &left_min) {
        Some(false)
    } else {
        None
    }
}

fn bounds(value: &Value) -> (Option<Number>, Option<Number>) {
    match &value.data {
        Data::Number(number) => (Some(number.clone()), Some(number.clone())),
        Data::Unknown(refinement) => {
            let bound = |bound: &Option<(Number, bool)>| bound.as_ref().map(|(number, _)| number.clone());
            (bound(&refinement.number_min), bound(&refinement.number_max))
        }
        _ => (None, None),
    }
}

fn null_operand() -> Diagnostic {
    Diagnostic::new("Operation failed", "Error during operation: argument must not be null.")
}
