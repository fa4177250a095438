//! A panic is a diagnostic of the call that panicked, and the provider goes on.

use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::*;
use landform_provider_kit::{Definition, Failure, Guard, Kit, Resource, Resources, block, string};

struct Clumsy;

#[async_trait]
impl Definition for Clumsy {
    type Client = ();

    fn schema(&self) -> Schema {
        block([])
    }

    fn resources(&self) -> Resources<()> {
        vec![("clumsy_thing", Box::new(Thing))]
    }

    async fn configure(&self, _: &Value) -> Result<(), Failure> {
        Ok(())
    }
}

struct Thing;

#[async_trait]
impl Resource<()> for Thing {
    fn schema(&self) -> Schema {
        block([("id", string().computed()), ("name", string().required())])
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["name"]
    }

    async fn read(&self, _: &(), state: Value) -> Result<Option<Value>, Failure> {
        Ok(Some(state))
    }

    async fn create(&self, _: &(), _: Value) -> Result<Value, Failure> {
        panic!("cannot count to {}", 3)
    }

    async fn update(&self, _: &(), _: Value, planned: Value) -> Result<Value, Failure> {
        Err(Failure { diagnostics: vec![Diagnostic::error("half done", "")], state: Some(Box::new(planned)) })
    }

    async fn delete(&self, _: &(), _: Value) -> Result<(), Failure> {
        Err(Diagnostic::error("not today", "").into())
    }

    async fn import(&self, _: &(), _: &str) -> Result<Option<Value>, Failure> {
        Ok(None)
    }
}

fn thing(id: Value, name: &str) -> Value {
    Value::object([("id", id), ("name", Value::string(name))])
}

async fn provider() -> Guard<Kit<Clumsy>> {
    let provider = Guard(Kit::new(Clumsy));
    let config = Value::object::<String>([]);
    let configure = Configure { terraform_version: "1.12.6".into(), config };
    assert_eq!(provider.configure(configure.clone()).await.unwrap(), []);
    assert_eq!(provider.configure(configure).await.unwrap()[0].summary, "Provider already configured");
    provider
}

fn apply(prior: Value, planned: Value) -> ApplyResourceChange {
    let config = planned.clone();
    ApplyResourceChange {
        type_name: "clumsy_thing".into(),
        prior,
        planned,
        config,
        planned_private: vec![7],
        planned_identity: None,
    }
}

#[tokio::test]
async fn a_panic_is_a_diagnostic_and_what_existed_still_does() {
    let provider = provider().await;
    let planned = thing(Value::unknown(Type::String), "a");
    let null = Value::null(planned.ty.clone());
    let answer = provider.apply_resource_change(apply(null.clone(), planned)).await.unwrap();
    assert!(answer.diagnostics[0].detail.contains("cannot count to 3"), "{:?}", answer.diagnostics);
    assert_eq!((answer.new_state, answer.private), (null.clone(), vec![7]));

    let existing = thing(Value::string("1"), "a");
    let answer = provider.apply_resource_change(apply(existing.clone(), null)).await.unwrap();
    assert_eq!((answer.diagnostics[0].summary.as_str(), &answer.new_state), ("not today", &existing));
}

#[tokio::test]
async fn a_partial_state_is_not_lost() {
    let provider = provider().await;
    let (prior, planned) = (thing(Value::string("1"), "a"), thing(Value::string("1"), "b"));
    let answer = provider.apply_resource_change(apply(prior, planned.clone())).await.unwrap();
    assert_eq!((answer.diagnostics[0].summary.as_str(), answer.new_state), ("half done", planned));
}

#[tokio::test]
async fn only_a_change_of_what_cannot_change_replaces() {
    let provider = provider().await;
    let prior = thing(Value::string("1"), "a");
    for (name, paths) in [("a", vec![]), ("b", vec![vec![Step::Attribute("name".into())]])] {
        let proposed = thing(Value::string("1"), name);
        let call = PlanResourceChange {
            type_name: "clumsy_thing".into(),
            prior: prior.clone(),
            proposed: proposed.clone(),
            config: thing(Value::null(Type::String), name),
            prior_private: vec![],
            prior_identity: None,
        };
        let answer = provider.plan_resource_change(call).await.unwrap();
        assert_eq!((answer.planned, answer.requires_replace), (proposed, paths));
    }
}
