use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::{Diagnostic, Diagnostics, Schema};

/// A call that did not do all that it should. What exists nevertheless must be said, or it is lost.
#[derive(Clone, Debug)]
pub struct Failure {
    pub diagnostics: Diagnostics,
    /// The object as it is now, if the call got that far.
    pub state: Option<Box<Value>>,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure { diagnostics: vec![diagnostic], state: None }
    }
}

/// One type of resource. `C` is what the provider's configuration was made into, for instance a client of an API.
///
/// Values are objects of the schema's type, complete with every attribute.
#[async_trait]
pub trait Resource<C>: Send + Sync {
    fn schema(&self) -> Schema;

    /// Attributes that cannot be changed on an existing object.
    fn replace_on(&self) -> &'static [&'static str] {
        &[]
    }

    /// Beyond what the schema says. Values may be unknown here.
    async fn validate(&self, _config: &Value) -> Diagnostics {
        Vec::new()
    }

    /// What an object will be like: `proposed` as it stands, but for a new object the computed attributes that the
    /// configuration leaves open are not known yet. `prior` is null for a new object.
    async fn plan(&self, prior: &Value, proposed: Value, config: &Value) -> Result<Value, Failure> {
        Ok(if prior.is_null() { open_computed(&self.schema(), proposed, config) } else { proposed })
    }

    /// None: the object is gone.
    async fn read(&self, client: &C, state: Value) -> Result<Option<Value>, Failure>;

    async fn create(&self, client: &C, planned: Value) -> Result<Value, Failure>;

    async fn update(&self, client: &C, prior: Value, planned: Value) -> Result<Value, Failure>;

    /// Deleting what is gone already is a success.
    async fn delete(&self, client: &C, state: Value) -> Result<(), Failure>;

    /// An object as an older schema version stored it, in today's form.
    fn upgrade(&self, version: i64, _stored: serde_json::Value) -> Result<Value, Failure> {
        let detail = format!("It has schema version {version}, not {}.", self.schema().version);
        Err(Diagnostic::error("The stored object cannot be read", detail).into())
    }

    /// The schema of what tells an object from all others of this type, if there is such a thing.
    fn identity(&self) -> Option<Schema> {
        None
    }

    /// The identity of an object that exists.
    fn identity_of(&self, _state: &Value) -> Option<Value> {
        None
    }

    /// An identity as an older version of its schema stored it, in today's form.
    fn upgrade_identity(&self, version: i64, _stored: serde_json::Value) -> Result<Value, Failure> {
        let detail = format!("There is no version {version} of it.");
        Err(Diagnostic::error("The stored identity cannot be read", detail).into())
    }

    /// None: there is no such object.
    async fn import(&self, client: &C, id: &str) -> Result<Option<Value>, Failure>;

    /// The same for an object that is named by its identity.
    async fn import_by_identity(&self, _client: &C, _identity: &Value) -> Result<Option<Value>, Failure> {
        let detail = "Objects of this type are imported by their id.";
        Err(Diagnostic::error("Cannot import by identity", detail).into())
    }
}

/// One type of data source.
#[async_trait]
pub trait DataSource<C>: Send + Sync {
    fn schema(&self) -> Schema;

    /// Beyond what the schema says. Values may be unknown here.
    async fn validate(&self, _config: &Value) -> Diagnostics {
        Vec::new()
    }

    /// The configuration, complete with what was looked up.
    async fn read(&self, client: &C, config: Value) -> Result<Value, Failure>;
}

fn open_computed(schema: &Schema, mut proposed: Value, config: &Value) -> Value {
    if let landform_cty::Data::Mapping(attributes) = &mut proposed.data {
        for (name, attribute) in &schema.block.attributes {
            if attribute.computed && config.get(name).is_none_or(Value::is_null) {
                std::sync::Arc::make_mut(attributes).insert(name.clone(), Value::unknown(attribute.implied_type()));
            }
        }
    }
    proposed
}
