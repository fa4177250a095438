use std::collections::BTreeMap;

use landform_cty::{Type, Value};
use landform_protocol::{Attribute, AttributeKind, Block, NestedBlock, Nesting};

use super::{Fields, part, unrefined};

/// What the object would be if the provider had no say: the configuration where it says something, the prior value for
/// computed attributes that the configuration leaves open, and nested objects matched with their prior selves.
/// Both values are without marks and of the block's type.
pub fn proposed_new(block: &Block, prior: &Value, config: &Value) -> Value {
    match (prior.is_null(), config.is_null()) {
        (true, true) => prior.clone(),
        (true, false) => proposed_object(block, &empty_object(block), config),
        (false, _) => proposed_object(block, prior, config),
    }
}

/// What a data source will be once it is read: its configuration, and unknown where the provider has the say.
pub fn planned_data(block: &Block, config: &Value) -> Value {
    proposed_new(block, &unknown_object(block), config)
}

/// An object of which nothing is known but that it is there.
fn unknown_object(block: &Block) -> Value {
    let attributes =
        block.attributes.iter().map(|(name, attribute)| (name.clone(), Value::unknown(attribute.implied_type())));
    let blocks = block.blocks.iter().map(|(name, nested)| {
        let ty = block.implied_type().attribute(name).cloned().unwrap_or(Type::Dynamic);
        let unknown = match nested.nesting {
            Nesting::Single | Nesting::Group => unknown_object(&nested.block),
            _ => Value::unknown(ty),
        };
        (name.clone(), unknown)
    });
    Value::object(attributes.chain(blocks))
}

/// What an empty block in the configuration means: nothing set, no nested blocks.
pub fn empty_object(block: &Block) -> Value {
    let attributes =
        block.attributes.iter().map(|(name, attribute)| (name.clone(), Value::null(attribute.implied_type())));
    let blocks = block.blocks.iter().map(|(name, nested)| (name.clone(), empty_block(nested)));
    Value::object(attributes.chain(blocks))
}

pub(super) fn empty_block(nested: &NestedBlock) -> Value {
    let ty = nested.block.implied_type();
    match nested.nesting {
        Nesting::Single => Value::null(ty),
        Nesting::Group => empty_object(&nested.block),
        Nesting::List if ty.has_dynamic() => Value::tuple(Vec::new()),
        Nesting::List => Value::list(ty, Vec::new()),
        Nesting::Set => Value::set(ty, Vec::new()),
        Nesting::Map if ty.has_dynamic() => Value::object(Vec::<(String, Value)>::new()),
        Nesting::Map => Value::map(ty, Vec::<(String, Value)>::new()),
    }
}

fn proposed_object(block: &Block, prior: &Value, config: &Value) -> Value {
    if config.is_null() || !config.is_known() {
        return prior.clone();
    }
    let mut fields = proposed_attributes(&block.attributes, prior, config);
    for (name, nested) in &block.blocks {
        fields.insert(name.clone(), proposed_block(nested, &part(prior, name), &part(config, name)));
    }
    Value::object(fields)
}

fn proposed_attributes(
    attributes: &BTreeMap<String, Attribute>,
    prior: &Value,
    config: &Value,
) -> BTreeMap<String, Value> {
    let propose = |(name, attribute): (&String, &Attribute)| {
        let (prior, config) = (part(prior, name), part(config, name));
        let value = match &attribute.kind {
            _ if attribute.computed && config.is_null() => {
                if came_from_config(attribute, &prior) {
                    config.into_owned()
                } else {
                    prior.into_owned()
                }
            }
            AttributeKind::Nested { nesting, attributes } => {
                proposed_nested(*nesting, Fields::Attributes(attributes), &prior, &config)
            }
            AttributeKind::Plain(_) => config.into_owned(),
        };
        (name.clone(), value)
    };
    attributes.iter().map(propose).collect()
}

/// Whether an optional and computed nested attribute holds something that only a configuration can have set; then its
/// disappearance from the configuration means that it is to go.
fn came_from_config(attribute: &Attribute, prior: &Value) -> bool {
    let AttributeKind::Nested { attributes, .. } = &attribute.kind else { return false };
    if !attribute.optional {
        return false;
    }
    let mut found = false;
    prior.walk(&mut |path, value| {
        if found || value.is_null() {
            return !found;
        }
        found = Fields::Attributes(attributes).attribute(path).is_some_and(|inner| !inner.computed);
        !found
    });
    found
}

fn proposed_block(nested: &NestedBlock, prior: &Value, config: &Value) -> Value {
    proposed_nested(nested.nesting, Fields::Block(&nested.block), prior, config)
}

fn proposed_nested(nesting: Nesting, fields: Fields<'_>, prior: &Value, config: &Value) -> Value {
    if !config.is_known() {
        return config.clone();
    }
    match nesting {
        Nesting::Single if config.is_null() => config.clone(),
        Nesting::Single | Nesting::Group => proposed_element(fields, prior, config),
        Nesting::List => proposed_list(fields, prior, config),
        Nesting::Map => proposed_map(fields, prior, config),
        Nesting::Set => proposed_set(fields, prior, config),
    }
}

fn proposed_element(fields: Fields<'_>, prior: &Value, config: &Value) -> Value {
    match fields {
        Fields::Block(block) => proposed_new(block, prior, config),
        Fields::Attributes(_) if config.is_null() => config.clone(),
        Fields::Attributes(attributes) => Value::object(proposed_attributes(attributes, prior, config)),
    }
}

/// Elements are matched by their place.
fn proposed_list(fields: Fields<'_>, prior: &Value, config: &Value) -> Value {
    let Some(elements) = config.as_sequence().filter(|elements| !elements.is_empty()) else { return config.clone() };
    let propose = |(index, config): (usize, &Value)| match prior.at(index) {
        Some(prior) => proposed_element(fields, prior, config),
        None => config.clone(),
    };
    let elements: Vec<Value> = elements.iter().enumerate().map(propose).collect();
    match &config.ty {
        Type::Tuple(_) => Value::tuple(elements),
        _ => Value::list(element_type(&config.ty), elements),
    }
}

fn proposed_map(fields: Fields<'_>, prior: &Value, config: &Value) -> Value {
    let Some(elements) = config.as_mapping().filter(|elements| !elements.is_empty()) else { return config.clone() };
    let propose = |(key, config): (&String, &Value)| {
        let value = match prior.get(key) {
            Some(prior) => proposed_element(fields, prior, config),
            None => config.clone(),
        };
        (key.clone(), value)
    };
    let elements: Vec<(String, Value)> = elements.iter().map(propose).collect();
    match &config.ty {
        Type::Object { .. } => Value::object(elements),
        _ => Value::map(element_type(&config.ty), elements),
    }
}

/// Elements of a set have no names: each is matched with the first unused prior element that it could have become.
fn proposed_set(fields: Fields<'_>, prior: &Value, config: &Value) -> Value {
    let Some(elements) = config.as_sequence().filter(|elements| !elements.is_empty()) else { return config.clone() };
    let mut unused: Vec<&Value> = prior.as_sequence().unwrap_or_default().iter().collect();
    let mut propose = |config: &Value| {
        let found = unused.iter().position(|prior| could_have_become(fields, prior, config));
        let prior = match found {
            Some(at) => unused.remove(at).clone(),
            None => Value::null(config.ty.clone()),
        };
        proposed_element(fields, &prior, config)
    };
    let elements = elements.iter().map(&mut propose).collect();
    Value::set(element_type(&config.ty), elements)
}

/// Whether `prior` differs from `config` in nothing but computed values that the configuration leaves open.
fn could_have_become(fields: Fields<'_>, prior: &Value, config: &Value) -> bool {
    let config = unrefined(config);
    let mut possible = true;
    unrefined(prior).walk(&mut |path, prior| {
        if !possible {
            return false;
        }
        let Some(config) = config.at_path(path) else {
            possible = false;
            return false;
        };
        if config == prior {
            return false;
        }
        if matches!(config.ty, Type::Set(_)) {
            possible = false;
            return false;
        }
        match fields.attribute(path) {
            None => true,
            Some(Attribute { kind: AttributeKind::Nested { .. }, .. }) => true,
            Some(attribute) => {
                possible = attribute.computed && config.is_null();
                false
            }
        }
    });
    possible
}

fn element_type(ty: &Type) -> Type {
    ty.element().cloned().unwrap_or(Type::Dynamic)
}

#[cfg(test)]
mod tests {
    use landform_cty::Data;

    use super::*;

    fn attribute(ty: Type, optional: bool, computed: bool) -> Attribute {
        Attribute {
            kind: AttributeKind::Plain(ty),
            required: !optional && !computed,
            optional,
            computed,
            sensitive: false,
            write_only: false,
            description: String::new(),
            deprecated: None,
        }
    }

    fn block_with(nesting: Nesting) -> Block {
        let inner = Block {
            attributes: [
                ("name".to_owned(), attribute(Type::String, true, false)),
                ("id".to_owned(), attribute(Type::String, true, true)),
            ]
            .into(),
            ..Block::default()
        };
        let rule = NestedBlock { nesting, block: inner.clone(), min_items: 0, max_items: 0 };
        Block { attributes: inner.attributes, blocks: [("rule".to_owned(), rule)].into(), ..Block::default() }
    }

    fn element(name: &str, id: Option<&str>) -> Value {
        let id = id.map_or(Value::null(Type::String), Value::from);
        Value::object([("name", Value::from(name)), ("id", id)])
    }

    fn object(name: &str, id: Option<&str>, rules: Value) -> Value {
        Value::object([
            ("name", Value::from(name)),
            ("id", id.map_or(Value::null(Type::String), Value::from)),
            ("rule", rules),
        ])
    }

    fn set(elements: Vec<Value>) -> Value {
        Value::set(elements[0].ty.clone(), elements)
    }

    fn list(elements: Vec<Value>) -> Value {
        Value::list(elements[0].ty.clone(), elements)
    }

    #[test]
    fn computed_values_survive_what_the_configuration_leaves_open() {
        let block = block_with(Nesting::List);
        let prior = object("old", Some("1"), list(vec![element("a", Some("x")), element("b", Some("y"))]));
        let config = object("new", None, list(vec![element("a2", None)]));
        let want = object("new", Some("1"), list(vec![element("a2", Some("x"))]));
        assert_eq!(proposed_new(&block, &prior, &config), want);
    }

    #[test]
    fn set_elements_find_their_prior_selves_by_what_was_configured() {
        let block = block_with(Nesting::Set);
        let prior = object("n", Some("1"), set(vec![element("a", Some("x")), element("b", Some("y"))]));
        let config = object("n", None, set(vec![element("b", None), element("c", None)]));
        let want = object("n", Some("1"), set(vec![element("b", Some("y")), element("c", None)]));
        assert_eq!(proposed_new(&block, &prior, &config), want);
    }

    #[test]
    fn a_new_object_is_its_configuration() {
        let block = block_with(Nesting::Set);
        let config = object("n", None, set(vec![element("b", None)]));
        assert_eq!(proposed_new(&block, &Value::null(block.implied_type()), &config), config);
        let nothing = Value::null(block.implied_type());
        assert_eq!(proposed_new(&block, &nothing, &nothing), nothing);
    }

    #[test]
    fn an_unknown_collection_is_proposed_as_it_is() {
        let block = block_with(Nesting::List);
        let prior = object("n", Some("1"), list(vec![element("a", Some("x"))]));
        let unknown = Value::unknown(prior.get("rule").unwrap().ty.clone());
        let proposed = proposed_new(&block, &prior, &object("n", None, unknown.clone()));
        assert_eq!(proposed.get("rule"), Some(&unknown));
        assert!(matches!(proposed.get("rule").unwrap().data, Data::Unknown(_)));
    }
}
