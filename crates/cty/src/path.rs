use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Data, Mark, Marks, Type, Value};

/// A step from a value into one of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An attribute of an object.
    Attribute(String),
    /// An element of a map.
    Key(String),
    /// An element of a list or a tuple.
    Index(usize),
    /// An element of a set, which has no other name than itself.
    Element(Box<Value>),
}

/// A place inside a value, from the outside in. The empty path is the value itself.
pub type Path = Vec<Step>;

impl Value {
    /// The part at `path`, if the value is known that far.
    pub fn at_path(&self, path: &[Step]) -> Option<&Value> {
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        let part = match step {
            Step::Attribute(name) | Step::Key(name) => self.get(name)?,
            Step::Index(index) => self.at(*index)?,
            Step::Element(element) => self.as_sequence()?.iter().find(|candidate| *candidate == &**element)?,
        };
        part.at_path(rest)
    }

    /// The parts directly inside a known container, each with the step that leads to it.
    pub fn parts(&self) -> Vec<(Step, &Value)> {
        match &self.data {
            Data::Sequence(elements) if matches!(self.ty, Type::Set(_)) => {
                elements.iter().map(|element| (Step::Element(Box::new(element.clone())), element)).collect()
            }
            Data::Sequence(elements) => {
                elements.iter().enumerate().map(|(index, element)| (Step::Index(index), element)).collect()
            }
            Data::Mapping(elements) if matches!(self.ty, Type::Map(_)) => {
                elements.iter().map(|(key, element)| (Step::Key(key.clone()), element)).collect()
            }
            Data::Mapping(elements) => {
                elements.iter().map(|(name, element)| (Step::Attribute(name.clone()), element)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Visits the value and all its parts, outer before inner; where `visit` says `false`, it does not go further in.
    pub fn walk(&self, visit: &mut impl FnMut(&[Step], &Value) -> bool) {
        fn go(value: &Value, path: &mut Path, visit: &mut impl FnMut(&[Step], &Value) -> bool) {
            if !visit(path, value) {
                return;
            }
            for (step, part) in value.parts() {
                path.push(step);
                go(part, path, visit);
                path.pop();
            }
        }
        go(self, &mut Path::new(), visit);
    }

    /// Rebuilds the value with every part replaced by what `change` makes of it, inner before outer.
    /// A container's type follows from its new parts.
    pub fn transform(self, change: &mut impl FnMut(&[Step], Value) -> Value) -> Value {
        fn go(value: Value, path: &mut Path, change: &mut impl FnMut(&[Step], Value) -> Value) -> Value {
            let Value { ty, data, marks } = value;
            let mut rebuilt = match (data, ty) {
                (Data::Sequence(elements), ty) => {
                    let is_set = matches!(ty, Type::Set(_));
                    let mut changed = Vec::with_capacity(elements.len());
                    for (index, element) in Arc::unwrap_or_clone(elements).into_iter().enumerate() {
                        path.push(if is_set { Step::Element(Box::new(element.clone())) } else { Step::Index(index) });
                        changed.push(go(element, path, change));
                        path.pop();
                    }
                    match ty {
                        Type::Tuple(_) => Value::tuple(changed),
                        Type::Set(element) => Value::set(element_of(&element, changed.first()), changed),
                        Type::List(element) => Value::list(element_of(&element, changed.first()), changed),
                        _ => unreachable!("only lists, sets and tuples are sequences"),
                    }
                }
                (Data::Mapping(elements), ty) => {
                    let is_map = matches!(ty, Type::Map(_));
                    let mut changed = BTreeMap::new();
                    for (key, element) in Arc::unwrap_or_clone(elements) {
                        path.push(if is_map { Step::Key(key.clone()) } else { Step::Attribute(key.clone()) });
                        changed.insert(key, go(element, path, change));
                        path.pop();
                    }
                    match ty {
                        Type::Map(element) => Value::map(element_of(&element, changed.values().next()), changed),
                        _ => Value::object(changed),
                    }
                }
                (data, ty) => Value { ty, data, marks: Marks::new() },
            };
            rebuilt.marks.extend(marks);
            change(path, rebuilt)
        }
        fn element_of(old: &Type, first: Option<&Value>) -> Type {
            first.map_or(old, |value| &value.ty).clone()
        }
        go(self, &mut Path::new(), change)
    }
}

/// Marks.
impl Value {
    pub fn with_mark(mut self, mark: Mark) -> Value {
        self.marks.insert(mark);
        self
    }

    pub fn with_marks(mut self, marks: &Marks) -> Value {
        self.marks.extend(marks);
        self
    }

    pub fn has_mark(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// Whether the value or any part of it is marked so.
    pub fn contains_mark(&self, mark: Mark) -> bool {
        self.has_mark(mark)
            || match &self.data {
                Data::Sequence(elements) => elements.iter().any(|element| element.contains_mark(mark)),
                Data::Mapping(elements) => elements.values().any(|element| element.contains_mark(mark)),
                _ => false,
            }
    }

    /// Whether anything is marked, this value or one of its parts.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
            || match &self.data {
                Data::Sequence(elements) => elements.iter().any(Value::has_marks),
                Data::Mapping(elements) => elements.values().any(Value::has_marks),
                _ => false,
            }
    }

    /// The value without the marks on itself (its parts keep theirs), and these marks.
    pub fn unmark(mut self) -> (Value, Marks) {
        let marks = std::mem::take(&mut self.marks);
        (self, marks)
    }

    /// The value without any marks, and all the marks that were on it and its parts.
    pub fn unmark_deep(mut self) -> (Value, Marks) {
        fn collect(value: &mut Value, marks: &mut Marks) {
            // What is shared and has no marks stays shared.
            if !value.has_marks() {
                return;
            }
            marks.append(&mut value.marks);
            match &mut value.data {
                Data::Sequence(elements) => {
                    Arc::make_mut(elements).iter_mut().for_each(|element| collect(element, marks))
                }
                Data::Mapping(elements) => {
                    Arc::make_mut(elements).values_mut().for_each(|element| collect(element, marks))
                }
                _ => {}
            }
        }
        let mut marks = Marks::new();
        collect(&mut self, &mut marks);
        (self, marks)
    }

    /// The value without any marks, and where they were; [`Value::mark_paths`] puts them back.
    pub fn unmark_deep_with_paths(self) -> (Value, Vec<(Path, Marks)>) {
        let mut found = Vec::new();
        self.walk(&mut |path, value| {
            if !value.marks.is_empty() {
                found.push((path.to_vec(), value.marks.clone()));
            }
            true
        });
        (self.unmark_deep().0, found)
    }

    /// The value without the marks of what is deprecated, and where they were, with their numbers.
    pub fn without_deprecations(self) -> (Value, Vec<(Path, u32)>) {
        let mut found = Vec::new();
        self.walk(&mut |path, value| {
            for mark in &value.marks {
                if let Mark::Deprecated(number) = mark {
                    found.push((path.to_vec(), *number));
                }
            }
            true
        });
        if found.is_empty() {
            return (self, found);
        }
        let (bare, mut places) = self.unmark_deep_with_paths();
        places.iter_mut().for_each(|(_, marks)| marks.retain(|mark| !matches!(mark, Mark::Deprecated(_))));
        (bare.mark_paths(&places), found)
    }

    /// Marks the places that exist in this value. A place inside of something null, unknown or missing marks the
    /// innermost part that does exist, so that a secret is not let go because its container is not known yet.
    pub fn mark_paths(mut self, places: &[(Path, Marks)]) -> Value {
        fn place<'a>(value: &'a mut Value, path: &[Step]) -> &'a mut Value {
            let Some((step, rest)) = path.split_first() else { return value };
            let exists = match (&value.data, step) {
                // A set's elements cannot carry marks of their own.
                _ if matches!(value.ty, Type::Set(_)) => false,
                (Data::Mapping(elements), Step::Attribute(name) | Step::Key(name)) => elements.contains_key(name),
                (Data::Sequence(elements), Step::Index(index)) => *index < elements.len(),
                _ => false,
            };
            if !exists {
                return value;
            }
            match (&mut value.data, step) {
                (Data::Mapping(elements), Step::Attribute(name) | Step::Key(name)) => {
                    place(Arc::make_mut(elements).get_mut(name).expect("looked up above"), rest)
                }
                (Data::Sequence(elements), Step::Index(index)) => place(&mut Arc::make_mut(elements)[*index], rest),
                _ => unreachable!("looked up above"),
            }
        }
        for (path, marks) in places {
            place(&mut self, path).marks.extend(marks);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Value {
        Value::from(text).with_mark(Mark::Sensitive)
    }

    #[test]
    fn marks_come_off_with_their_places_and_go_back_on() {
        let value = Value::object([
            ("a", Value::tuple(vec![secret("x"), Value::from("y")])),
            ("b", Value::set(Type::String, vec![secret("z")])),
        ]);
        let (bare, places) = value.clone().unmark_deep_with_paths();
        assert!(!bare.contains_mark(Mark::Sensitive));
        assert_eq!(places.len(), 2);
        assert_eq!(bare.mark_paths(&places), value);
    }

    #[test]
    fn a_place_that_does_not_exist_marks_what_is_around_it() {
        let places = [(vec![Step::Attribute("a".into()), Step::Index(0)], Marks::from([Mark::Sensitive]))];
        let value = Value::object([("a", Value::unknown(Type::list(Type::String)))]).mark_paths(&places);
        assert!(value.get("a").unwrap().has_mark(Mark::Sensitive));
    }

    #[test]
    fn transform_rebuilds_types() {
        let value = Value::object([("a", Value::list(Type::Number, vec![Value::number(1), Value::number(2)]))]);
        let changed = value.transform(&mut |_, part| match part.as_number() {
            Some(number) => Value::string(number.to_string()),
            None => part,
        });
        assert_eq!(changed.ty, Type::object([("a", Type::list(Type::String))]));
        assert_eq!(changed.at_path(&[Step::Attribute("a".into()), Step::Index(1)]), Some(&Value::from("2")));
    }
}
