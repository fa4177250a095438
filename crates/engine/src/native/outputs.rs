//! The outputs of the root module, before and after.

use std::collections::BTreeMap;

use landform_cty::{Type, Value};

use super::content::PlannedOutput;
use super::eval::Eval;
use super::object::Outcome;
use crate::Diagnostic;
use crate::state::{State, StateOutput};

pub fn planned_outputs(eval: &Eval<'_>, base: &State) -> Outcome<BTreeMap<String, PlannedOutput>> {
    let mut planned = BTreeMap::new();
    for (name, output) in &eval.config.root().outputs {
        let after = eval.root_output(name).unwrap_or_else(|| Value::unknown(Type::Dynamic));
        planned.insert(name.clone(), planned_output(base.outputs.get(name), after, output.sensitive, false)?);
    }
    for (name, before) in base.outputs.iter().filter(|(name, _)| !eval.config.root().outputs.contains_key(*name)) {
        planned.insert(name.clone(), removed_output(before)?);
    }
    Ok(planned)
}

/// All outputs go when everything is destroyed.
pub fn removed_outputs(base: &State) -> Outcome<BTreeMap<String, PlannedOutput>> {
    base.outputs.iter().map(|(name, before)| Ok((name.clone(), removed_output(before)?))).collect()
}

fn removed_output(before: &StateOutput) -> Outcome<PlannedOutput> {
    planned_output(Some(before), Value::null(Type::Dynamic), before.sensitive, true)
}

fn planned_output(
    before: Option<&StateOutput>,
    after: Value,
    sensitive: bool,
    removed: bool,
) -> Outcome<PlannedOutput> {
    let stored = before
        .map(stored_output)
        .transpose()
        .map_err(|detail| vec![Diagnostic::error("Invalid output value saved in state", detail)])?;
    Ok(PlannedOutput {
        before: stored.unwrap_or_else(|| Value::null(Type::Dynamic)),
        after,
        sensitive,
        was_sensitive: before.is_some_and(|output| output.sensitive),
        removed,
        existed: before.is_some(),
    })
}

fn stored_output(output: &StateOutput) -> Result<Value, String> {
    let json = |raw: &serde_json::value::RawValue| {
        serde_json::from_str::<serde_json::Value>(raw.get()).map_err(|error| error.to_string())
    };
    let ty = Type::from_json(&json(&output.ty)?).map_err(|error| error.to_string())?;
    Value::from_json(&json(&output.value)?, &ty).map_err(|error| error.to_string())
}
