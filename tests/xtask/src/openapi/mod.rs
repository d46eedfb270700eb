//! The description of the API, from the wire types, the table of routes and the tables of the credential types.

mod operations;
mod schemas;

use operations::{Answer, Caller, OPERATIONS, Operation};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vault_api::{Problem, ProblemCode};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::json::{Limits, parse};
use vault_http::{Access, Route};

/// Operations that are not part of the API.
const UNDESCRIBED: [&str; 7] =
    ["openapi", "docs", "console", "console-file", "console-module", "show-federation-issuer", "show-federation-keys"];

const PROBLEM: &str = "application/problem+json";

/// The OpenAPI 3.1 document. Addresses begin with the default base path.
pub(crate) fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (route, activation) in routes() {
        let operation = OPERATIONS.iter().find(|operation| operation.name == route.operation);
        let operation = operation.unwrap_or_else(|| panic!("{} is not described", route.operation));
        let path = paths.entry(route.template.replace("{base}", "/v1")).or_default();
        if activation {
            path.entry("servers").or_insert(json!([{
                "url": "{activation}", "description": "The activation listener",
                "variables": {"activation": {"default": "http://127.0.0.1:8444", "description": "Its scheme, host and port"}},
            }]));
        }
        path.insert(route.method.to_lowercase(), described(operation, &route, &mut generator));
        for (status, codes) in problems(operation, &route) {
            responses.entry(name_of(&codes)).or_insert_with(|| refused(status, &codes));
        }
    }
    let problem = generator.subschema_for::<Problem>();
    assert!(problem.as_value()["$ref"] == "#/components/schemas/Problem");
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(schemas::without_nulls);
    schemas.values_mut().for_each(schemas::reword);
    schemas::refine(&mut schemas);
    schemas.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "OrgVault",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A vault for the storage credentials of an organization",
            "description": "Log in to get an access token. Use it to save, list and delete credentials. Saved secrets cannot be read \
                back. Integrations get credentials from the activation listener.",
            "license": {"name": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "responses": responses,
            "schemas": schemas,
            "securitySchemes": {
                "accessToken": {"type": "http", "scheme": "bearer", "bearerFormat": "PASETO v4.local", "description": "Returned by a login."},
                "integrationToken": {"type": "http", "scheme": "bearer", "description": "Token of an integration: ovi_…"},
            },
        },
    })
}

/// Asserts that exactly the routes are described, that every reference resolves, that every schema is used, and that the
/// type of each example parses it.
pub(crate) fn check(document: &Value) {
    let described: Vec<_> = OPERATIONS.iter().map(|operation| operation.name).collect();
    let routes: BTreeSet<_> =
        routes().map(|(route, _)| route.operation).filter(|name| !UNDESCRIBED.contains(name)).collect();
    assert_eq!(described.iter().copied().collect::<BTreeSet<_>>(), routes, "the described operations are the routes");
    assert_eq!(described.len(), routes.len(), "an operation is described twice");
    assert!(notes().all(|(name, _)| described.contains(&name)), "a note is about no operation");
    let mut found = BTreeSet::new();
    references(document, &mut found);
    for target in &found {
        assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target} does not exist");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(found.contains(format!("#/components/schemas/{name}").as_str()), "nothing uses {name}");
    }
    for Operation { name, request, .. } in OPERATIONS {
        if let Some(request) = request {
            let example = (request.example)();
            assert!((request.is_read)(example.clone()), "{name}: {example}");
        }
    }
    for kind in CredentialType::ALL {
        let example = schemas::example(kind).to_string();
        let node = parse(example.as_bytes(), Limits::default()).unwrap().root;
        let parsed = CredentialData::parse(kind, node, "/data");
        assert!(parsed.is_ok(), "{example}: {parsed:?}");
    }
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(target) => drop(found.insert(target)),
                    None => references(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Returns the rules of operations that their schemas do not state.
fn notes() -> impl Iterator<Item = (&'static str, String)> {
    let sections = include_str!("notes.md").split("\n## ").skip(1);
    sections.map(|section| {
        let (name, note) = section.split_once('\n').unwrap();
        (name, note.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

/// Returns every route, and whether the activation listener has it.
fn routes() -> impl Iterator<Item = (Route, bool)> {
    let probe = |route: &Route| !route.template.starts_with("{base}");
    let activation = vault_http::activation_routes().filter(move |route| !probe(route)).map(|route| (route, true));
    let public = vault_http::routes().filter(|route| !UNDESCRIBED.contains(&route.operation));
    public.map(|route| (route, false)).chain(activation)
}

fn tags() -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for Operation { tag, .. } in OPERATIONS {
        if !names.contains(tag) {
            names.push(tag);
        }
    }
    names.into_iter().map(|name| json!({"name": name})).collect()
}

fn described(operation: &Operation, route: &Route, generator: &mut SchemaGenerator) -> Value {
    let Operation { name, tag, summary, caller, parameters, filter, request, status, answer, .. } = operation;
    let mut described = json!({
        "operationId": camel(name),
        "tags": [tag],
        "summary": summary,
        "security": match caller {
            Caller::Anybody | Caller::Invited => json!([]),
            Caller::Integration => json!([{"integrationToken": []}]),
            _ => json!([{"accessToken": []}]),
        },
    });
    let role = match caller {
        Caller::Editor => Some("Needs the role `admin` or `editor`."),
        Caller::Admin => Some("Needs the role `admin`."),
        _ => None,
    };
    let note = notes().find(|(of, _)| of == name).map(|(_, note)| note);
    let description: Vec<String> = role.map(str::to_owned).into_iter().chain(note).collect();
    if !description.is_empty() {
        described["description"] = json!(description.join(" "));
    }
    let in_path = ["id", "version", "trust", "delivery"]
        .into_iter()
        .filter(|name| route.template.contains(&format!("{{{name}}}")));
    let filter = filter.iter().flat_map(|filter| schemas::filter(filter(generator)));
    let parameters: Vec<Value> = in_path
        .map(|name| parameter("path", name))
        .chain(filter)
        .chain(parameters.iter().map(|name| place(name)))
        .collect();
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(request) = request {
        let schema = (request.schema)(generator).to_value();
        let body = json!({"schema": schema, "example": (request.example)()});
        let mut content = json!({"application/json": body});
        if request.patch {
            content["application/merge-patch+json"] = body;
        }
        described["requestBody"] = json!({"required": request.required, "content": content});
    }
    let mut responses: BTreeMap<_, _> = problems(operation, route)
        .into_iter()
        .map(|(status, codes)| {
            (status.to_string(), json!({"$ref": format!("#/components/responses/{}", name_of(&codes))}))
        })
        .collect();
    responses.insert(status.to_string(), answered(*status, answer, generator));
    described["responses"] = json!(responses);
    described
}

fn answered(status: u16, answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    let description = match status {
        201 => "Created",
        202 => "Accepted",
        204 => "Done",
        _ => "Found",
    };
    let of = |schema: Value| json!({"application/json": {"schema": schema}});
    let header = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    let mut answered = json!({"description": description});
    match answer {
        Answer::Nothing => {}
        Answer::One(schema) => answered["content"] = of(schema(generator).to_value()),
        Answer::Tagged(schema) => {
            answered["content"] = of(schema(generator).to_value());
            answered["headers"] = json!({"ETag": header("Revision of the credential, for If-Match.")});
        }
        Answer::List(schema) => {
            answered["content"] = of(json!({"type": "array", "items": schema(generator).to_value()}))
        }
        Answer::Page(schema) => {
            answered["content"] = of(json!({"type": "array", "items": schema(generator).to_value()}));
            answered["headers"] = json!({"Link": header("The next page, rel=\"next\", if there is one (RFC 8288).")});
        }
    }
    answered
}

/// Returns the problems of an operation, by status.
fn problems(operation: &Operation, route: &Route) -> BTreeMap<u16, Vec<ProblemCode>> {
    use ProblemCode as P;
    // For every request: problems of the head, and of a body that is too large or missing.
    let mut codes = vec![
        P::MalformedRequest,
        P::AddressTooLong,
        P::MisdirectedRequest,
        P::HeadersTooLarge,
        P::InternalError,
        P::Unavailable,
    ];
    codes.extend([P::RequestTimeout, P::TooLarge, P::PreconditionFailed]);
    codes.extend_from_slice(operation.problems);
    match operation.caller {
        Caller::Anybody | Caller::Invited => {}
        Caller::Member | Caller::Integration => codes.push(P::InvalidToken),
        Caller::Editor | Caller::Admin => codes.extend([P::InvalidToken, P::InsufficientRole]),
    }
    if route.access == Access::Limited {
        codes.extend([P::CrossSite, P::TooManyRequests]);
    }
    if operation.request.is_some() {
        codes.extend([P::UnsupportedMediaType, P::RefusedValue]);
    } else if !operation.parameters.is_empty() {
        codes.push(P::RefusedValue);
    }
    let mut by_status: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
    for code in ProblemCode::ALL.iter().filter(|code| codes.contains(code)) {
        by_status.entry(code.status()).or_default().push(*code);
    }
    by_status
}

/// Returns the name of a response with one of these codes.
fn name_of(codes: &[ProblemCode]) -> String {
    let name = codes.iter().map(|code| code.as_str()).collect::<Vec<_>>().join("-or-");
    camel(&name)
}

/// Returns the response of a status with one of these codes.
fn refused(status: u16, codes: &[ProblemCode]) -> Value {
    let said: Vec<String> = codes.iter().map(|code| format!("`{code}`: {}", code.title())).collect();
    let examples = codes.iter().map(|code| {
        let problem = Problem::new(*code, "Cause, and how to fix it.", "c58e6472-3f0a-4d5b-9a43-0f2f1b6e7d11");
        (code.as_str().to_owned(), json!({"value": problem}))
    });
    let examples: Map<String, Value> = examples.collect();
    let content = json!({PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}});
    let mut response = json!({"description": said.join(". ") + ".", "content": content});
    let header =
        |name: &str, description: &str| json!({name: {"description": description, "schema": {"type": "string"}}});
    match status {
        401 => response["headers"] = header("WWW-Authenticate", "Bearer (RFC 6750)"),
        429 | 503 => response["headers"] = header("Retry-After", "Seconds to wait before a retry"),
        _ => {}
    }
    response
}

fn place(name: &str) -> Value {
    parameter(if name.contains('-') { "header" } else { "query" }, name)
}

fn parameter(place: &str, name: &str) -> Value {
    let (schema, description) = schemas::parameter(name);
    let mut parameter = json!({"name": name, "in": place, "description": description, "schema": schema});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}

/// Returns the name in generated clients: `listVersions` for `list-versions`.
fn camel(name: &str) -> String {
    let mut parts = name.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (head, tail) = part.split_at(1);
        name + &head.to_uppercase() + tail
    })
}
