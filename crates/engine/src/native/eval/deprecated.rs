//! Values from what should not be used any longer: an attribute that its provider calls deprecated, or an output that its
//! module does. OpenTofu warns of each expression that such a value comes out of, and the value is like any other from
//! there on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use landform_cty::{Mark, Marks, Path, Step, Value};
use landform_lang::SourceRange;
use landform_protocol::{Attribute, AttributeKind, Block, ProviderSchema};

use crate::native::change::{each_part, mark_existing, path_text};
use crate::native::config::{Config, ResourceConfig, range};
use crate::{Address, Diagnostic, Severity};

pub const DERIVED: &str = "Value derived from a deprecated source";

/// What is deprecated in one pass over a configuration, and what has been said of it.
#[derive(Default)]
pub struct Deprecations {
    /// The resources of the configuration that are known, by address; with the schema, where it has a deprecated part.
    resources: RwLock<HashMap<String, Option<Arc<ProviderSchema>>>>,
    causes: Mutex<Causes>,
    found: Mutex<Vec<Diagnostic>>,
}

#[derive(Default)]
struct Causes {
    numbers: HashMap<String, u32>,
    /// What is deprecated, and what to do instead; by the number in the mark.
    all: Vec<(String, String)>,
}

impl Deprecations {
    /// Takes note of what a provider says of a resource.
    pub fn learn(&self, resource: &ResourceConfig, schema: &Arc<ProviderSchema>) {
        let known = |resources: &HashMap<String, _>| resources.contains_key(&resource.address);
        if known(&self.resources.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let old = block_of(schema, resource.data, &resource.type_name).is_some_and(in_block);
        let mut resources = self.resources.write().unwrap_or_else(PoisonError::into_inner);
        resources.insert(resource.address.clone(), old.then(|| schema.clone()));
    }

    /// The value of an object with the marks of what is deprecated of it.
    pub fn mark_object(&self, config: &Config, address: &Address, value: Value) -> Value {
        let resources = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        let schema = config.resource(address).and_then(|own| resources.get(&own.address)?.as_ref());
        let Some(block) = schema.and_then(|schema| block_of(schema, address.data, &address.type_name)) else {
            return value;
        };
        let mut places = Vec::new();
        collect_block(block, &value, &Path::new(), &mut places);
        let local = Address { module: String::new(), key: None, ..address.clone() }.to_string();
        let mark = |(path, instead): (Path, String)| {
            let number = self.number(format!("{local}{}", path_text(&path)), &instead);
            (path, Marks::from([Mark::Deprecated(number)]))
        };
        mark_existing(value, &places.into_iter().map(mark).collect::<Vec<_>>())
    }

    /// The value of something that has this name and should not be used, for this reason.
    pub fn mark(&self, value: Value, name: String, reason: &str) -> Value {
        value.with_mark(Mark::Deprecated(self.number(name, reason)))
    }

    fn number(&self, name: String, reason: &str) -> u32 {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = causes.numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(causes.all.len()).expect("a configuration has fewer names than that");
        causes.numbers.insert(name.clone(), number);
        causes.all.push((name, reason.to_owned()));
        number
    }

    /// What came out of an expression. It is warned of what it comes from, and has no such marks any longer.
    pub fn heard(&self, value: Value, place: impl Fn(&Path) -> SourceRange, whole: bool) -> Value {
        let causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        if causes.all.is_empty() {
            return value;
        }
        let (value, marked) = value.without_deprecations();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, number) in marked {
            let (name, reason) = &causes.all[number as usize];
            let this = match path_text(&path).trim_start_matches('.') {
                "" => "This value".to_owned(),
                _ if !whole => "This value".to_owned(),
                part => format!("This value's attribute {part}"),
            };
            let detail = match reason.as_str() {
                "" => format!("{this} is derived from {name}, which is deprecated."),
                reason => {
                    format!(
                        "{this} is derived from {name}, which is deprecated with the following message:\n\n{reason}"
                    )
                }
            };
            let warning = Diagnostic {
                severity: Severity::Warning,
                range: Some(range(place(&path))),
                ..Diagnostic::error(DERIVED, detail)
            };
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
        value
    }

    /// Evaluates something of which nobody is to hear.
    pub fn quietly<T>(&self, evaluate: impl FnOnce() -> T) -> T {
        let said = self.take();
        let outcome = evaluate();
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = said;
        outcome
    }

    pub fn take(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn block_of<'s>(schema: &'s ProviderSchema, data: bool, type_name: &str) -> Option<&'s Block> {
    let types = if data { &schema.data_sources } else { &schema.resources };
    types.get(type_name).map(|schema| &schema.block)
}

/// Whether a block of this schema has a deprecated part.
pub fn in_block(block: &Block) -> bool {
    block.deprecated.is_some()
        || block.attributes.values().any(in_attribute)
        || block.blocks.values().any(|nested| in_block(&nested.block))
}

fn in_attribute(attribute: &Attribute) -> bool {
    let inside = |attributes: &std::collections::BTreeMap<String, Attribute>| attributes.values().any(in_attribute);
    attribute.deprecated.is_some()
        || matches!(&attribute.kind, AttributeKind::Nested { attributes, .. } if inside(attributes))
}

fn collect_block(block: &Block, value: &Value, path: &[Step], places: &mut Vec<(Path, String)>) {
    if let Some(instead) = &block.deprecated {
        places.push((path.to_vec(), instead.clone()));
    }
    collect_attributes(&block.attributes, value, path, places);
    for (name, nested) in block.blocks.iter().filter(|(_, nested)| in_block(&nested.block)) {
        let Some(inner) = value.get(name) else { continue };
        each_part(nested.nesting, inner, path, name, &mut |object, path| {
            collect_block(&nested.block, object, path, places);
        });
    }
}

fn collect_attributes(
    attributes: &std::collections::BTreeMap<String, Attribute>,
    value: &Value,
    path: &[Step],
    places: &mut Vec<(Path, String)>,
) {
    for (name, attribute) in attributes.iter().filter(|(_, attribute)| in_attribute(attribute)) {
        if let Some(instead) = &attribute.deprecated {
            places.push(([path, &[Step::Attribute(name.clone())]].concat(), instead.clone()));
            continue;
        }
        if let (AttributeKind::Nested { nesting, attributes }, Some(inner)) = (&attribute.kind, value.get(name)) {
            each_part(*nesting, inner, path, name, &mut |object, path| {
                collect_attributes(attributes, object, path, places);
            });
        }
    }
}
