//! What a configuration says about parts of objects, held against the providers' schemas: a part that no object of the type
//! can have is a mistake, whatever the values will be and whether or not they are ever asked for.

use landform_cty::{Step, Type};
use landform_lang::{IgnoreChanges, Reference, did_you_mean};
use landform_protocol::{Attribute, Block, Nesting, Schema};

use super::{Config, ModuleId, ResourceConfig, range};
use crate::native::change::{attribute_at, path_text};
use crate::native::show::{Schemas, source_of};
use crate::{Diagnostic, Severity};

impl Config {
    /// Parts that are mentioned and cannot be there.
    pub fn missing_parts(&self, schemas: &Schemas) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut note = |block: &Block, path: &[Step], at: &landform_lang::SourceRange| {
            let problem = missing_part(block, path);
            found.extend(problem.map(|problem| Diagnostic { range: Some(range(at.clone())), ..problem }));
        };
        for (id, node) in self.modules.iter().enumerate() {
            for (mention, at) in &node.module.mentions {
                if let Some(schema) = self.mentioned(id, &mention.reference).and_then(|one| schema_of(one, schemas)) {
                    note(&schema.block, &mention.path, at);
                }
            }
        }
        for resource in &self.resources {
            let Some(schema) = schema_of(resource, schemas) else { continue };
            if let IgnoreChanges::Paths(paths) = &self.block(resource).lifecycle.ignore_changes {
                paths.iter().for_each(|(path, at)| note(&schema.block, path, at));
            }
        }
        found
    }

    /// Parts that are ignored for nothing: only the provider decides about them.
    pub fn ignored_in_vain(&self, schemas: &Schemas) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for resource in &self.resources {
            let block = self.block(resource);
            let (Some(schema), IgnoreChanges::Paths(paths)) =
                (schema_of(resource, schemas), &block.lifecycle.ignore_changes)
            else {
                continue;
            };
            for (path, _) in paths {
                let decided = |attribute: &&Attribute| attribute.computed && !attribute.optional;
                if attribute_at(&schema.block, path).filter(decided).is_none() {
                    continue;
                }
                let detail = format!(
                    "Adding an attribute name to ignore_changes tells OpenTofu to ignore future changes to the argument in \
                     configuration after the object has been created, retaining the value originally configured.\n\nThe \
                     attribute {} is decided by the provider alone and therefore there can be no configured value to compare \
                     with. Including this attribute in ignore_changes has no effect. Remove the attribute from \
                     ignore_changes to quiet this warning.",
                    path_text(path).trim_start_matches('.')
                );
                warnings.push(Diagnostic {
                    severity: Severity::Warning,
                    range: Some(range(block.range.clone())),
                    address: Some(resource.address.clone()),
                    ..Diagnostic::error("Redundant ignore_changes element", detail)
                });
            }
        }
        warnings
    }

    fn mentioned(&self, id: ModuleId, reference: &Reference) -> Option<&ResourceConfig> {
        let is_resource = matches!(reference, Reference::Resource { .. } | Reference::Data { .. });
        let at = self.by_address.get(&self.absolute(id, &reference.to_string())).filter(|_| is_resource)?;
        Some(&self.resources[*at])
    }
}

fn schema_of<'s>(resource: &ResourceConfig, schemas: &'s Schemas) -> Option<&'s Schema> {
    let same = |address: &&String| source_of(address) == source_of(&resource.provider);
    let schema = schemas.get(schemas.keys().find(same)?)?;
    let types = if resource.data { &schema.data_sources } else { &schema.resources };
    types.get(&resource.type_name)
}

/// What is wrong with a path into an object of this block. Where that cannot be told, evaluating it will tell.
fn missing_part(block: &Block, path: &[Step]) -> Option<Diagnostic> {
    let (step, rest) = path.split_first()?;
    let (Step::Attribute(name) | Step::Key(name)) = step else { return None };
    if let Some(attribute) = block.attributes.get(name) {
        return missing_in_value(&attribute.implied_type(), rest);
    }
    match block.blocks.get(name) {
        Some(nested) if matches!(nested.nesting, Nesting::Single | Nesting::Group) => missing_part(&nested.block, rest),
        Some(nested) => match rest {
            [Step::Index(_) | Step::Key(_), rest @ ..] if nested.nesting != Nesting::Set => {
                missing_part(&nested.block, rest)
            }
            _ => None,
        },
        None => {
            let names = block.attributes.keys().chain(block.blocks.keys()).map(String::as_str);
            let detail = format!(
                "This object has no argument, nested block, or exported attribute named {name:?}.{}",
                did_you_mean(name, names)
            );
            Some(Diagnostic::error("Unsupported attribute", detail))
        }
    }
}

fn missing_in_value(ty: &Type, path: &[Step]) -> Option<Diagnostic> {
    let (step, rest) = path.split_first()?;
    match (ty, step) {
        (Type::String | Type::Number | Type::Bool, Step::Attribute(_)) => {
            let kind = ty.friendly_name();
            let detail = format!("Can't access attributes on a primitive-typed value ({kind}).");
            Some(Diagnostic::error("Unsupported attribute", detail))
        }
        (Type::String | Type::Number | Type::Bool, _) => {
            Some(Diagnostic::error("Invalid index", "This value does not have any indices."))
        }
        (Type::List(element), Step::Index(_)) | (Type::Map(element), Step::Key(_) | Step::Attribute(_)) => {
            missing_in_value(element, rest)
        }
        (Type::Object { attributes, .. }, Step::Attribute(name) | Step::Key(name)) => match attributes.get(name) {
            Some(attribute) => missing_in_value(attribute, rest),
            None => {
                let detail = format!("This object does not have an attribute named {name:?}.");
                Some(Diagnostic::error("Unsupported attribute", detail))
            }
        },
        _ => None,
    }
}
