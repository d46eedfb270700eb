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
