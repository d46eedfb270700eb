//! `{base_url}/accounts`

use super::app::{App, NOW, UNKNOWN, assert_same, members, pages, text, texts};
use serde_json::{Value, json};
use vault_tests::Session;

fn list(admin: &Session) -> Vec<Value> {
    admin.get("/accounts").expect(200).json().as_array().expect("an array").clone()
}

#[test]
fn admins_see_the_accounts_of_their_organization() {
    let app = App::start();
    let admin = app.admin();
    app.stranger();
    app.account_of("Acme", "zoe@acme.example", "viewer");
    let listed = list(&admin);
    assert_eq!(
        listed[1],
        json!({
            "id": listed[1]["id"], "email": "admin-0@acme.example", "role": "admin", "state": "active",
            "created_at": NOW, "last_login_at": NOW, "locked": false,
        })
    );
    assert_eq!(members(&listed[0]), ["created_at", "email", "id", "locked", "role", "state"], "it never logged in");
    assert_eq!(listed.len(), 2, "none of another organization");
}

#[test]
fn accounts_are_paginated() {
    let app = App::start();
    let (admin, stranger) = (app.admin(), app.stranger());
    for number in 0..4 {
        app.clock.advance_seconds(1);
        app.account("viewer");
        app.clock.advance_seconds(1);
        admin.invite(&format!("invited-{number}@acme.example"), "viewer").expect(201);
    }
    let paged = pages(&admin, "/accounts?limit=2");
    assert_eq!(paged.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 1]);
    assert_eq!(paged.concat(), list(&admin));
    let first = admin.get("/accounts?limit=2");
    let cursor = first.header("link").unwrap().split("cursor=").nth(1).unwrap().split('>').next().unwrap();
    for (session, cursor) in [(&stranger, cursor), (&admin, "x"), (&admin, "")] {
        session.get(&format!("/accounts?cursor={cursor}")).refuses(422, &["/cursor"]);
    }
}

#[test]
fn locked_out_account_is_shown_as_locked_and_unlocked() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let zoe = app.account("viewer");
    for _ in 0..5 {
        client.log_in(&json!({"email": zoe.email, "password": "wrong", "passcode": "123456"})).problem("invalid-login");
    }
    client.log_in(&zoe.sound_login()).problem("invalid-login");
    app.clock.advance_seconds(10);
    let shown = || {
        let zoe = admin.accounts()[&zoe.email].clone();
        ["locked", "locked_since", "failed_logins", "last_failed_login_at"].map(|name| zoe[name].clone())
    };
    assert_eq!(shown(), [json!(true), json!(NOW), json!(5), json!(NOW)]);
    app.clock.advance_seconds(20);
    assert_eq!(shown(), [json!(false), Value::Null, json!(5), json!(NOW)]);

    client.log_in(&json!({"email": zoe.email, "password": "wrong", "passcode": "123456"})).problem("invalid-login");
    assert_eq!(shown()[0], true);
    let unlock = format!("/accounts/{}/unlock", zoe.id);
    admin.post(&unlock, &Value::Null).empty(204);
    assert_eq!(shown()[0], false);
    client.log_in(&zoe.sound_login()).expect(200);
    admin.post(&unlock, &Value::Null).empty(204); // one that is not locked, too
}

#[test]
fn invitation_is_created_changed_and_withdrawn() {
    let app = App::start();
    let admin = app.admin();
    let invited = admin.invite("New.One@ACME.example", "editor").expect(201).json();
    assert_eq!(members(&invited), ["enrolment_code", "expires_at", "id"]);
    assert_eq!((text(&invited["expires_at"]), text(&invited["enrolment_code"]).len()), ("2030-01-04T00:00:00Z", 26));
    let id = text(&invited["id"]);
    let mut expected = json!({
        "id": id, "email": "new.one@acme.example", "role": "editor", "state": "invited", "created_at": NOW,
        "locked": false, "invitation_expires_at": "2030-01-04T00:00:00Z",
    });
    assert!(list(&admin).contains(&expected));
    for state in ["active", "disabled"] {
        admin.change_account(id, &json!({"state": state})).problem("conflict");
    }
    for what in ["unlock", "re-enrol"] {
        admin.post(&format!("/accounts/{id}/{what}"), &Value::Null).problem("conflict");
    }
    expected["role"] = json!("viewer");
    assert_eq!(admin.change_account(id, &json!({"role": "viewer"})).expect(200).json(), expected);
    assert!(list(&admin).contains(&expected));
    let path = format!("/accounts/{id}");
    admin.remove(&path).empty(204);
    assert_eq!(list(&admin).len(), 1);
    admin.remove(&path).problem("not-found");
    admin.invite("new.one@acme.example", "viewer").expect(201); // the address is free again
    app.clock.advance_seconds(72 * 3600);
    let admin = app.admin();
    assert!(!texts(&list(&admin), "state").contains(&"invited".to_owned()), "it has expired");
    admin.invite("new.one@acme.example", "viewer").expect(201);
}

#[test]
fn used_address_is_a_conflict() {
    let app = App::start();
    let (admin, stranger) = (app.admin(), app.stranger());
    app.account_of("Acme", "taken@acme.example", "viewer");
    admin.invite("invited@acme.example", "viewer").expect(201);
    let tried = [&admin, &stranger].into_iter().flat_map(|session| {
        ["taken@acme.example", "TAKEN@acme.EXAMPLE"]
            .map(|email| session.invite(email, "viewer").problem("address-in-use"))
    });
    assert_same(tried);
    admin.invite("invited@acme.example", "viewer").problem("conflict"); // its own open invitation
    stranger.invite("invited@acme.example", "viewer").expect(201);
}

/// After 20 addresses in use within an hour, invitations are refused until the hour has passed.
#[test]
fn twenty_used_addresses_stop_invitations_for_the_hour() {
    let app = App::start();
    let (admin, stranger) = (app.admin(), app.stranger());
    app.account_of("Other", "taken@other.example", "viewer");
    for _ in 0..20 {
        admin.invite("taken@other.example", "viewer").problem("address-in-use");
    }
    for email in ["taken@other.example", "free@acme.example"] {
        let refused = admin.invite(email, "viewer").problem("too-many-requests");
        assert!((1..=3_601).contains(&refused.header("retry-after").unwrap().parse::<u32>().unwrap()));
    }
    stranger.invite("free@other.example", "viewer").expect(201);
    app.clock.advance_seconds(3_600);
    app.admin().invite("free@acme.example", "viewer").expect(201);
}

#[test]
fn change_ends_the_accounts_sessions() {
    let app = App::start();
    let admin = app.admin();
    for (member, value) in [("role", "editor"), ("state", "disabled")] {
        let viewer = app.account("viewer");
        let theirs = viewer.log_in(&app.client());
        let changed = admin.change_account(&viewer.id, &json!({ member: value })).expect(200).json();
        assert_eq!(changed[member], value);
        theirs.get("/organization-vault").problem("invalid-token");
        if member == "state" {
            assert_eq!(admin.change_account(&viewer.id, &json!({"state": "active"})).json()["state"], "active");
            assert!(!theirs.is_live(), "a right that was removed and granted again revives no session");
        }
        admin.remove(&format!("/accounts/{}", viewer.id)).empty(204);
        app.client().log_in(&viewer.sound_login()).problem("invalid-login");
    }
    let editor = app.account("editor");
    let theirs = editor.log_in(&app.client());
    admin.remove(&format!("/accounts/{}", editor.id)).empty(204);
    theirs.get("/account").problem("invalid-token");
}

#[test]
fn last_active_admin_cannot_be_removed() {
    let app = App::start();
    app.stranger();
    let account = app.account("admin");
    let admin = account.log_in(&app.client());
    admin.invite("admin@acme.example", "admin").expect(201); // does not count
    let attempts = || {
        [
            admin.change_account(&account.id, &json!({"role": "viewer"})),
            admin.change_account(&account.id, &json!({"state": "disabled"})),
            admin.remove(&format!("/accounts/{}", account.id)),
        ]
    };
    for answer in attempts() {
        answer.problem("conflict");
    }
    let changed = app.admin().change_account(&account.id, &json!({"role": "editor"})).expect(200);
    assert_eq!(changed.json()["role"], "editor");
    for answer in attempts() {
        answer.problem("invalid-token");
    }
}

#[test]
fn if_match_without_entity_tag_fails() {
    let app = App::start();
    let (admin, viewer) = (app.admin(), app.account("viewer"));
    let path = format!("/v1/accounts/{}", viewer.id);
    let call = |method: &str, path: &str, tag: &str| admin.call(method, path).header("if-match", tag);
    for tag in ["\"a\"", "\"a\", \"b\""] {
        call("DELETE", &path, tag).send().problem("precondition-failed");
        call("PATCH", &path, tag).json(&json!({})).send().problem("precondition-failed");
        for what in ["unlock", "re-enrol"] {
            call("POST", &format!("{path}/{what}"), tag).send().problem("precondition-failed");
        }
    }
    call("DELETE", &path, "*").send().empty(204);
}

#[test]
fn unlock_and_re_enrol_hide_foreign_accounts() {
    let app = App::start();
    let (admin, stranger) = (app.admin(), app.stranger());
    let theirs = app.account_in("Other", "viewer").id;
    let before = list(&stranger);
    for what in ["unlock", "re-enrol"] {
        let ids = [UNKNOWN, "00000000-0000-0000-0000-000000000000", &theirs, "x", "%00"];
        let path = |id: &str| format!("/accounts/{id}/{what}");
        assert_same(ids.map(|id| admin.post(&path(id), &Value::Null).problem("not-found")));
        let viewer = app.account("viewer");
        admin.post(&format!("{}?force=true", path(&viewer.id)), &Value::Null).problem("malformed-request");
        // No body can set a role or a state.
        let answer = admin.post(&path(&viewer.id), &json!({"role": "admin", "state": "active"}));
        assert!([201, 204].contains(&answer.status), "{}", answer.text());
        assert_eq!(admin.accounts()[&viewer.email]["role"], "viewer");
    }
    assert_eq!(list(&stranger), before);
}
