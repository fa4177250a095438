//! What the Director's objects have in common: a name that is their id, a body in JSON, a place to read and change them,
//! and often a task that brings a change to the appliances.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::{Diagnostics, Schema};
use landform_provider_kit::{Builder, Failure, Resource, number, string};
use reqwest::Method;
use serde_json::Value as Json;

use super::director::{Director, Trouble};
use crate::fields::{required, whole, with};

const TASK_SECONDS: i64 = 600;

/// One type of object.
#[async_trait]
pub trait Kind: Send + Sync + 'static {
    /// What it is called in messages.
    const NAME: &'static str;

    fn schema(&self) -> Schema;

    fn replace_on(&self) -> &'static [&'static str];

    fn validate(&self, _config: &Value) -> Diagnostics {
        Vec::new()
    }

    /// What an attribute is where the configuration does not say.
    fn defaults(&self, _proposed: &Value) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn id(&self, object: &Value) -> String;

    /// Where it is made.
    fn birthplace(&self, object: &Value) -> (Method, String);

    /// Where it is read and changed.
    fn place(&self, object: &Value) -> String;

    /// Where it is deleted.
    fn grave(&self, object: &Value) -> String {
        self.place(object)
    }

    fn body(&self, object: &Value) -> Json;

    /// The object as the Director has it. What is never read back stays as it was.
    fn as_found(&self, body: &Json, known: Value) -> Value;

    /// Enough of an object to find it. None: no such id can be.
    fn named(&self, id: &str, blank: Value) -> Option<Value>;

    /// Fills in what only the Director knows before the object is made.
    async fn prepare(&self, _director: &Director, planned: Value) -> Result<Value, Trouble> {
        Ok(planned)
    }

    /// Whether making it anew, prepared again, can help where it was refused.
    fn again(&self, _planned: &Value, _refused: &Trouble) -> bool {
        false
    }

    /// Brings what was written to where it works.
    async fn deploy(&self, director: &Director, object: &Value) -> Result<(), Trouble>;

    /// After the object was deleted.
    async fn withdraw(&self, _director: &Director, _object: &Value) -> Result<(), Trouble> {
        Ok(())
    }
}

/// How long a task of this object may take.
pub fn task_patience(object: &Value) -> Duration {
    Duration::from_secs(whole(object, "task_seconds").unwrap_or(TASK_SECONDS).clamp(1, 86_400).unsigned_abs())
}

/// Attributes that every object has.
pub fn common() -> [(&'static str, Builder); 2] {
    [
        ("id", string().computed()),
        ("task_seconds", number().optional().describe("How long the Director's tasks may take; 600 if left out.")),
    ]
}

/// A [`Kind`] as a resource.
pub struct Object<K>(pub K);

/// Others take free ids at the same moment; each of them makes one of our tries void.
const TRIES: u32 = 20;

/// Who has met others at a free id comes back at a moment of its own, and later each time.
fn apart(tries: u32) -> Duration {
    let most = (10u64 << tries.min(7)).min(1_000);
    let random = std::hash::RandomState::new().build_hasher().finish();
    Duration::from_millis(random % most)
}

impl<K: Kind> Object<K> {
    fn failed(trouble: Trouble, verb: &str, id: &str) -> Failure {
        trouble.during(&format!("{verb} the {} {id}", K::NAME))
    }

    fn finished(&self, object: Value) -> Value {
        let id = self.0.id(&object);
        with(object, [("id", Value::string(id))])
    }

    /// The object exists, whatever became of its deployment: that must be in the state.
    async fn deployed(&self, director: &Director, object: Value) -> Result<Value, Failure> {
        match self.0.deploy(director, &object).await {
            Ok(()) => Ok(object),
            Err(trouble) => {
                let failure = Self::failed(trouble, "deploy", &self.0.id(&object));
                let left = if object.get("deployed").is_some() {
                    with(object, [("deployed", Value::bool(false))])
                } else {
                    object
                };
                Err(Failure { state: Some(Box::new(left)), ..failure })
            }
        }
    }
}

#[async_trait]
impl<K: Kind> Resource<Director> for Object<K> {
    fn schema(&self) -> Schema {
        self.0.schema()
    }

    fn replace_on(&self) -> &'static [&'static str] {
        self.0.replace_on()
    }

    async fn validate(&self, config: &Value) -> Diagnostics {
        self.0.validate(config)
    }

    async fn plan(&self, prior: &Value, proposed: Value, config: &Value) -> Result<Value, Failure> {
        let mut planned = proposed;
        if prior.is_null() {
            for (name, attribute) in &self.0.schema().block.attributes {
                if attribute.computed && config.get(name).is_none_or(Value::is_null) {
                    planned = with(planned, [(name, Value::unknown(attribute.implied_type()))]);
                }
            }
        }
        for (name, default) in self.0.defaults(&planned) {
            if config.get(name).is_none_or(Value::is_null) {
                planned = with(planned, [(name, default)]);
            }
        }
        Ok(planned)
    }

    async fn read(&self, director: &Director, state: Value) -> Result<Option<Value>, Failure> {
        let found = director.find(&self.0.place(&state)).await;
        let found = found.map_err(|trouble| Self::failed(trouble, "read", &self.0.id(&state)))?;
        Ok(found.map(|body| self.finished(self.0.as_found(&body, state))))
    }

    async fn create(&self, director: &Director, planned: Value) -> Result<Value, Failure> {
        let failed = |trouble| Self::failed(trouble, "make", &self.0.id(&planned));
        let mut tries = 0;
        let object = loop {
            let object = self.0.prepare(director, planned.clone()).await.map_err(failed)?;
            let (method, path) = self.0.birthplace(&object);
            match director.make(method, &path, &self.0.place(&object), &self.0.body(&object)).await {
                Ok(()) => break object,
                Err(trouble) if tries < TRIES && self.0.again(&planned, &trouble) => {
                    tries += 1;
                    tokio::time::sleep(apart(tries)).await;
                }
                Err(trouble) => return Err(failed(trouble)),
            }
        };
        let object = self.finished(object);
        self.deployed(director, object).await
    }

    async fn update(&self, director: &Director, prior: Value, planned: Value) -> Result<Value, Failure> {
        let id = self.0.id(&prior);
        let changed = director.change(&self.0.place(&prior), &self.0.body(&planned)).await;
        changed.map_err(|trouble| Failure { state: Some(Box::new(prior)), ..Self::failed(trouble, "change", &id) })?;
        let object = self.finished(planned);
        self.deployed(director, object).await
    }

    async fn delete(&self, director: &Director, state: Value) -> Result<(), Failure> {
        let failed = |trouble| Self::failed(trouble, "delete", &self.0.id(&state));
        director.delete(&self.0.grave(&state)).await.map_err(failed)?;
        self.0.withdraw(director, &state).await.map_err(failed)
    }

    async fn import(&self, director: &Director, id: &str) -> Result<Option<Value>, Failure> {
        let schema = self.0.schema();
        let attributes = schema.block.attributes.iter();
        let blank = Value::object(attributes.map(|(name, of)| (name.clone(), Value::null(of.implied_type()))));
        match self.0.named(id, blank) {
            Some(named) => self.read(director, named).await,
            None => Ok(None),
        }
    }
}

/// The parts of an id such as `template/organization/name`; none may be empty.
pub fn parts<const N: usize>(id: &str) -> Option<[&str; N]> {
    let parts: Vec<&str> = id.splitn(N, '/').collect();
    parts.iter().all(|part| !part.is_empty()).then(|| parts.try_into().ok()).flatten()
}

/// Several attributes as one id.
pub fn joined(object: &Value, names: &[&str]) -> String {
    names.iter().map(|name| required(object, name)).collect::<Vec<_>>().join("/")
}
