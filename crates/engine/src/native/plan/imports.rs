use std::collections::BTreeMap;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Expr, Import, ImportBy};
use landform_protocol::Schema;

use super::Planner;
use crate::native::config::{ResourceConfig, range, translate};
use crate::native::eval::{Each, Eval, Keys};
use crate::native::object::{Bound, ImportTarget, Outcome};
use crate::native::show::source_of;
use crate::{Address, Diagnostic, Key, Mode};

pub const NOT_CONFIGURED: &str = "Configuration for import target does not exist";

pub fn not_configured(address: &str) -> Diagnostic {
    let detail = format!(
        "The configuration for the given import {address} does not exist. All target instances must have an associated \
         configuration to be imported."
    );
    Diagnostic::error(NOT_CONFIGURED, detail)
}

impl Planner<'_> {
    /// `import` blocks about resources that nobody has declared.
    pub(super) fn imports_of_nothing(&self) -> Vec<Diagnostic> {
        let config = self.config();
        let unknown = config.root().imports.iter().filter(|import| config.import_target(0, import).is_none());
        let names = |import: &Import| import.to.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let place = |import: &Import| Some(range(import.range.clone()));
        unknown.map(|import| Diagnostic { range: place(import), ..not_configured(&names(import)) }).collect()
    }

    /// The objects that `import` blocks want to be taken over by a resource, with the names that they have.
    pub(super) async fn imports(&self, resource: &ResourceConfig) -> Outcome<BTreeMap<Address, ImportTarget>> {
        let (mut found, mut places) = (BTreeMap::new(), BTreeMap::new());
        // Nothing is taken over only to be destroyed.
        if self.mode == Mode::Destroy {
            return Ok(found);
        }
        for import in self.config().imports(resource) {
            let identity = match &import.by {
                ImportBy::Id(_) => None,
                ImportBy::Identity(expr) => {
                    let bound = self.session.blank(&resource.provider, self.config()).await?;
                    Some(identity_type(&bound, resource, expr)?)
                }
            };
            let keys = match &import.for_each {
                Some(expr) => self.eval.import_keys(expr)?,
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
                        ImportTarget::Identity(sound(identity, expr, "identity")?)
                    }
                };
                // A name that is empty is none: nothing is taken over.
                if !matches!(&name, ImportTarget::Id(id) if id.is_empty()) {
                    found.insert(address, name);
                }
            }
        }
        Ok(found)
    }

    fn id(&self, expr: &Expr, each: &Each) -> Outcome<ImportTarget> {
        let id = sound(convert(value(&self.eval, expr, each)?, &Type::String, expr)?, expr, "id")?;
        Ok(ImportTarget::Id(id.as_str().unwrap_or_default().to_owned()))
    }
}

/// What is wrong with the ids and identities of `import` blocks whatever the inputs are.
pub(super) fn check_identities(eval: &Eval<'_>, bound: &Bound, resource: &ResourceConfig) -> Outcome<()> {
    for import in eval.config.imports(resource) {
        let expr = match &import.by {
            ImportBy::Identity(expr) => expr,
            ImportBy::Id(expr) => {
                // What comes from the key of an import cannot be known yet.
                if let Some(for_each) = &import.for_each {
                    eval.import_keys(for_each)?;
                    continue;
                }
                sound_so_far(convert(value(eval, expr, &Each::Once)?, &Type::String, expr)?, expr, "id")?;
                continue;
            }
        };
        let ty = identity_type(bound, resource, expr)?;
        let keys = match &import.for_each {
            Some(expr) => eval.import_keys(expr)?,
            None => Keys::Once,
        };
        for (_, each) in keys.all() {
            sound_so_far(convert(value(eval, expr, &each)?, &ty, expr)?, expr, "identity")?;
        }
    }
    Ok(())
}

/// Of which type an identity is: only what an import needs has to be there.
fn identity_type(bound: &Bound, resource: &ResourceConfig, expr: &Expr) -> Outcome<Type> {
    let type_name = &resource.instance("", None).type_name;
    let Some(Schema { block, .. }) = bound.schema.identities.get(type_name) else {
        let detail = format!(
            "The provider {:?} does not provide an identity schema for the resource type {type_name:?}, which is required when \
             trying to import the resource {:?} using identity-based import. Please ensure the resource type supports \
             identity-based import.",
            source_of(&bound.address),
            resource.address
        );
        return Err(invalid("Unable to determine identity schema for import identity", &detail, expr));
    };
    let attributes = block.attributes.iter().map(|(name, attribute)| (name.clone(), attribute.implied_type()));
    let optional = block.attributes.iter().filter(|(_, attribute)| attribute.optional).map(|(name, _)| name.clone());
    Ok(Type::object_with_optional(attributes.collect(), optional.collect()))
}

/// An id or an identity that an object can be asked for by.
fn sound(value: Value, expr: &Expr, name: &str) -> Outcome<Value> {
    let marks = value.clone().unmark_deep().1;
    let problem = if value.is_null() {
        format!("The import {name} cannot be null.")
    } else if !value.is_wholly_known() {
        format!(
            "The import block {name:?} argument depends on resource attributes that cannot be determined until apply, so \
             OpenTofu cannot plan to import this resource."
        )
    } else if marks.contains(&Mark::Sensitive) {
        format!("The import {name} cannot be sensitive.")
    } else if marks.contains(&Mark::Ephemeral) {
        format!("The import {name} cannot be ephemeral.")
    } else {
        return Ok(value);
    };
    Err(invalid(&format!("Invalid import {name} argument"), &problem, expr))
}

/// The same as far as is known.
fn sound_so_far(value: Value, expr: &Expr, name: &str) -> Outcome<()> {
    if value.is_wholly_known() { sound(value, expr, name).map(drop) } else { Ok(()) }
}

fn convert(value: Value, ty: &Type, expr: &Expr) -> Outcome<Value> {
    let wrong = |detail: String| invalid("Incorrect value type", &detail, expr);
    value.convert(ty).map_err(|error| wrong(format!("Invalid expression value: {}.", error.message)))
}

fn value(eval: &Eval<'_>, expr: &Expr, each: &Each) -> Outcome<Value> {
    let values = eval.values();
    eval.root_scope(&values, each).evaluate(expr)
}

fn key_of_target(key: &Value) -> Result<Key, &'static str> {
    if !key.is_known() {
        return Err(
            "that will only be known after apply. Please ensure to use expressions that are known at plan time for the \
                    index of an import target address",
        );
    }
    if key.is_null() {
        return Err("which is null. Please ensure the expression for the index is not null");
    }
    if key.contains_mark(Mark::Sensitive) {
        return Err(
            "which is sensitive. Please ensure indexes used in the resource address of an import target are not \
                    sensitive",
        );
    }
    if key.contains_mark(Mark::Ephemeral) {
        return Err(
            "which is ephemeral. Please ensure indexes used in the resource address of an import target are not \
                    ephemeral",
        );
    }
    let index = key.as_number().and_then(|number| number.to_string().parse().ok());
    key.as_str().map(|name| Key::Name(name.to_owned())).or(index.map(Key::Index)).ok_or(
        "which is not valid for a resource instance (not a string or a number). Please ensure the expression for the index is \
         correct, and returns either a string or a number",
    )
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
        let key = key_of_target(&value(eval, expr, each)?).map_err(|detail| {
            let detail = format!("Import block contained a resource address using an index {detail}");
            invalid("Import block 'to' address contains an invalid key", &detail, expr)
        })?;
        text.push_str(&format!("[{key}]"));
    }
    Address::parse(&text).ok_or_else(|| invalid("Invalid import address expression", &text, import.by.expr()))
}

fn invalid(summary: &str, detail: &str, expr: &Expr) -> Vec<Diagnostic> {
    vec![Diagnostic { range: Some(range(expr.range())), ..Diagnostic::error(summary, detail) }]
}
