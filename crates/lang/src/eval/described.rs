//! What the names in an expression stand for, in short: whoever reads of a mistake sees with what it was made.

use hcl_edit::Decorated;
use hcl_edit::expr::{BinaryOperator, Expression, TraversalOperator};
use landform_cty::{Data, Mark, Refinement, Type, Value};

use super::Evaluator;
use crate::reference::traversals;
use crate::{Budget, Expr, Scope};

/// A name and what is said of it: `var.n`, `is 1`.
pub type Described = Vec<(String, String)>;

/// Why something is wrong, as far as it lies with the values. What has nothing to do with it would mislead who reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blame {
    #[default]
    Neither,
    /// It will be known too late.
    Unknown,
    /// It is secret, or kept nowhere.
    Confidential,
}

/// The names of an expression. Secrets are not spoken of, unless they are to blame.
pub fn described(expr: &Expr, scope: &dyn Scope, blame: Blame) -> Described {
    let budget = &mut Budget::default();
    Evaluator { scope, budget, source: &expr.source, bound: Vec::new() }.described(&expr.node, blame)
}

/// Both sides of `a == b`, if the expression is nothing else.
pub fn sides_of_equality(expr: &Expr, scope: &dyn Scope) -> Option<(Value, Value)> {
    let Expression::BinaryOp(operation) = &expr.node else { return None };
    if *operation.operator.value() != BinaryOperator::Eq {
        return None;
    }
    let budget = &mut Budget::default();
    let mut evaluator = Evaluator { scope, budget, source: &expr.source, bound: Vec::new() };
    Some((evaluator.eval(&operation.lhs_expr).ok()?, evaluator.eval(&operation.rhs_expr).ok()?))
}

impl Evaluator<'_> {
    pub(super) fn described(&mut self, expr: &Expression, blame: Blame) -> Described {
        let mut found = Described::new();
        for (root, operators) in traversals(expr) {
            let fixed = operators.iter().take_while(|operator| written(operator).is_some()).count();
            let operators: Vec<Decorated<TraversalOperator>> =
                operators.into_iter().take(fixed).map(Decorated::new).collect();
            // As much of it as has a value.
            for end in (0..=operators.len()).rev() {
                let operators = &operators[..end];
                let Ok(value) = self.eval_traversal(expr, &root, operators) else { continue };
                let steps = operators.iter().filter_map(|operator| written(operator.value()));
                let name = root.clone() + &steps.collect::<String>();
                let new = !found.iter().any(|(other, _)| *other == name);
                found.extend(statement(&value, blame).filter(|_| new).map(|statement| (name, statement)));
                break;
            }
        }
        found.sort();
        found
    }
}

/// The parts of an expression that a mistake may be about alone.
pub(super) fn parts(expr: &Expression) -> Vec<&Expression> {
    match expr {
        Expression::BinaryOp(operation) => vec![&operation.lhs_expr, &operation.rhs_expr],
        Expression::UnaryOp(operation) => vec![&operation.expr],
        Expression::Conditional(conditional) => vec![&conditional.cond_expr],
        Expression::FuncCall(call) => call.args.iter().collect(),
        _ => Vec::new(),
    }
}

/// A step that does not depend on other names.
fn written(operator: &TraversalOperator) -> Option<String> {
    match operator {
        TraversalOperator::GetAttr(name) => Some(format!(".{}", name.as_str())),
        TraversalOperator::LegacyIndex(index) => Some(format!("[{}]", index.value())),
        TraversalOperator::Index(Expression::Number(number)) => Some(format!("[{}]", number.value())),
        TraversalOperator::Index(Expression::String(key)) => Some(format!("[{:?}]", key.value())),
        _ => None,
    }
}

fn statement(value: &Value, blame: Blame) -> Option<String> {
    for (mark, kind) in [(Mark::Sensitive, "a sensitive"), (Mark::Ephemeral, "an ephemeral")] {
        if value.has_mark(mark) {
            return (blame == Blame::Confidential).then(|| format!("has {kind} value"));
        }
    }
    let kind = value.ty.friendly_name();
    Some(match &value.data {
        Data::Null => "is null".to_owned(),
        Data::Unknown(range) if blame == Blame::Unknown => not_known(&value.ty, range),
        Data::Unknown(_) if value.ty == Type::Dynamic => return None,
        Data::Unknown(_) => format!("is a {kind}"),
        Data::Bool(value) => format!("is {value}"),
        Data::Number(value) => format!("is {value}"),
        Data::String(text) => format!("is {text:?}"),
        Data::Sequence(elements) => counted(&kind, elements.len()),
        Data::Mapping(fields) if matches!(value.ty, Type::Map(_)) => counted(&kind, fields.len()),
        Data::Mapping(fields) => match fields.len() {
            0 => "is object with no attributes".to_owned(),
            1 => format!("is object with 1 attribute {:?}", fields.keys().next().map_or("", String::as_str)),
            count => format!("is object with {count} attributes"),
        },
    })
}

fn not_known(ty: &Type, range: &Refinement) -> String {
    // Larger numbers would tell nobody anything.
    const MANY: u64 = 1024;
    let (least, most) = (range.length_min.unwrap_or(0), range.length_max.filter(|most| *most <= MANY));
    let length = match (least, most) {
        _ if *ty == Type::Dynamic => return "will be known only after apply".to_owned(),
        _ if !ty.is_collection() => String::new(),
        (least, Some(most)) if least == most => format!(" of length {least}"),
        (0, None) => String::new(),
        (0, Some(most)) => format!(" with up to {most} elements"),
        (least, Some(most)) => format!(" with between {least} and {most} elements"),
        (least, None) => format!(" with at least {least} elements"),
    };
    format!("is a {}{length}, known only after apply", ty.friendly_name())
}

fn counted(kind: &str, count: usize) -> String {
    match count {
        0 => format!("is empty {kind}"),
        1 => format!("is {kind} with 1 element"),
        count => format!("is {kind} with {count} elements"),
    }
}
