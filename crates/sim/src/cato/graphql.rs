//! Reading requests against the schema, and answering selections from plain JSON.

use apollo_compiler::executable::{Field, Operation};
use apollo_compiler::resolvers::{Execution, FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use apollo_compiler::response::serde_json_bytes::ByteString;
use apollo_compiler::response::{JsonMap, JsonValue};
use apollo_compiler::schema::Type;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Node};
use serde_json::{Map, Value, json};

/// Deeper or longer queries than any client sends are refused before they cost anything.
const LONGEST_QUERY: usize = 200_000;

pub struct Schema(Valid<apollo_compiler::Schema>);

impl Schema {
    pub fn load() -> Self {
        let text = include_str!("schema.graphql");
        Self(apollo_compiler::Schema::parse_and_validate(text, "schema.graphql").expect("the built-in schema is valid"))
    }

    /// Reads the body of a POST. The error is for the client.
    pub fn read(&self, body: &[u8]) -> Result<Request<'_>, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| format!("this is not JSON: {error}"))?;
        let query = body.get("query").and_then(Value::as_str).ok_or("there is no query")?;
        if query.len() > LONGEST_QUERY {
            return Err("the query is too long".to_owned());
        }
        let document = ExecutableDocument::parse_and_validate(&self.0, query, "query")
            .map_err(|invalid| invalid.errors.to_string())?;
        let name = body.get("operationName").and_then(Value::as_str).filter(|name| !name.is_empty());
        let operation = document.operations.get(name).map_err(|error| error.message().to_string())?.clone();
        let variables = match body.get("variables") {
            Some(Value::Object(variables)) => without_nulls(variables),
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err("variables are not an object".to_owned()),
        };
        Ok(Request { schema: &self.0, document, operation, variables })
    }
}

/// Go clients write null for a list that they leave out. The vendor takes that as absent even where its schema says that
/// the list cannot be null, so the defaults apply.
fn without_nulls(map: &Map<String, Value>) -> Map<String, Value> {
    fn inside(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(without_nulls(map)),
            Value::Array(values) => Value::Array(values.iter().map(inside).collect()),
            value => value.clone(),
        }
    }
    map.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), inside(value))).collect()
}

pub struct Request<'a> {
    schema: &'a Valid<apollo_compiler::Schema>,
    document: Valid<ExecutableDocument>,
    operation: Node<Operation>,
    variables: Map<String, Value>,
}

impl Request<'_> {
    /// What the vendor counts: the fields below `site`, and the other fields of the root.
    pub fn operations(&self) -> Vec<String> {
        let mut operations = Vec::new();
        for field in self.operation.root_fields(&self.document) {
            match field.name.as_str() {
                "site" | "sites" => {
                    let below = field.selection_set.root_fields(&self.document);
                    operations.extend(below.map(|field| field.name.to_string()));
                }
                name => operations.push(name.to_owned()),
            }
        }
        operations
    }

    /// The account that the first field of the root is asked for.
    pub fn account(&self) -> Option<&str> {
        let field = self.operation.root_fields(&self.document).next()?;
        ["accountId", "accountID"].into_iter().find_map(|argument| self.text_argument(field, argument))
    }

    fn text_argument<'r>(&'r self, field: &'r Field, argument: &str) -> Option<&'r str> {
        let value = field.specified_argument_by_name(argument)?;
        match value.as_variable() {
            Some(variable) => self.variables.get(variable.as_str())?.as_str(),
            None => value.as_str(),
        }
    }

    /// Executes the operation from its root; the answer is the whole body.
    pub fn execute(&self, root: &dyn ObjectValue) -> Value {
        let variables: JsonMap = to_map(&self.variables);
        let execution = Execution::new(self.schema, &self.document).operation(&self.operation);
        match execution.raw_variable_values(&variables).execute_sync(root) {
            Ok(response) => {
                let data = response.data.map_or(Value::Null, |data| from_bytes(&JsonValue::Object(data)));
                if response.errors.is_empty() {
                    return json!({"data": data});
                }
                let errors: Vec<_> = response.errors.iter().map(|error| json!({"message": error.message})).collect();
                json!({"errors": errors, "data": data})
            }
            Err(error) => json!({"errors": [{"message": error.message().to_string()}]}),
        }
    }

    pub fn is_mutation(&self) -> bool {
        self.operation.is_mutation()
    }
}

/// An object whose fields are those of a JSON object; what it does not have is null.
pub struct Plain {
    type_name: String,
    value: Value,
}

impl Plain {
    pub fn resolved<'a>(value: Value, info: &ResolveInfo<'_>) -> ResolvedValue<'a> {
        resolve(value, &info.field_definition().ty, info.schema())
    }
}

impl ObjectValue for Plain {
    fn type_name(&self) -> &str {
        &self.type_name
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let value = self.value.get(info.field_name()).cloned().unwrap_or(Value::Null);
        Ok(Plain::resolved(value, info))
    }
}

fn resolve<'a>(value: Value, ty: &Type, schema: &Valid<apollo_compiler::Schema>) -> ResolvedValue<'a> {
    match (ty, value) {
        (_, Value::Null) => ResolvedValue::null(),
        (Type::List(item) | Type::NonNullList(item), Value::Array(values)) => {
            let items: Vec<_> = values.into_iter().map(|value| Ok(resolve(value, item, schema))).collect();
            ResolvedValue::List(Box::new(items.into_iter()))
        }
        (Type::Named(name) | Type::NonNullNamed(name), value) => {
            if schema.types.get(name).is_some_and(|ty| ty.is_object()) {
                ResolvedValue::object(Plain { type_name: name.to_string(), value })
            } else {
                ResolvedValue::Leaf(to_bytes(&value))
            }
        }
        (_, value) => ResolvedValue::Leaf(to_bytes(&value)),
    }
}

/// The field's arguments as ordinary JSON, defaults included.
pub fn arguments(info: &ResolveInfo<'_>) -> Value {
    from_bytes(&JsonValue::Object(info.arguments().clone()))
}

// The executor has a JSON type of its own, and the two cannot go through serde: exact numbers would become objects.

fn to_map(map: &Map<String, Value>) -> JsonMap {
    map.iter().map(|(name, value)| (ByteString::from(name.as_str()), to_bytes(value))).collect()
}

fn to_bytes(value: &Value) -> JsonValue {
    match value {
        Value::Null => JsonValue::Null,
        Value::Bool(bool) => JsonValue::Bool(*bool),
        Value::Number(number) => JsonValue::Number(number.clone()),
        Value::String(text) => JsonValue::String(ByteString::from(text.as_str())),
        Value::Array(values) => JsonValue::Array(values.iter().map(to_bytes).collect()),
        Value::Object(map) => JsonValue::Object(to_map(map)),
    }
}

fn from_bytes(value: &JsonValue) -> Value {
    match value {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(bool) => Value::Bool(*bool),
        JsonValue::Number(number) => Value::Number(number.clone()),
        JsonValue::String(text) => Value::String(text.as_str().to_owned()),
        JsonValue::Array(values) => Value::Array(values.iter().map(from_bytes).collect()),
        JsonValue::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (name.as_str().to_owned(), from_bytes(value))).collect())
        }
    }
}
