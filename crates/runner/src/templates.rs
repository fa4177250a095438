//! Reading templates when they are pushed, and inputs before they are accepted.

use landform_cty::{Type, Value};
use landform_domain::declared::{Declared, DeclaredVariable};
use landform_domain::template::Files;
use landform_domain::{Code, Inputs, Problem};
use landform_engine::policy::Policy;
use landform_lang::{Diagnostics, Variable};
use landform_registry::Places;
use landform_store::{Lock, TemplateReader};

use crate::attempt::denied;
use crate::folders::unpack;
use crate::{locks, vendors};

const LONGEST_MESSAGE: usize = 2000;
const MOST_UNSUPPORTED: usize = 100;

/// Reads templates with the language of the native engine. What that does not know is left to the CLI, and said.
#[derive(Debug, Default)]
pub struct LanguageReader {
    /// What a template may do besides describing objects; it is refused otherwise.
    pub policy: Policy,
    /// Where the providers of a template that brings no lock file are looked for, so that it gets one.
    pub providers: Option<Places>,
}

impl TemplateReader for LanguageReader {
    fn read(&self, files: &Files) -> Result<Declared, Problem> {
        let violations = self.policy.violations(files.iter());
        if !violations.is_empty() {
            return Err(denied(&violations));
        }
        let folder = unpacked(files)?;
        let module = landform_lang::load(folder.path()).map_err(|found| invalid(&found))?;
        Diagnostics::check(module.problems.clone()).map_err(|found| invalid(&found))?;
        vendors::of(files, folder.path())?;
        let unsupported = module.unsupported.iter().take(MOST_UNSUPPORTED);
        Ok(Declared {
            // Whatever could not be read may declare variables, too.
            complete: !module.unsupported.iter().any(|item| hides_variables(&item.construct)),
            unsupported: unsupported.map(|item| format!("{}: {}", item.range, item.construct)).collect(),
            variables: module.variables.values().map(|v| (v.name.clone(), declared(v))).collect(),
        })
    }

    fn lock(&self, files: &Files) -> Result<Lock, Problem> {
        let Some(places) = &self.providers else { return Ok(Lock::NotNeeded) };
        Ok(locks::made_for(unpacked(files)?.path(), places))
    }

    fn check(&self, declared: &Declared, inputs: &Inputs, provided: &[&str]) -> Result<(), Problem> {
        declared.check_names(inputs.iter().map(|(name, _)| name.as_str()).chain(provided.iter().copied()))?;
        for (name, input) in inputs.iter() {
            let Some(variable) = declared.variables.get(name) else { continue };
            let ty = Type::from_json(&variable.ty)
                .map_err(|e| Problem::new(Code::Internal, format!("the kept type of `{name}`: {e}")))?;
            let refused = |reason: String| {
                let reason: String = reason.chars().take(LONGEST_MESSAGE).collect();
                // A reason may quote the value.
                let reason = if input.sensitive { "it is not of the variable's type".to_owned() } else { reason };
                Problem::new(Code::InputInvalid, format!("the value of `{name}` does not fit: {reason}"))
            };
            let value = Value::from_plain_json(&input.value).map_err(|e| refused(e.to_string()))?;
            if value.is_null() && !variable.nullable && variable.required {
                return Err(refused("it must not be null".to_owned()));
            }
            value.convert(&ty).map_err(|e| refused(e.to_string()))?;
        }
        Ok(())
    }
}

fn unpacked(files: &Files) -> Result<tempfile::TempDir, Problem> {
    let folder = tempfile::tempdir().and_then(|folder| unpack(files, folder.path(), |_| Ok(())).map(|()| folder));
    folder.map_err(|e| Problem::new(Code::Internal, format!("no folder to read the template in: {e}")))
}

/// A file that was skipped, or could not be parsed within the limits of this parser.
pub(crate) fn hides_variables(construct: &str) -> bool {
    construct.ends_with("in JSON")
        || ["nesting depth", "binary operation", "object key"].iter().any(|limit| construct.contains(limit))
}

fn declared(variable: &Variable) -> DeclaredVariable {
    let default = variable.default.as_ref().filter(|_| !variable.sensitive);
    DeclaredVariable {
        ty: variable.ty.to_json(),
        required: variable.default.is_none(),
        default: default.and_then(|value| value.to_plain_json().ok()),
        description: variable.description.clone(),
        sensitive: variable.sensitive,
        ephemeral: variable.ephemeral,
        nullable: variable.nullable,
    }
}

fn invalid(found: &Diagnostics) -> Problem {
    let text: String = found.to_string().chars().take(LONGEST_MESSAGE).collect();
    Problem::new(Code::TemplateInvalid, text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landform_domain::Input;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Declared, Problem> {
        LanguageReader::default().read(&Files::new([("main.tf".to_owned(), text.as_bytes().to_vec())]).unwrap())
    }

    fn check(declared: &Declared, inputs: serde_json::Value) -> Result<(), Problem> {
        let inputs: BTreeMap<String, serde_json::Value> = serde_json::from_value(inputs).unwrap();
        let sensitive = |name: &str| declared.is_sensitive(name);
        let inputs = inputs.into_iter().map(|(name, value)| {
            let sensitive = sensitive(&name);
            (name, Input { value, sensitive })
        });
        LanguageReader::default().check(declared, &Inputs::new(inputs.collect()).unwrap(), &[])
    }

    #[test]
    fn inputs_are_converted_as_terraform_does() {
        let declared = read(
            r#"
            variable "size" { type = number }
            variable "sites" {
              type    = list(object({ name = string, vlan = optional(number, 1) }))
              default = []
            }
            variable "key" {
              type      = string
              sensitive = true
              default   = "s3cret"
            }
            "#,
        )
        .unwrap();
        assert!(declared.complete && declared.unsupported.is_empty());
        assert_eq!(declared.variables["key"].default, None, "a sensitive default is not told");
        assert!(check(&declared, json!({"size": 3, "sites": [{"name": "berlin"}]})).is_ok());
        assert!(check(&declared, json!({"size": "3"})).is_ok(), "text that is a number");
        assert!(check(&declared, json!({"size": null})).is_ok(), "null is a value where nothing says otherwise");
        for wrong in [
            json!({}),
            json!({"size": "three"}),
            json!({"size": 3, "sites": {"name": "x"}}),
            json!({"size": 3, "sites": [{"vlan": 1}]}),
            json!({"size": 3, "colour": "red"}),
        ] {
            let problem = check(&declared, wrong.clone()).expect_err(&wrong.to_string());
            assert_eq!(problem.code, Code::InputInvalid, "{wrong}");
        }
        let problem = check(&declared, json!({"size": 3, "key": ["hunter2"]})).unwrap_err();
        assert!(!problem.message.contains("hunter2"), "{problem}");
    }

    #[test]
    fn malformed_and_deep_configurations_are_refused_or_left_to_the_cli() {
        let problem = read("variable \"x\" {\n  type = \n}").unwrap_err();
        assert_eq!(problem.code, Code::TemplateInvalid);
        assert!(problem.message.contains("main.tf"), "{problem}");
        let deep = format!("locals {{ a = {}1{} }}", "[".repeat(20_000), "]".repeat(20_000));
        match read(&deep) {
            Ok(declared) => assert!(!declared.complete && !declared.unsupported.is_empty()),
            Err(problem) => assert_eq!(problem.code, Code::TemplateInvalid),
        }
    }
}
