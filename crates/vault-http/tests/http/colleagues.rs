//! `{base_url}/accounts/<id>/unlock` and `…/re-enrol`: how admins unlock and re-enrol other users.

use crate::support::{PASSWORD, Response, World, assert_problem, assert_standard_headers};
use serde_json::{Value, json};
use vault_core::role::Role;

const ZOE: &str = "zoe@acme.example";
const NEW_PASSWORD: &str = "another long password";

fn post(world: &World, token: &str, id: &str, what: &str) -> Response {
    world.send(&format!("POST /v1/accounts/{id}/{what}"), &[token], "")
}

fn list(world: &World, token: &str) -> Vec<Value> {
    let response = world.send("GET /v1/accounts", &[token], "");
    assert_eq!(response.status, 200, "{}", response.text());
    response.json().as_array().expect("an array").clone()
}

fn listed(world: &World, token: &str, email: &str) -> Value {
    list(world, token).into_iter().find(|account| account["email"] == email).expect("an account of this address")
}

fn id_of(world: &World, token: &str, email: &str) -> String {
    text(&listed(world, token, email)["id"]).to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn log_in(world: &World, password: &str, passcode: &str) -> Response {
    let body = json!({"email": ZOE, "password": password, "passcode": passcode});
    world.send_json("POST /v1/login", "", body)
}

fn bearer(session: &Response) -> String {
    assert_eq!(session.status, 200, "{}", session.text());
    format!("Authorization: Bearer {}", text(&session.json()["access_token"]))
}

/// Starts a re-enrolment of the account, and returns the code.
fn re_enrol(world: &World, token: &str, id: &str) -> String {
    let response = post(world, token, id, "re-enrol");
    assert_eq!(response.status, 201, "{}", response.text());
    text(&response.json()["enrolment_code"]).to_owned()
}

fn enrol(world: &World, code: &str) -> Response {
    world.send_json("POST /v1/enrol", "", json!({"enrolment_code": code, "password": NEW_PASSWORD}))
}

fn confirm(world: &World, code: &str, passcode: &str) -> Response {
    world.send_json("POST /v1/enrol/confirm", "", json!({"enrolment_code": code, "passcode": passcode}))
}

#[test]
fn admin_unlocks_another_user() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", ZOE, Role::Viewer);
    let id = id_of(&world, &token, ZOE);
    for _ in 0..5 {
        assert_eq!(log_in(&world, "wrong", "123456").status, 401);
    }
    assert_eq!(log_in(&world, PASSWORD, &world.code(ZOE)).status, 401, "it waits");
    assert_eq!(listed(&world, &token, ZOE)["locked"], true);
    let unlocked = post(&world, &token, &id, "unlock");
    assert_standard_headers(&unlocked, "unlock");
    assert_eq!((unlocked.status, unlocked.body.len(), unlocked.header("content-type")), (204, 0, None));
    assert_eq!(listed(&world, &token, ZOE)["locked"], false);
    assert_eq!(log_in(&world, PASSWORD, &world.code(ZOE)).status, 200);
    assert_eq!(post(&world, &token, &id, "unlock").status, 204, "one that is not locked, too");
}

#[test]
fn user_without_phone_and_codes_re_enrols() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", ZOE, Role::Editor);
    let theirs = bearer(&log_in(&world, PASSWORD, &world.code(ZOE)));
    let before = listed(&world, &token, ZOE);
    let id = text(&before["id"]);
    let response = post(&world, &token, id, "re-enrol");
    assert_standard_headers(&response, "re-enrol");
    assert_eq!((response.status, response.header("content-type")), (201, Some("application/json")));
    let created = response.json();
    let members: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["enrolment_code", "expires_at"]);
    let code = text(&created["enrolment_code"]);
    assert_eq!((code.len(), text(&created["expires_at"])), (26, "2030-01-04T00:00:00Z"));
    let mut expected = before.clone();
    expected["state"] = json!("re-enrolling");
    expected["invitation_expires_at"] = json!("2030-01-04T00:00:00Z");
    assert_eq!(listed(&world, &token, ZOE), expected);
    assert_eq!(list(&world, &token).len(), 2, "it is listed once");

    assert_problem(&world.send("GET /v1/account", &[&theirs], ""), 401, "invalid-token", "their session");
    let unknown = json!({"email": "unknown@acme.example", "password": PASSWORD, "passcode": "123456"});
    let unknown = world.send_json("POST /v1/login", "", unknown);
    let old = log_in(&world, PASSWORD, &world.code(ZOE));
    assert_problem(&old, 401, "invalid-login", "what they had");
    assert_eq!(
        (old.stable_headers(), old.text_without_id()),
        (unknown.stable_headers(), unknown.text_without_id()),
        "as for an unknown address"
    );

    let drafted = enrol(&world, code);
    assert_eq!(drafted.status, 200, "{}", drafted.text());
    let drafted = drafted.json();
    assert_eq!(drafted["email"], ZOE);
    let confirmed = confirm(&world, code, &world.passcode(&drafted["totp"]));
    assert_eq!((confirmed.status, confirmed.body.len()), (204, 0), "{}", confirmed.text());
    assert_problem(&log_in(&world, PASSWORD, &world.code(ZOE)), 401, "invalid-login", "what they had");
    assert_problem(&enrol(&world, code), 401, "invalid-enrolment", "the code is spent");
    let mut after = listed(&world, &token, ZOE);
    assert_eq!(after["failed_logins"], 1, "what they had");
    for counter in ["failed_logins", "last_failed_login_at"] {
        after.as_object_mut().unwrap().remove(counter);
    }
    assert_eq!(after, before, "id, role, age and last login are what they were");
    let again = bearer(&log_in(&world, NEW_PASSWORD, text(&drafted["recovery_codes"][0])));
    assert_problem(&world.send("GET /v1/account", &[&theirs], ""), 401, "invalid-token", "their session");

    let own = world.send("GET /v1/account", &[&again], "").json();
    assert_eq!((&own["id"], &own["role"]), (&before["id"], &json!("editor")));
    let notices = |account: &Value| {
        let notices = account["notices"].as_array().unwrap().clone();
        let shown = |notice: &Value| json!([notice["code"], notice["at"], notice["account"]]);
        notices.iter().filter(|notice| notice["code"] != "recovery-code-used").map(shown).collect::<Vec<_>>()
    };
    assert_eq!(notices(&own), [json!(["re-enrolled", "2030-01-01T00:00:00Z", null])]);
    let admin = world.send("GET /v1/account", &[&token], "").json();
    assert_eq!(notices(&admin), [json!(["colleague-re-enrolled", "2030-01-01T00:00:00Z", id])]);
}

#[test]
fn re_enrolment_is_reissued_and_expires() {
    let world = World::start();
    let token = world.token(Role::Admin);
    world.account("Acme", ZOE, Role::Viewer);
    let id = id_of(&world, &token, ZOE);
    let first = re_enrol(&world, &token, &id);
    let second = re_enrol(&world, &token, &id);
    assert_problem(&enrol(&world, &first), 401, "invalid-enrolment", "the earlier code");
    let change = |body: Value| {
        let response = world.send_json(&format!("PATCH /v1/accounts/{id}"), &token, body);
        assert_eq!(response.status, 200, "{}", response.text());
        text(&response.json()["state"]).to_owned()
    };
    assert_eq!(change(json!({"state": "disabled"})), "disabled");
    assert_eq!(change(json!({"state": "active"})), "re-enrolling", "nothing that was comes back");
    assert_eq!(enrol(&world, &second).status, 200);
    world.clock.advance_seconds(72 * 3600);
    assert_problem(&enrol(&world, &second), 401, "invalid-enrolment", "it has expired");
    let token = world.token(Role::Admin);
    let listed = listed(&world, &token, ZOE);
    assert_eq!((&listed["state"], &listed["invitation_expires_at"]), (&json!("re-enrolling"), &Value::Null));
    assert_problem(&log_in(&world, PASSWORD, &world.code(ZOE)), 401, "invalid-login", "what they had");
    let third = re_enrol(&world, &token, &id);
    assert_eq!(enrol(&world, &third).status, 200);
    assert_eq!(world.send(&format!("DELETE /v1/accounts/{id}"), &[&token], "").status, 204);
    assert_problem(&enrol(&world, &third), 401, "invalid-enrolment", "a deleted account");
}

#[test]
fn own_account_and_invitations_cannot_be_re_enrolled() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let second = world.token(Role::Admin);
    let own = id_of(&world, &token, "admin-0@acme.example");
    let problem = assert_problem(&post(&world, &token, &own, "re-enrol"), 409, "conflict", "oneself");
    assert!(problem.detail.contains("your own account"), "{problem:?}");
    let body = json!({"email": ZOE, "role": "viewer"});
    let invited = world.send_json("POST /v1/accounts", &token, body).json();
    for what in ["unlock", "re-enrol"] {
        assert_problem(&post(&world, &token, text(&invited["id"]), what), 409, "conflict", what);
    }
    assert!(list(&world, &second).iter().all(|account| account["state"] != "re-enrolling"));
    re_enrol(&world, &second, &own);
    assert_problem(&post(&world, &token, &own, "re-enrol"), 401, "invalid-token", "its session has ended");
    // The other one is the last active admin now.
    let last = id_of(&world, &second, "admin-1@acme.example");
    let lowered = world.send_json(&format!("PATCH /v1/accounts/{last}"), &second, json!({"role": "viewer"}));
    assert_problem(&lowered, 409, "conflict", "a re-enrolling admin does not count");
}

#[test]
fn unlock_and_re_enrol_hide_foreign_accounts() {
    let world = World::start();
    let token = world.token(Role::Admin);
    let other = world.token_in("Other", Role::Admin);
    world.account("Other", "their@other.example", Role::Viewer);
    let theirs = id_of(&world, &other, "their@other.example");
    let before = list(&world, &other);
    for what in ["unlock", "re-enrol"] {
        let mut answers = Vec::new();
        for id in ["0193aaaa-0000-7000-8000-000000000000", "00000000-0000-0000-0000-000000000000", &theirs, "x", "%00"]
        {
            let response = post(&world, &token, id, what);
            assert_problem(&response, 404, "not-found", id);
            answers.push((response.stable_headers(), response.text_without_id()));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        world.account("Acme", &format!("{what}@acme.example"), Role::Viewer);
        let id = id_of(&world, &token, &format!("{what}@acme.example"));
        let line = format!("POST /v1/accounts/{id}/{what}");
        let response = world.send(&line, &[&token, "If-Match: \"a\""], "");
        assert_problem(&response, 412, "precondition-failed", what);
        let response = world.send(&format!("{line}?force=true"), &[&token], "");
        assert_problem(&response, 400, "malformed-request", what);
        let response = world.send(&line.replace("POST", "GET"), &[&token], "");
        assert_problem(&response, 405, "method-not-allowed", what);
        assert_eq!(response.header("allow"), Some("POST"));
        // No body can set a role or a state.
        let response = world.send_json(&line, &token, json!({"role": "admin", "state": "active"}));
        assert!([201, 204].contains(&response.status), "{}", response.text());
        assert_eq!(listed(&world, &token, &format!("{what}@acme.example"))["role"], "viewer");
    }
    assert_eq!(list(&world, &other), before);
}
