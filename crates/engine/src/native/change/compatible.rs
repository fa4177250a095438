use landform_cty::{Mark, Path, Step, Type, Value};
use landform_protocol::{Block, NestedBlock, Nesting};

use super::spelled::spelled;
use super::{child, part, path_text};

/// In what `actual` breaks the promises of `planned`: what was known must stay, what was unknown may become anything
/// that its type and refinement allow. Empty means that all is well. Messages never show a sensitive value.
pub fn incompatibilities(block: &Block, planned: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check_object(block, planned, actual, &Path::new(), &mut found);
    found
}

fn report(found: &mut Vec<String>, path: &[Step], problem: impl AsRef<str>) {
    found.push(match path {
        [] => format!("root object {}", problem.as_ref()),
        _ => format!("{}: {}", path_text(path), problem.as_ref()),
    });
}

fn check_object(block: &Block, planned: &Value, actual: &Value, path: &[Step], found: &mut Vec<String>) {
    match (planned.is_null(), actual.is_null()) {
        (true, true) => return,
        (true, false) => return report(found, path, "was absent, but now present"),
        (false, true) => return report(found, path, "was present, but now absent"),
        (false, false) => {}
    }
    for (name, attribute) in &block.attributes {
        let path = child(path, Step::Attribute(name.clone()));
        let (planned, actual) = (part(planned, name).into_owned(), part(actual, name).into_owned());
        let secret =
            attribute.sensitive || planned.contains_mark(Mark::Sensitive) || actual.contains_mark(Mark::Sensitive);
        let mut problems = Vec::new();
        check_value(&planned.unmark_deep().0, &actual.unmark_deep().0, &path, &mut problems);
        match secret {
            true if !problems.is_empty() => report(found, &path, "inconsistent values for sensitive attribute"),
            _ => found.append(&mut problems),
        }
    }
    for (name, nested) in &block.blocks {
        let path = child(path, Step::Attribute(name.clone()));
        check_block(nested, &part(planned, name), &part(actual, name), &path, found);
    }
}

fn check_block(nested: &NestedBlock, planned: &Value, actual: &Value, path: &[Step], found: &mut Vec<String>) {
    match nested.nesting {
        Nesting::Single | Nesting::Group => {
            if planned.is_known() || !actual.is_null() {
                check_object(&nested.block, planned, actual, path, found);
            }
        }
        Nesting::List | Nesting::Map => {
            if planned.is_null() || actual.is_null() || !planned.is_known() || !actual.is_known() {
                return;
            }
            let (planned_parts, actual_parts) = (planned.parts(), actual.parts());
            if planned_parts.len() != actual_parts.len() {
                let (before, after) = (planned_parts.len(), actual_parts.len());
                return report(found, path, format!("block count changed from {before} to {after}"));
            }
            for (step, planned) in planned_parts {
                match actual_parts.iter().find(|(other, _)| *other == step) {
                    Some((_, actual)) => check_object(&nested.block, planned, actual, &child(path, step), found),
                    None => report(found, &child(path, step), "block has vanished"),
                }
            }
        }
        Nesting::Set => {
            let (Some(planned), Some(actual)) = (planned.as_sequence(), actual.as_sequence()) else { return };
            let fits = |planned: &Value, actual: &Value| {
                let mut problems = Vec::new();
                check_object(&nested.block, planned, actual, path, &mut problems);
                problems.is_empty()
            };
            check_set(planned, actual, path, fits, found);
        }
    }
}

fn check_value(planned: &Value, actual: &Value, path: &[Step], found: &mut Vec<String>) {
    if planned.ty == Type::Dynamic {
        return;
    }
    if !fits_type(&actual.ty, &planned.ty) {
        let (want, got) = (planned.ty.friendly_name(), actual.ty.friendly_name());
        return report(found, path, format!("wrong final value type: {want} required, but have {got}"));
    }
    if !planned.is_known() {
        // `equals` answers false only if the type or the refinement rules the value out.
        if actual.is_known() && planned.equals(actual).as_bool() == Some(false) {
            report(found, path, "final value does not conform to planning placeholder");
        }
        return;
    }
    match (planned.is_null(), actual.is_null()) {
        (true, true) => return,
        (false, true) => return report(found, path, format!("was {}, but now null", spelled(planned))),
        (true, false) => return report(found, path, format!("was null, but now {}", spelled(actual))),
        (false, false) => {}
    }
    if !actual.is_known() {
        return report(found, path, "was known, but now unknown");
    }
    if matches!(planned.ty, Type::Set(_)) {
        let (planned, actual) = (planned.as_sequence().unwrap_or_default(), actual.as_sequence().unwrap_or_default());
        let fits = |planned: &Value, actual: &Value| {
            let mut problems = Vec::new();
            check_value(planned, actual, path, &mut problems);
            problems.is_empty()
        };
        return check_set(planned, actual, path, fits, found);
    }
    if planned.as_sequence().is_none() && planned.as_mapping().is_none() {
        if planned.data != actual.data {
            report(found, path, format!("was {}, but now {}", spelled(planned), spelled(actual)));
        }
        return;
    }
    let actual_parts = actual.parts();
    let planned_parts = planned.parts();
    for (step, planned) in &planned_parts {
        match actual_parts.iter().find(|(other, _)| other == step) {
            Some((_, actual)) => check_value(planned, actual, &child(path, step.clone()), found),
            None => report(found, path, format!("element {} has vanished", path_text(std::slice::from_ref(step)))),
        }
    }
    for (step, _) in actual_parts {
        if !planned_parts.iter().any(|(other, _)| *other == step) {
            report(found, path, format!("new element {} has appeared", path_text(&[step])));
        }
    }
}

/// Every element of either side must have a counterpart on the other.
fn check_set(
    planned: &[Value],
    actual: &[Value],
    path: &[Step],
    fits: impl Fn(&Value, &Value) -> bool,
    found: &mut Vec<String>,
) {
    if !planned.iter().all(|planned| actual.iter().any(|actual| fits(planned, actual))) {
        return report(found, path, "planned set element does not correlate with any element in actual");
    }
    if !actual.iter().all(|actual| planned.iter().any(|planned| fits(planned, actual))) {
        return report(found, path, "actual set element does not correlate with any element in plan");
    }
    if planned.len() < actual.len() {
        report(found, path, format!("length changed from {} to {}", planned.len(), actual.len()));
    }
}

/// Where the plan's type is open, any type fits.
fn fits_type(ty: &Type, planned: &Type) -> bool {
    match (ty, planned) {
        (_, Type::Dynamic) => true,
        (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) | (Type::Map(a), Type::Map(b)) => fits_type(a, b),
        (Type::Tuple(a), Type::Tuple(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| fits_type(a, b)),
        (Type::Object { attributes: a, .. }, Type::Object { attributes: b, .. }) => {
            a.len() == b.len() && a.iter().all(|(name, ty)| b.get(name).is_some_and(|planned| fits_type(ty, planned)))
        }
        _ => ty == planned,
    }
}
