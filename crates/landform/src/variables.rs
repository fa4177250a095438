//! Files with values for a template's variables, which only the server knows.

use std::collections::BTreeMap;
use std::path::Path;

use landform_engine::EngineError;
use landform_engine::native::{VariableFlag, collect_variables};
use serde_json::Value;

use crate::failure::Failure;

const HINT: &str = "A variables file holds one JSON object, {\"name\": value}; or, if its name ends with `.tfvars`, lines \
    such as name = \"value\".";

pub fn of_file(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let wrong = |reason: String| Failure::usage(format!("{}: {reason}", path.display()), HINT);
    if path.extension().is_some_and(|kind| kind == "tfvars") {
        return of_tfvars(path).map_err(wrong);
    }
    let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    landform_api::read_json(&bytes).map_err(|e| wrong(e.to_string()))
}

/// As `landform tf -var-file` reads it, in a folder that declares whatever the file has values for.
fn of_tfvars(path: &Path) -> Result<BTreeMap<String, Value>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = [VariableFlag::File(path.to_owned())];
    let read = |declared: String| {
        std::fs::write(folder.path().join("variables.tf"), declared).map_err(|e| e.to_string())?;
        collect_variables(folder.path(), &file).map_err(explain)
    };
    // Without a declaration only the names are told.
    let names = read(String::new())?;
    let declared = names.keys().map(|name| format!("variable {name:?} {{}}\n")).collect();
    Ok(read(declared)?.into_iter().map(|(name, variable)| (name, variable.value)).collect())
}

fn explain(error: EngineError) -> String {
    let EngineError::Diagnostics(found) = error else { return error.to_string() };
    let line = |said: &landform_engine::Diagnostic| {
        let place = said.range.as_ref().map(|range| format!("line {}: ", range.line)).unwrap_or_default();
        format!("{place}{}: {}", said.summary, said.detail)
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, text: &str) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        of_file(&path).map(|found| json!(found)).map_err(|failure| failure.detail().to_owned())
    }

    #[test]
    fn a_file_is_read_by_its_name() {
        let literal =
            "name = \"berlin\" # a comment\nvlans = [10, \"20\"]\nnothing = null\nsite = { up = true, n = 1.5 }\n";
        let values = json!({"name": "berlin", "vlans": [10, "20"], "nothing": null, "site": {"up": true, "n": 1.5}});
        assert_eq!(read("site.tfvars", literal).unwrap(), values);
        assert_eq!(read("site.json", &values.to_string()).unwrap(), values);
        assert_eq!(read("empty.tfvars", "").unwrap(), json!({}));
        // Data stays data in JSON, and a heredoc is a text.
        assert_eq!(read("x.tfvars.json", r#"{"a": "${b}"}"#).unwrap(), json!({"a": "${b}"}));
        assert_eq!(read("x.tfvars", "a = <<-E\n  one\n  two\nE\n").unwrap(), json!({"a": "one\ntwo\n"}));
    }

    #[test]
    fn what_is_no_value_is_refused_with_its_place() {
        for (name, text, words) in [
            ("x.tfvars", "a = 1\nb = var.x\n", "line 2: Variables not allowed"),
            ("x.tfvars", "a = upper(\"x\")\n", "Function calls not allowed"),
            ("x.tfvars", "a {\n}\n", "line 1"),
            ("x.tfvars", "a = \n", "line 1"),
            ("x.json", "{\"a\": 1, \"a\": 2}", "the key `a` stands there twice"),
            ("x.json", "[]", "map"),
        ] {
            let why = read(name, text).unwrap_err();
            assert!(why.contains(words), "{text:?}: {why}");
        }
        let why = of_file(Path::new("/nowhere/x.tfvars")).unwrap_err();
        assert!(why.detail().contains("does not exist"), "{}", why.detail());
    }
}
