//! What goes wrong on demand. The words stand in the argument `faults` of an object, separated by blanks:
//!
//! | word | what happens |
//! |---|---|
//! | `CALL_error` | the call fails and does nothing; CALL is validate, read, plan, create, update, delete |
//! | `CALL_warning` | the call succeeds, with a warning |
//! | `CALL_panic` | the provider panics in the call: a diagnostic |
//! | `CALL_exit` | the process ends in the call |
//! | `CALL_slow` | the call takes a while |
//! | `create_partial`, `update_partial` | the change is made, and the call fails |
//! | `plan_lie` | the plan contradicts the configuration |
//! | `plan_replace` | an attribute that did not change is said to need a replacement, too |
//! | `apply_lie` | the result contradicts the plan |
//! | `apply_unknown` | the result is not wholly known |
//! | `read_gone` | the object is not there any more |
//! | `read_drift` | the object's name has changed meanwhile |
//!
//! Private bytes are counted: each plan and each apply makes other bytes of what it was given, so that bytes that do not
//! make the round are seen in the next call. `probe_legacy` answers with the legacy type system, and takes its
//! liberties: what is null becomes empty, and a result may differ from the plan.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::*;

/// A provider with faults on demand.
pub struct Faulty<P>(pub P);

const SLOW: Duration = Duration::from_millis(50);

struct Words(Vec<String>);

impl Words {
    fn of(value: &Value) -> Words {
        let text = value.get("faults").and_then(Value::as_str).unwrap_or_default();
        Words(text.split_whitespace().map(str::to_owned).collect())
    }

    fn say(&self, call: &str, what: &str) -> bool {
        self.0.iter().any(|word| word.strip_prefix(call).and_then(|rest| rest.strip_prefix('_')) == Some(what))
    }

    /// What goes wrong before the call does anything.
    async fn begin(&self, call: &str) -> Result<(), Diagnostic> {
        if self.say(call, "slow") {
            tokio::time::sleep(SLOW).await;
        }
        if self.say(call, "exit") {
            std::process::exit(7);
        }
        assert!(!self.say(call, "panic"), "asked to panic in {call}");
        if self.say(call, "error") {
            return Err(Diagnostic::error(format!("Asked to fail in {call}"), "Nothing was done.").at("faults"));
        }
        Ok(())
    }

    fn end(&self, call: &str, diagnostics: &mut Diagnostics) {
        if self.say(call, "warning") {
            diagnostics.push(Diagnostic::warning(format!("Asked to warn in {call}"), "All was done.").at("faults"));
        }
        if self.say(call, "partial") {
            diagnostics.push(Diagnostic::error(format!("Asked to fail after {call}"), "It was done all the same."));
        }
    }
}

fn is_legacy(type_name: &str) -> bool {
    type_name == "probe_legacy"
}

/// Other bytes, that say how many hands they went through.
fn stamped(private: &[u8], by: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(private);
    let count: u64 = text.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    format!("{by} {}", count + 1).into_bytes()
}

fn with(value: Value, name: &str, part: Value) -> Value {
    let Some(mut parts) = value.as_mapping().filter(|parts| parts.contains_key(name)).cloned() else { return value };
    parts.insert(name.to_owned(), part);
    Value::object(parts)
}

/// As an old SDK sees the world: what is null is empty.
fn flattened(value: Value) -> Value {
    let mut value = value;
    for (name, empty) in [("text", Value::string("")), ("flag", Value::bool(false))] {
        if value.get(name).is_some_and(Value::is_null) {
            value = with(value, name, empty);
        }
    }
    value
}

#[async_trait]
impl<P: Provider> Provider for Faulty<P> {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, CallError> {
        self.0.schema().await
    }

    async fn validate_provider_config(&self, config: Value) -> Result<(Value, Diagnostics), CallError> {
        self.0.validate_provider_config(config).await
    }

    async fn validate_resource_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        let words = Words::of(&call.config);
        if let Err(diagnostic) = words.begin("validate").await {
            return Ok(vec![diagnostic]);
        }
        let mut diagnostics = self.0.validate_resource_config(call).await?;
        words.end("validate", &mut diagnostics);
        Ok(diagnostics)
    }

    async fn validate_data_config(&self, call: ValidateResourceConfig) -> Result<Diagnostics, CallError> {
        let words = Words::of(&call.config);
        if let Err(diagnostic) = words.begin("validate").await {
            return Ok(vec![diagnostic]);
        }
        self.0.validate_data_config(call).await
    }

    async fn configure(&self, call: Configure) -> Result<Diagnostics, CallError> {
        self.0.configure(call).await
    }

    async fn upgrade_resource_state(&self, call: UpgradeResourceState) -> Result<(Value, Diagnostics), CallError> {
        self.0.upgrade_resource_state(call).await
    }

    async fn upgrade_resource_identity(
        &self,
        call: UpgradeResourceIdentity,
    ) -> Result<(Identity, Diagnostics), CallError> {
        self.0.upgrade_resource_identity(call).await
    }

    async fn read_resource(&self, call: ReadResource) -> Result<ReadAnswer, CallError> {
        let words = Words::of(&call.current);
        if let Err(diagnostic) = words.begin("read").await {
            let ReadResource { current, private, identity, .. } = call;
            return Ok(ReadAnswer { new_state: current, private, identity, diagnostics: vec![diagnostic] });
        }
        let mut answer = self.0.read_resource(call).await?;
        if words.say("read", "gone") {
            answer.new_state = Value::null(answer.new_state.ty.clone());
        }
        if words.say("read", "drift") {
            answer.new_state = with(answer.new_state, "name", Value::string("drifted"));
        }
        words.end("read", &mut answer.diagnostics);
        Ok(answer)
    }

    async fn plan_resource_change(&self, call: PlanResourceChange) -> Result<PlanAnswer, CallError> {
        let (words, legacy) = (Words::of(&call.config), is_legacy(&call.type_name));
        let (has_prior, prior_private) = (!call.prior.is_null(), call.prior_private.clone());
        if let Err(diagnostic) = words.begin("plan").await {
            return Ok(PlanAnswer {
                planned: call.prior,
                requires_replace: Vec::new(),
                planned_private: prior_private,
                planned_identity: None,
                legacy_type_system: legacy,
                diagnostics: vec![diagnostic],
            });
        }
        let mut answer = self.0.plan_resource_change(call).await?;
        if legacy {
            answer.planned = flattened(answer.planned);
        }
        if words.say("plan", "lie") {
            answer.planned = with(answer.planned, "name", Value::string("not what was asked for"));
        }
        if words.say("plan", "replace") && has_prior {
            answer.requires_replace.push(vec![Step::Attribute("name".into())]);
        }
        answer.planned_private = stamped(&prior_private, "planned");
        answer.legacy_type_system = legacy;
        words.end("plan", &mut answer.diagnostics);
        Ok(answer)
    }

    async fn apply_resource_change(&self, call: ApplyResourceChange) -> Result<ApplyAnswer, CallError> {
        let legacy = is_legacy(&call.type_name);
        let (words, name) = match (call.prior.is_null(), call.planned.is_null()) {
            (true, _) => (Words::of(&call.planned), "create"),
            (_, true) => (Words::of(&call.prior), "delete"),
            _ => (Words::of(&call.planned), "update"),
        };
        let private = stamped(&call.planned_private, "applied");
        if let Err(diagnostic) = words.begin(name).await {
            return Ok(ApplyAnswer {
                new_state: call.prior,
                private: call.planned_private,
                identity: None,
                legacy_type_system: legacy,
                diagnostics: vec![diagnostic],
            });
        }
        let password = call.config.get("password").and_then(Value::as_str).map(str::len);
        let mut answer = self.0.apply_resource_change(call).await?;
        if let (Some(length), Some("unseen")) = (password, answer.new_state.get("fingerprint").and_then(Value::as_str))
        {
            answer.new_state = with(answer.new_state, "fingerprint", Value::string(format!("of {length} letters")));
        }
        if words.say("apply", "lie") {
            answer.new_state = with(answer.new_state, "name", Value::string("not what was planned"));
        }
        if words.say("apply", "unknown") {
            answer.new_state = with(answer.new_state, "address", Value::unknown(Type::String));
        }
        answer.private = private;
        answer.legacy_type_system = legacy;
        words.end(name, &mut answer.diagnostics);
        Ok(answer)
    }

    async fn import_resource_state(
        &self,
        call: ImportResourceState,
    ) -> Result<(Vec<ImportedResource>, Diagnostics), CallError> {
        self.0.import_resource_state(call).await
    }

    async fn read_data_source(&self, call: ReadDataSource) -> Result<(Value, Diagnostics), CallError> {
        let words = Words::of(&call.config);
        if let Err(diagnostic) = words.begin("read").await {
            return Ok((Value::null(call.config.ty), vec![diagnostic]));
        }
        let (state, mut diagnostics) = self.0.read_data_source(call).await?;
        words.end("read", &mut diagnostics);
        Ok((state, diagnostics))
    }

    async fn stop(&self) -> Result<(), CallError> {
        self.0.stop().await
    }
}
