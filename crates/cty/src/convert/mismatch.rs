use crate::Type;
use crate::convert::{Safety, is_possible};

/// Why a value of type `from` does not fit, in go-cty's words. Only for a conversion that is not possible.
pub fn mismatch_message(from: &Type, wanted: &Type) -> String {
    let required = || format!("{} required", wanted.friendly_name_for_constraint());
    match (from, wanted) {
        (Type::Object { .. }, Type::Object { .. }) => objects(from, wanted),
        (Type::Tuple(_), Type::List(element)) if **element == Type::Dynamic => {
            "all list elements must have the same type".to_owned()
        }
        (Type::Tuple(_), Type::Set(element)) if **element == Type::Dynamic => {
            "all set elements must have the same type".to_owned()
        }
        (Type::Object { .. }, Type::Map(element)) if **element == Type::Dynamic => {
            "all map elements must have the same type".to_owned()
        }
        (Type::Tuple(parts), Type::List(element) | Type::Set(element)) => {
            let wrong = parts.iter().enumerate().find(|(_, part)| !is_possible(part, element, Safety::Unsafe));
            match wrong {
                Some((index, part)) => format!("element {index}: {}", mismatch_message(part, element)),
                None => format!("all elements must be {}", element.friendly_name_for_constraint()),
            }
        }
        (Type::Object { attributes, .. }, Type::Map(element)) => {
            let wrong = attributes.iter().find(|(_, part)| !is_possible(part, element, Safety::Unsafe));
            match wrong {
                Some((name, part)) => format!("element {name:?}: {}", mismatch_message(part, element)),
                None => format!("all elements must be {}", element.friendly_name_for_constraint()),
            }
        }
        (Type::Tuple(_) | Type::Object { .. }, _) if wanted.is_collection() => required(),
        (Type::List(from) | Type::Set(from), Type::List(element)) => {
            format!("incorrect list element type: {}", mismatch_message(from, element))
        }
        (Type::List(from) | Type::Set(from), Type::Set(element)) => {
            format!("incorrect set element type: {}", mismatch_message(from, element))
        }
        (Type::Map(from), Type::Map(element)) => {
            format!("incorrect map element type: {}", mismatch_message(from, element))
        }
        _ if from.is_collection() && wanted.is_collection() => required(),
        _ if is_telling(from, wanted) => {
            format!("{} required, but have {}", wanted.friendly_name(), from.friendly_name())
        }
        _ => required(),
    }
}

/// Whether naming both types helps: where a conversion exists for some values, it would only confuse.
fn is_telling(from: &Type, wanted: &Type) -> bool {
    from.is_primitive() != wanted.is_primitive()
        || *wanted == Type::String
        || matches!((from, wanted), (Type::Number, Type::Bool) | (Type::Bool, Type::Number))
        || matches!((from, wanted), (Type::Tuple(_), Type::Object { .. }))
}

fn objects(from: &Type, wanted: &Type) -> String {
    let (Type::Object { attributes: from, .. }, Type::Object { attributes, optional }) = (from, wanted) else {
        unreachable!("only called for objects")
    };
    let missing: Vec<String> = attributes
        .keys()
        .filter(|name| !from.contains_key(*name) && !optional.contains(*name))
        .map(|name| format!("{name:?}"))
        .collect();
    match missing.as_slice() {
        [] => {}
        [name] => return format!("attribute {name} is required"),
        [first, second] => return format!("attributes {first} and {second} are required"),
        [names @ .., last] => return format!("attributes {}, and {last} are required", names.join(", ")),
    }
    for safety in [Safety::Unsafe, Safety::Safe] {
        let wrong = attributes.iter().find_map(|(name, wanted)| {
            let from = from.get(name)?;
            (!is_possible(from, wanted, safety)).then_some((name, from, wanted))
        });
        if let Some((name, from, wanted)) = wrong {
            return format!("attribute {name:?}: {}", mismatch_message(from, wanted));
        }
    }
    "incorrect object attributes".to_owned()
}
