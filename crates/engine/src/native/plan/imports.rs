use std::collections::BTreeMap;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Expr, Import, ImportBy, Repetition};
use landform_protocol::Schema;

use super::Planner;
use crate::native::config::{ResourceConfig, range, translate};
use crate::native::eval::{Each, Eval, Keys};
use crate::native::object::{Bound, ImportTarget, Outcome};
use crate::{Address, Diagnostic, Key};

pub fn not_configured(address: &str) -> Diagnostic {
    let detail = format!(
        "The configuration for the given import {address} does not exist. All target instances must have an associated \
         configuration to be imported."
    );
    Diagnostic::error("Configuration for import target does not exist", detail)
}

impl Planner<'_> {
    /// `import` blocks about resources that nobody has declared.
    pub(super) fn imports_of_nothing(&self) -> Vec<Diagnostic> {
        let config = self.config();
        let unknown = config.root().imports.iter().filter(|import| config.import_target(0, import).is_none());
        let names = |import: &Import| import.to.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        unknown.map(|import| not_configured(&names(import))).collect()
    }

    /// The objects that `import` blocks want to be taken over by a resource, with the names that they have.
    pub(super) async fn imports(&self, resource: &ResourceConfig) -> Outcome<BTreeMap<Address, ImportTarget>> {
        let (mut found, mut places) = (BTreeMap::new(), BTreeMap::new());
        for import in self.config().imports(resource) {
            let identity = match &import.by {
                ImportBy::Id(_) => None,
                ImportBy::Identity(expr) => {
                    let bound = self.session.bound(&resource.provider, &self.eval).await?;
                    Some(identity_type(&bound, resource, expr)?)
                }
            };
            let keys = match &import.for_each {
                Some(expr) => self.eval.root_keys(&Repetition::ForEach(expr.clone()))?,
                None => Keys::Once,
            };
            for (_, each) in keys.all() {
                let address = target(&self.eval, import, &each)?;
                if let Some(other) = places.insert(address.clone(), &import.range) {
                    let problem = landform_lang::Diagnostic::duplicate_import(&address.to_string(), other);
                    return Err(translate(problem.at(import.range.clone()).into()));
                }
                let name = match &identity {
                    None => self.id(import.by.expr(), &each)?,
                    Some(ty) => {
                        let expr = import.by.expr();
                        let identity = convert(value(&self.eval, expr, &each)?, ty, expr)?;
                        ImportTarget::Identity(sound(identity, expr)?)
                    }
                };
                found.insert(address, name);
            }
        }
        Ok(found)
    }

    fn id(&self, expr: &Expr, each: &Each) -> Outcome<ImportTarget> {
        let id = sound_id(value(&self.eval, expr, each)?, expr)?;
        id.as_str().map(str::to_owned).filter(|id| !id.is_empty()).map(ImportTarget::Id).ok_or_else(|| {
            let detail = "The import ID must be a known string that is not empty.";
            invalid("Invalid import id argument", detail, expr)
        })
    }
}

/// What is wrong with the ids and identities of `import` blocks whatever the inputs are.
pub(super) fn check_identities(eval: &Eval<'_>, bound: &Bound, resource: &ResourceConfig) -> Outcome<()> {
    for import in eval.config.imports(resource) {
        let expr = match &import.by {
            ImportBy::Identity(expr) => expr,
            // What comes from the key of an import cannot be known yet.
            ImportBy::Id(_) if import.for_each.is_some() => continue,
            ImportBy::Id(expr) => {
                sound_id(value(eval, expr, &Each::Once)?, expr)?;
                continue;
            }
        };
        let ty = identity_type(bound, resource, expr)?;
        let keys = match &import.for_each {
            Some(expr) => eval.root_keys(&Repetition::ForEach(expr.clone()))?,
            None => Keys::Once,
        };
        for (_, each) in keys.all() {
            let identity = convert(value(eval, expr, &each)?, &ty, expr)?;
            if identity.is_wholly_known() {
                sound(identity, expr)?;
            }
        }
    }
    Ok(())
}

/// Of which type an identity is: only what an import needs has to be there.
fn identity_type(bound: &Bound, resource: &ResourceConfig, expr: &Expr) -> Outcome<Type> {
    let type_name = &resource.instance("", None).type_name;
    let Some(Schema { block, .. }) = bound.schema.identities.get(type_name) else {
        let detail = format!(
            "The provider {} has no identity for the resource type {type_name:?}, so its objects cannot be imported by one.",
            bound.address
        );
        return Err(invalid("Unable to determine identity schema for import identity", &detail, expr));
    };
    let attributes = block.attributes.iter().map(|(name, attribute)| (name.clone(), attribute.implied_type()));
    let optional = block.attributes.iter().filter(|(_, attribute)| attribute.optional).map(|(name, _)| name.clone());
    Ok(Type::object_with_optional(attributes.collect(), optional.collect()))
}

/// An id that an object can be asked for by, as far as is known.
fn sound_id(id: Value, expr: &Expr) -> Outcome<Value> {
    let wrong = |detail: String| invalid("Incorrect value type", &detail, expr);
    let id =
        id.convert(&Type::String).map_err(|error| wrong(format!("Invalid expression value: {}.", error.message)))?;
    let problem = if id.is_null() {
        "null"
    } else if id.contains_mark(Mark::Sensitive) {
        "sensitive"
    } else if id.contains_mark(Mark::Ephemeral) {
        "ephemeral"
    } else {
        return Ok(id);
    };
    Err(invalid("Invalid import id argument", &format!("The import ID cannot be {problem}."), expr))
}

/// An identity that an object can be asked for by.
fn sound(identity: Value, expr: &Expr) -> Outcome<Value> {
    let marks = identity.clone().unmark_deep().1;
    let problem = if !identity.is_wholly_known() {
        "depends on resource attributes that cannot be determined until apply"
    } else if marks.contains(&Mark::Sensitive) {
        "cannot be sensitive"
    } else if marks.contains(&Mark::Ephemeral) {
        "cannot be ephemeral"
    } else {
        return Ok(identity);
    };
    Err(invalid("Invalid import identity argument", &format!("The import identity {problem}."), expr))
}

fn convert(value: Value, ty: &Type, expr: &Expr) -> Outcome<Value> {
    let wrong = |detail: String| invalid("Incorrect value type", &detail, expr);
    let value = value.convert(ty).map_err(|error| wrong(format!("Invalid expression value: {}.", error.message)))?;
    if value.is_null() {
        return Err(invalid("Invalid import identity argument", "The import identity cannot be null.", expr));
    }
    Ok(value)
}

fn value(eval: &Eval<'_>, expr: &Expr, each: &Each) -> Outcome<Value> {
    let values = eval.values();
    eval.root_scope(&values, each).evaluate(expr)
}

/// The address of the object that is to be taken over.
fn target(eval: &Eval<'_>, import: &Import, each: &Each) -> Outcome<Address> {
    let mut text = String::new();
    for (name, key) in &import.to {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(name);
        let Some(expr) = key else { continue };
        let key = value(eval, expr, each)?;
        let key = match (key.as_str(), key.as_number().and_then(|number| number.to_string().parse().ok())) {
            (Some(name), _) => Key::Name(name.to_owned()),
            (None, Some(index)) => Key::Index(index),
            (None, None) => {
                let detail = "The key of an import's target must be a known string or number.";
                return Err(invalid("Invalid import address expression", detail, expr));
            }
        };
        text.push_str(&format!("[{key}]"));
    }
    Address::parse(&text).ok_or_else(|| invalid("Invalid import address expression", &text, import.by.expr()))
}

fn invalid(summary: &str, detail: &str, expr: &Expr) -> Vec<Diagnostic> {
    vec![Diagnostic { range: Some(range(expr.range())), ..Diagnostic::error(summary, detail) }]
}
