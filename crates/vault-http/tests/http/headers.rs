//! What every answer carries.

use crate::support::{World, assert_problem, assert_standard_headers};
use std::collections::BTreeSet;
use vault_core::role::Role;
use vault_http::routes;

const METHODS: [&str; 12] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "CONNECT", "X-ANY"];
const OTHER_PATHS: [&str; 4] = ["/", "/v1", "/v1/organization-vault/%2e%2e", "/nothing?a=%3Cscript%3E"];

#[test]
fn every_route_and_method_has_the_whole_header_set() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let id = "0193aaaa-0000-7000-8000-000000000000";
    let known = routes().map(|route| route.template.replace("{base}", "/v1").replace("{id}", id));
    let paths: BTreeSet<_> = known.chain(OTHER_PATHS.map(str::to_owned)).collect();
    for path in &paths {
        for method in METHODS {
            for headers in [&[][..], &[&*token, "Content-Type: application/json", "Origin: https://evil.example"]] {
                if path == "/v1/logout" && !headers.is_empty() {
                    continue; // the token is still needed
                }
                let what = format!("{method} {path} with {} headers", headers.len());
                let response = world.send(&format!("{method} {path}"), headers, "");
                assert_standard_headers(&response, &what);
                if response.status >= 400 && method != "HEAD" {
                    let problem = response.json();
                    assert_eq!(problem["status"], response.status, "{what}");
                    assert_problem(&response, response.status, problem["code"].as_str().unwrap(), &what);
                }
                if method == "HEAD" {
                    assert!(response.body.is_empty(), "{what}");
                }
            }
        }
    }
}

#[test]
fn request_ids_are_the_servers_own_and_new_each_time() {
    let world = World::start();
    let mine = "11111111-1111-4111-8111-111111111111";
    let header = format!("X-Request-Id: {mine}");
    let ids: Vec<_> =
        (0..3).map(|_| world.send("GET /livez", &[&header], "").header("x-request-id").unwrap().to_owned()).collect();
    assert!(!ids.iter().any(|id| id == mine));
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn heads_that_are_too_large_are_refused_and_the_connection_closed() {
    let world = World::start();
    let many: Vec<String> = (0..97).map(|index| format!("X-{index}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let large = format!("X-Large: {}", "a".repeat(64 * 1024));
    let huge = format!("X-Huge: {}", "a".repeat(131_073));
    let long = format!("GET /{}", "a".repeat(33_000));
    for (line, headers, statuses) in [
        ("GET /livez", &many[..], [431, 400]),
        ("GET /livez", &[&*large], [431, 400]),
        ("GET /livez", &[&*huge], [431, 400]),
        (&*long, &[], [414, 400]),
    ] {
        let mut wire = world.wire();
        wire.try_send(crate::support::request(line, headers, ""));
        let response = wire.receive();
        assert!(statuses.contains(&response.status), "{} for {}", response.status, &line[..10]);
        assert!(wire.is_closed());
    }
    let problem = assert_problem(&world.send("GET /livez", &[&large], ""), 431, "headers-too-large", "64 KiB");
    assert!(problem.errors.is_empty());
    assert_problem(&world.send(&long, &[], ""), 414, "address-too-long", "33 KB");
}

#[test]
fn upgrades_are_refused_save_h2c_which_is_ignored() {
    let world = World::start();
    let h2c = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"];
    let response = world.send("GET /livez", &h2c, "");
    assert_eq!(
        (response.status, response.header("upgrade"), response.header("connection")),
        (200, None, Some("close"))
    );
    for upgrade in ["websocket", "h2c, websocket", "TLS/1.0", "h2"] {
        let header = format!("Upgrade: {upgrade}");
        for path in ["/livez", "/v1/organization-vault", "/nothing"] {
            let mut wire = world.wire();
            let line = format!("GET {path}");
            let response = wire.exchange(crate::support::request(&line, &["Connection: Upgrade", &header], ""));
            assert_problem(&response, 400, "malformed-request", upgrade);
            assert_eq!(response.header("connection"), Some("close"), "{upgrade}");
            drop(wire);
        }
    }
}

#[test]
fn nothing_tells_what_the_server_is_made_of() {
    let world = World::start();
    for path in ["/livez", "/readyz", "/nothing", "/v1/organization-vault"] {
        let response = world.send(&format!("GET {path}"), &[], "");
        let text = format!("{:?} {}", response.headers, response.text()).to_lowercase();
        for word in ["actix", "rust", "sqlite", "postgres", env!("CARGO_PKG_VERSION"), "vault-http", "crates/"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
