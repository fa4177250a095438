//! Attributes that are written out and lost, because the type that the value is for does not have them: most often a name
//! that was mistyped.

use hcl_edit::Span;
use hcl_edit::expr::{Expression, ObjectKey};
use landform_cty::Type;

use crate::{Expr, SourceRange};

pub struct Discarded {
    /// The value that the attribute was meant for, seen from the whole: empty, or `.a[0]`.
    pub path: String,
    pub name: String,
    /// ` Did you mean …`, if the type has an attribute with a similar name; else nothing.
    pub hint: String,
    pub range: SourceRange,
}

/// What of an expression is lost where it becomes a value of this type. Only what is written out is looked at.
pub fn discarded(expr: &Expr, ty: &Type) -> Vec<Discarded> {
    let mut found = Vec::new();
    collect(expr, &expr.node, ty, String::new(), &mut found);
    found
}

fn collect(whole: &Expr, node: &Expression, ty: &Type, path: String, found: &mut Vec<Discarded>) {
    match (ty, node) {
        (Type::Object { attributes, .. }, Expression::Object(object)) => {
            for (key, value) in object {
                let Some(name) = constant_name(key) else { continue };
                match attributes.get(&name) {
                    Some(inner) => collect(whole, value.expr(), inner, format!("{path}.{name}"), found),
                    None => {
                        let hint = crate::did_you_mean(&name, attributes.keys().map(String::as_str));
                        let hint = hint.replace("you mean ", "you mean to set attribute ").replace('?', " instead?");
                        let range = whole.source.range(key.span());
                        found.push(Discarded { path: path.clone(), name, hint, range });
                    }
                }
            }
        }
        (Type::Map(element), Expression::Object(object)) => {
            for (key, value) in object {
                if let Some(name) = constant_name(key) {
                    collect(whole, value.expr(), element, format!("{path}[{name:?}]"), found);
                }
            }
        }
        (Type::List(element) | Type::Set(element), Expression::Array(elements)) => {
            for (at, value) in elements.iter().enumerate() {
                collect(whole, value, element, format!("{path}[{at}]"), found);
            }
        }
        (Type::Tuple(types), Expression::Array(elements)) if types.len() == elements.len() => {
            for (at, (value, element)) in elements.iter().zip(types.iter()).enumerate() {
                collect(whole, value, element, format!("{path}[{at}]"), found);
            }
        }
        (Type::Map(element), Expression::ForExpr(each)) if each.key_expr.is_some() => {
            collect(whole, &each.value_expr, element, format!("{path}[(not yet known)]"), found);
        }
        (Type::List(element) | Type::Set(element), Expression::ForExpr(each)) if each.key_expr.is_none() => {
            collect(whole, &each.value_expr, element, format!("{path}[(not yet known)]"), found);
        }
        _ => {}
    }
}

fn constant_name(key: &ObjectKey) -> Option<String> {
    match key {
        ObjectKey::Ident(name) => Some(name.as_str().to_owned()),
        ObjectKey::Expression(Expression::Variable(name)) => Some(name.as_str().to_owned()),
        ObjectKey::Expression(Expression::String(name)) => Some(name.value().clone()),
        ObjectKey::Expression(_) => None,
    }
}
