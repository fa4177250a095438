//! The provider of the kill tests. Creating always makes a new object with a random id, and nothing can be looked up
//! by name: whoever creates twice has two objects, and the ledger shows it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use async_trait::async_trait;
use landform_cty::{Number, Type, Value};
use landform_protocol::wire::Version;
use landform_protocol::{Diagnostic, Schema};
use landform_provider_kit::{Definition, Failure, Kit, Resource, Resources, block, number, run, string};
use landform_testkit::ledger::{self, Kill, Object, Operation};
use tokio::sync::Mutex;

fn main() -> ExitCode {
    run(Version::V6, Kit::new(Provider))
}

struct Provider;

#[async_trait]
impl Definition for Provider {
    type Client = PathBuf;

    fn schema(&self) -> Schema {
        block([("ledger", string().required().describe("The absolute path of the ledger, a file."))])
    }

    fn resources(&self) -> Resources<PathBuf> {
        vec![("ledger_object", Box::new(LedgerObject))]
    }

    async fn configure(&self, config: &Value) -> Result<PathBuf, Failure> {
        match config.get("ledger").and_then(Value::as_str).map(PathBuf::from) {
            Some(path) if path.is_absolute() => Ok(path),
            _ => Err(Diagnostic::error("The ledger must be an absolute path", "").at("ledger").into()),
        }
    }
}

struct LedgerObject;

#[async_trait]
impl Resource<PathBuf> for LedgerObject {
    fn schema(&self) -> Schema {
        block([
            ("id", string().computed()),
            ("name", string().required()),
            ("size", number().optional()),
            ("kind", string().optional().describe("Cannot be changed on an existing object.")),
            (
                "key",
                string().optional().describe("Can be changed, but is never told: what was written last is trusted."),
            ),
            ("delay_ms", number().optional().describe("Half before the ledger is written, half after.")),
        ])
    }

    fn replace_on(&self) -> &'static [&'static str] {
        &["kind"]
    }

    async fn read(&self, ledger: &PathBuf, state: Value) -> Result<Option<Value>, Failure> {
        let object = find(ledger, &text(&state, "id").unwrap_or_default())?;
        Ok(object.map(|object| value(object, &state)))
    }

    async fn create(&self, ledger: &PathBuf, planned: Value) -> Result<Value, Failure> {
        let object = Object { id: format!("{:032x}", rand::random::<u128>()), ..object(&planned) };
        write(ledger, &planned, Operation::Create(object.clone())).await?;
        Ok(value(object, &planned))
    }

    async fn update(&self, ledger: &PathBuf, _: Value, planned: Value) -> Result<Value, Failure> {
        write(ledger, &planned, Operation::Update(object(&planned))).await?;
        Ok(planned)
    }

    async fn delete(&self, ledger: &PathBuf, state: Value) -> Result<(), Failure> {
        let id = text(&state, "id").unwrap_or_default();
        if find(ledger, &id)?.is_none() {
            return Ok(());
        }
        write(ledger, &state, Operation::Delete(id)).await
    }

    async fn import(&self, ledger: &PathBuf, id: &str) -> Result<Option<Value>, Failure> {
        let nothing = Value::null(self.schema().block.implied_type());
        Ok(find(ledger, id)?.map(|object| value(object, &nothing)))
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn object(value: &Value) -> Object {
    Object {
        id: text(value, "id").unwrap_or_default(),
        name: text(value, "name").unwrap_or_default(),
        size: value.get("size").and_then(Value::as_number).map(Number::to_string),
        kind: text(value, "kind"),
        key: text(value, "key"),
    }
}

/// What the ledger tells, and the rest as it was `said` to be.
fn value(object: Object, said: &Value) -> Value {
    let optional = |text: Option<String>| text.map_or(Value::null(Type::String), Value::string);
    let size = object.size.and_then(|size| Number::parse(&size).ok());
    Value::object([
        ("id", Value::string(object.id)),
        ("name", Value::string(object.name)),
        ("size", size.map_or(Value::null(Type::Number), Value::number)),
        ("kind", optional(object.kind)),
        ("key", said.get("key").cloned().unwrap_or(Value::null(Type::String))),
        ("delay_ms", said.get("delay_ms").cloned().unwrap_or(Value::null(Type::Number))),
    ])
}

fn find(path: &Path, id: &str) -> Result<Option<Object>, Failure> {
    let ledger = ledger::read(path).map_err(|error| Diagnostic::error("Cannot read the ledger", error.to_string()))?;
    Ok(ledger.objects.get(id).cloned())
}

async fn write(path: &Path, object: &Value, operation: Operation) -> Result<(), Failure> {
    let delay = object.get("delay_ms").and_then(Value::as_number).and_then(Number::to_usize);
    let half = Duration::from_millis(delay.unwrap_or(0) as u64) / 2;
    tokio::time::sleep(half).await;
    {
        // The count of changes before a kill must not race.
        static WRITING: Mutex<()> = Mutex::const_new(());
        let _writing = WRITING.lock().await;
        let failed = |error: std::io::Error| Diagnostic::error("Cannot write the ledger", error.to_string());
        let kill = Kill::due(path).map_err(failed)?;
        if kill.is_some_and(|kill| !kill.after) {
            kill_the_caller().await;
        }
        ledger::append(path, &operation).map_err(failed)?;
        if kill.is_some() {
            kill_the_caller().await;
        }
    }
    tokio::time::sleep(half).await;
    Ok(())
}

/// Whoever started this process gets no answer, and no chance to do anything about it.
async fn kill_the_caller() {
    if let Some(caller) = rustix::process::getppid() {
        let _ = rustix::process::kill_process(caller, rustix::process::Signal::KILL);
    }
    // This process goes with its caller.
    std::future::pending().await
}
