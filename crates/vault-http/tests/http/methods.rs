//! Methods and addresses.

use crate::support::{World, WorldBuilder, assert_problem};
use std::collections::BTreeMap;
use vault_core::role::Role;
use vault_http::routes;

#[test]
fn disallowed_methods_get_allow_header() {
    let world = World::start();
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for route in routes() {
        let path = route.template.replace("{base}", "/v1").replace("{id}", "x").replace("{version}", "7");
        let methods = places.entry(path).or_default();
        methods.extend([route.method].into_iter().chain((route.method == "GET").then_some("HEAD")));
    }
    for (path, allow) in places {
        let allow = allow.join(", ");
        for method in ["TRACE", "PROPFIND", "get", "PUT", "OPTIONS", "POST", "PATCH", "DELETE"] {
            if allow.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let headers =
                ["X-HTTP-Method-Override: GET", "X-Method-Override: GET", "Access-Control-Request-Method: PATCH"];
            let response = world.send(&format!("{method} {path}"), &headers, "");
            assert_problem(&response, 405, "method-not-allowed", method);
            assert_eq!(response.header("allow"), Some(&*allow), "{method} {path}");
        }
    }
    let response = world.send("CONNECT vault:443", &[], "");
    assert_problem(&response, 405, "method-not-allowed", "CONNECT");
    assert!(response.header("allow").is_some());
    for line in [
        "GET //",
        "GET /console",
        "GET /console/",
        "GET /console/none.js",
        "GET /console/../console/app.js",
        "POST /v1",
        "PATCH /v1/organization-vault/",
        "GET /v1/organization-vault/a/b",
        "OPTIONS *",
        "GET /metrics",
    ] {
        assert_problem(&world.send(line, &[], ""), 404, "not-found", line);
    }
}

#[test]
fn head_is_get_without_the_body() {
    let world = World::start();
    let token = world.token(Role::Viewer);
    for path in
        ["/livez", "/readyz", "/v1/organization-vault", "/v1/organization-vault?limit=0", "/v1/organization-vault/x"]
    {
        let get = world.send(&format!("GET {path}"), &[&token], "");
        let head = world.send(&format!("HEAD {path}"), &[&token], "");
        assert_eq!((get.status, get.stable_headers()), (head.status, head.stable_headers()), "{path}");
        assert!(!get.body.is_empty() && head.body.is_empty(), "{path}");
    }
}

#[test]
fn base_path_is_a_setting() {
    let world = WorldBuilder::default().settings(|settings| settings.base_path = "/vault/v7".parse().unwrap()).start();
    assert_problem(
        &world.send("GET /vault/v7/organization-vault", &[], ""),
        401,
        "invalid-token",
        "below the base path",
    );
    assert_problem(&world.send("GET /v1/organization-vault", &[], ""), 404, "not-found", "below another");
    assert_eq!(world.send("GET /livez", &[], "").status, 200);
}

#[test]
fn absolute_target_is_its_path() {
    let world = World::start();
    assert_eq!(world.send("GET http://elsewhere/livez", &[], "").status, 200);
}
