//! What a template's configuration says about itself: its variables, as they are kept and as a JSON Schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Code, Problem};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Whether these are all variables: a file outside of the subset may declare more.
    pub complete: bool,
    pub variables: BTreeMap<String, DeclaredVariable>,
    /// What the native engine does not do exactly as OpenTofu, with file and line.
    #[serde(default)]
    pub unsupported: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredVariable {
    /// The type constraint in cty's JSON form, with its optional attributes.
    #[serde(rename = "type")]
    pub ty: Value,
    /// There is no default.
    pub required: bool,
    /// The default, unless it is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default)]
    pub description: String,
    pub sensitive: bool,
    pub ephemeral: bool,
    pub nullable: bool,
}

impl Declared {
    /// Whether the template can have a variable of this name.
    pub fn may_have(&self, name: &str) -> bool {
        !self.complete || self.variables.contains_key(name)
    }

    pub fn is_sensitive(&self, name: &str) -> bool {
        self.variables.get(name).is_some_and(|variable| variable.sensitive)
    }

    /// Every name is a variable, and every variable without a default has a value.
    pub fn check_names<'a>(&self, given: impl Iterator<Item = &'a str> + Clone) -> Result<(), Problem> {
        if let Some(name) = given.clone().find(|name| !self.may_have(name)) {
            let known: Vec<&str> = self.variables.keys().map(String::as_str).take(20).collect();
            let message = format!("the template has no variable `{name}`; it has: {}", known.join(", "));
            return Err(Problem::new(Code::InputInvalid, message));
        }
        let missing = self.variables.iter().filter(|(_, variable)| variable.required).map(|(name, _)| name);
        let missing: Vec<&str> =
            missing.map(String::as_str).filter(|name| !given.clone().any(|g| g == *name)).collect();
        if !missing.is_empty() {
            let mut message = format!("these variables have no default and need a value: {}", missing.join(", "));
            let is_secret = |name: &&str| self.variables[*name].sensitive || self.variables[*name].ephemeral;
            let secret: Vec<&str> = missing.iter().copied().filter(is_secret).collect();
            if !secret.is_empty() {
                let credentials = secret.join(", ");
                message += &format!("; credentials ({credentials}) come from a connection, by `--connection NAME`");
            }
            return Err(Problem::new(Code::InputInvalid, message));
        }
        Ok(())
    }

    /// The natural form of each value. What Terraform converts besides (the text "12" for a number) is taken, too.
    pub fn schema(&self) -> Value {
        let property = |variable: &DeclaredVariable| {
            let mut schema = schema_of(&variable.ty);
            if variable.nullable {
                schema = or_null(schema);
            }
            let Value::Object(map) = &mut schema else { return schema };
            if !variable.description.is_empty() {
                map.insert("description".into(), variable.description.clone().into());
            }
            if let Some(default) = &variable.default {
                map.insert("default".into(), default.clone());
            }
            if variable.sensitive {
                map.insert("writeOnly".into(), true.into());
            }
            schema
        };
        let properties: Map<String, Value> =
            self.variables.iter().map(|(name, variable)| (name.clone(), property(variable))).collect();
        let required: Vec<&String> =
            self.variables.iter().filter(|(_, variable)| variable.required).map(|(name, _)| name).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": !self.complete,
        })
    }
}

fn or_null(mut schema: Value) -> Value {
    if let Some(Value::String(kind)) = schema.get("type") {
        let both = json!([kind, "null"]);
        schema["type"] = both;
    }
    schema
}

fn schema_of(ty: &Value) -> Value {
    let primitive = |word: &str| match word {
        "string" => json!({"type": "string"}),
        "number" => json!({"type": "number"}),
        "bool" => json!({"type": "boolean"}),
        _ => json!({}),
    };
    let Value::Array(parts) = ty else { return primitive(ty.as_str().unwrap_or_default()) };
    let (kind, inner) = (parts.first().and_then(Value::as_str).unwrap_or_default(), parts.get(1));
    let inner = inner.unwrap_or(&Value::Null);
    match kind {
        "list" => json!({"type": "array", "items": schema_of(inner)}),
        "set" => json!({"type": "array", "items": schema_of(inner), "uniqueItems": true}),
        "map" => json!({"type": "object", "additionalProperties": schema_of(inner)}),
        "tuple" => {
            let items: Vec<Value> = inner.as_array().into_iter().flatten().map(schema_of).collect();
            let count = items.len();
            json!({"type": "array", "prefixItems": items, "minItems": count, "maxItems": count})
        }
        "object" => {
            let optional: Vec<&str> =
                parts.get(2).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            let attributes = inner.as_object();
            let is_optional = |name: &String| optional.contains(&name.as_str());
            let property = |(name, ty): (&String, &Value)| {
                let schema = schema_of(ty);
                (name.clone(), if is_optional(name) { or_null(schema) } else { schema })
            };
            let properties: Map<String, Value> = attributes.into_iter().flatten().map(property).collect();
            let required: Vec<&String> =
                attributes.into_iter().flat_map(Map::keys).filter(|name| !is_optional(name)).collect();
            // Attributes that the type does not have are left out by the conversion; they are no mistake.
            json!({"type": "object", "properties": properties, "required": required})
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(ty: Value, required: bool) -> DeclaredVariable {
        DeclaredVariable {
            ty,
            required,
            default: None,
            description: String::new(),
            sensitive: false,
            ephemeral: false,
            nullable: false,
        }
    }

    #[test]
    fn types_become_schemas() {
        let site = json!(["object", {"name": "string", "vlans": ["list", "number"]}, ["vlans"]]);
        let mut key = variable(json!("string"), true);
        (key.sensitive, key.nullable, key.description) = (true, true, "The key".into());
        let variables = BTreeMap::from([("site".to_owned(), variable(site, false)), ("key".to_owned(), key)]);
        let declared = Declared { complete: true, variables, unsupported: vec![] };
        let schema = declared.schema();
        assert_eq!(schema["required"], json!(["key"]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(
            schema["properties"]["key"],
            json!({"type": ["string", "null"], "description": "The key", "writeOnly": true})
        );
        let site = &schema["properties"]["site"];
        assert_eq!(site["required"], json!(["name"]));
        assert_eq!(site["properties"]["vlans"], json!({"type": ["array", "null"], "items": {"type": "number"}}));
        assert_eq!(schema_of(&json!("dynamic")), json!({}));
    }

    #[test]
    fn names_are_known_and_what_is_needed_is_there() {
        let variables = BTreeMap::from([("a".to_owned(), variable(json!("string"), true))]);
        let mut declared = Declared { complete: true, variables, unsupported: vec![] };
        assert!(declared.check_names(["a"].into_iter()).is_ok());
        assert!(declared.check_names([].into_iter()).unwrap_err().message.contains("need a value: a"));
        assert!(declared.check_names(["a", "b"].into_iter()).unwrap_err().message.contains("no variable `b`"));
        declared.complete = false;
        assert!(declared.check_names(["a", "b"].into_iter()).is_ok(), "nobody knows");
    }
}
