//! The documents of the federation issuer.

use crate::support::{World, WorldBuilder, assert_problem, assert_standard_headers};
use std::sync::Arc;
use vault_core::federation::FederationIssuer;
use vault_core::usecase::federation::PublishedKeys;

const PATHS: [&str; 2] = [FederationIssuer::DISCOVERY_PATH, FederationIssuer::KEY_SET_PATH];

#[test]
fn documents_are_not_found_without_an_issuer() {
    let world = World::start();
    for path in PATHS {
        let response = world.send(&format!("GET {path}"), &[], "");
        assert_problem(&response, 404, "not-found", path);
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[test]
fn documents_are_public_and_cacheable() {
    let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
    let published = Arc::new(PublishedKeys::new(issuer.clone()));
    let world = WorldBuilder::default().parts(|parts| parts.federation = Some(published)).start();
    let expected = [issuer.discovery_document(), r#"{"keys":[]}"#.to_owned()];
    for (path, expected) in PATHS.into_iter().zip(expected) {
        for query in ["", "?version=7"] {
            let response = world.send(&format!("GET {path}{query}"), &[], "");
            assert_eq!((response.status, response.text()), (200, expected.clone()), "{path}");
            assert_eq!(response.header("cache-control"), Some("public, max-age=3600"), "{path}");
            assert_eq!(response.header("content-type"), Some("application/json"), "{path}");
            assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
        }
        assert_eq!(world.send(&format!("HEAD {path}"), &[], "").status, 200, "{path}");
        assert_problem(&world.send(&format!("POST {path}"), &[], ""), 405, "method-not-allowed", path);
        assert_standard_headers(&world.send(&format!("DELETE {path}"), &[], ""), path);
    }
}
