use landform_cty::{Mark, Marks, Path, Step, Value};
use landform_protocol::{Attribute, AttributeKind, Block, Nesting};
use std::collections::BTreeMap;

use super::child;

/// The places of an object that its schema calls sensitive.
pub fn schema_marks(block: &Block, value: &Value) -> Vec<(Path, Marks)> {
    let mut places = Vec::new();
    collect_block(block, value, &Path::new(), &mut places);
    places.into_iter().map(|path| (path, Marks::from([Mark::Sensitive]))).collect()
}

fn collect_block(block: &Block, value: &Value, path: &[Step], places: &mut Vec<Path>) {
    collect_attributes(&block.attributes, value, path, places);
    for (name, nested) in &block.blocks {
        let Some(inner) = value.get(name) else { continue };
        let inner_path = child(path, Step::Attribute(name.clone()));
        each_object(nested.nesting, inner, &inner_path, &mut |object, path| {
            collect_block(&nested.block, object, path, places)
        });
    }
}

fn collect_attributes(attributes: &BTreeMap<String, Attribute>, value: &Value, path: &[Step], places: &mut Vec<Path>) {
    for (name, attribute) in attributes {
        let inner_path = child(path, Step::Attribute(name.clone()));
        if attribute.sensitive {
            places.push(inner_path);
            continue;
        }
        if let (AttributeKind::Nested { nesting, attributes }, Some(inner)) = (&attribute.kind, value.get(name)) {
            each_object(*nesting, inner, &inner_path, &mut |object, path| {
                collect_attributes(attributes, object, path, places)
            });
        }
    }
}

/// Calls with what is nested in an object by this name: the one object, or each of a collection.
pub fn each_part(nesting: Nesting, value: &Value, path: &[Step], name: &str, visit: &mut impl FnMut(&Value, &[Step])) {
    each_object(nesting, value, &child(path, Step::Attribute(name.to_owned())), visit);
}

/// Calls with the object itself, or with each object of a collection.
fn each_object(nesting: Nesting, value: &Value, path: &[Step], visit: &mut impl FnMut(&Value, &[Step])) {
    match nesting {
        Nesting::Single | Nesting::Group => visit(value, path),
        Nesting::List | Nesting::Set | Nesting::Map => {
            for (step, part) in value.parts() {
                visit(part, &child(path, step));
            }
        }
    }
}

/// Marks only places that exist: a null object has no secrets inside.
pub fn mark_existing(value: Value, places: &[(Path, Marks)]) -> Value {
    if value.is_null() {
        return value;
    }
    let existing: Vec<_> = places.iter().filter(|(path, _)| value.at_path(path).is_some()).cloned().collect();
    value.mark_paths(&existing)
}

/// Whether two values of one object are secret in different places.
pub fn sensitivity_differs(one: &Value, other: &Value) -> bool {
    let places = |value: &Value| {
        let (_, marked) = value.clone().unmark_deep_with_paths();
        let sensitive = marked.into_iter().filter(|(_, marks)| marks.contains(&Mark::Sensitive));
        let mut places: Vec<String> = sensitive.map(|(path, _)| format!("{path:?}")).collect();
        places.sort();
        places
    };
    places(one) != places(other)
}
