//! A state as people read it: what `show` and `state show` write.

use std::fmt::Write as _;

use landform_cty::Type;

use super::diff::{of_any, of_block, of_type};
use super::ink::Ink;
use super::place::Place;
use super::render::Look;
use crate::Address;
use crate::native::show::{Schemas, schema_of, stored_object};
use crate::state::State;

/// All objects and outputs, or one object alone. An object whose schema is not known is shown without its values.
pub fn state_text(state: &State, schemas: &Schemas, only: Option<&Address>, ink: Ink) -> String {
    let look = Look { ink, ..Look::BARE };
    let mut out = String::new();
    if only.is_none() && state.resources().is_empty() && state.outputs.is_empty() {
        return "The state file is empty. No resources are represented.\n".to_owned();
    }
    let mut module = None;
    for resource in state.resources() {
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone());
            if only.is_some_and(|only| *only != address || instance.deposed.is_some()) {
                continue;
            }
            if !out.is_empty() {
                out.push_str(if module.as_ref() == Some(&address.module) { "\n" } else { "\n\n" });
            }
            module = Some(address.module.clone());
            let note = match &instance.deposed {
                Some(key) => format!(" (deposed object {key})"),
                None if instance.tainted() => " (tainted)".to_owned(),
                None => String::new(),
            };
            let kind = if address.data { "data" } else { "resource" };
            let _ = write!(out, "# {address}:{note}\n{kind} {:?} {:?} ", address.type_name, address.name);
            let json = stored_object(resource, instance, schemas);
            let body = schema_of(schemas, &resource.provider, &address).map(|schema| {
                let place = Place::unchanged(&json["values"], json.get("sensitive_values"));
                of_block(&place, &schema.block).written(0, look)
            });
            let _ = writeln!(out, "{}", body.as_deref().unwrap_or("{}"));
        }
    }
    if only.is_none() && !state.outputs.is_empty() {
        out.push_str("\n\nOutputs:\n\n");
        for (name, output) in &state.outputs {
            let value: serde_json::Value = serde_json::from_str(output.value.get()).unwrap_or_default();
            let secret = serde_json::Value::Bool(output.sensitive);
            let place = Place::unchanged(&value, Some(&secret));
            let ty = serde_json::from_str(output.ty.get()).ok().and_then(|ty| Type::from_json(&ty).ok());
            let diff = ty.map_or_else(|| of_any(&place), |ty| of_type(&place, &ty));
            let _ = writeln!(out, "{name} = {}", diff.written(0, look));
        }
    }
    out
}
