//! Headers of every response.

use super::app::{App, JSON, UNKNOWN, s3};
use super::tokens::line;
use flate2::read::GzDecoder;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read as _;
use vault_http::routes;

const METHODS: [&str; 12] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "CONNECT", "X-ANY"];
const GZIP: &str = "Accept-Encoding: gzip, deflate, br, zstd";
/// Operations whose large responses are compressed. None of them returns a secret.
const COMPRESSED: &str = "console console-file console-module docs list list-accounts list-activations list-audit list-deliveries \
    list-holders list-integration-usage list-integrations list-issuers list-namespaces list-receivers \
    list-sessions list-set-aside list-trusts list-uses list-versions live openapi ready show show-account \
    show-federation-issuer show-federation-keys show-namespace-usage show-trust";
const OTHER_PATHS: [&str; 4] = ["/", "/v1", "/v1/organization-vault/%2e%2e", "/nothing?a=%3Cscript%3E"];

#[test]
fn every_route_and_method_has_the_whole_header_set() {
    let app = App::start();
    let admin = app.admin();
    let known = routes().map(|route| line(&route, UNKNOWN).split_once(' ').unwrap().1.to_owned());
    let paths: BTreeSet<_> = known.chain(OTHER_PATHS.map(str::to_owned)).collect();
    let origins = ["https://evil.example", "null", "http://127.0.0.1:8080"].map(|origin| format!("Origin: {origin}"));
    let mut ids = BTreeSet::new();
    for path in &paths {
        for (turn, method) in METHODS.into_iter().enumerate() {
            let header = admin.header();
            for headers in [&[][..], &[&header, JSON, &origins[turn % 3], "X-Request-Id: chosen-by-client"]] {
                if path == "/v1/logout" && !headers.is_empty() {
                    continue; // the token is still needed
                }
                let answer = app.send(&format!("{method} {path}"), headers, "");
                assert!(answer.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{answer:?}");
                assert!(ids.insert(answer.header("x-request-id").unwrap().to_owned()), "a request id is used once");
            }
        }
    }
}

#[test]
fn only_large_responses_to_get_are_compressed() {
    let app = App::start();
    let admin = app.admin();
    let small = app.send("GET /v1/organization-vault", &[&admin.header(), GZIP], "");
    assert_eq!((small.header("content-encoding"), small.text()), (None, "[]".to_owned()));
    for number in 0..8 {
        admin.save(&s3("imports/nightly", &format!("bucket-{number}")));
    }
    for path in ["GET /", "GET /console/app.js", "GET /openapi.json", "GET /v1/organization-vault"] {
        let plain = app.send(path, &[&admin.header()], "");
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let answer = app.send(path, &[&admin.header(), GZIP], "");
        assert_eq!(answer.header("content-encoding"), Some("gzip"), "{path}");
        assert!(answer.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")), "{path}");
        let mut text = Vec::new();
        GzDecoder::new(&*answer.body).read_to_end(&mut text).unwrap();
        assert_eq!(text, plain.body, "{path}");
        assert!(answer.body.len() < plain.body.len(), "{path}");
    }
    app.send("HEAD /console/app.js", &[GZIP], "").expect(200);
}

#[test]
fn responses_with_secrets_are_not_compressed() {
    let app = App::start();
    let (admin, account) = (app.admin(), app.account("admin"));
    // A long list of namespaces, so that the response exceeds the limit.
    let namespaces: Vec<_> = (0..60).map(|number| format!("imports/of/a/namespace/{number}")).collect();
    for (line, body, status) in [
        ("POST /v1/login", account.sound_login(), 200),
        ("POST /v1/integrations", json!({"name": "a", "namespaces": namespaces}), 201),
        ("POST /v1/accounts", json!({"email": "c@example.com", "role": "viewer"}), 201),
    ] {
        let answer = app.send(line, &[&admin.header(), JSON, GZIP], body.to_string()).expect(status);
        assert_eq!(answer.header("content-encoding"), None, "{line}");
        assert!(line != "POST /v1/integrations" || answer.body.len() > 1_024);
    }
}

/// No route that the client can repeat by GET returns a secret. These are all of them.
#[test]
fn compressed_operations_are_known() {
    let routes = vault_http::routes().chain(vault_http::activation_routes());
    let mut found: Vec<_> = routes.filter(|route| route.method == "GET").map(|route| route.operation).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.join(" "), COMPRESSED);
}
