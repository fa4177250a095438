use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::*;

/// The source address of the provider that needs no process.
pub const SOURCE: &str = "terraform.io/builtin/terraform";

const TYPE: &str = "terraform_data";

/// The provider that OpenTofu has inside: `terraform_data`, an object that lives in the state alone.
pub struct Builtin;

/// What `terraform_data` looks like.
static BLOCK: LazyLock<Block> = LazyLock::new(|| {
    let attribute = |ty: Type, computed: bool| Attribute {
        kind: AttributeKind::Plain(ty),
        required: false,
        optional: !computed,
        computed,
        sensitive: false,
        write_only: false,
        description: String::new(),
        deprecated: None,
    };
    Block {
        attributes: BTreeMap::from([
            ("id".to_owned(), attribute(Type::String, true)),
            ("input".to_owned(), attribute(Type::Dynamic, false)),
            ("output".to_owned(), attribute(Type::Dynamic, true)),
            ("triggers_replace".to_owned(), attribute(Type::Dynamic, false)),
        ]),
        ..Block::default()
    }
});

fn field(object: &Value, name: &str) -> Value {
    object.get(name).cloned().unwrap_or_else(|| Value::null(Type::Dynamic))
}

fn with(object: &Value, changes: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let mut fields = object.as_mapping().cloned().unwrap_or_default();
    fields.extend(changes.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::object(fields)
}

fn error(summary: String) -> Diagnostics {
    vec![Diagnostic { severity: Severity::Error, summary, detail: String::new(), attribute: None }]
}

/// The output of an object to be: as open as its input, but of its type.
fn coming_output(input: &Value) -> Value {
    if input.is_null() { input.clone() } else { Value::unknown(input.ty.clone()) }
}

#[async_trait]
impl Provider for Builtin {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        let empty = Schema { version: 0, block: Block::default() };
        Ok(Arc::new(ProviderSchema {
            provider: empty,
            provider_meta: None,
            resources: BTreeMap::from([(TYPE.to_owned(), Schema { version: 0, block: BLOCK.clone() })]),
            data_sources: BTreeMap::new(),
            identities: BTreeMap::new(),
            capabilities: ServerCapabilities { plan_destroy: true, ..ServerCapabilities::default() },
        }))
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        Ok((config, Diagnostics::new()))
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        let read_only = ["id", "output"].into_iter().find(|name| !field(&call.config, name).is_null());
        Ok(read_only.map(|name| error(format!("{name:?} attribute is read-only"))).unwrap_or_default())
    }

    async fn validate_data_config(&self, _call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        Err(CallError::Unsupported { call: "ValidateDataResourceConfig" })
    }

    async fn configure(&self, _call: Configure) -> Result<Diagnostics, CallError> {
        Ok(Diagnostics::new())
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        let malformed = |detail: String| CallError::Malformed { call: "UpgradeResourceState", detail };
        let json = serde_json::from_slice(&call.attributes_json).map_err(|error| malformed(error.to_string()))?;
        let value = Value::from_json(&json, &BLOCK.implied_type()).map_err(|error| malformed(error.to_string()))?;
        Ok((value, Diagnostics::new()))
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        Ok(ReadAnswer {
            new_state: call.current,
            private: Private::new(),
            identity: None,
            diagnostics: Diagnostics::new(),
        })
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        let mut requires_replace = Vec::new();
        let planned = if call.proposed.is_null() {
            call.proposed
        } else {
            let (input, trigger) = (field(&call.proposed, "input"), field(&call.proposed, "triggers_replace"));
            let anew = [("id", Value::unknown_not_null(Type::String)), ("output", coming_output(&input))];
            if call.prior.is_null() {
                with(&call.proposed, anew)
            } else if field(&call.prior, "triggers_replace") != trigger {
                requires_replace.push(vec![Step::Attribute("triggers_replace".to_owned())]);
                with(&call.proposed, anew)
            } else if field(&call.prior, "input") != input {
                with(&call.proposed, [("output", Value::unknown(input.ty.clone()))])
            } else {
                call.proposed
            }
        };
        Ok(PlanAnswer {
            planned,
            requires_replace,
            planned_private: Private::new(),
            planned_identity: None,
            legacy_type_system: false,
            diagnostics: Diagnostics::new(),
        })
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        let mut new_state = call.planned;
        if !new_state.is_null() {
            if !field(&new_state, "output").is_known() {
                new_state = with(&new_state, [("output", field(&new_state, "input"))]);
            }
            if !field(&new_state, "id").is_known() {
                new_state = with(&new_state, [("id", Value::string(uuid::Uuid::new_v4().to_string()))]);
            }
        }
        Ok(ApplyAnswer {
            new_state,
            private: Private::new(),
            identity: None,
            legacy_type_system: false,
            diagnostics: Diagnostics::new(),
        })
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        let state = with(&super::change::empty_object(&BLOCK), [("id", Value::string(&call.id))]);
        let imported = ImportedResource { type_name: call.type_name, state, private: Private::new(), identity: None };
        Ok((vec![imported], Diagnostics::new()))
    }

    async fn read_data_source(&self, _call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        Err(CallError::Unsupported { call: "ReadDataSource" })
    }

    async fn stop(&self) -> Result<(), CallError> {
        Ok(())
    }
}
