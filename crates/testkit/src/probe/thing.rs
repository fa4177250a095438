use async_trait::async_trait;
use landform_cty::{Data, Number, Step, Type, Value};
use landform_protocol::wire::Version;
use landform_protocol::{Attribute, AttributeKind, Block, Diagnostic, NestedBlock, Nesting, Schema};
use landform_provider_kit::{Failure, Resource};
use serde_json::Value as Json;

use super::schemas;
use super::world::World;

/// A type of resource that is told by its schema alone: what is computed gets a value made from the attribute's name and
/// the object's id.
pub struct Thing {
    pub name: &'static str,
    schema: Schema,
    replace_on: &'static [&'static str],
    identity: Option<Schema>,
}

pub fn all(version: Version) -> Vec<Thing> {
    let thing = |name, schema, replace_on| Thing { name, schema, replace_on, identity: None };
    let mut things = vec![
        thing("probe_object", schemas::object(), &["kind"][..]),
        thing("probe_blocks", schemas::blocks(), &[]),
        thing("probe_write_only", schemas::write_only(), &[]),
        thing("probe_legacy", schemas::legacy(), &["kind"]),
        thing("probe_versioned", schemas::versioned(), &[]),
        Thing { identity: Some(schemas::identity()), ..thing("probe_identified", schemas::identified(), &["kind"]) },
    ];
    if version == Version::V6 {
        things.push(thing("probe_nested", schemas::nested_attributes(), &[]));
    }
    things
}

/// The note that an object has if nobody wrote one.
const USUAL_NOTE: &str = "as usual";

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn failed(error: impl ToString) -> Failure {
    Diagnostic::error("The ledger cannot be used", error.to_string()).into()
}

impl Thing {
    fn ty(&self) -> Type {
        self.schema.block.implied_type()
    }

    fn stored(&self, value: &Value) -> Result<Json, String> {
        value.to_json(&self.ty()).map_err(|error| error.to_string())
    }

    /// What the plan left open, decided.
    fn completed(&self, planned: Value, id: &str, world: &World, revision: Number) -> Value {
        let anything = planned.get("anything").cloned();
        planned.transform(&mut |path, value| {
            let Some(name) = path.iter().rev().find_map(attribute_name).filter(|_| !value.is_known()) else {
                return value;
            };
            match name {
                "id" => Value::string(id),
                "region" => Value::string(&world.region),
                "revision" => Value::number(revision.clone()),
                "result" => anything.clone().filter(|part| !part.is_null()).unwrap_or_else(|| Value::string("nothing")),
                "fingerprint" => Value::string("unseen"),
                name => made(&value.ty, name, id),
            }
        })
    }
}

fn attribute_name(step: &Step) -> Option<&str> {
    match step {
        Step::Attribute(name) => Some(name),
        _ => None,
    }
}

/// A value of that type, the same whenever it is asked for.
fn made(ty: &Type, name: &str, id: &str) -> Value {
    match ty {
        Type::Bool => Value::bool(true),
        Type::Number => Value::number(id.len() as u64),
        Type::List(element) => Value::list((**element).clone(), vec![made(element, name, id)]),
        Type::Set(element) => Value::set((**element).clone(), vec![made(element, name, id)]),
        Type::Map(element) => Value::map((**element).clone(), [(name, made(element, name, id))]),
        Type::Object { attributes, .. } => {
            Value::object(attributes.iter().map(|(name, ty)| (name.clone(), made(ty, name, id))))
        }
        Type::Tuple(types) => Value::tuple(types.iter().map(|ty| made(ty, name, id)).collect()),
        Type::String | Type::Dynamic => Value::string(format!("{name} of {id}")),
    }
}

/// Computed attributes that nobody has set are not known yet, also inside of what is nested.
fn open(block: &Block, value: Value) -> Value {
    let Some(mut parts) = value.as_mapping().cloned() else { return value };
    open_attributes(&block.attributes, &mut parts);
    for (name, NestedBlock { nesting, block, .. }) in &block.blocks {
        if let Some(part) = parts.remove(name) {
            parts.insert(name.clone(), each(*nesting, part, &|inner| open(block, inner)));
        }
    }
    Value::object(parts)
}

type Attributes = std::collections::BTreeMap<String, Attribute>;

fn open_attributes(attributes: &Attributes, parts: &mut std::collections::BTreeMap<String, Value>) {
    for (name, attribute) in attributes {
        let Some(part) = parts.remove(name) else { continue };
        let opened = match &attribute.kind {
            _ if part.is_null() && attribute.computed => Value::unknown(attribute.implied_type()),
            AttributeKind::Plain(_) => part,
            AttributeKind::Nested { nesting, attributes } => {
                let block = Block { attributes: attributes.clone(), ..Block::default() };
                each(*nesting, part, &|inner| open(&block, inner))
            }
        };
        parts.insert(name.clone(), opened);
    }
}

fn each(nesting: Nesting, value: Value, change: &dyn Fn(Value) -> Value) -> Value {
    let elements = || value.as_sequence().into_iter().flatten().cloned().map(change).collect();
    match (nesting, &value.data, &value.ty) {
        (Nesting::Single | Nesting::Group, _, _) => change(value),
        (Nesting::List, Data::Sequence(_), Type::Tuple(_)) => Value::tuple(elements()),
        (Nesting::List, Data::Sequence(_), ty) => Value::list(element(ty), elements()),
        (Nesting::Set, Data::Sequence(_), ty) => Value::set(element(ty), elements()),
        (Nesting::Map, Data::Mapping(parts), ty) => {
            let changed = parts.iter().map(|(key, inner)| (key.clone(), change(inner.clone())));
            match ty {
                Type::Map(element) => Value::map((**element).clone(), changed),
                _ => Value::object(changed),
            }
        }
        _ => value,
    }
}

fn element(ty: &Type) -> Type {
    ty.element().cloned().unwrap_or(Type::Dynamic)
}

fn set(value: Value, name: &str, part: Value) -> Value {
    let Some(mut parts) = value.as_mapping().cloned() else { return value };
    parts.insert(name.to_owned(), part);
    Value::object(parts)
}

#[async_trait]
impl Resource<World> for Thing {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn replace_on(&self) -> &'static [&'static str] {
        self.replace_on
    }

    async fn plan(&self, prior: &Value, proposed: Value, config: &Value) -> Result<Value, Failure> {
        let mut planned = proposed;
        if self.schema.block.attributes.contains_key("note") && config.get("note").is_some_and(Value::is_null) {
            planned = set(planned, "note", Value::string(USUAL_NOTE));
        }
        for (name, attribute) in self.schema.block.attributes.iter().filter(|(_, attribute)| attribute.write_only) {
            planned = set(planned, name, Value::null(attribute.implied_type()));
        }
        let planned = open(&self.schema.block, planned);
        if prior.is_null() || *prior == planned {
            return Ok(planned);
        }
        // A change of anything is a new revision, and another `anything` another result.
        let with = |value: Value, name: &str| match self.schema.block.attributes.get(name) {
            Some(attribute) => set(value, name, Value::unknown(attribute.implied_type())),
            None => value,
        };
        let moved = prior.get("anything") != planned.get("anything");
        let planned = with(planned, "revision");
        let reseen = prior.get("password_version") != planned.get("password_version");
        let planned = if reseen { with(planned, "fingerprint") } else { planned };
        Ok(if moved { with(planned, "result") } else { planned })
    }

    async fn read(&self, world: &World, state: Value) -> Result<Option<Value>, Failure> {
        let found = world.find(&text(&state, "id").unwrap_or_default()).map_err(failed)?;
        let read = found.map(|object| Value::from_json(&object.attributes, &self.ty()).map_err(failed)).transpose()?;
        // Nobody can see a password again, so what is known of it is known from the state.
        let fingerprint = state.get("fingerprint").cloned();
        Ok(read.map(|read| fingerprint.into_iter().fold(read, |read, part| set(read, "fingerprint", part))))
    }

    async fn create(&self, world: &World, planned: Value) -> Result<Value, Failure> {
        let name = text(&planned, "name").unwrap_or_default();
        let mut made = None;
        let create = world.create(self.name, &name, |id| {
            let object = made.insert(self.completed(planned, id, world, Number::from(1u64)));
            self.stored(object)
        });
        create.await.map_err(failed)?;
        made.ok_or_else(|| failed("nothing was made"))
    }

    async fn update(&self, world: &World, prior: Value, planned: Value) -> Result<Value, Failure> {
        let id = text(&prior, "id").unwrap_or_default();
        let revision = prior.get("revision").and_then(Value::as_number).cloned().unwrap_or(Number::from(0u64));
        let updated = self.completed(planned, &id, world, revision.add(&Number::from(1u64)));
        world.update(&id, self.stored(&updated).map_err(failed)?).map_err(failed)?;
        Ok(updated)
    }

    async fn delete(&self, world: &World, state: Value) -> Result<(), Failure> {
        let id = text(&state, "id").unwrap_or_default();
        if world.find(&id).map_err(failed)?.is_some() {
            world.delete(&id).map_err(failed)?;
        }
        Ok(())
    }

    fn upgrade(&self, version: i64, mut stored: Json) -> Result<Value, Failure> {
        if version == 0
            && let Some(title) = stored.as_object_mut().and_then(|object| object.remove("title"))
        {
            stored["name"] = title;
        }
        if let Some(size) = stored["size"].as_str().and_then(|size| serde_json::from_str(size).ok()) {
            stored["size"] = size;
        }
        Value::from_json(&stored, &self.ty()).map_err(|error| {
            Diagnostic::error("The stored object cannot be read", format!("Version {version}: {error}")).into()
        })
    }

    fn identity(&self) -> Option<Schema> {
        self.identity.clone()
    }

    fn identity_of(&self, state: &Value) -> Option<Value> {
        let identity = self.identity.as_ref()?;
        let part = |name: &String| (name.clone(), state.get(name).cloned().unwrap_or(Value::null(Type::String)));
        Some(Value::object(identity.block.attributes.keys().map(part)))
    }

    /// Version 0 had the id alone, under another name.
    fn upgrade_identity(&self, _version: i64, stored: Json) -> Result<Value, Failure> {
        let part = |name: &str| stored[name].as_str().map_or(Value::null(Type::String), Value::string);
        Ok(Value::object([("id", part("key")), ("region", part("region"))]))
    }

    /// Where the identity says where the object is, it must be there.
    async fn import_by_identity(&self, world: &World, identity: &Value) -> Result<Option<Value>, Failure> {
        let id = identity.get("id").and_then(Value::as_str).unwrap_or_default();
        let found = self.import(world, id).await?;
        let region = identity.get("region").filter(|region| !region.is_null());
        Ok(found.filter(|object| region.is_none_or(|region| object.get("region") == Some(region))))
    }

    async fn import(&self, world: &World, id: &str) -> Result<Option<Value>, Failure> {
        let found = world.find(id).map_err(failed)?.filter(|object| object.kind == self.name);
        found.map(|object| Value::from_json(&object.attributes, &self.ty()).map_err(failed)).transpose()
    }
}
