use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::{Diagnostic, Schema};
use landform_provider_kit::{DataSource, Failure, block, number, of, string};

use super::world::World;

/// An object of the ledger, by id.
pub struct Lookup;

#[async_trait]
impl DataSource<World> for Lookup {
    fn schema(&self) -> Schema {
        block([
            ("id", string().required()),
            ("kind", string().computed()),
            ("name", string().computed()),
            ("secret", string().computed().sensitive()),
        ])
    }

    async fn read(&self, world: &World, config: Value) -> Result<Value, Failure> {
        let id = config.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = world.find(&id).map_err(|error| Diagnostic::error("Cannot read the ledger", error.to_string()))?;
        let object =
            found.ok_or_else(|| Diagnostic::error("No such object", format!("There is no {id:?}.")).at("id"))?;
        let text = |name: &str| object.attributes[name].as_str().map_or(Value::null(Type::String), Value::string);
        Ok(Value::object([
            ("id", Value::string(id)),
            ("kind", Value::string(&object.kind)),
            ("name", text("name")),
            ("secret", text("secret")),
        ]))
    }
}

/// Says back what it is told.
pub struct Echo;

#[async_trait]
impl DataSource<World> for Echo {
    fn schema(&self) -> Schema {
        block([
            ("input", of(Type::Dynamic).optional()),
            ("output", of(Type::Dynamic).computed()),
            ("faults", string().optional()),
        ])
    }

    async fn read(&self, _: &World, config: Value) -> Result<Value, Failure> {
        let input = config.get("input").cloned().unwrap_or(Value::null(Type::Dynamic));
        let faults = config.get("faults").cloned().unwrap_or(Value::null(Type::String));
        Ok(Value::object([("output", input.clone()), ("input", input), ("faults", faults)]))
    }
}

/// What the process that answers is configured with.
pub struct Where;

#[async_trait]
impl DataSource<World> for Where {
    fn schema(&self) -> Schema {
        block([("region", string().computed()), ("objects", number().computed()), ("process", number().computed())])
    }

    async fn read(&self, world: &World, _: Value) -> Result<Value, Failure> {
        let count = world.count().map_err(|error| Diagnostic::error("Cannot read the ledger", error.to_string()))?;
        Ok(Value::object([
            ("region", Value::string(&world.region)),
            ("objects", Value::number(count as u64)),
            ("process", Value::number(u64::from(std::process::id()))),
        ]))
    }
}
