//! `{base_url}/account`

use crate::support::{PASSWORD, Response, World, WorldBuilder, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::role::Role;

const EMAIL: &str = "me@acme.example";

/// Creates an account for this test.
fn world() -> World {
    let world = World::start();
    world.account("Acme", EMAIL, Role::Viewer);
    world
}

/// Logs in. Returns the header with the token.
fn log_in(world: &World) -> String {
    let response = world.send_json("POST /v1/login", "", world.login_body(EMAIL));
    assert_eq!(response.status, 200, "{}", response.text());
    format!("Authorization: Bearer {}", response.json()["access_token"].as_str().expect("a token"))
}

fn account(world: &World, token: &str) -> Value {
    let response = world.send("GET /v1/account", &[token], "");
    assert_standard_headers(&response, "account");
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    response.json()
}

fn sessions(world: &World, token: &str) -> Vec<Value> {
    let response = world.send("GET /v1/account/sessions", &[token], "");
    assert_eq!(response.status, 200, "{}", response.text());
    response.json().as_array().expect("an array").clone()
}

fn is_live(world: &World, token: &str) -> bool {
    let response = world.send("GET /v1/account", &[token], "");
    assert!(response.status == 200 || response.status == 401, "{}", response.text());
    response.status == 200
}

/// Returns the correct password and passcode.
fn proof(world: &World) -> Value {
    json!({"password": PASSWORD, "passcode": world.code(EMAIL)})
}

#[test]
fn every_user_sees_own_account() {
    let world = world();
    let token = log_in(&world);
    let shown = account(&world, &token);
    assert_eq!(
        shown,
        json!({
            "id": shown["id"].as_str().expect("an id"), "email": EMAIL, "role": "viewer", "organization": "Acme",
            "organization_id": shown["organization_id"].as_str().expect("an id"),
            "passcode_enrolled_at": "2030-01-01T00:00:00Z", "recovery_codes_left": 9,
            "notices": [{
                "code": "recovery-code-used", "at": "2030-01-01T00:00:00Z",
                "detail": shown["notices"][0]["detail"].as_str().expect("a text"),
            }],
            "server": {"verify": false, "mail": false},
        })
    );
    for _ in 0..6 {
        log_in(&world);
    }
    let notices = account(&world, &token)["notices"].as_array().unwrap().clone();
    let low = notices.last().expect("a notice");
    let members: Vec<_> = low.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((&low["code"], members), (&json!("recovery-codes-low"), vec!["code", "detail"]));
}

#[test]
fn own_account_lists_server_features() {
    let world = WorldBuilder::default()
        .settings(|settings| settings.activation_url = Some("unix:/run/orgvault/activation.sock".to_owned()))
        .start();
    world.account("Acme", EMAIL, Role::Viewer);
    let token = log_in(&world);
    assert_eq!(
        account(&world, &token)["server"],
        json!({"verify": false, "mail": false, "activation_url": "unix:/run/orgvault/activation.sock"})
    );
}

#[test]
fn sessions_are_listed_and_ended() {
    let world = world();
    let first = log_in(&world);
    world.clock.advance_seconds(60);
    let second = log_in(&world);
    let listed = sessions(&world, &second);
    let [newest, oldest] = &listed[..] else { panic!("{listed:?}") };
    let id = newest["id"].as_str().expect("an id");
    assert_eq!(
        *newest,
        json!({
            "id": id, "created_at": "2030-01-01T00:01:00Z", "expires_at": "2030-01-01T01:01:00Z",
            "last_used_at": "2030-01-01T00:01:00Z", "network": "127.0.0.0/24", "current": true,
        })
    );
    assert_eq!(oldest["current"], false);
    let end = |token: &str, id: &str| world.send(&format!("DELETE /v1/account/sessions/{id}"), &[token], "");
    let response = end(&second, oldest["id"].as_str().unwrap());
    assert_eq!((response.status, response.body.len()), (204, 0), "{}", response.text());
    assert!(!is_live(&world, &first) && is_live(&world, &second));
    let response = end(&second, id);
    assert_eq!(response.status, 204, "one's own, as by a logout");
    assert!(!is_live(&world, &second));
}

fn change_password(world: &World, token: &str, mut proof: Value, new: &str) -> Response {
    proof["new_password"] = json!(new);
    world.send_json("POST /v1/account/password", token, proof)
}

#[test]
fn new_password_ends_every_other_session() {
    let world = world();
    let [other, token] = [log_in(&world), log_in(&world)];
    let new = "a horse of another colour";
    let response = change_password(&world, &token, proof(&world), new);
    assert_eq!((response.status, response.body.len()), (204, 0), "{}", response.text());
    assert!(is_live(&world, &token) && !is_live(&world, &other));
    for (password, status) in [(PASSWORD, 401), (new, 200)] {
        let body = json!({"email": EMAIL, "password": password, "passcode": world.code(EMAIL)});
        assert_eq!(world.send_json("POST /v1/login", "", body).status, status);
    }
}

#[test]
fn weak_new_password_is_reported_before_re_authentication() {
    let world = world();
    let token = log_in(&world);
    let long = "x".repeat(1_025);
    for new in ["", "seven77", "password1", EMAIL, "acme", "Acme!", "orgvault1", &long] {
        let wrong = json!({"password": "wrong", "passcode": "000000"});
        let problem = assert_problem(&change_password(&world, &token, wrong, new), 422, "refused-value", new);
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, "/new_password"), "{new}");
    }
    let same = change_password(&world, &token, json!({"password": PASSWORD, "passcode": "000000"}), PASSWORD);
    let problem = assert_problem(&same, 422, "refused-value", "the current one");
    assert_eq!(problem.errors[0].detail, "must differ from the current password");
    assert_eq!(change_password(&world, &token, proof(&world), "a horse of another colour").status, 204, "no wait");
}

#[test]
fn failed_re_authentication_counts_as_failed_login() {
    let world = world();
    let token = log_in(&world);
    let mut answers = Vec::new();
    let long = "x".repeat(1_025);
    for line in ["POST /v1/account/password", "POST /v1/account/passcode", "POST /v1/account/recovery-codes"] {
        for (password, passcode) in [("wrong", "000000"), (&*long, "000000"), (PASSWORD, "000000"), (PASSWORD, "")] {
            let mut body = json!({"password": password, "passcode": passcode});
            if line.ends_with("password") {
                body["new_password"] = json!("a horse of another colour");
            }
            let response = world.send_json(line, &token, &body);
            assert_problem(&response, 401, "invalid-login", line);
            assert!(!response.text().contains("e-mail"), "the e-mail address was not requested: {}", response.text());
            answers.push((response.stable_headers(), response.text_without_id()));
            assert!(is_live(&world, &token), "the session continues");
        }
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "whatever was wrong: {answers:?}");
    // Logins use the same counter: nine attempts were hashed, so a login is locked out.
    let body = world.login_body(EMAIL);
    assert_problem(&world.send_json("POST /v1/login", "", body), 401, "invalid-login", "a wait");
}

#[test]
fn new_passcode_applies_after_confirmation() {
    let world = world();
    let [other, token] = [log_in(&world), log_in(&world)];
    let confirm = |token: &str, passcode: &str| {
        world.send_json("POST /v1/account/passcode/confirm", token, json!({"passcode": passcode}))
    };
    assert_problem(&confirm(&token, "123456"), 409, "conflict", "nothing waits");
    let response = world.send_json("POST /v1/account/passcode", &token, proof(&world));
    assert_eq!(response.status, 200, "{}", response.text());
    let new = response.json();
    assert_eq!(new, json!({"totp": {"secret": new["totp"]["secret"], "uri": new["totp"]["uri"]}}));
    assert!(is_live(&world, &other), "nothing has changed yet");
    let wrong = confirm(&token, "000000");
    assert_problem(&wrong, 401, "invalid-login", "a wrong code");
    assert!(wrong.text().contains("the authenticator shows for the new secret"), "{}", wrong.text());
    let passcode = world.passcode(&new["totp"]);
    let response = confirm(&token, &passcode);
    assert_eq!((response.status, response.body.len()), (204, 0), "{}", response.text());
    assert!(is_live(&world, &token) && !is_live(&world, &other));
    assert_problem(&confirm(&token, &passcode), 409, "conflict", "nothing waits any more");
    let log_in = |passcode: &str| {
        world
            .send_json("POST /v1/login", "", json!({"email": EMAIL, "password": PASSWORD, "passcode": passcode}))
            .status
    };
    assert_eq!(log_in(&passcode), 401, "the code that confirmed is spent");
    world.clock.advance_seconds(60);
    assert_eq!(log_in(&world.passcode(&new["totp"])), 200);
    assert_eq!(account(&world, &token)["passcode_enrolled_at"], "2030-01-01T00:00:00Z");
}

#[test]
fn recovery_codes_are_replaced() {
    let world = world();
    let [other, token] = [log_in(&world), log_in(&world)];
    let old = world.code(EMAIL);
    let response = world.send_json("POST /v1/account/recovery-codes", &token, proof(&world));
    assert_eq!(response.status, 200, "{}", response.text());
    let codes = response.json()["recovery_codes"].as_array().expect("codes").clone();
    assert_eq!((response.json().as_object().unwrap().len(), codes.len()), (1, 10));
    assert!(is_live(&world, &token) && !is_live(&world, &other));
    for (code, status) in [(&*old, 401), (codes[9].as_str().unwrap(), 200)] {
        let body = json!({"email": EMAIL, "password": PASSWORD, "passcode": code});
        assert_eq!(world.send_json("POST /v1/login", "", body).status, status);
    }
    assert_eq!(account(&world, &token)["recovery_codes_left"], 9);
}

#[test]
fn bodies_are_validated_strictly() {
    let world = world();
    let token = log_in(&world);
    for (path, members) in [
        ("password", &["new_password", "passcode", "password"][..]),
        ("passcode", &["passcode", "password"]),
        ("passcode/confirm", &["passcode"]),
        ("recovery-codes", &["passcode", "password"]),
    ] {
        let line = format!("POST /v1/account/{path}");
        let sound: Value = members.iter().map(|&member| (member.to_owned(), json!("a"))).collect();
        let problem = assert_problem(&world.send_json(&line, &token, "{}"), 400, "malformed-request", path);
        let found: Vec<_> = problem.errors.iter().map(|error| error.pointer.trim_start_matches('/')).collect();
        assert!(found.len() == 1 && members.contains(&found[0]), "{path}");
        for member in members.iter().chain(&["email"]) {
            let mut body = sound.clone();
            body[member] = json!(1);
            let problem = assert_problem(&world.send_json(&line, &token, &body), 400, "malformed-request", path);
            assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, &*format!("/{member}")), "{path}");
        }
        assert_problem(&world.send(&line, &[&token], sound.to_string()), 415, "unsupported-media-type", path);
        let query = world.send_json(&format!("{line}?a=b"), &token, &sound);
        assert_problem(&query, 400, "malformed-request", path);
        assert_problem(&world.send_json(&line, "", &sound), 401, "invalid-token", path);
    }
}
