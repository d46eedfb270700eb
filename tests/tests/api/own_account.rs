//! `{base_url}/account`

use super::app::{App, NOW, PASSWORD, assert_same, members, text};
use serde_json::{Value, json};
use vault_tests::{Account, Answer, Session};

/// Creates an account, and a session of it.
fn own(app: &App) -> (Account, Session) {
    let account = app.account("viewer");
    let session = account.log_in(&app.client());
    (account, session)
}

#[test]
fn every_user_sees_own_account() {
    let app = App::start();
    let (account, session) = own(&app);
    let shown = session.own_account();
    assert_eq!(
        shown,
        json!({
            "id": account.id, "email": account.email, "role": "viewer", "organization": "Acme",
            "organization_id": text(&shown["organization_id"]), "passcode_enrolled_at": NOW, "recovery_codes_left": 9,
            "notices": [{"code": "recovery-code-used", "at": NOW, "detail": text(&shown["notices"][0]["detail"])}],
            "server": {"verify": false, "mail": false},
        })
    );
    for _ in 0..6 {
        account.log_in(&app.client());
    }
    let low = session.own_account()["notices"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&low["code"], members(&low)), (&json!("recovery-codes-low"), vec!["code", "detail"]));
}

#[test]
fn own_account_lists_server_features() {
    let url = "unix:/run/orgvault/activation.sock";
    let app = App::with(|setup| setup.settings.activation_url = Some(url.to_owned()));
    let expected = json!({"verify": false, "mail": false, "activation_url": url});
    assert_eq!(app.viewer().own_account()["server"], expected);
}

#[test]
fn sessions_are_listed_and_ended() {
    let app = App::start();
    let (account, first) = own(&app);
    app.clock.advance_seconds(60);
    let second = account.log_in(&app.client());
    let listed = second.sessions();
    let [newest, oldest] = &listed[..] else { panic!("{listed:?}") };
    let id = text(&newest["id"]);
    assert_eq!(
        *newest,
        json!({
            "id": id, "created_at": "2030-01-01T00:01:00Z", "expires_at": "2030-01-01T01:01:00Z",
            "last_used_at": "2030-01-01T00:01:00Z", "network": "127.0.0.0/24", "current": true, "client": text(&newest["client"]),
        })
    );
    assert_eq!(oldest["current"], false);
    second.remove(&format!("/account/sessions/{}", text(&oldest["id"]))).empty(204);
    assert!(!first.is_live() && second.is_live());
    second.remove(&format!("/account/sessions/{id}")).empty(204); // one's own, as by a logout
    assert!(!second.is_live());
}

fn change_password(session: &Session, mut proof: Value, new: &str) -> Answer {
    proof["new_password"] = json!(new);
    session.post("/account/password", &proof)
}

#[test]
fn new_password_ends_every_other_session() {
    let app = App::start();
    let (account, session) = own(&app);
    let other = account.log_in(&app.client());
    let new = "a horse of another colour";
    change_password(&session, account.proof(), new).empty(204);
    assert!(session.is_live() && !other.is_live());
    for (password, status) in [(PASSWORD, 401), (new, 200)] {
        let mut login = account.sound_login();
        login["password"] = json!(password);
        app.client().log_in(&login).expect(status);
    }
}

#[test]
fn weak_new_password_is_reported_before_re_authentication() {
    let app = App::start();
    let (account, session) = own(&app);
    let long = "x".repeat(1_025);
    let upper = account.email.to_uppercase();
    for new in ["", "seven77", "password1", "12345678", &account.email, &upper, "acme", "Acme!", "orgvault1", &long] {
        let wrong = json!({"password": "wrong", "passcode": "000000"});
        change_password(&session, wrong, new).refuses(422, &["/new_password"]);
    }
    let same = change_password(&session, json!({"password": PASSWORD, "passcode": "000000"}), PASSWORD);
    let same = same.refuses(422, &["/new_password"]).text();
    assert!(same.contains("must differ from the current password"), "{same}");
    change_password(&session, account.proof(), "a horse of another colour").empty(204); // no wait
}

#[test]
fn failed_re_authentication_counts_as_failed_login() {
    let app = App::start();
    let (account, session) = own(&app);
    let mut answers = Vec::new();
    let long = "x".repeat(1_025);
    for path in ["password", "passcode", "recovery-codes"] {
        for (password, passcode) in [("wrong", "000000"), (&*long, "000000"), (PASSWORD, "000000"), (PASSWORD, "")] {
            let mut body = json!({"password": password, "passcode": passcode});
            if path == "password" {
                body["new_password"] = json!("a horse of another colour");
            }
            let answer = session.post_account(path, &body).problem("invalid-login");
            assert!(!answer.text().contains("e-mail"), "the e-mail address was not requested: {}", answer.text());
            answers.push(answer);
            assert!(session.is_live(), "the session continues");
        }
    }
    assert_same(answers);
    // Logins use the same counter: nine attempts were hashed, so a login is locked out.
    app.client().log_in(&account.sound_login()).problem("invalid-login");
}

#[test]
fn new_passcode_applies_after_confirmation() {
    let app = App::start();
    let (account, session) = own(&app);
    let other = account.log_in(&app.client());
    let confirm = |passcode: &str| session.post_account("passcode/confirm", &json!({"passcode": passcode}));
    confirm("123456").problem("conflict"); // nothing waits
    let new = session.post_account("passcode", &account.proof()).expect(200).json();
    assert_eq!(new, json!({"totp": {"secret": new["totp"]["secret"], "uri": new["totp"]["uri"]}}));
    assert!(other.is_live(), "nothing has changed yet");
    let wrong = confirm("000000").problem("invalid-login").text();
    assert!(wrong.contains("the authenticator shows for the new secret"), "{wrong}");
    let passcode = app.passcode(&new["totp"]);
    confirm(&passcode).empty(204);
    assert!(session.is_live() && !other.is_live());
    confirm(&passcode).problem("conflict"); // nothing waits any more
    let log_in = |passcode: &str| app.client().log_in(&account.login(passcode)).status;
    assert_eq!(log_in(&passcode), 401, "the code that confirmed is spent");
    app.clock.advance_seconds(60);
    assert_eq!(log_in(&app.passcode(&json!({"secret": account.secret}))), 401, "the old secret");
    assert_eq!(log_in(&app.passcode(&new["totp"])), 200);
    assert_eq!(session.own_account()["passcode_enrolled_at"], NOW);
}

#[test]
fn recovery_codes_are_replaced() {
    let app = App::start();
    let (account, session) = own(&app);
    let other = account.log_in(&app.client());
    let new = session.post_account("recovery-codes", &account.proof()).expect(200).json();
    let codes = new["recovery_codes"].as_array().unwrap();
    assert_eq!((new.as_object().unwrap().len(), codes.len()), (1, 10));
    assert!(session.is_live() && !other.is_live());
    app.client().log_in(&account.sound_login()).problem("invalid-login");
    app.client().log_in(&account.login(text(&codes[9]))).expect(200);
    assert_eq!(session.own_account()["recovery_codes_left"], 9);
}
