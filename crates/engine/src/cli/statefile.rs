use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::saved::StateStamp;
use super::{failed, planned, sha256};
use crate::state::{State, StateOutput};
use crate::{Diagnostic, EngineError, Output};

pub(super) const STATE: &str = "terraform.tfstate";

/// The files that an apply may leave; after a crash the main one can be cut short, and the one before it is whole.
const LEFT_BEHIND: [&str; 3] = ["errored.tfstate", STATE, "terraform.tfstate.backup"];

pub(super) fn read(bytes: &[u8]) -> Result<State, EngineError> {
    State::read(bytes)
        .map_err(|e| EngineError::Diagnostics(vec![Diagnostic::error("The state cannot be used", e.to_string())]))
}

pub(super) fn stamp(state: Option<&[u8]>) -> Result<StateStamp, EngineError> {
    let Some(bytes) = state else {
        return Ok(StateStamp { serial: 0, lineage: String::new(), digest: String::new() });
    };
    let State { serial, lineage, .. } = read(bytes)?;
    Ok(StateStamp { serial, lineage, digest: sha256(bytes) })
}

pub(super) fn outputs(state: &State) -> Result<BTreeMap<String, Output>, serde_json::Error> {
    let output = |(name, output): (&String, &StateOutput)| {
        let value = serde_json::from_str(output.value.get())?;
        let ty = serde_json::from_str(output.ty.get())?;
        Ok((name.clone(), Output { value, ty, sensitive: output.sensitive }))
    };
    state.outputs.iter().map(output).collect()
}

/// Every string that a state marks as sensitive. A path below an attribute covers all of it: rather too much.
pub(super) fn secrets(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let parsed = |raw: &serde_json::value::RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    for output in state.outputs.values().filter(|output| output.sensitive) {
        planned::strings(&parsed(&output.value), &mut found);
    }
    for instance in state.resources().iter().flat_map(|resource| &resource.instances) {
        let (Some(attributes), Some(paths)) = (&instance.attributes, &instance.sensitive_attributes) else { continue };
        let (attributes, paths) = (parsed(attributes), parsed(paths));
        for path in paths.as_array().into_iter().flatten() {
            if let Some(name) = path[0]["value"].as_str() {
                planned::strings(&attributes[name], &mut found);
            }
        }
    }
    found
}

/// Source addresses of all providers that have objects in the state, without the built-in one.
pub(super) fn providers(state: &State) -> BTreeSet<String> {
    let references = state.resources().iter().flat_map(|resource| {
        std::iter::once(&resource.provider).chain(resource.instances.iter().map(|instance| &instance.provider))
    });
    references
        .filter_map(|reference| reference.split('"').nth(1))
        .filter(|source| !source.starts_with("terraform.io/builtin/"))
        .map(str::to_owned)
        .collect()
}

/// The newest state among what an apply left in its working folder, if one of them can be read.
pub(super) fn newest(folder: &Path) -> Result<Option<Vec<u8>>, EngineError> {
    let mut newest: Option<(u64, Vec<u8>)> = None;
    for name in LEFT_BEHIND {
        let path = folder.join(name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(failed(&path, e)),
        };
        if let Ok(State { serial, .. }) = State::read(&bytes)
            && newest.as_ref().is_none_or(|(newest, _)| serial > *newest)
        {
            newest = Some((serial, bytes));
        }
    }
    Ok(newest.map(|(_, bytes)| bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(serial: u64) -> String {
        format!(
            r#"{{"version":4,"terraform_version":"1.0.0","serial":{serial},"lineage":"x","outputs":{{}},"resources":[]}}"#
        )
    }

    #[test]
    fn the_newest_whole_state_is_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(newest(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join("terraform.tfstate.backup"), state(3)).unwrap();
        std::fs::write(dir.path().join(STATE), &state(5)[..20]).unwrap();
        assert_eq!(newest(dir.path()).unwrap(), Some(state(3).into_bytes()), "the main file is cut short");
        std::fs::write(dir.path().join(STATE), state(5)).unwrap();
        assert_eq!(newest(dir.path()).unwrap(), Some(state(5).into_bytes()));
        std::fs::write(dir.path().join("errored.tfstate"), state(6)).unwrap();
        assert_eq!(newest(dir.path()).unwrap(), Some(state(6).into_bytes()));
    }

    #[test]
    fn what_is_marked_as_sensitive_is_found() {
        let state = State::read(
            br#"{"version":4,"terraform_version":"1.0.0","serial":1,"lineage":"x",
            "outputs":{"o":{"value":"one","type":"string","sensitive":true},"p":{"value":"plain","type":"string"}},
            "resources":[{"mode":"managed","type":"t","name":"a","provider":"provider[\"registry.example/a/b\"]",
            "instances":[{"schema_version":0,"attributes":{"k":{"deep":["two"]},"open":"plain"},
            "sensitive_attributes":[[{"type":"get_attr","value":"k"},{"type":"get_attr","value":"deep"}]]}]}]}"#,
        );
        assert_eq!(secrets(&state.unwrap()), ["one", "two"]);
    }

    #[test]
    fn providers_are_named_without_aliases_modules_and_the_built_in_one() {
        let state = State::read(
            br#"{"version":4,"terraform_version":"1.0.0","serial":1,"lineage":"x","resources":[
            {"mode":"managed","type":"t","name":"a","provider":"provider[\"registry.example/a/b\"]"},
            {"mode":"managed","type":"t","name":"b","provider":"module.m.provider[\"registry.example/a/c\"].east"},
            {"mode":"managed","type":"t","name":"c","provider":"provider[\"terraform.io/builtin/terraform\"]"}]}"#,
        );
        let expected = ["registry.example/a/b", "registry.example/a/c"].map(str::to_owned);
        assert_eq!(providers(&state.unwrap()), BTreeSet::from(expected));
    }
}
