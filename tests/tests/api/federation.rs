//! The documents of the federation issuer.

use super::app::App;
use std::sync::Arc;
use vault_core::federation::FederationIssuer;
use vault_core::usecase::federation::PublishedKeys;
use vault_tests::wire::request;

const PATHS: [&str; 2] = [FederationIssuer::DISCOVERY_PATH, FederationIssuer::KEY_SET_PATH];

#[test]
fn documents_are_public_and_cacheable() {
    let without = App::start();
    for path in PATHS {
        without.send(&format!("GET {path}"), &[], "").problem("not-found");
    }
    let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
    let published = Arc::new(PublishedKeys::new(issuer.clone()));
    let app = App::with(|setup| setup.parts.federation = Some(published));
    let expected = [issuer.discovery_document(), r#"{"keys":[]}"#.to_owned()];
    for (path, expected) in PATHS.into_iter().zip(expected) {
        for query in ["", "?version=7"] {
            let answer = app.wire().exchange(request(&format!("GET {path}{query}"), &[], "")).expect(200);
            assert_eq!(answer.text(), expected, "{path}");
            assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"), "{path}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        }
        for method in ["POST", "DELETE"] {
            app.send(&format!("{method} {path}"), &[], "").problem("method-not-allowed");
        }
    }
}
