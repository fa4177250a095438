use hcl_edit::Decorated;
use hcl_edit::expr::{Expression, TraversalOperator};
use landform_cty::{Data, Refinement, Type, Value};

use super::Evaluator;
use crate::{Diagnostic, Diagnostics, Reference};

type Operators = [Decorated<TraversalOperator>];

impl Evaluator<'_> {
    pub(super) fn eval_traversal(
        &mut self,
        whole: &Expression,
        root: &str,
        operators: &Operators,
    ) -> Result<Value, Diagnostics> {
        if let Some((_, value)) = self.bound.iter().rev().find(|(name, _)| name == root) {
            let value = value.clone();
            return self.apply_operators(value, operators);
        }
        let range = self.range(whole);
        let (reference, used) = Reference::read(root, operators.iter().map(|operator| operator.value()))
            .map_err(|diagnostic| diagnostic.at(range.clone()))?;
        let operators = &operators[used..];
        if let (Reference::Resource { .. } | Reference::Module { .. }, Some((first, following))) =
            (&reference, operators.split_first())
            && let TraversalOperator::Index(key) = first.value()
        {
            let key = self.eval(key)?;
            if let Some(element) = self.scope.resolve_element(&reference, &key) {
                return self.apply_operators(element, following);
            }
            let whole = self.resolve(&reference)?;
            let element = index_of(&whole, &key).map_err(|diagnostic| diagnostic.at(self.range(first)))?;
            return self.apply_operators(element, following);
        }
        let value = self.resolve(&reference)?;
        self.apply_operators(value, operators)
    }

    pub(super) fn apply_operators(&mut self, mut value: Value, operators: &Operators) -> Result<Value, Diagnostics> {
        let mut rest = operators;
        while let Some((operator, following)) = rest.split_first() {
            self.budget.step()?;
            rest = following;
            let range = self.range(operator);
            value = match operator.value() {
                TraversalOperator::GetAttr(name) => {
                    attribute_of(&value, name.as_str()).map_err(|diagnostic| diagnostic.at(range))?
                }
                TraversalOperator::Index(key) => {
                    let key = self.eval(key)?;
                    index_of(&value, &key).map_err(|diagnostic| diagnostic.at(range))?
                }
                TraversalOperator::LegacyIndex(index) => {
                    let key = Value::number(*index.value());
                    index_of(&value, &key).map_err(|diagnostic| diagnostic.at(range))?
                }
                // `.*` reaches over attributes only; `[*]` over all that follows.
                TraversalOperator::AttrSplat(_) => {
                    let end = following
                        .iter()
                        .position(|operator| !matches!(operator.value(), TraversalOperator::GetAttr(_)))
                        .unwrap_or(following.len());
                    rest = &following[end..];
                    if let Some(TraversalOperator::LegacyIndex(_)) = rest.first().map(|operator| operator.value()) {
                        return Err(Diagnostic::unsupported("legacy index after a splat").at(range).into());
                    }
                    self.splat(value, &following[..end])?
                }
                TraversalOperator::FullSplat(_) => {
                    rest = &[];
                    self.splat(value, following)?
                }
            };
        }
        Ok(value)
    }

    fn splat(&mut self, source: Value, each: &Operators) -> Result<Value, Diagnostics> {
        self.budget.enter()?;
        let result = self.splat_inner(source, each);
        self.budget.leave();
        result
    }

    fn splat_inner(&mut self, source: Value, each: &Operators) -> Result<Value, Diagnostics> {
        let is_sequence = matches!(source.ty, Type::Tuple(_) | Type::List(_) | Type::Set(_));
        let (source, marks) = source.unmark();
        if source.is_null() {
            if !is_sequence {
                return Ok(Value::tuple(Vec::new()).with_marks(&marks));
            }
            let detail = "Splat expressions (with the * symbol) cannot be applied to null sequences.";
            return Err(Diagnostic::new("Splat of null value", detail).into());
        }
        if source.ty == Type::Dynamic {
            return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
        }
        // Anything but a sequence is a sequence of one, or of none if it turns out to be null.
        let undecided = !is_sequence && !source.is_definitely_not_null();
        let source = if is_sequence { source } else { Value::tuple(vec![source.with_marks(&marks)]) };
        if let Data::Unknown(refinement) = &source.data {
            let result = match &source.ty {
                Type::List(element) | Type::Set(element) => {
                    let item = self.apply_operators(Value::unknown((**element).clone()), each)?;
                    let refinement = Refinement {
                        length_min: refinement.length_min,
                        length_max: refinement.length_max,
                        ..Refinement::not_null()
                    };
                    Value::unknown_refined(Type::list(item.ty), refinement)
                }
                Type::Tuple(types) => {
                    let items = types
                        .iter()
                        .map(|ty| Ok(self.apply_operators(Value::unknown(ty.clone()), each)?.ty))
                        .collect::<Result<_, Diagnostics>>()?;
                    Value::unknown_not_null(Type::Tuple(items))
                }
                _ => unreachable!("a splat's source is a sequence"),
            };
            return Ok(result.with_marks(&marks));
        }
        let (mut items, mut wrong) = (Vec::new(), Vec::new());
        for element in source.as_sequence().unwrap_or_default() {
            match self.apply_operators(element.clone(), each) {
                Ok(item) => items.push(item),
                // An element has no name that could be told.
                Err(found) => wrong.extend(found.0.into_iter().map(|mut one| {
                    one.seen.values.get_or_insert_default();
                    one
                })),
            }
        }
        Diagnostics::check(wrong)?;
        if undecided {
            return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
        }
        let result = match &source.ty {
            Type::List(element) | Type::Set(element) => {
                let item = match items.first() {
                    Some(item) => item.ty.clone(),
                    None => self.apply_operators(Value::unknown((**element).clone()), each)?.ty,
                };
                if items.iter().any(|other| other.ty != item && other.ty != Type::Dynamic && item != Type::Dynamic) {
                    let detail = "The second level of splat expression produced elements of different types.";
                    return Err(Diagnostic::new("Invalid nested splat expressions", detail).into());
                }
                Value::list(item, items)
            }
            _ => Value::tuple(items),
        };
        self.pay(result.with_marks(&marks))
    }
}

/// `value.name`
fn attribute_of(value: &Value, name: &str) -> Result<Value, Diagnostic> {
    let unsupported = |detail: String| Err(Diagnostic::new("Unsupported attribute", detail));
    if value.is_null() {
        let detail = "This value is null, so it does not have any attributes.";
        return Err(Diagnostic::new("Attempt to get attribute from null value", detail));
    }
    match &value.ty {
        Type::Object { attributes, .. } => match (attributes.get(name), value.get(name)) {
            (None, _) => unsupported(format!("This object does not have an attribute named {name:?}.")),
            (Some(_), Some(part)) => Ok(part.clone().with_marks(&value.marks)),
            (Some(ty), None) => Ok(Value::unknown(ty.clone()).with_marks(&value.marks)),
        },
        Type::Map(element) if !value.is_known() => Ok(Value::unknown((**element).clone()).with_marks(&value.marks)),
        Type::Map(_) => match value.get(name) {
            Some(part) => Ok(part.clone().with_marks(&value.marks)),
            None => Err(Diagnostic::new(
                "Missing map element",
                format!("This map does not have an element with the key {name:?}."),
            )),
        },
        Type::Dynamic => Ok(Value::unknown(Type::Dynamic).with_marks(&value.marks)),
        Type::List(element) if matches!(**element, Type::Object { .. }) => {
            let which =
                if element.attribute(name).is_some() { format!("attribute {name:?}") } else { "an attribute".into() };
            unsupported(format!(
                "Can't access attributes on a list of objects. Did you mean to access {which} for a specific element of \
                 the list, or across all elements of the list?"
            ))
        }
        Type::Set(element) if matches!(**element, Type::Object { .. }) => unsupported(
            "Can't access attributes on a set of objects. Did you mean to access an attribute across all elements of \
             the set?"
                .into(),
        ),
        ty if ty.is_primitive() => {
            unsupported(format!("Can't access attributes on a primitive-typed value ({}).", ty.friendly_name()))
        }
        _ => unsupported("This value does not have any attributes.".into()),
    }
}

/// `value[key]`
fn index_of(value: &Value, key: &Value) -> Result<Value, Diagnostic> {
    let invalid = |detail: &str| Diagnostic::new("Invalid index", detail);
    let no_element = |why: &str| {
        let why = if why.is_empty() { ".".to_owned() } else { format!(": {why}.") };
        invalid(&format!("The given key does not identify an element in this collection value{why}"))
    };
    if value.is_null() {
        let detail = "This value is null, so it does not have any indices.";
        return Err(Diagnostic::new("Attempt to index null value", detail));
    }
    if key.is_null() {
        return Err(invalid("Can't use a null value as an indexing key."));
    }
    let unknown = |ty: Type| Ok(Value::unknown(ty).with_marks(&value.marks));
    if key.ty == Type::Dynamic || value.ty == Type::Dynamic {
        return unknown(Type::Dynamic);
    }
    let with_marks = |part: Value| Ok(part.with_marks(&value.marks).with_marks(&key.marks));
    match &value.ty {
        Type::List(_) | Type::Tuple(_) => {
            let key = key.convert(&Type::Number).map_err(|error| no_element(&error.to_string()))?;
            let Some(number) = key.as_number() else {
                return unknown(value.ty.element().cloned().unwrap_or(Type::Dynamic));
            };
            let length = match &value.ty {
                Type::Tuple(types) => Some(types.len()),
                _ => value.known_length(),
            };
            let Some(length) = length else {
                return unknown(value.ty.element().cloned().unwrap_or(Type::Dynamic));
            };
            match number.to_usize() {
                Some(index) if index < length => match (value.at(index), &value.ty) {
                    (Some(part), _) => with_marks(part.clone()),
                    (None, Type::Tuple(types)) => with_marks(Value::unknown(types[index].clone())),
                    (None, _) => unreachable!("a known list has its elements"),
                },
                _ if !number.is_integer() => Err(no_element(
                    "indexing a sequence requires a whole number, but the given index has a fractional part",
                )),
                _ if number.is_negative() => Err(no_element("a negative number is not a valid index for a sequence")),
                // HCL only explains itself for the first index behind the end.
                Some(index) if index == length && length == 0 => Err(no_element("the collection has no elements")),
                Some(index) if index == length => {
                    Err(no_element("the given index is greater than or equal to the length of the collection"))
                }
                _ => Err(no_element("")),
            }
        }
        Type::Map(element) => {
            let key = key.convert(&Type::String).map_err(|error| no_element(&error.to_string()))?;
            match (key.as_str(), value.is_known()) {
                (Some(name), true) => match value.get(name) {
                    Some(part) => with_marks(part.clone()),
                    None => Err(no_element("")),
                },
                _ => unknown((**element).clone()),
            }
        }
        Type::Object { attributes, .. } => {
            let numeric = key.ty == Type::Number;
            let key = key.convert(&Type::String).map_err(|error| no_element(&error.to_string()))?;
            let (Some(name), true) = (key.as_str(), value.is_known()) else { return unknown(Type::Dynamic) };
            match value.get(name) {
                // The key's marks do not reach an attribute: this is what HCL does.
                Some(part) if attributes.contains_key(name) => Ok(part.clone().with_marks(&value.marks)),
                _ if numeric => Err(invalid(
                    "The given key does not identify an element in this collection value. An object only supports \
                     looking up attributes by name, not by numeric index.",
                )),
                _ => Err(no_element("")),
            }
        }
        Type::Set(_) => Err(invalid(
            "Elements of a set are identified only by their value and don't have any separate index or key to select \
             with, so it's only possible to perform operations across all elements of the set.",
        )),
        _ => Err(invalid("This value does not have any indices.")),
    }
}
