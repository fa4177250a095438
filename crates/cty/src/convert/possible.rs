use crate::Type;
use crate::convert::{Unified, unify};

/// Whether a conversion may fail for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Only conversions that succeed for every value.
    Safe,
    /// Also those that may fail once the value is known.
    Unsafe,
}

/// Whether values of type `from` can become `wanted`, as far as types can tell.
pub fn is_possible(from: &Type, wanted: &Type, safety: Safety) -> bool {
    let unsafe_too = safety == Safety::Unsafe;
    match (from, wanted) {
        (_, Type::Dynamic) => true,
        _ if from == wanted => true,
        (Type::Dynamic, _) => unsafe_too,
        (Type::Number | Type::Bool, Type::String) => true,
        (Type::String, Type::Number | Type::Bool) => unsafe_too,
        (Type::Object { attributes: from, .. }, Type::Object { attributes, optional }) => {
            attributes.iter().all(|(name, wanted)| match from.get(name) {
                Some(from) => is_possible(from, wanted, safety),
                None => optional.contains(name),
            })
        }
        (Type::Tuple(from), Type::Tuple(wanted)) => {
            from.len() == wanted.len()
                && from.iter().zip(wanted.iter()).all(|(from, wanted)| is_possible(from, wanted, safety))
        }
        (Type::List(from) | Type::Set(from), Type::List(wanted)) => is_possible(from, wanted, safety),
        // The order and the duplicates of a list are lost.
        (Type::List(from), Type::Set(wanted)) => unsafe_too && is_possible(from, wanted, safety),
        (Type::Set(from), Type::Set(wanted)) | (Type::Map(from), Type::Map(wanted)) => {
            is_possible(from, wanted, safety)
        }
        (Type::Tuple(parts), Type::List(wanted) | Type::Set(wanted)) => {
            let Some(target) = common_target(parts, wanted, safety) else { return parts.is_empty() };
            // Nothing but dynamic parts may end up as dynamic elements.
            (target != Type::Dynamic || parts.iter().all(|part| *part == Type::Dynamic))
                && parts.iter().all(|part| is_possible(part, &target, safety))
        }
        (Type::Object { attributes, .. }, Type::Map(wanted)) => {
            let parts: Vec<Type> = attributes.values().cloned().collect();
            let Some(target) = common_target(&parts, wanted, safety) else { return parts.is_empty() };
            parts.iter().all(|part| is_possible(part, &target, safety))
        }
        (Type::Map(from), Type::Object { attributes, optional }) => {
            unsafe_too
                && attributes.iter().all(|(name, wanted)| optional.contains(name) || is_possible(from, wanted, safety))
        }
        _ => false,
    }
}

fn common_target(parts: &[Type], wanted: &Type, safety: Safety) -> Option<Type> {
    if *wanted != Type::Dynamic {
        return Some(wanted.clone());
    }
    unify(parts, safety).map(Unified::into_type)
}
