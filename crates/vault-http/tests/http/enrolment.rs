//! `{base_url}/enrol`

use crate::support::{PASSWORD, Response, World, WorldBuilder, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::role::Role;

const EMAIL: &str = "new@acme.example";

/// Invites a user, and returns the enrolment code.
fn invite(world: &World, token: &str, email: &str) -> String {
    let response = world.send_json("POST /v1/accounts", token, json!({"email": email, "role": "editor"}));
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()["enrolment_code"].as_str().expect("a code").to_owned()
}

fn enrol(world: &World, code: &str, password: &str) -> Response {
    world.send_json("POST /v1/enrol", "", json!({"enrolment_code": code, "password": password}))
}

/// Enrols, and returns the one-time secrets.
fn drafted(world: &World, code: &str) -> Value {
    let response = enrol(world, code, PASSWORD);
    assert_standard_headers(&response, "enrol");
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn shown(world: &World, code: &str) -> Response {
    world.send_json("POST /v1/enrol/invitation", "", json!({ "enrolment_code": code }))
}

fn confirm(world: &World, code: &str, passcode: &str) -> Response {
    world.send_json("POST /v1/enrol/confirm", "", json!({"enrolment_code": code, "passcode": passcode}))
}

fn log_in(world: &World, passcode: &str) -> Response {
    let body = json!({"email": EMAIL, "password": PASSWORD, "passcode": passcode});
    world.send_json("POST /v1/login", "", body)
}

#[test]
fn invitation_becomes_an_account() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let code = invite(&world, &token, EMAIL);
    let first = drafted(&world, &code);
    let members: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["email", "recovery_codes", "totp"]);
    assert_eq!(first["email"], EMAIL);
    let uri = first["totp"]["uri"].as_str().expect("an address");
    assert!(uri.starts_with("otpauth://totp/") && uri.contains(first["totp"]["secret"].as_str().unwrap()), "{uri}");
    let codes = first["recovery_codes"].as_array().expect("codes");
    assert_eq!(codes.len(), 10);
    assert!(codes.iter().all(|code| code.as_str().is_some_and(|code| code.len() == 23)), "in groups");

    let second = drafted(&world, &code);
    assert!(second["totp"]["secret"] != first["totp"]["secret"]);
    assert_problem(&confirm(&world, &code, &world.passcode(&first["totp"])), 401, "invalid-enrolment", "an older one");
    let passcode = world.passcode(&second["totp"]);
    assert_problem(&log_in(&world, &passcode), 401, "invalid-login", "not yet");
    let response = confirm(&world, &code, &passcode);
    assert_standard_headers(&response, "confirm");
    assert_eq!((response.status, response.body.len()), (204, 0), "{}", response.text());
    assert_problem(&log_in(&world, &passcode), 401, "invalid-login", "the code that enrolled is spent");
    world.clock.advance_seconds(60);
    let session = log_in(&world, &world.passcode(&second["totp"]));
    assert_eq!(session.status, 200, "{}", session.text());
    let header = format!("Authorization: Bearer {}", session.json()["access_token"].as_str().unwrap());
    let account = world.send("GET /v1/account", &[&header], "").json();
    assert_eq!((&account["email"], &account["role"]), (&json!(EMAIL), &json!("editor")));
    let recovery = log_in(&world, second["recovery_codes"][0].as_str().unwrap());
    assert_eq!(recovery.status, 200, "the newest recovery codes are the account's");
    assert_problem(&log_in(&world, codes[0].as_str().unwrap()), 401, "invalid-login", "the older ones are dead");
    for response in [shown(&world, &code), enrol(&world, &code, PASSWORD), confirm(&world, &code, &passcode)] {
        assert_problem(&response, 401, "invalid-enrolment", "the code is spent");
    }
}

#[test]
fn invitation_shows_address_organization_and_inviter() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let own = world.send("GET /v1/account", &[&token], "").json();
    let code = invite(&world, &token, EMAIL);
    world.seal_audit();
    let entries = || world.send("GET /v1/audit?reads=false", &[&token], "").json().as_array().unwrap().len();
    let before = entries();
    let response = shown(&world, &code);
    assert_standard_headers(&response, "an invitation");
    assert_eq!(response.status, 200, "{}", response.text());
    let expected = json!({
        "email": EMAIL, "organization": own["organization"], "invited_by": own["email"], "expires_at": "2030-01-04T00:00:00Z",
    });
    assert_eq!(response.json(), expected);
    assert_eq!(shown(&world, &code).json(), expected, "it may be repeated");
    world.seal_audit();
    assert_eq!(entries(), before, "nothing is recorded");

    let passcode = world.passcode(&drafted(&world, &code)["totp"]);
    assert_eq!(confirm(&world, &code, &passcode).status, 204);
    let accounts = world.send("GET /v1/accounts", &[&token], "").json();
    let id = accounts.as_array().unwrap().iter().find(|account| account["email"] == EMAIL).unwrap()["id"].clone();
    let line = format!("POST /v1/accounts/{}/re-enrol", id.as_str().unwrap());
    let again = world.send(&line, &[&token], "").json();
    let again = shown(&world, again["enrolment_code"].as_str().unwrap()).json();
    assert_eq!((&again["email"], &again["invited_by"]), (&json!(EMAIL), &own["email"]));
}

#[test]
fn invalid_codes_get_same_response() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let [open, undrafted, withdrawn] =
        ["a", "b", "c"].map(|name| invite(&world, &token, &format!("{name}@acme.example")));
    let accounts = world.send("GET /v1/accounts", &[&token], "").json();
    let id = accounts.as_array().unwrap().iter().find(|account| account["email"] == "c@acme.example").unwrap();
    world.send(&format!("DELETE /v1/accounts/{}", id["id"].as_str().unwrap()), &[&token], "");
    let passcode = world.passcode(&drafted(&world, &open)["totp"]);
    let unknown = "a".repeat(26);
    let long = "a".repeat(10_000);
    let mut answers = Vec::new();
    for code in ["", "x", &unknown, &long, &withdrawn, &open.to_uppercase(), &format!(" {open}"), "\u{0}", "é"] {
        answers.push(shown(&world, code));
        answers.push(enrol(&world, code, PASSWORD));
        answers.push(enrol(&world, code, "short"));
        answers.push(confirm(&world, code, &passcode));
    }
    for wrong in ["", "000000", " 123456", "12345", "00000-00000-00000-00000"] {
        answers.push(confirm(&world, &open, wrong));
    }
    answers.push(confirm(&world, &undrafted, &passcode));
    world.clock.advance_seconds(72 * 3600);
    answers.push(shown(&world, &open));
    answers.push(enrol(&world, &open, PASSWORD));
    answers.push(confirm(&world, &open, &passcode));
    for answer in &answers {
        assert_problem(answer, 401, "invalid-enrolment", "a code that does not work");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "no `error=`: no token was sent");
    }
    let stable: Vec<_> = answers.iter().map(|answer| (answer.stable_headers(), answer.text_without_id())).collect();
    assert!(stable.windows(2).all(|pair| pair[0] == pair[1]), "{stable:?}");
}

#[test]
fn weak_password_is_reported_to_invited_user() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let code = invite(&world, &token, EMAIL);
    let long = "x".repeat(1_025);
    for password in ["", "seven77", "password1", EMAIL, "OrgVault", &long] {
        let problem = assert_problem(&enrol(&world, &code, password), 422, "refused-value", password);
        assert_eq!((problem.errors.len(), &*problem.errors[0].pointer), (1, "/password"), "{password}");
    }
    let passcode = confirm(&world, &code, "123456");
    assert_problem(&passcode, 401, "invalid-enrolment", "nothing was drafted");
}

#[test]
fn bodies_are_validated_strictly_but_tokens_are_not() {
    let world = World::start();
    let token = world.token(Role::Admin);
    for (line, other) in [("POST /v1/enrol", "password"), ("POST /v1/enrol/confirm", "passcode")] {
        for (body, pointers) in [
            (json!([]), &[""][..]),
            (json!({}), &["/enrolment_code"]),
            (json!({"enrolment_code": null, other: 1}), &["/enrolment_code"]),
            (json!({"enrolment_code": "a", other: "b", "role": "admin"}), &["/role"]),
        ] {
            let problem = assert_problem(&world.send_json(line, "", &body), 400, "malformed-request", line);
            let mut found: Vec<_> = problem.errors.iter().map(|error| &*error.pointer).collect();
            found.sort_unstable();
            assert_eq!(found, pointers, "{line} {body}");
        }
        let sound = json!({"enrolment_code": "a", other: "b"}).to_string();
        let json = "Content-Type: application/json";
        assert_problem(&world.send(line, &[], &sound), 415, "unsupported-media-type", line);
        assert_problem(&world.send(&format!("{line}?a=b"), &[json], &sound), 400, "malformed-request", line);
        for token in ["Authorization: Bearer nonsense", &token] {
            assert_problem(&world.send(line, &[json, token], &sound), 401, "invalid-enrolment", line);
        }
    }
}

#[test]
fn unknown_code_is_refused_before_any_work() {
    let world = WorldBuilder::default().hash_permits(0).start();
    assert_problem(&enrol(&world, &"a".repeat(26), PASSWORD), 401, "invalid-enrolment", "unknown");
}
