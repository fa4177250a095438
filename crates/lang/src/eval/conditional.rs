use hcl_edit::expr::{Conditional, Expression, TraversalOperator};
use hcl_edit::template::Element;
use landform_cty::{Data, Number, Refinement, Safety, Type, Unified, Value, unify};

use super::Evaluator;
use super::template::Node;
use crate::{Cause, Diagnostic, Diagnostics, SourceRange};

/// One of the two results of a condition.
#[derive(Clone, Copy)]
pub(super) enum Branch<'a> {
    Expression(&'a Expression),
    Template(&'a [Node<'a>]),
}

impl Evaluator<'_> {
    pub(super) fn eval_conditional(&mut self, conditional: &Conditional) -> Result<Value, Diagnostics> {
        let (true_expr, false_expr) = (&conditional.true_expr, &conditional.false_expr);
        self.choose(&conditional.cond_expr, Branch::Expression(true_expr), Branch::Expression(false_expr))
    }

    /// Both results are evaluated, since the type of the whole depends on both; what is wrong with the one that is not
    /// chosen does not matter.
    pub(super) fn choose(
        &mut self,
        cond_expr: &Expression,
        true_branch: Branch<'_>,
        false_branch: Branch<'_>,
    ) -> Result<Value, Diagnostics> {
        let (true_value, true_failure) = self.eval_branch(true_branch)?;
        let (false_value, false_failure) = self.eval_branch(false_branch)?;
        let Some(unified) = common_type(&true_value, &false_value) else {
            let detail = format!(
                "The true and false result expressions must have consistent types. {}.",
                describe_mismatch(&true_value.ty, &false_value.ty)
            );
            return Err(Diagnostic::new("Inconsistent conditional result types", detail)
                .at(self.branch_range(true_branch))
                .into());
        };
        let condition = self.eval(cond_expr)?;
        let range = self.range(cond_expr);
        if condition.is_null() {
            let detail = "The condition value is null. Conditions must either be true or false.";
            return Err(Diagnostic::new("Null condition", detail).at(range).into());
        }
        let (condition, mut marks) = condition.unmark();
        let (true_value, true_marks) = true_value.unmark();
        let (false_value, false_marks) = false_value.unmark();
        marks.extend(true_marks);
        marks.extend(false_marks);
        if !condition.is_known() {
            return Ok(undecided(&true_value, &false_value, unified.into_type()).with_marks(&marks));
        }
        let condition = condition.convert(&Type::Bool).map_err(|_| {
            Diagnostic::new("Incorrect condition type", "The condition expression must be of type bool.").at(range)
        })?;
        let (chosen, failure, name, place) = if condition.as_bool() == Some(true) {
            (true_value, true_failure, "true", true_branch)
        } else {
            (false_value, false_failure, "false", false_branch)
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        let converted = chosen.convert_unified(&unified).map_err(|error| {
            let detail = format!("The {name} result value has the wrong type: {error}.");
            Diagnostic::new("Inconsistent conditional result types", detail).at(self.branch_range(place))
        })?;
        Ok(converted.with_marks(&marks))
    }

    /// A branch that fails still has a type, as far as HCL can tell one.
    pub(super) fn eval_branch(&mut self, branch: Branch<'_>) -> Result<(Value, Option<Diagnostics>), Diagnostics> {
        let result = match branch {
            Branch::Expression(expr) => self.eval(expr),
            Branch::Template(nodes) => self.eval_nodes(nodes),
        };
        let failure = match result {
            Ok(value) => return Ok((value, None)),
            Err(failure) if failure.0.iter().any(|diagnostic| diagnostic.cause != Cause::Invalid) => {
                return Err(failure);
            }
            Err(failure) => failure,
        };
        let ty = match branch {
            Branch::Expression(expr) => self.type_of_failed(expr)?,
            Branch::Template(_) => Some(Type::String),
        };
        match ty {
            Some(ty) => Ok((Value::unknown(ty), Some(failure))),
            None => {
                let construct = "an expression that fails where it may not be needed";
                Err(Diagnostic::unsupported(construct).at(self.branch_range(branch)).into())
            }
        }
    }

    /// The type that HCL gives to an expression that could not be evaluated; `None` where that is not known here. A list or
    /// an object has elements nevertheless, as far as they did work.
    fn type_of_failed(&mut self, expr: &Expression) -> Result<Option<Type>, Diagnostics> {
        match expr {
            Expression::Parenthesis(inner) => self.type_of_failed(inner.inner()),
            Expression::Conditional(inner) => {
                let (true_value, _) = self.eval_branch(Branch::Expression(&inner.true_expr))?;
                let (false_value, _) = self.eval_branch(Branch::Expression(&inner.false_expr))?;
                Ok(Some(common_type(&true_value, &false_value).map_or(Type::Dynamic, Unified::into_type)))
            }
            Expression::Array(array) => {
                let mut types = Vec::new();
                for element in array {
                    let Some(ty) = self.type_of_part(element)? else { return Ok(None) };
                    types.push(ty);
                }
                Ok(Some(Type::tuple(types)))
            }
            Expression::Object(object) => {
                let mut types = Vec::new();
                for (key, value) in object {
                    let key = match self.eval_key(key) {
                        Err(failure) if failure.0.iter().any(|one| one.cause != Cause::Invalid) => return Err(failure),
                        key => key.ok(),
                    };
                    let Some(ty) = self.type_of_part(value.expr())? else { return Ok(None) };
                    // Without all of its keys it could have any others.
                    match key.as_ref().and_then(|(key, _)| key.as_str()) {
                        Some(name) => types.push((name.to_owned(), ty)),
                        None => return Ok(Some(Type::Dynamic)),
                    }
                }
                Ok(Some(Type::object(types)))
            }
            // Of one interpolation and nothing else: the value itself.
            Expression::StringTemplate(template) if template.len() == 1 => match template.iter().next() {
                Some(Element::Interpolation(interpolation)) => self.type_of_failed(&interpolation.expr),
                _ => Ok(Some(Type::String)),
            },
            // A splat of what could not be evaluated is as little known as that.
            Expression::Traversal(traversal) => {
                let is_splat = |operator: &TraversalOperator| {
                    matches!(operator, TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_))
                };
                let Some(splat) = traversal.operators.iter().position(|operator| is_splat(operator.value())) else {
                    return Ok(Some(Type::Dynamic));
                };
                let mut source = (**traversal).clone();
                source.operators.truncate(splat);
                let source = if splat == 0 { source.expr } else { Expression::Traversal(Box::new(source)) };
                Ok(self.eval(&source).is_err().then_some(Type::Dynamic))
            }
            other => Ok(type_of_failed(other)),
        }
    }

    fn type_of_part(&mut self, expr: &Expression) -> Result<Option<Type>, Diagnostics> {
        match self.eval(expr) {
            Ok(value) => Ok(Some(value.ty)),
            Err(failure) if failure.0.iter().any(|diagnostic| diagnostic.cause != Cause::Invalid) => Err(failure),
            Err(_) => self.type_of_failed(expr),
        }
    }

    fn branch_range(&self, branch: Branch<'_>) -> SourceRange {
        match branch {
            Branch::Expression(expr) => self.range(expr),
            Branch::Template(_) => self.source.range(None),
        }
    }
}

/// The type that both results of a condition can have.
fn common_type(true_value: &Value, false_value: &Value) -> Option<Unified> {
    let untyped_null = |value: &Value| value.is_null() && value.ty == Type::Dynamic && value.marks.is_empty();
    if untyped_null(true_value) {
        Some(Unified::Common(false_value.ty.clone()))
    } else if untyped_null(false_value) {
        Some(Unified::Common(true_value.ty.clone()))
    } else if true_value.ty == Type::Dynamic || false_value.ty == Type::Dynamic {
        Some(Unified::Common(Type::Dynamic))
    } else {
        unify(&[true_value.ty.clone(), false_value.ty.clone()], Safety::Unsafe)
    }
}

/// The same for what has no elements of its own.
fn type_of_failed(expr: &Expression) -> Option<Type> {
    use hcl_edit::expr::{BinaryOperator, UnaryOperator};
    match expr {
        Expression::UnaryOp(operation) => match operation.operator.value() {
            UnaryOperator::Neg => Some(Type::Number),
            UnaryOperator::Not => Some(Type::Bool),
        },
        Expression::BinaryOp(operation) => match operation.operator.value() {
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Mul
            | BinaryOperator::Div
            | BinaryOperator::Mod => Some(Type::Number),
            _ => Some(Type::Bool),
        },
        Expression::StringTemplate(_) | Expression::HeredocTemplate(_) => Some(Type::String),
        Expression::FuncCall(_) | Expression::Variable(_) | Expression::ForExpr(_) => Some(Type::Dynamic),
        _ => None,
    }
}

/// Where two types without a common one differ, in HCL's words.
fn describe_mismatch(true_type: &Type, false_type: &Type) -> String {
    match (true_type, false_type) {
        (Type::Object { attributes: left, .. }, Type::Object { attributes: right, .. }) => {
            for (name, ty) in left.iter() {
                match right.get(name) {
                    None => {
                        return format!(
                            "The 'true' value includes object attribute {name:?}, which is absent in the 'false' value"
                        );
                    }
                    Some(other) if other != ty => {
                        let inner = describe_mismatch(ty, other);
                        return format!("Type mismatch for object attribute {name:?}: {inner}");
                    }
                    Some(_) => {}
                }
            }
            if let Some(name) = right.keys().find(|name| !left.contains_key(*name)) {
                return format!(
                    "The 'false' value includes object attribute {name:?}, which is absent in the 'true' value"
                );
            }
        }
        (Type::Tuple(left), Type::Tuple(right)) if left.len() != right.len() => {
            let (left, right) = (left.len(), right.len());
            return format!("The 'true' tuple has length {left}, but the 'false' tuple has length {right}");
        }
        (Type::Tuple(left), Type::Tuple(right)) => {
            if let Some((index, (left, right))) = left.iter().zip(right.iter()).enumerate().find(|(_, (l, r))| l != r) {
                return format!("Type mismatch for tuple element {index}: {}", describe_mismatch(left, right));
            }
        }
        (Type::List(left), Type::List(right)) if are_structures(left, right) => {
            return format!("Mismatched list element types: {}", describe_mismatch(left, right));
        }
        (Type::Set(left), Type::Set(right)) if are_structures(left, right) => {
            return format!("Mismatched set element types: {}", describe_mismatch(left, right));
        }
        (Type::Map(left), Type::Map(right)) if are_structures(left, right) => {
            return format!("Mismatched map element types: {}", describe_mismatch(left, right));
        }
        _ => {}
    }
    let (left, right) = (true_type.friendly_name(), false_type.friendly_name());
    if left == right {
        return "At least one deeply-nested attribute or element is not compatible across both the 'true' and the \
                'false' value"
            .to_owned();
    }
    format!("The 'true' value is {left}, but the 'false' value is {right}")
}

fn are_structures(left: &Type, right: &Type) -> bool {
    matches!((left, right), (Type::Object { .. }, Type::Object { .. }) | (Type::Tuple(_), Type::Tuple(_)))
}

/// What can be said about the result while the condition is unknown.
fn undecided(true_value: &Value, false_value: &Value, ty: Type) -> Value {
    if true_value.is_null() && false_value.is_null() {
        return Value::null(ty);
    }
    let certain = true_value.is_definitely_not_null() && false_value.is_definitely_not_null();
    let mut refinement = if certain { Refinement::not_null() } else { Refinement::default() };
    if true_value.ty == Type::Number && false_value.ty == Type::Number {
        let ((true_min, true_max), (false_min, false_max)) = (number_range(true_value), number_range(false_value));
        refinement.number_min = wider(true_min, false_min, |left, right| left < right);
        refinement.number_max = wider(true_max, false_max, |left, right| left > right);
    } else if true_value.ty == false_value.ty && true_value.ty.is_collection() {
        let ((true_min, true_max), (false_min, false_max)) = (length_range(true_value), length_range(false_value));
        refinement.length_min = Some(true_min.min(false_min)).filter(|min| *min > 0);
        refinement.length_max = true_max.zip(false_max).map(|(left, right)| left.max(right));
    }
    Value::unknown_refined(ty, refinement)
}

type Bound = Option<(Number, bool)>;

fn number_range(value: &Value) -> (Bound, Bound) {
    match &value.data {
        Data::Number(number) => (Some((number.clone(), true)), Some((number.clone(), true))),
        Data::Unknown(refinement) => (refinement.number_min.clone(), refinement.number_max.clone()),
        _ => (None, None),
    }
}

fn wider(left: Bound, right: Bound, is_wider: fn(&Number, &Number) -> bool) -> Bound {
    let ((left, left_in), (right, right_in)) = (left?, right?);
    if left == right {
        Some((left, left_in || right_in))
    } else if is_wider(&left, &right) {
        Some((left, left_in))
    } else {
        Some((right, right_in))
    }
}

fn length_range(value: &Value) -> (u64, Option<u64>) {
    match &value.data {
        Data::Unknown(refinement) => (refinement.length_min.unwrap_or(0), refinement.length_max),
        Data::Sequence(elements) if value.known_length().is_none() => (1, Some(elements.len() as u64)),
        _ => {
            let length = value.known_length().unwrap_or(0) as u64;
            (length, Some(length))
        }
    }
}
