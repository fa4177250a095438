use std::collections::BTreeMap;

use landform_cty::{Marks, Path, Step, Type, Value};
use landform_lang::IgnoreChanges;
use landform_protocol::Block;

use super::attribute_at;

/// A configuration in which what is to be ignored is as it was. Both values are without marks.
pub fn with_ignored(block: &Block, prior: &Value, config: &Value, ignore: &IgnoreChanges) -> Value {
    if prior.is_null() || config.is_null() {
        return config.clone();
    }
    match ignore {
        IgnoreChanges::None => config.clone(),
        // What only the provider can have set is no part of a configuration.
        IgnoreChanges::All => prior.clone().transform(&mut |path, part| match attribute_at(block, path) {
            Some(attribute) if attribute.computed && !attribute.optional => Value::null(part.ty.clone()),
            _ => part,
        }),
        IgnoreChanges::Paths(paths) => {
            paths.iter().fold(config.clone(), |config, (path, _)| as_it_was(&config, prior, path))
        }
    }
}

/// What is confidential in such a configuration: what is as it was is so as it was, too.
pub fn marks_with_ignored(
    block: &Block,
    prior: (&Value, &[(Path, Marks)]),
    config: (&Value, Vec<(Path, Marks)>),
    ignore: &IgnoreChanges,
) -> Vec<(Path, Marks)> {
    let ((prior, before), (config, marks)) = (prior, config);
    if prior.is_null() || config.is_null() {
        return marks;
    }
    let before = before.iter().cloned();
    match ignore {
        IgnoreChanges::None => marks,
        IgnoreChanges::All => {
            let settable = |path: &Path| !attribute_at(block, path).is_some_and(|it| it.computed && !it.optional);
            before.filter(|(path, _)| settable(path)).collect()
        }
        IgnoreChanges::Paths(paths) => {
            let ignored = |place: &Path| paths.iter().any(|(path, _)| is_within(place, path));
            let heeded = marks.into_iter().filter(|(path, _)| !ignored(path));
            heeded.chain(before.filter(|(path, _)| ignored(path))).collect()
        }
    }
}

/// Whether a place is this one, or inside of it. A configuration may write the key of a map as it writes an attribute.
fn is_within(place: &[Step], path: &[Step]) -> bool {
    let same = |(one, other): (&Step, &Step)| match (one, other) {
        (Step::Attribute(one) | Step::Key(one), Step::Attribute(other) | Step::Key(other)) => one == other,
        (one, other) => one == other,
    };
    place.len() >= path.len() && place.iter().zip(path).all(same)
}

/// The configuration with one part taken from the prior value. A part that cannot be found is left as it is.
fn as_it_was(config: &Value, prior: &Value, path: &[Step]) -> Value {
    let Some((step, rest)) = path.split_first() else { return prior.clone() };
    match (step, &config.ty) {
        (Step::Attribute(name) | Step::Key(name), Type::Map(element)) => {
            let mut fields: BTreeMap<String, Value> = match config.as_mapping() {
                Some(fields) => fields.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
                None if config.is_null() => BTreeMap::new(),
                None => return config.clone(),
            };
            match (prior.get(name), rest) {
                (Some(prior), []) => drop(fields.insert(name.clone(), prior.clone())),
                (None, []) => drop(fields.remove(name)),
                (Some(prior), rest) => {
                    if let Some(field) = fields.get_mut(name) {
                        *field = as_it_was(field, prior, rest);
                    }
                }
                (None, _) => {}
            }
            if fields.is_empty() && config.is_null() {
                return config.clone();
            }
            Value::map((**element).clone(), fields)
        }
        (Step::Attribute(name) | Step::Key(name), Type::Object { .. }) => {
            let (Some(fields), Some(prior)) = (config.as_mapping(), prior.get(name)) else { return config.clone() };
            let each = fields.iter().map(|(key, value)| {
                let value = if key == name { as_it_was(value, prior, rest) } else { value.clone() };
                (key.clone(), value)
            });
            Value::object(each)
        }
        (Step::Index(index), Type::List(_) | Type::Tuple(_)) => {
            let (Some(elements), Some(prior)) = (config.as_sequence(), prior.at(*index)) else {
                return config.clone();
            };
            let each = elements
                .iter()
                .enumerate()
                .map(|(at, value)| if at == *index { as_it_was(value, prior, rest) } else { value.clone() });
            let elements: Vec<Value> = each.collect();
            match config.ty.element() {
                Some(element) => Value::list(element.clone(), elements),
                None => Value::tuple(elements),
            }
        }
        _ => config.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> landform_lang::SourceRange {
        landform_lang::SourceRange { file: String::new(), line: 1, column: 1, end: (1, 1) }
    }

    #[test]
    fn only_what_is_named_stays_as_it_was() {
        let tags = |pairs: &[(&str, &str)]| {
            Value::map(Type::String, pairs.iter().map(|(key, value)| (*key, Value::from(*value))))
        };
        let object =
            |name: &str, pairs: &[(&str, &str)]| Value::object([("name", Value::from(name)), ("tags", tags(pairs))]);
        let prior = object("old", &[("a", "1"), ("b", "1")]);
        let config = object("new", &[("a", "2"), ("c", "2")]);
        let ignoring = |steps: &[Step]| {
            let ignore = IgnoreChanges::Paths(vec![(steps.to_vec(), nowhere())]);
            with_ignored(&Block::default(), &prior, &config, &ignore)
        };
        let (name, tag) = (Step::Attribute("name".into()), Step::Attribute("tags".into()));
        assert_eq!(ignoring(&[name]), object("old", &[("a", "2"), ("c", "2")]));
        let key = |key: &str| vec![tag.clone(), Step::Key(key.into())];
        assert_eq!(ignoring(&key("a")), object("new", &[("a", "1"), ("c", "2")]));
        assert_eq!(ignoring(&key("b")), object("new", &[("a", "2"), ("b", "1"), ("c", "2")]));
        assert_eq!(ignoring(&key("c")), object("new", &[("a", "2")]));
    }
}
