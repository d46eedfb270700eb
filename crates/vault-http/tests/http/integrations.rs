//! `{base_url}/integrations`

use crate::support::{Response, World, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::role::Role;

const INTEGRATIONS: &str = "/v1/integrations";

fn create(world: &World, token: &str, body: &Value) -> Response {
    world.send_json("POST /v1/integrations", token, body)
}

fn list(world: &World, token: &str) -> Vec<Value> {
    let response = world.send("GET /v1/integrations", &[token], "");
    assert_standard_headers(&response, "list");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    assert!(!response.text().contains("ovi_"), "a list shows no token");
    response.json().as_array().expect("an array").clone()
}

fn rotate(world: &World, token: &str, id: &str, body: &Value) -> Response {
    world.send_json(&format!("POST {INTEGRATIONS}/{id}/rotate"), token, body)
}

fn delete(world: &World, token: &str, id: &str) -> Response {
    world.send(&format!("DELETE {INTEGRATIONS}/{id}"), &[token], "")
}

fn members(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

#[test]
fn integration_is_created_listed_rotated_and_deleted() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let body =
        json!({"name": "Nightly", "namespaces": ["imports/*", "exports"], "expires_at": "2030-02-01T01:00:00+01:00"});
    let response = create(&world, &token, &body);
    assert_standard_headers(&response, "an integration");
    assert_eq!((response.status, response.header("content-type")), (201, Some("application/json")));
    let created = response.json();
    assert_eq!(members(&created), ["expires_at", "id", "name", "namespaces", "token"]);
    assert_eq!((text(&created["name"]), text(&created["expires_at"])), ("Nightly", "2030-02-01T00:00:00Z"));
    assert_eq!(created["namespaces"], json!(["exports", "imports/*"]));
    let (id, first) = (text(&created["id"]), text(&created["token"]));
    assert!(first.starts_with("ovi_") && first.len() == 53, "{first}");
    let mut expected = json!({
        "id": id, "name": "Nightly", "namespaces": ["exports", "imports/*"], "state": "active",
        "created_at": "2030-01-01T00:00:00Z", "expires_at": "2030-02-01T00:00:00Z",
    });
    assert_eq!(list(&world, &token), [expected.clone()]);

    let response = rotate(&world, &token, id, &json!({"overlap": 3_600}));
    assert_standard_headers(&response, "a rotation");
    assert_eq!(response.status, 200, "{}", response.text());
    let rotated = response.json();
    assert_eq!(members(&rotated), members(&created));
    assert_eq!(rotated["id"], created["id"]);
    assert_ne!(rotated["token"], created["token"]);
    expected["previous_token_until"] = json!("2030-01-01T01:00:00Z");
    assert_eq!(list(&world, &token), [expected.clone()]);
    world.clock.advance_seconds(3_599);
    assert_eq!(list(&world, &token), [expected.clone()]);
    world.clock.advance_seconds(1);
    let token = world.token(Role::Admin);
    expected.as_object_mut().unwrap().remove("previous_token_until");
    assert_eq!(list(&world, &token), [expected]);

    let deleted = delete(&world, &token, id);
    assert_eq!((deleted.status, deleted.body.len(), deleted.header("content-type")), (204, 0, None));
    assert!(list(&world, &token).is_empty());
    assert_problem(&delete(&world, &token, id), 404, "not-found", "again");
}

#[test]
fn rotation_needs_no_body() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let (id, _) = world.integration(&token, "nightly", &["a"]);
    let line = format!("POST {INTEGRATIONS}/{id}/rotate");
    let json = "Content-Type: application/json";
    let until = || list(&world, &token)[0]["previous_token_until"].clone();
    for (headers, body, end) in [
        (&[&*token][..], "", json!("2030-01-02T00:00:00Z")),
        (&[&token, json], "{}", json!("2030-01-02T00:00:00Z")),
        (&[&token, json], "{\"overlap\": 60}", json!("2030-01-01T00:01:00Z")),
        (&[&token, json], "", json!("2030-01-02T00:00:00Z")),
        (&[&token, json], "{\"overlap\": 604800}", json!("2030-01-08T00:00:00Z")),
        (&[&token, json], "{\"overlap\": 0}", Value::Null),
    ] {
        let response = world.send(&line, headers, body);
        assert_eq!(response.status, 200, "{body}: {}", response.text());
        assert_eq!(members(&response.json()), ["id", "name", "namespaces", "token"]);
        assert_eq!(until(), end, "{body}");
    }
    for (body, status, pointer) in [
        (json!({"overlap": -1}), 422, "/overlap"),
        (json!({"overlap": 604_801}), 422, "/overlap"),
        (json!({"overlap": 1.5}), 400, "/overlap"),
        (json!({"overlap": "60"}), 400, "/overlap"),
        (json!({"overlap": null}), 400, "/overlap"),
        (json!({"ttl": 60}), 400, "/ttl"),
        (json!([]), 400, ""),
    ] {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&rotate(&world, &token, &id, &body), status, code, &body.to_string());
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, pointer), "{body}");
    }
    for (line, headers, body, status, code) in [
        (&*line, &[&*token][..], "{}", 415, "unsupported-media-type"),
        (&line, &[&token, "Content-Type: text/plain"], "", 415, "unsupported-media-type"),
        (&line, &[&token, "Content-Encoding: gzip"], "", 415, "unsupported-media-type"),
        (&line, &[&token, "If-Match: \"a\""], "", 412, "precondition-failed"),
        (&format!("{line}?overlap=1"), &[&token], "", 400, "malformed-request"),
    ] {
        assert_problem(&world.send(line, headers, body), status, code, &format!("{headers:?}"));
    }
    assert_eq!(until(), Value::Null, "nothing was rotated");
}

#[test]
fn integration_violations_are_named() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let long = "n".repeat(65);
    let many: Vec<_> = (0..65).map(|number| format!("n{number}")).collect();
    for (body, status, pointers) in [
        (json!([]), 400, &[""][..]),
        (json!({}), 400, &["/name"]),
        (json!({"name": "a", "namespaces": "a"}), 400, &["/namespaces"]),
        (json!({"name": "a", "namespaces": null}), 400, &["/namespaces"]),
        (json!({"name": "a", "namespaces": ["a", 1, null]}), 400, &["/namespaces/1"]),
        (json!({"name": 1, "namespaces": [".."], "token": "x"}), 400, &["/name"]),
        (json!({"name": "a", "namespaces": ["a"], "expires_at": 1}), 400, &["/expires_at"]),
        (json!({"name": "a", "namespaces": []}), 422, &["/namespaces"]),
        (json!({"name": "a", "namespaces": many}), 422, &["/namespaces"]),
        (json!({"name": "a", "namespaces": ["*"]}), 422, &["/namespaces/0"]),
        (
            json!({"name": "a", "namespaces": ["a", "a*", "a/*/b", "/a"]}),
            422,
            &["/namespaces/1", "/namespaces/2", "/namespaces/3"],
        ),
        (json!({"name": "", "namespaces": ["a"]}), 422, &["/name"]),
        (json!({"name": long, "namespaces": ["a"]}), 422, &["/name"]),
        (json!({"name": " a", "namespaces": ["a"]}), 422, &["/name"]),
        (json!({"name": "a\u{202e}b", "namespaces": ["a"]}), 422, &["/name"]),
        (
            json!({"name": "", "namespaces": [".."], "expires_at": "soon"}),
            422,
            &["/expires_at", "/name", "/namespaces/0"],
        ),
        (json!({"name": "a", "namespaces": ["a"], "expires_at": "2029-12-31T23:59:59Z"}), 422, &["/expires_at"]),
        (json!({"name": "a", "namespaces": ["a"], "expires_at": "2030-01-01T00:00:00Z"}), 422, &["/expires_at"]),
        (json!({"name": "a", "namespaces": ["a"], "expires_at": "2031-02-29"}), 422, &["/expires_at"]),
    ] {
        let response = create(&world, &token, &body);
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&response, status, code, &body.to_string());
        let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}");
    }
    let sound = json!({"name": "a", "namespaces": ["a"]});
    for (line, headers, status, code) in [
        ("POST /v1/integrations?limit=1", &[&*token, "Content-Type: application/json"][..], 400, "malformed-request"),
        ("POST /v1/integrations", &[&*token], 415, "unsupported-media-type"),
        ("GET /v1/integrations?name=a", &[&*token], 400, "malformed-request"),
    ] {
        assert_problem(&world.send(line, headers, sound.to_string()), status, code, line);
    }
    assert!(list(&world, &token).is_empty(), "none was made");
}

#[test]
fn integration_name_is_unique_in_its_organization() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let other = world.token_in("Other", Role::Admin);
    let named = |name: &str| json!({"name": name, "namespaces": ["a"]});
    assert_eq!(create(&world, &token, &named("Nightly")).status, 201);
    for name in ["Nightly", "NIGHTLY"] {
        assert_problem(&create(&world, &token, &named(name)), 409, "conflict", name);
    }
    assert_eq!(create(&world, &other, &named("nightly")).status, 201, "another organization's");
    assert_eq!(list(&world, &token).len(), 1);
    assert_eq!(list(&world, &other).len(), 1);
}

#[test]
fn state_namespaces_and_expiry_are_changed() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    let (id, token) = world.integration(&admin, "nightly", &["imports"]);
    world.save(&admin, "exports", "b");
    let activation_listener = world.activation_listener();
    let change = |body: Value| world.send_json(&format!("PATCH {INTEGRATIONS}/{id}"), &admin, body);
    let response = change(json!({"namespaces": ["exports", "in/*"], "expires_at": "2030-02-01T00:00:00Z"}));
    assert_standard_headers(&response, "a change");
    let expected = json!({
        "id": id, "name": "nightly", "namespaces": ["exports", "in/*"], "state": "active",
        "created_at": "2030-01-01T00:00:00Z", "expires_at": "2030-02-01T00:00:00Z",
    });
    assert_eq!((response.status, response.json()), (200, expected.clone()));
    assert_eq!(list(&world, &admin), [expected]);
    assert_eq!(activation_listener.activate(&token, "exports").status, 201);
    assert_eq!(list(&world, &admin)[0]["last_used_at"], json!("2030-01-01T00:00:00Z"));
    assert_problem(&activation_listener.activate(&token, "imports"), 403, "namespace-not-allowed", "no longer");

    assert_eq!(change(json!({"state": "disabled"})).json()["state"], json!("disabled"));
    assert_problem(&activation_listener.activate(&token, "exports"), 401, "invalid-token", "disabled");
    let enabled = change(json!({"state": "active", "expires_at": null})).json();
    assert_eq!((&enabled["state"], enabled.get("expires_at")), (&json!("active"), None));
    assert_eq!(activation_listener.activate(&token, "exports").status, 201);

    for (body, status, pointer) in [
        (json!({}), 400, ""),
        (json!({"state": "gone"}), 422, "/state"),
        (json!({"state": null}), 400, "/state"),
        (json!({"namespaces": []}), 422, "/namespaces"),
        (json!({"namespaces": ["*"]}), 422, "/namespaces/0"),
        (json!({"namespaces": "exports"}), 400, "/namespaces"),
        (json!({"expires_at": "2029-01-01T00:00:00Z"}), 422, "/expires_at"),
        (json!({"expires_at": "tomorrow"}), 422, "/expires_at"),
        (json!({"name": "hourly"}), 400, "/name"),
    ] {
        let response = change(body.clone());
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        assert_problem(&response, status, code, &body.to_string());
        assert_eq!(response.json()["errors"][0]["pointer"], json!(pointer), "{body}");
    }
    let editor = world.token(Role::Editor);
    let line = format!("PATCH {INTEGRATIONS}/{id}");
    assert_problem(&world.send_json(&line, &editor, json!({})), 403, "insufficient-role", "an editor");
    let unknown = world.send_json("PATCH /v1/integrations/x", &admin, json!({"state": "active"}));
    assert_problem(&unknown, 404, "not-found", "no id");
}

#[test]
fn integrations_are_paginated() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    for name in ["e", "b", "d", "a", "C"] {
        world.integration(&admin, name, &["imports"]);
    }
    assert_eq!(pages(&world, &admin, "/v1/integrations", "name"), [vec!["a", "b"], vec!["C", "d"], vec!["e"]]);
    for (query, status, pointer) in [
        ("limit=0", 422, "/limit"),
        ("limit=1001", 422, "/limit"),
        ("cursor=x", 422, "/cursor"),
        ("name=a", 400, "/name"),
    ] {
        let response = world.send(&format!("GET {INTEGRATIONS}?{query}"), &[&admin], "");
        assert_eq!(response.status, status, "{query}");
        assert_eq!(response.json()["errors"][0]["pointer"], json!(pointer), "{query}");
    }
}

/// Returns the field `name` of every item, in pages of two, following `Link`.
fn pages(world: &World, token: &str, path: &str, name: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut next = Some(format!("{path}?limit=2"));
    while let Some(address) = next {
        let response = world.send(&format!("GET {address}"), &[token], "");
        assert_eq!(response.status, 200, "{}", response.text());
        let items = response.json();
        pages.push(items.as_array().expect("an array").iter().map(|item| text(&item[name]).to_owned()).collect());
        let link = response.header("link");
        next =
            link.map(|link| link.trim_start_matches('<').split_once(">; rel=\"next\"").expect("a link").0.to_owned());
    }
    pages
}

#[test]
fn namespaces_are_listed_frozen_and_thawed() {
    let world = World::start();
    let admin = world.token(Role::Admin);
    for namespace in ["imports", "exports", "imports", "archive"] {
        world.save(&admin, namespace, "b");
    }
    let (_, token) = world.integration(&admin, "nightly", &["imports", "in/*"]);
    let activation_listener = world.activation_listener();
    let freeze =
        |namespace: &str| world.send_json("POST /v1/namespaces/freeze", &admin, json!({ "namespace": namespace }));
    let frozen = freeze("imports");
    assert_standard_headers(&frozen, "a freeze");
    assert_eq!((frozen.status, frozen.json()), (200, json!({"credentials": 2, "integrations": 1, "changed": true})));
    assert_eq!(freeze("imports").json(), json!({"credentials": 2, "integrations": 1, "changed": false}), "again");
    assert_eq!(freeze("in/nothing").json(), json!({"credentials": 0, "integrations": 1, "changed": true}));
    assert_problem(&activation_listener.activate(&token, "imports"), 403, "frozen", "frozen");

    let listed = world.send("GET /v1/namespaces", &[&admin], "");
    assert_standard_headers(&listed, "namespaces");
    let item = |namespace: &str, credentials: i64, frozen: bool| json!({"namespace": namespace, "credentials": credentials, "frozen": frozen});
    let expected = json!([
        item("archive", 1, false),
        item("exports", 1, false),
        item("imports", 2, true),
        item("in/nothing", 0, true)
    ]);
    let mut shown = listed.json();
    for item in shown.as_array_mut().unwrap() {
        let frozen_at = item.as_object_mut().unwrap().remove("frozen_at");
        assert_eq!(Some(frozen_at.is_some()), item["frozen"].as_bool(), "{item}");
    }
    assert_eq!((listed.status, shown), (200, expected));
    let paged = pages(&world, &admin, "/v1/namespaces", "namespace");
    assert_eq!(paged, [vec!["archive", "exports"], vec!["imports", "in/nothing"]]);

    let thawed = world.send_json("POST /v1/namespaces/thaw", &admin, json!({"namespace": "imports"}));
    assert_eq!((thawed.status, &thawed.json()["changed"]), (200, &json!(true)));
    assert_eq!(activation_listener.activate(&token, "imports").status, 201);
    for (path, body, status) in [
        ("freeze", json!({}), 400),
        ("freeze", json!({"namespace": "a b"}), 422),
        ("thaw", json!({"namespace": "a", "x": 1}), 400),
    ] {
        assert_eq!(world.send_json(&format!("POST /v1/namespaces/{path}"), &admin, &body).status, status, "{body}");
    }
    let editor = world.token(Role::Editor);
    let viewer = world.token(Role::Viewer);
    for token in [&editor, &viewer] {
        let listed = world.send("GET /v1/namespaces", &[token], "").json();
        assert_eq!(listed, world.send("GET /v1/namespaces", &[&admin], "").json());
        assert_eq!((&listed[3]["namespace"], &listed[3]["frozen"]), (&json!("in/nothing"), &json!(true)));
    }
    for line in ["POST /v1/namespaces/freeze", "POST /v1/namespaces/thaw", "GET /v1/namespaces/usage"] {
        assert_problem(&world.send(line, &[&editor], ""), 403, "insufficient-role", line);
    }
}

#[test]
fn usage_counts_activations_and_denied_requests() {
    let world = World::start();
    let (admin, activation_listener) = (world.token(Role::Admin), world.activation_listener());
    world.save(&admin, "imports", "b");
    let (id, nightly) = world.integration(&admin, "nightly", &["imports"]);
    let (_, _) = world.integration(&admin, "unused", &["imports"]);
    assert_eq!(activation_listener.activate(&nightly, "imports").status, 201);
    world.clock.advance_seconds(3_600);
    assert_eq!(activation_listener.activate(&nightly, "imports").status, 201);
    world.clock.advance_seconds(60);
    assert_eq!(activation_listener.activate(&nightly, "elsewhere").status, 403);
    world.seal_audit();
    let admin = world.token(Role::Admin);
    let usage_for = |token: &str, query: &str| {
        let response = world.send(&format!("GET /v1/integrations/usage{query}"), &[token], "");
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()
    };
    let usage = |query: &str| usage_for(&admin, query);
    let activated_at = "2030-01-01T01:00:00Z";
    let item = |activations: i64| {
        json!([{
            "id": id, "activations": activations, "last_activated_at": activated_at, "denied": 1,
            "last_denied_at": "2030-01-01T01:01:00Z",
        }])
    };
    assert_eq!(usage(""), item(2));
    assert_eq!(usage("?since=2029-01-01T00:00:00Z"), item(2));
    assert_eq!(usage("?since=2030-01-01T00:30:00Z"), item(1));
    assert_eq!(usage("?since=2030-01-02T00:00:00Z"), json!([]));
    world.clock.advance_seconds(31 * 86_400);
    let admin = world.token(Role::Admin);
    assert_eq!(usage_for(&admin, "?since=2029-01-01T00:00:00Z"), json!([]), "at most 30 days");
    let editor = world.token(Role::Editor);
    let line = "GET /v1/integrations/usage";
    assert_problem(&world.send(line, &[&editor], ""), 403, "insufficient-role", "an editor");
    assert_problem(&world.send(&format!("{line}?since=x"), &[&admin], ""), 422, "refused-value", "no time");
    assert_problem(&world.send(&format!("{line}?until=x"), &[&admin], ""), 400, "malformed-request", "until");
}

#[test]
fn namespace_usage_is_counted_by_hour_and_namespace() {
    let world = World::start();
    let (admin, activation_listener) = (world.token(Role::Admin), world.activation_listener());
    world.save(&admin, "imports", "b");
    let (id, nightly) = world.integration(&admin, "nightly", &["imports"]);
    for day in 0..5 {
        assert_eq!(activation_listener.activate(&nightly, "imports").status, 201, "day {day}");
        world.clock.advance_seconds(86_400);
    }
    assert_eq!(activation_listener.activate(&nightly, "elsewhere").status, 403);
    assert_eq!(activation_listener.activate(&nightly, "elsewhere").status, 403);
    world.seal_audit();
    let usage = |query: &str| {
        let admin = world.token(Role::Admin);
        let response = world.send(&format!("GET /v1/namespaces/usage{query}"), &[&admin], "");
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()
    };
    let counted = usage("?since=2030-01-01T00:00:00Z");
    assert_eq!(counted["since"], "2030-01-01T00:00:00Z");
    let hours = |name: &str| -> Vec<(usize, i64)> {
        let hours = counted[name].as_array().unwrap().iter().map(|count| count.as_i64().unwrap()).enumerate();
        hours.filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(counted["activations"].as_array().unwrap().len(), 5 * 24 + 1, "up to the current hour");
    assert_eq!(hours("activations"), (0..5).map(|day| (day * 24, 1)).collect::<Vec<_>>());
    assert_eq!(hours("denied"), [(5 * 24, 2)]);
    let used = |silent: bool| {
        json!([{
            "integration": id, "namespace": "imports", "activations": 5, "last_activated_at": "2030-01-05T00:00:00Z",
            "every_days": 1, "usual_time": "00:00", "silent": silent,
        }])
    };
    assert_eq!(counted["uses"], used(false));
    let denial = json!([{
        "integration": id, "namespace": "elsewhere", "action": "activation.refused-outside", "denied": 2,
        "last_denied_at": "2030-01-06T00:00:00Z",
    }]);
    assert_eq!(counted["denials"], denial);
    let one = |id: &str| usage(&format!("?since=2030-01-01T00:00:00Z&integration={id}"));
    assert_eq!(one(&id), counted);
    let none = one("01960000-0000-7000-8000-000000000000");
    assert_eq!((&none["uses"], &none["denials"]), (&json!([]), &json!([])));
    assert!(none["activations"].as_array().unwrap().iter().all(|count| count == 0));
    let line = "GET /v1/namespaces/usage?integration=nightly";
    assert_problem(&world.send(line, &[&world.token(Role::Admin)], ""), 422, "refused-value", line);
    world.clock.advance_seconds(2 * 86_400);
    assert_eq!(usage("?since=2030-01-01T00:00:00Z")["uses"], used(true));
    assert_eq!(usage("")["uses"], used(true));
    world.clock.advance_seconds(31 * 86_400);
    let later = usage("?since=2030-01-01T00:00:00Z");
    assert_eq!(
        (&later["since"], &later["uses"], &later["denials"]),
        (&json!("2030-01-09T00:00:00Z"), &json!([]), &json!([]))
    );
}
