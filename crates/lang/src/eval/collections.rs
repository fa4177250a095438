use std::collections::BTreeMap;

use hcl_edit::expr::{Expression, ForExpr, Object, ObjectKey};
use landform_cty::{Data, Marks, Type, Value};

use super::Evaluator;
use crate::diagnostics::Found;
use crate::{Diagnostic, Diagnostics};

impl Evaluator<'_> {
    pub(super) fn eval_object(&mut self, object: &Object) -> Result<Value, Diagnostics> {
        let (mut attributes, mut marks, mut found) = (BTreeMap::new(), Marks::new(), Found::default());
        let mut known = true;
        for (key, value) in object {
            let key = found.keep(self.eval_key(key))?;
            let Some(value) = found.keep(self.eval(value.expr()))? else { continue };
            let Some((key, key_marks)) = key else { continue };
            marks.extend(key_marks);
            match key.as_str() {
                Some(name) => {
                    attributes.insert(name.to_owned(), value);
                }
                None => known = false,
            }
        }
        found.end()?;
        if !known {
            return Ok(Value::unknown(Type::Dynamic));
        }
        self.pay(Value::object(attributes).with_marks(&marks))
    }

    pub(super) fn eval_key(&mut self, key: &ObjectKey) -> Result<(Value, Marks), Diagnostics> {
        let key = match key {
            ObjectKey::Ident(name) => return Ok((Value::string(name.as_str()), Marks::new())),
            // Keywords are names where a name is expected.
            ObjectKey::Expression(Expression::Null(_)) => return Ok((Value::string("null"), Marks::new())),
            ObjectKey::Expression(key @ Expression::Traversal(_)) => {
                let detail = "If this expression is intended to be a reference, wrap it in parentheses. If it's \
                              instead intended as a literal name containing periods, wrap it in quotes to create a \
                              string literal.";
                return Err(Diagnostic::new("Ambiguous attribute key", detail).at(self.range(key)).into());
            }
            ObjectKey::Expression(key) => key,
        };
        let range = self.range(key);
        let key = self.eval(key)?;
        if key.is_null() {
            return Err(Diagnostic::new("Null value as key", "Can't use a null value as a key.").at(range).into());
        }
        let (key, marks) = key.unmark();
        let key = key.convert(&Type::String).map_err(|error| {
            Diagnostic::new("Incorrect key type", format!("Can't use this value as a key: {error}.")).at(range)
        })?;
        Ok((key, marks))
    }

    /// What a `for` goes through, each item with its key, and the marks of the whole; `None` as long as it is unknown.
    pub(super) fn items(&mut self, collection_expr: &Expression) -> Result<(Option<Items>, Marks), Diagnostics> {
        let collection = self.eval(collection_expr)?;
        let range = self.range(collection_expr);
        if collection.is_null() {
            let detail = "A null value cannot be used as the collection in a 'for' expression.";
            return Err(Diagnostic::new("Iteration over null value", detail).at(range).into());
        }
        // Nothing is known about it, not even whether it is marked.
        if collection.ty == Type::Dynamic {
            return Ok((None, Marks::new()));
        }
        if collection.ty.is_primitive() {
            let detail = format!(
                "A value of type {} cannot be used as the collection in a 'for' expression.",
                collection.ty.friendly_name()
            );
            return Err(Diagnostic::new("Iteration over non-iterable value", detail).at(range).into());
        }
        let (collection, marks) = collection.unmark();
        let items = match &collection.data {
            Data::Unknown(_) => return Ok((None, marks)),
            // A set's elements are their own keys.
            Data::Sequence(elements) if matches!(collection.ty, Type::Set(_)) => {
                elements.iter().map(|element| (element.clone(), element.clone())).collect::<Vec<_>>()
            }
            Data::Sequence(elements) => {
                elements.iter().enumerate().map(|(index, element)| (Value::number(index), element.clone())).collect()
            }
            Data::Mapping(elements) => {
                elements.iter().map(|(key, element)| (Value::string(key), element.clone())).collect()
            }
            _ => unreachable!("a known collection has elements"),
        };
        self.budget.spend_steps(items.len() as u64)?;
        Ok((Some(items), marks))
    }

    pub(super) fn eval_for(&mut self, for_expr: &ForExpr) -> Result<Value, Diagnostics> {
        let intro = &for_expr.intro;
        let (items, mut marks) = self.items(&intro.collection_expr)?;
        let Some(items) = items else {
            marks.extend(self.condition_marks(for_expr)?);
            return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
        };
        self.condition_marks(for_expr)?;
        let mut results = Results::default();
        for (key, value) in items {
            let bound = self.bound.len();
            if let Some(name) = &intro.key_var {
                self.bound.push((name.as_str().to_owned(), key));
            }
            self.bound.push((intro.value_var.as_str().to_owned(), value));
            let outcome = self.eval_for_item(for_expr, &mut marks, &mut results);
            self.bound.truncate(bound);
            outcome?;
        }
        let result = match results {
            _ if !results.known => Value::unknown(Type::Dynamic),
            Results { items, .. } if for_expr.key_expr.is_none() => Value::tuple(items),
            Results { groups, .. } if for_expr.grouping => {
                Value::object(groups.into_iter().map(|(key, values)| (key, Value::tuple(values))))
            }
            Results { groups, .. } => {
                Value::object(groups.into_iter().map(|(key, mut values)| (key, values.remove(0))))
            }
        };
        self.pay(result.with_marks(&marks))
    }

    /// One round. What is unknown about whether or where the item belongs makes the whole result unknown.
    fn eval_for_item(
        &mut self,
        for_expr: &ForExpr,
        marks: &mut Marks,
        results: &mut Results,
    ) -> Result<(), Diagnostics> {
        if let Some(condition) = &for_expr.cond {
            let include = self.eval(&condition.expr)?;
            let range = self.range(&condition.expr);
            let invalid = |detail: String| Diagnostic::new("Invalid 'for' condition", detail).at(range.clone());
            if include.is_null() {
                return Err(invalid("The value of the 'if' clause must not be null.".into()).into());
            }
            marks.extend(&include.marks);
            let include = include
                .convert(&Type::Bool)
                .map_err(|error| invalid(format!("The 'if' clause value is invalid: {error}.")))?;
            match include.as_bool() {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    results.known = false;
                    return Ok(());
                }
            }
        }
        let Some(key_expr) = &for_expr.key_expr else {
            results.items.push(self.eval(&for_expr.value_expr)?);
            return Ok(());
        };
        let range = self.range(key_expr);
        let key = self.eval(key_expr)?;
        if key.is_null() {
            let detail = "Key expression in 'for' expression must not produce a null value.";
            return Err(Diagnostic::new("Invalid object key", detail).at(range).into());
        }
        let (key, key_marks) = key.unmark();
        let is_secret = !key_marks.is_empty();
        marks.extend(key_marks);
        if !key.is_known() {
            results.known = false;
            return Ok(());
        }
        let key = key.convert(&Type::String).map_err(|error| {
            let detail = format!("The key expression produced an invalid result: {error}.");
            Diagnostic::new("Invalid object key", detail).at(range.clone())
        })?;
        let name = key.as_str().unwrap_or_default();
        let value = self.eval(&for_expr.value_expr)?;
        let group = results.groups.entry(name.to_owned()).or_default();
        if !group.is_empty() && !for_expr.grouping {
            let shown = if is_secret { "(sensitive value)".to_owned() } else { format!("{name:?}") };
            let detail = format!(
                "Two different items produced the key {shown} in this 'for' expression. If duplicates are expected, \
                 use the ellipsis (...) after the value expression to enable grouping by key."
            );
            return Err(Diagnostic::new("Duplicate object key", detail).at(range).into());
        }
        group.push(value);
        Ok(())
    }

    /// HCL tries the condition once with nothing known about the item, to find mistakes even in an empty collection.
    fn condition_marks(&mut self, for_expr: &ForExpr) -> Result<Marks, Diagnostics> {
        let Some(condition) = &for_expr.cond else { return Ok(Marks::new()) };
        let bound = self.bound.len();
        let names = for_expr.intro.key_var.iter().chain([&for_expr.intro.value_var]);
        self.bound.extend(names.map(|name| (name.as_str().to_owned(), Value::unknown(Type::Dynamic))));
        let result = self.eval(&condition.expr);
        self.bound.truncate(bound);
        let range = self.range(&condition.expr);
        let result = result?;
        if result.is_null() {
            let detail = "The value of the 'if' clause must not be null.";
            return Err(Diagnostic::new("Condition is null", detail).at(range).into());
        }
        result.convert(&Type::Bool).map_err(|error| {
            let detail = format!("The 'if' clause value is invalid: {error}.");
            Diagnostic::new("Invalid 'for' condition", detail).at(range)
        })?;
        Ok(result.marks)
    }
}

/// Keys and values.
pub(super) type Items = Vec<(Value, Value)>;

/// What the rounds of a `for` have yielded so far.
struct Results {
    known: bool,
    items: Vec<Value>,
    groups: BTreeMap<String, Vec<Value>>,
}

impl Default for Results {
    fn default() -> Results {
        Results { known: true, items: Vec::new(), groups: BTreeMap::new() }
    }
}
