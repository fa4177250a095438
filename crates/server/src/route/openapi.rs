//! The OpenAPI document, made from the table of routes and the wire types.

use std::collections::BTreeMap;

use axum::http::Method;
use utoipa::ToSchema;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content as MediaType, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref,
    RefOr, Required, Schema, Type,
};

use super::{Content, Route, Schemas, table};

const OTHER_METHODS: &str = "x-additional-operations";

pub(crate) fn document() -> OpenApi {
    let mut schemas = Schemas::new();
    schemas.push((
        landform_api::ProblemBody::name().into_owned(),
        <landform_api::ProblemBody as utoipa::PartialSchema>::schema(),
    ));
    let mut items: BTreeMap<&'static str, PathItem> = BTreeMap::new();
    let mut others: BTreeMap<&'static str, serde_json::Map<String, serde_json::Value>> = BTreeMap::new();
    for route in table() {
        let item = items.entry(route.path).or_default();
        let operation = operation(&route, &mut schemas);
        match standard(&route.method) {
            Some(method) => item.merge_operations(PathItem::new(method, operation)),
            // LOCK and UNLOCK of the state backend, which this version of the format has no word for.
            None => {
                let operation = serde_json::to_value(operation).expect("an operation is plain data");
                others.entry(route.path).or_default().insert(route.method.to_string(), operation);
            }
        }
    }
    for (path, operations) in others {
        let extension = ExtensionsBuilder::new().add(OTHER_METHODS, serde_json::Value::Object(operations)).build();
        items.entry(path).or_default().extensions = Some(extension);
    }
    let paths = items.into_iter().fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item));
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)))
        .security_scheme("password", SecurityScheme::Http(Http::new(HttpAuthScheme::Basic)));
    OpenApiBuilder::new()
        .info(InfoBuilder::new().title("Landform").version(env!("CARGO_PKG_VERSION")))
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new("token", [""; 0]), SecurityRequirement::new("password", [""; 0])]))
        .build()
}

fn standard(method: &Method) -> Option<HttpMethod> {
    match method.as_str() {
        "GET" => Some(HttpMethod::Get),
        "PUT" => Some(HttpMethod::Put),
        "POST" => Some(HttpMethod::Post),
        "DELETE" => Some(HttpMethod::Delete),
        _ => None,
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Operation {
    let right = serde_json::to_value(route.right).expect("a right is a word");
    let description = format!("Needs the right to {}.", right.as_str().unwrap_or_default());
    let mut operation = OperationBuilder::new()
        .summary(Some(route.about))
        .description(Some(description))
        .operation_id(Some(format!("{} {}", route.method, route.path)))
        // Who is kept out of it, for whoever wants to check.
        .extensions(Some(ExtensionsBuilder::new().add("x-tenancy", route.tenancy.as_str()).build()))
        .tag(route.path.split('/').nth(2).unwrap_or_default());
    for name in path_names(route.path) {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
        operation = operation.parameter(parameter.schema(Some(text())));
    }
    for parameter in route.query.map(|query| query()).unwrap_or_default() {
        operation = operation.parameter(parameter);
    }
    if let Some(content) = route.takes {
        let (kind, media) = media(content, schemas);
        operation = operation.request_body(Some(RequestBodyBuilder::new().content(kind, media).build()));
    }
    let (status, content) = route.answers;
    let mut answer = ResponseBuilder::new().description("Done");
    if let Some(content) = content {
        let (kind, media) = media(content, schemas);
        answer = answer.content(kind, media);
    }
    let problem = RefOr::Ref(Ref::from_schema_name(landform_api::ProblemBody::name()));
    let refusal = ResponseBuilder::new()
        .description("Refused, with a stable code and a hint")
        .content("application/problem+json", MediaType::new(Some(problem)));
    operation.response(status.to_string(), answer.build()).response("default", refusal.build()).build()
}

fn media(content: Content, schemas: &mut Schemas) -> (&'static str, MediaType) {
    match content {
        Content::Json(describe) => ("application/json", MediaType::new(Some(describe(schemas)))),
        Content::Lines(describe) => ("application/x-ndjson", MediaType::new(Some(describe(schemas)))),
        Content::Raw(kind) => (kind, MediaType::new(None::<RefOr<Schema>>)),
    }
}

fn text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).build().into()
}

fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_route_and_every_schema_that_it_names() {
        let document = serde_json::to_value(document()).unwrap();
        for route in table() {
            let item = &document["paths"][route.path];
            let method = route.method.as_str();
            let operation = match standard(&route.method) {
                Some(_) => &item[method.to_ascii_lowercase()],
                None => &item[OTHER_METHODS][method],
            };
            assert_eq!(operation["summary"], route.about, "{method} {}: {item}", route.path);
        }
        let text = document.to_string();
        let named: Vec<&str> =
            text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(named.len() > 20);
        for name in named {
            assert!(document["components"]["schemas"][name].is_object(), "{name} is named and missing");
        }
    }
}
