//! Generates `openapi.json`, which the server serves, from the wire types, the table of routes and the tables of the
//! credential types. To update it: `ORGVAULT_UPDATE=1 cargo test -p vault-http --test openapi`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod document;
mod operations;
mod schemas;

use operations::{OPERATIONS, Operation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::json::{self, Limits};

fn committed() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json")
}

#[test]
fn committed_description_matches_code() {
    let created = serde_json::to_string_pretty(&document::document()).unwrap() + "\n";
    if std::env::var_os("ORGVAULT_UPDATE").is_some() {
        std::fs::write(committed(), &created).unwrap();
    }
    let found = std::fs::read_to_string(committed()).unwrap();
    assert!(
        found == created,
        "openapi.json is out of date: run `ORGVAULT_UPDATE=1 cargo test -p vault-http --test openapi`"
    );
}

#[test]
fn exactly_all_routes_are_described() {
    let routes = vault_http::routes().chain(vault_http::activation_routes());
    // The description omits itself and the pages of the console.
    let routes: BTreeSet<_> =
        routes.map(|route| route.operation).filter(|name| !document::UNDESCRIBED.contains(name)).collect();
    let described: Vec<_> = OPERATIONS.iter().map(|operation| operation.name).collect();
    assert_eq!(described.iter().copied().collect::<BTreeSet<_>>(), routes);
    assert_eq!(described.len(), routes.len(), "an operation is described twice");
}

/// Every `$ref` resolves, and every schema is used.
#[test]
fn references_resolve_to_schemas() {
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
    let document = document::document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for target in &found {
        assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(found.contains(format!("#/components/schemas/{name}").as_str()), "nothing uses {name}");
    }
}

/// The type of each example parses it.
#[test]
fn examples_are_accepted() {
    for Operation { name, request, .. } in OPERATIONS {
        let Some(request) = request else { continue };
        let example = (request.example)();
        assert!((request.is_read)(example.clone()), "{name}: {example}");
    }
    for kind in CredentialType::ALL {
        let example = schemas::example(kind).to_string();
        let node = json::parse(example.as_bytes(), Limits::default()).unwrap().root;
        let parsed = CredentialData::parse(kind, node, "/data");
        assert!(parsed.is_ok(), "{example}: {parsed:?}");
    }
}
