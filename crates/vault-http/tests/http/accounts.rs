//! `{base_url}/accounts`

use crate::support::{Response, World, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::role::Role;

const ACCOUNTS: &str = "/v1/accounts";

fn list(world: &World, token: &str) -> Vec<Value> {
    let response = world.send("GET /v1/accounts", &[token], "");
    assert_standard_headers(&response, "list");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    response.json().as_array().expect("an array").clone()
}

fn invite(world: &World, token: &str, email: &str, role: &str) -> Response {
    world.send_json("POST /v1/accounts", token, json!({"email": email, "role": role}))
}

fn change(world: &World, token: &str, id: &str, change: &Value) -> Response {
    world.send_json(&format!("PATCH {ACCOUNTS}/{id}"), token, change)
}

fn delete(world: &World, token: &str, id: &str) -> Response {
    world.send(&format!("DELETE {ACCOUNTS}/{id}"), &[token], "")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// Returns the ID of the account with this address.
fn id_of(world: &World, token: &str, email: &str) -> String {
    let accounts = list(world, token);
    let account = accounts.iter().find(|account| account["email"] == email).expect("an account of this address");
    text(&account["id"]).to_owned()
}

#[test]
fn admins_see_the_accounts_of_their_organization() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.token_in("Other", Role::Admin);
    world.account("Acme", "zoe@acme.example", Role::Viewer);
    let listed = list(&world, &token);
    let id = text(&listed[1]["id"]);
    assert_eq!(
        listed[1],
        json!({
            "id": id, "email": "admin-0@acme.example", "role": "admin", "state": "active",
            "created_at": "2030-01-01T00:00:00Z", "last_login_at": "2030-01-01T00:00:00Z", "locked": false,
        })
    );
    let members: Vec<_> = listed[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["created_at", "email", "id", "locked", "role", "state"], "it never logged in");
    assert_eq!(listed.len(), 2, "none of another organization");
    let head = world.send("HEAD /v1/accounts", &[&token], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn accounts_are_paginated() {
    let world = World::start();
    let token = world.token(Role::Admin);
    for number in 0..4 {
        world.clock.advance_seconds(1);
        world.account("Acme", &format!("member-{number}@acme.example"), Role::Viewer);
        world.clock.advance_seconds(1);
        assert_eq!(invite(&world, &token, &format!("invited-{number}@acme.example"), "viewer").status, 201);
    }
    let whole = list(&world, &token);
    let (mut paged, mut path) = (Vec::new(), "/v1/accounts?limit=2".to_owned());
    loop {
        let response = world.send(&format!("GET {path}"), &[&token], "");
        assert_eq!(response.status, 200);
        let page = response.json().as_array().unwrap().clone();
        assert!(page.len() <= 2);
        paged.extend(page);
        let Some(link) = response.header("link") else { break };
        path = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap().to_owned();
    }
    assert_eq!((paged.len(), &paged), (9, &whole));
    let other = world.token_in("Other", Role::Admin);
    let first = world.send("GET /v1/accounts?limit=2", &[&token], "");
    let cursor = first.header("link").unwrap().split("cursor=").nth(1).unwrap().split('>').next().unwrap();
    for (token, cursor) in [(&other, cursor), (&token, "x"), (&token, "")] {
        let response = world.send(&format!("GET /v1/accounts?cursor={cursor}"), &[token], "");
        assert_problem(&response, 422, "refused-value", cursor);
    }
}

#[test]
fn locked_out_account_is_shown_as_locked() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", "zoe@acme.example", Role::Viewer);
    let body = json!({"email": "zoe@acme.example", "password": "wrong", "passcode": "123456"}).to_string();
    for _ in 0..5 {
        assert_eq!(world.send("POST /v1/login", &["Content-Type: application/json"], &*body).status, 401);
    }
    let locked = |listed: &[Value]| listed.iter().filter(|account| account["locked"] == true).count();
    world.clock.advance_seconds(10);
    assert_eq!(locked(&list(&world, &token)), 1);
    let zoe = || list(&world, &token).into_iter().find(|account| account["email"] == "zoe@acme.example").unwrap();
    let shown =
        |account: &Value| ["locked_since", "failed_logins", "last_failed_login_at"].map(|name| account[name].clone());
    let at = json!("2030-01-01T00:00:00Z");
    assert_eq!(shown(&zoe()), [at.clone(), json!(5), at.clone()]);
    world.clock.advance_seconds(20);
    assert_eq!(locked(&list(&world, &token)), 0);
    assert_eq!(shown(&zoe()), [Value::Null, json!(5), at]);
}

#[test]
fn invitation_is_created_changed_and_withdrawn() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let response = invite(&world, &token, "New.One@ACME.example", "editor");
    assert_standard_headers(&response, "an invitation");
    assert_eq!(response.status, 201, "{}", response.text());
    let invited = response.json();
    let members: Vec<_> = invited.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["enrolment_code", "expires_at", "id"]);
    assert_eq!(invited["expires_at"], "2030-01-04T00:00:00Z", "72 h");
    assert_eq!(text(&invited["enrolment_code"]).len(), 26);
    let id = text(&invited["id"]);
    let mut expected = json!({
        "id": id, "email": "new.one@acme.example", "role": "editor", "state": "invited",
        "created_at": "2030-01-01T00:00:00Z", "locked": false, "invitation_expires_at": "2030-01-04T00:00:00Z",
    });
    assert!(list(&world, &token).contains(&expected));

    for state in ["active", "disabled"] {
        let response = change(&world, &token, id, &json!({"state": state}));
        assert_problem(&response, 409, "conflict", state);
    }
    expected["role"] = json!("viewer");
    let response = change(&world, &token, id, &json!({"role": "viewer"}));
    assert_eq!((response.status, response.json()), (200, expected.clone()));
    assert!(list(&world, &token).contains(&expected));
    let deleted = delete(&world, &token, id);
    assert_eq!((deleted.status, deleted.body.len(), deleted.header("content-type")), (204, 0, None));
    assert_eq!(list(&world, &token).len(), 1);
    assert_problem(&delete(&world, &token, id), 404, "not-found", "again");
    assert_eq!(invite(&world, &token, "new.one@acme.example", "viewer").status, 201, "the address is free again");
    world.clock.advance_seconds(72 * 3600);
    let token = world.token(Role::Admin);
    assert!(list(&world, &token).iter().all(|account| account["state"] != "invited"), "it has expired");
    assert_eq!(invite(&world, &token, "new.one@acme.example", "viewer").status, 201);
}

#[test]
fn used_address_is_a_conflict() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let other = world.token_in("Other", Role::Admin);
    world.account("Acme", "taken@acme.example", Role::Viewer);
    assert_eq!(invite(&world, &token, "invited@acme.example", "viewer").status, 201);
    let mut answers = Vec::new();
    for token in [&token, &other] {
        for email in ["taken@acme.example", "TAKEN@acme.EXAMPLE"] {
            let response = invite(&world, token, email, "viewer");
            assert_problem(&response, 409, "address-in-use", email);
            answers.push(response.text_without_id());
        }
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    let response = invite(&world, &token, "invited@acme.example", "viewer");
    assert_problem(&response, 409, "conflict", "its own open invitation");
    assert_eq!(invite(&world, &other, "invited@acme.example", "viewer").status, 201, "another organization's");
}

/// After 20 addresses in use within an hour, invitations are refused until the hour has passed.
#[test]
fn twenty_used_addresses_stop_invitations_for_the_hour() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let other = world.token_in("Other", Role::Admin);
    world.account("Other", "taken@other.example", Role::Viewer);
    for _ in 0..20 {
        let response = invite(&world, &token, "taken@other.example", "viewer");
        assert_problem(&response, 409, "address-in-use", "taken");
    }
    for email in ["taken@other.example", "free@acme.example"] {
        let response = invite(&world, &token, email, "viewer");
        assert_problem(&response, 429, "too-many-requests", email);
        let seconds: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3_601).contains(&seconds));
    }
    assert_eq!(invite(&world, &other, "free@other.example", "viewer").status, 201);
    world.clock.advance_seconds(3_600);
    let token = world.token(Role::Admin);
    assert_eq!(invite(&world, &token, "free@acme.example", "viewer").status, 201);
}

#[test]
fn invitation_violations_are_named() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let email = "a@acme.example";
    for (body, status, pointers) in [
        (json!([]), 400, &[""][..]),
        (json!({}), 400, &["/email"]),
        (json!({"email": email}), 400, &["/role"]),
        (json!({"email": email, "role": null}), 400, &["/role"]),
        (json!({"email": email, "role": ["admin"]}), 400, &["/role"]),
        (json!({"email": email, "role": 1}), 400, &["/role"]),
        (
            json!({"email": email, "role": "viewer", "organization_id": "x", "state": "active"}),
            400,
            &["/organization_id"],
        ),
        (json!({"email": 7, "role": "Admin"}), 400, &["/email"]),
        (json!({"email": "no-address", "role": "Admin"}), 422, &["/email", "/role"]),
        (json!({"email": "", "role": "viewer"}), 422, &["/email"]),
    ] {
        let response = world.send_json("POST /v1/accounts", &token, &body);
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&response, status, code, &body.to_string());
        let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
        found.sort_unstable();
        assert_eq!(found, pointers, "{body}");
    }
    let twice = r#"{"email": "a@x.io", "role": "viewer", "role": "admin"}"#;
    let problem = assert_problem(&world.send_json("POST /v1/accounts", &token, twice), 400, "malformed-request", twice);
    assert_eq!((&*problem.errors[0].pointer, &*problem.errors[0].code), ("/role", "duplicate"));
    for (line, headers, status, code) in [
        ("POST /v1/accounts?email=x", &[&*token, "Content-Type: application/json"][..], 400, "malformed-request"),
        ("POST /v1/accounts", &[&*token], 415, "unsupported-media-type"),
        ("GET /v1/accounts?limit=x", &[&*token], 400, "malformed-request"),
    ] {
        let body = json!({"email": email, "role": "viewer"}).to_string();
        assert_problem(&world.send(line, headers, body), status, code, line);
    }
    assert_eq!(list(&world, &token).len(), 1, "no user was invited");
}

#[test]
fn role_and_a_state_have_one_spelling() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", "a@acme.example", Role::Editor);
    let id = id_of(&world, &token, "a@acme.example");
    let roles = ["", " ADMIN", "Admin", "admin ", "admin\u{0}", "\u{ff41}dmin", "аdmin", "owner", "root", "invited"];
    for role in roles {
        let response = change(&world, &token, &id, &json!({"role": role}));
        let problem = assert_problem(&response, 422, "refused-value", role);
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, "/role"), "{role}");
        let problem = assert_problem(&invite(&world, &token, "b@acme.example", role), 422, "refused-value", role);
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, "/role"), "{role}");
    }
    for state in ["", "Active", "invited", "deleted", "active\u{0}"] {
        let response = change(&world, &token, &id, &json!({"state": state}));
        let problem = assert_problem(&response, 422, "refused-value", state);
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, "/state"), "{state}");
    }
    for (body, status, pointer) in [
        (json!({}), 400, ""),
        (json!({"role": null}), 400, "/role"),
        (json!({"role": 1}), 400, "/role"),
        (json!({"state": true}), 400, "/state"),
        (json!({"role": "admin", "state": "active"}), 422, "/state"),
        (json!({"role": "admin", "version": 1}), 400, "/version"),
    ] {
        let code = if status == 400 { "malformed-request" } else { "refused-value" };
        let problem = assert_problem(&change(&world, &token, &id, &body), status, code, &body.to_string());
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, pointer), "{body}");
    }
    let account = list(&world, &token).into_iter().find(|account| account["id"] == *id).expect("the account");
    assert_eq!((text(&account["role"]), text(&account["state"])), ("editor", "active"), "nothing was changed");
}

#[test]
fn change_ends_the_accounts_sessions() {
    let world = World::start();
    let token = world.token(Role::Admin);
    for (number, body) in [json!({"role": "editor"}), json!({"state": "disabled"})].into_iter().enumerate() {
        let theirs = world.token(Role::Viewer);
        let id = id_of(&world, &token, &format!("viewer-{}@acme.example", number + 1));
        let response = change(&world, &token, &id, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        let (member, value) = body.as_object().unwrap().iter().next().unwrap();
        assert_eq!(&response.json()[member], value);
        let refused = world.send("GET /v1/organization-vault", &[&theirs], "");
        assert_problem(&refused, 401, "invalid-token", "their session");
    }
    let enabled = change(&world, &token, &id_of(&world, &token, "viewer-2@acme.example"), &json!({"state": "active"}));
    assert_eq!(enabled.json()["state"], "active");
    let theirs = world.token(Role::Editor);
    let id = id_of(&world, &token, "editor-3@acme.example");
    assert_eq!(delete(&world, &token, &id).status, 204);
    assert_problem(&world.send("GET /v1/account", &[&theirs], ""), 401, "invalid-token", "of a deleted account");
}

#[test]
fn last_active_admin_cannot_be_removed() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.token_in("Other", Role::Admin);
    let own = id_of(&world, &token, "admin-0@acme.example");
    assert_eq!(invite(&world, &token, "admin@acme.example", "admin").status, 201, "does not count");
    let attempts = || {
        [
            change(&world, &token, &own, &json!({"role": "viewer"})),
            change(&world, &token, &own, &json!({"state": "disabled"})),
            delete(&world, &token, &own),
        ]
    };
    for response in attempts() {
        assert_problem(&response, 409, "conflict", "the last admin");
    }
    let second = world.token(Role::Admin);
    let response = change(&world, &second, &own, &json!({"role": "editor"}));
    assert_eq!((response.status, &response.json()["role"]), (200, &json!("editor")));
    for response in attempts() {
        assert_problem(&response, 401, "invalid-token", "the session of a role that is no more");
    }
}

#[test]
fn if_match_without_entity_tag_fails() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", "a@acme.example", Role::Viewer);
    let id = id_of(&world, &token, "a@acme.example");
    for (value, status) in [("\"a\"", 412), ("\"a\", \"b\"", 412), ("*", 204)] {
        let header = format!("If-Match: {value}");
        let response = world.send(&format!("DELETE {ACCOUNTS}/{id}"), &[&token, &header], "");
        assert_eq!(response.status, status, "{value}");
    }
    let headers = [&*token, "If-Match: \"a\"", "Content-Type: application/json"];
    let response = world.send(&format!("PATCH {ACCOUNTS}/{id}"), &headers, "{}");
    assert_problem(&response, 412, "precondition-failed", "a change");
}
