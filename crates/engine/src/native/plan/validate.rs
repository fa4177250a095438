//! The first pass: what is wrong whatever the inputs are.

use std::collections::HashSet;

use futures::future::join_all;
use landform_cty::{Type, Value};
use landform_lang::Repetition;
use landform_protocol::Block;

use super::imports::check_identities;
use crate::native::change::{mark_existing, schema_marks};
use crate::native::config::{Config, Node, ResourceConfig, body_spec, range};
use crate::native::eval::{Eval, Keys, has_deprecated};
use crate::native::object::{Outcome, bare};
use crate::native::session::Session;
use crate::state::split_provider;
use crate::{Address, Diagnostic, SourceRange};

/// Asks every provider whether what the configuration says to it can be right, whatever the inputs are.
pub async fn validate(config: &Config, session: &Session<'_>) -> Vec<Diagnostic> {
    if let Some(missing) = config.missing_passed() {
        return vec![missing];
    }
    // Without its provider nothing can be said of a resource.
    let lost = config.resources().iter().filter(|own| !config.can_configure(&own.provider));
    let mut found: Vec<Diagnostic> = lost.map(|own| missing_provider(&own.address, &own.provider)).collect();
    if !found.is_empty() {
        return found;
    }
    let eval = Eval::blind(config);
    let mut failed: HashSet<usize> = HashSet::new();
    for wave in config.graph.waves() {
        let mut sound = Vec::new();
        for place in wave {
            let node = &config.graph.nodes()[place];
            let resource = config.resource_of(node);
            let mut outcome = match (node, resource) {
                _ if stands_on(&failed, place, config, session).await => Err(Vec::new()),
                (Node::Provider(address), _) => validate_provider(&eval, session, address).await,
                (_, Some(resource)) => expand_blind(&eval, session, resource).await,
                (_, None) => eval.node(node),
            };
            // A wrong repetition is no reason not to look at the rest of its block.
            let repetition = eval.take_problems();
            if !repetition.is_empty() {
                failed.insert(place);
                found.extend(repetition);
            }
            match (&mut outcome, resource) {
                (Ok(()), Some(resource)) => sound.push((place, resource)),
                (Ok(()), None) => {}
                (Err(problems), _) => {
                    failed.insert(place);
                    found.append(problems);
                }
            }
        }
        // Those of one wave do not stand on each other.
        let asked = sound.iter().map(|(_, resource)| validate_resource(&eval, session, resource));
        for ((place, _), outcome) in sound.iter().zip(join_all(asked).await) {
            if let Err(problems) = outcome {
                failed.insert(*place);
                found.extend(problems);
            }
        }
    }
    let schemas = session.schemas();
    session.warnings.add(config.ignored_in_vain(&schemas));
    session.warnings.add(eval.take_warnings());
    let seen = [config.problems(), config.missing_parts(&schemas)].concat();
    // What is wrong on its face is not evaluated by OpenTofu.
    let line = |one: &Diagnostic| one.range.as_ref().map(|range| (range.file.clone(), range.line));
    found.retain(|one| line(one).is_none() || !seen.iter().any(|other| line(other) == line(one)));
    without_repetition([seen, found].concat())
}

/// One mistake may be found by looking at the expression and by evaluating it.
pub(super) fn without_repetition(found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut unique: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        // With other values it is another mistake, for instance one of another instance.
        let alike = |other: &Diagnostic| {
            let (one, another) = (&other.seen.values, &diagnostic.seen.values);
            let values = one.is_empty() || another.is_empty() || one == another;
            // So it is with another object, and where there is something else to say of the same line.
            let addresses = (&other.address, &diagnostic.address);
            let objects = !matches!(addresses, (Some(one), Some(another)) if one != another);
            values && objects && other.detail == diagnostic.detail
        };
        let same = |other: &Diagnostic| {
            let placed = other.range.is_some() && alike(other);
            other == &diagnostic
                || (placed && (&other.summary, &other.range) == (&diagnostic.summary, &diagnostic.range))
        };
        // That is told as often as it is found.
        if diagnostic.summary == super::objects::SELF_REFERENTIAL || !unique.iter().any(same) {
            unique.push(diagnostic);
        }
    }
    unique
}

/// Whether something is wrong with what this stands on: then it has nothing to say of its own. What its type does not have
/// is not looked at, so it is nothing to stand on; and what is of no type at all stands on its `depends_on` alone.
async fn stands_on(failed: &HashSet<usize>, place: usize, config: &Config, session: &Session<'_>) -> bool {
    let before = config.graph.before(place);
    if !before.iter().any(|earlier| failed.contains(earlier)) {
        return false;
    }
    let Some(resource) = config.resource_of(&config.graph.nodes()[place]) else { return true };
    let Ok(bound) = session.blank(&resource.provider, config).await else { return true };
    let types = if resource.data { &bound.schema.data_sources } else { &bound.schema.resources };
    let block = config.block(resource);
    let Some(schema) = types.get(&resource.type_name) else {
        return config.graph.depended_on(config, resource).iter().any(|earlier| failed.contains(earlier));
    };
    let (known, foreign) = block.body.partition(&body_spec(&schema.block));
    let in_vain = config.graph.referred_only_in(config, resource, &foreign, &known);
    before.iter().any(|earlier| failed.contains(earlier) && !in_vain.contains(earlier))
}

async fn validate_provider(eval: &Eval<'_>, session: &Session<'_>, address: &str) -> Outcome<()> {
    // Nobody asks one that no resource uses.
    if !eval.config.configured_providers().contains(address) {
        return Ok(());
    }
    let started = session.started(address, eval.config).await?;
    for instance in eval.config.provider_instances(address)? {
        let value = eval.provider(&instance, &started.schema.provider.block)?;
        session.validate(address, eval.config, bare(&value)).await?;
    }
    Ok(())
}

/// Of an object of which nothing is known yet, its type is known at least.
async fn expand_blind(eval: &Eval<'_>, session: &Session<'_>, resource: &ResourceConfig) -> Outcome<()> {
    let bound = session.blank(&resource.provider, eval.config).await?;
    eval.deprecations.learn(resource, &bound.schema);
    for instance in eval.instances(resource.module) {
        let address = resource.instance(&instance, None);
        let schema = if resource.data { bound.data_source(&address) } else { bound.resource(&address) };
        let schema = schema.map_err(|found| by_its_label(found, eval.config.block(resource)))?;
        if let Keys::Once = eval.expand_resource(resource, &instance)? {
            // Of one that may be switched off not even that is known.
            let always = !matches!(eval.config.block(resource).repetition, Repetition::Enabled(_));
            let ty = schema.block.implied_type();
            let value = if always { unknown_object(&schema.block) } else { Value::unknown(ty) };
            eval.set_object(&address, value);
        }
    }
    Ok(())
}

/// What is said of a resource's type is shown where the block says it.
fn by_its_label(found: Vec<Diagnostic>, block: &landform_lang::Resource) -> Vec<Diagnostic> {
    let header = range(block.range.clone());
    let word = if block.data { "data" } else { "resource" };
    let place = SourceRange { column: header.column + word.len() + 1, ..header };
    found.into_iter().map(|one| Diagnostic { range: Some(place.clone()), ..one }).collect()
}

/// What can be said of an object that is not there yet: its type, and what of it is secret.
fn unknown_object(block: &Block) -> Value {
    let nothing = Value::unknown(block.implied_type());
    let Type::Object { attributes, .. } = &nothing.ty else { return nothing };
    let parts = attributes.iter().map(|(name, ty)| (name.clone(), Value::unknown(ty.clone())));
    let value = Value::object(parts);
    match schema_marks(block, &value).as_slice() {
        [] if !has_deprecated(block) => nothing,
        marks => mark_existing(value, marks),
    }
}

async fn validate_resource(eval: &Eval<'_>, session: &Session<'_>, resource: &ResourceConfig) -> Outcome<()> {
    let address = resource.instance(&eval.config.modules[resource.module].path, None);
    let bound = session.blank(&resource.provider, eval.config).await?;
    let schema = if resource.data { bound.data_source(&address)? } else { bound.resource(&address)? };
    let keys = eval.values().keys(&address.module, &resource.local).cloned().unwrap_or_default();
    let value = eval.body(resource, &address, &keys.each(&None).unwrap_or_default(), &schema.block)?;
    match resource.data {
        true => bound.validate_data(&address, &value).await,
        false => {
            let identities = check_identities(eval, &bound, resource);
            bound.validate(&address, &value).await?;
            eval.check_constant_protection(resource)?;
            identities
        }
    }
}

pub(super) fn missing_provider(address: &str, provider: &str) -> Diagnostic {
    let detail = format!(
        "To work with {address} its original provider configuration at {provider} is required, but it has been removed. \
         This occurs when a provider configuration is removed while objects created by that provider still exist in the \
         state. Re-add the provider configuration to destroy {address}, after which you can remove the provider \
         configuration again."
    );
    Diagnostic::error("Provider configuration not present", detail)
}

/// A block makes no configuration with the key that an object's provider has, or makes none without one.
pub(super) fn missing_instance(address: &Address, provider: &str) -> Diagnostic {
    let (block, key) = split_provider(provider);
    let removed = format!(
        "To work with {address} its original provider instance at {provider} is required, but it has been removed."
    );
    let detail = match key {
        Some(_) => format!(
            "{removed} This occurs when an element is removed from the provider configuration's for_each collection while \
             objects created by that the associated provider instance still exist in the state. Re-add the for_each element to \
             destroy {address}, after which you can remove the provider configuration again.\n\nThis is commonly caused by \
             using the same for_each collection both for a resource (or its containing module) and its associated provider \
             configuration. To successfully remove an instance of a resource it must be possible to remove the corresponding \
             element from the resource's for_each collection while retaining the corresponding element in the provider's \
             for_each collection."
        ),
        None => format!(
            "{removed} This suggests that you've added for_each to this provider configuration while there are existing \
             instances of {} that need to be destroyed by the original single-instance provider configuration.\n\nTo proceed, \
             return to your previous single-instance configuration for {block} and ensure that {address} has been destroyed or \
             forgotten before using for_each with this provider, or change the resource configuration to still declare an \
             instance with the key {}.",
            address.resource(),
            address.key.as_ref().map(|key| format!("[{key}]")).unwrap_or_default()
        ),
    };
    Diagnostic::error("Provider instance not present", detail)
}
