//! `POST {base_url}/login`

use super::app::{App, PASSWORD, assert_same, members};
use super::enrolment::busy;
use serde_json::{Value, json};
use vault_core::digest::DigestPurpose;
use vault_core::hash_slots::Requester;
use vault_core::network::Network;
use vault_core::organization::OrganizationState;
use vault_core::port::KeyedDigester as _;
use vault_testkit::crypto::FakeDigester;
use vault_tests::{Account, Answer, Session};

#[test]
fn login_returns_token() {
    let app = App::start();
    let account = app.account("admin");
    let body = app.client().log_in(&account.sound_login()).expect(200).json();
    assert_eq!(members(&body), ["access_token", "expires_at", "expires_in", "token_type"]);
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("Bearer"), &json!(3600)));
    assert_eq!(body["expires_at"], "2030-01-01T01:00:00Z");
    let mut login = account.sound_login();
    login["ttl"] = json!(60);
    assert_eq!(app.client().log_in(&login).json()["expires_in"], 60);
}

#[test]
fn a01_refusals_get_same_response() {
    let app = App::start();
    let (admin, client) = (app.admin(), app.client());
    let mut answers: Vec<Answer> = Vec::new();
    let mut refuse = |body: &Value| answers.push(client.log_in(body).problem("invalid-login"));
    // At most four failures of an account, so that no lockout starts.
    let account = app.account("admin");
    let foreign = app.account("admin").recovery_code();
    for (member, value) in
        [("password", "not the password"), ("password", ""), ("passcode", &*foreign), ("passcode", "")]
    {
        let mut body = account.sound_login();
        body[member] = json!(value);
        refuse(&body);
    }
    let account = app.account("admin");
    for passcode in ["000000 ", "００００００", "12345", "not a passcode"] {
        refuse(&account.login(passcode));
    }
    for email in ["unknown@example.com", "not an address", "", "a@b@c", "\u{0}@example.com", &"a".repeat(5000)] {
        refuse(&json!({"email": email, "password": "p", "passcode": "000000"}));
    }
    let waiting = app.account("admin");
    for _ in 0..5 {
        refuse(&waiting.login("000000"));
    }
    refuse(&waiting.sound_login()); // right, while it must wait
    for _ in 0..6 {
        refuse(&json!({"email": "other@example.com", "password": "p", "passcode": "000000"}));
    }
    let [disabled, deleted] = [0; 2].map(|_| app.account("admin"));
    admin.change_account(&disabled.id, &json!({"state": "disabled"})).expect(200);
    admin.remove(&format!("/accounts/{}", deleted.id)).expect(204);
    refuse(&disabled.sound_login());
    refuse(&deleted.sound_login());
    let closed = app.account_in("Other", "admin");
    app.set_organization_state("Other", OrganizationState::Disabled);
    refuse(&closed.sound_login());
    let used = app.account("admin");
    let code = used.recovery_code();
    client.log_in(&used.login(&code)).expect(200);
    refuse(&used.login(&code));
    assert_eq!((answers[0].header("set-cookie"), answers[0].header("www-authenticate")), (None, Some("Bearer")));
    assert_same(answers);
}

/// Spellings of an address share one counter. Nothing else identifies an account, and nothing is computed for it.
#[test]
fn only_address_in_any_spelling_identifies_account() {
    let app = App::start();
    let client = app.client();
    let account = app.account_of("Acme", "a@b\u{fc}cher.example", "admin");
    // Decoys are no account's.
    let counted = || app.hasher.verified().into_iter().filter(|own| *own).count();
    let spellings = [
        "a@b\u{fc}cher.example",
        "A@b\u{fc}cher.example",
        "a@B\u{dc}CHER.example",
        "A@xn--bcher-kva.EXAMPLE",
        "a@XN--BCHER-KVA.example",
    ];
    let log_in = |email: &str, password: &str| {
        let mut body = account.sound_login();
        (body["email"], body["password"]) = (json!(email), json!(password));
        client.log_in(&body)
    };
    for email in spellings {
        log_in(email, PASSWORD).expect(200);
    }
    let before = counted();
    for email in spellings {
        client.log_in(&json!({"email": email, "password": "wrong", "passcode": "0"})).problem("invalid-login");
    }
    assert_eq!(counted() - before, 5);
    log_in("a@xn--bcher-kva.example", PASSWORD).problem("invalid-login");
    assert_eq!(counted() - before, 5, "one counter");

    let account = app.account("admin");
    let (before, named) = (app.hasher.verified().len(), format!("Admin <{}>", account.email));
    let local = account.email.split('@').next().unwrap();
    let mut others = vec![&*account.id, local, "Acme", "admin", &named, "user@xn--example-.org", "user@xn--a.org"];
    others.extend(["user@[127.0.0.1]", "\"us er\"@example.org", "\u{fc}ser@example.org", "user@example..org", "user@"]);
    others.extend(["@example.org", "user@127.0.0.1", " user@example.org", "user@example.org ", "\u{feff}u@x.org"]);
    others.extend(["us\u{0}er@example.org", "user@example.org\u{0}", "user@exam\nple.org"]);
    for email in others {
        let body = json!({"email": email, "password": PASSWORD, "passcode": "000000"});
        client.log_in(&body).problem("invalid-login");
    }
    for length in [1_025, 60_000] {
        let body = json!({"email": account.email, "password": "p".repeat(length), "passcode": "000000"});
        client.log_in(&body).problem("invalid-login"); // no password is as long
    }
    assert_eq!(app.hasher.verified().len(), before, "no work for what cannot be an account or a password");
}

#[test]
fn overload_response_has_retry_after() {
    let app = App::with(|setup| setup.ports(|ports| ports.hasher = busy()));
    let answer = app.client().log_in(&json!({"email": "a@x.io", "password": "b", "passcode": "c"}));
    assert_eq!(answer.problem("unavailable").header("retry-after"), Some("1"));
}

#[test]
fn network_is_that_of_peer_unless_proxy_is_trusted() {
    for (trusted, address) in [(None, [127, 0, 0, 1]), (Some("127.0.0.0/8"), [198, 51, 100, 7])] {
        let expected = Network::of(address.into());
        let expected = FakeDigester::default().digest(DigestPurpose::Network, &[expected.as_bytes()]);
        let app = App::with(|setup| {
            setup.settings.listener.trusted_proxies = trusted.map(|net| net.parse().unwrap()).into_iter().collect();
        });
        let (client, account) = (app.client(), app.account("viewer"));
        let claims = [
            ("x-forwarded-for", "203.0.113.1, 198.51.100.7"),
            ("forwarded", "for=203.0.113.1"),
            ("x-real-ip", "203.0.113.1"),
            ("true-client-ip", "203.0.113.1"),
            ("x-forwarded-host", "evil.example"),
        ];
        let call = client.request("POST", "/v1/login").json(&account.sound_login());
        let call = claims.into_iter().fold(call, |call, (name, value)| call.header(name, value));
        let session = Session::new(&client, &call.send().expect(200));
        let network = format!("{}.{}.{}.0/24", address[0], address[1], address[2]);
        assert_eq!(session.sessions()[0]["network"], network);
        let requested = app.hasher.requested();
        let from_expected =
            |requester: &&Requester| matches!(requester, Requester::Network { network, .. } if *network == expected);
        assert_eq!(requested.iter().filter(from_expected).count(), 1);
    }
}

/// Failures from elsewhere do not lock out the owner, whose network is known.
#[test]
fn a11_failures_from_elsewhere_do_not_lock_the_owner_out() {
    let app = App::with(|setup| {
        setup.settings.listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    });
    let account = app.account("admin");
    let from = |network: &str, body: &Value| {
        app.client().request("POST", "/v1/login").header("x-forwarded-for", network).json(body).send()
    };
    let wrong = json!({"email": account.email, "password": "not the password", "passcode": "000000"});
    from("198.51.100.7", &account.sound_login()).expect(200);
    for attempt in 0..5 {
        from(&format!("203.0.113.{attempt}"), &wrong).problem("invalid-login");
        from(&format!("2001:db8:{attempt}::1"), &wrong).problem("invalid-login");
    }
    from("198.51.100.99", &account.sound_login()).expect(200);
    let counted = || app.hasher.verified().into_iter().filter(|own| *own).count();
    let before = counted();
    from("192.0.2.1", &account.sound_login()).problem("invalid-login");
    assert_eq!(counted(), before, "unknown networks wait together");
}

#[test]
fn a21_only_two_steps_are_accepted() {
    let app = App::start();
    let code = |account: &Account| app.passcode(&json!({"secret": account.secret}));
    for (seconds, status) in [(0, 200), (30, 200), (60, 401), (90, 401)] {
        let account = app.account("viewer");
        let shown = code(&account);
        app.clock.advance_seconds(seconds);
        assert_eq!(app.client().log_in(&account.login(&shown)).status, status, "{seconds} s later");
        if status == 200 {
            app.client().log_in(&account.login(&shown)).problem("invalid-login"); // it is spent
        }
    }
    // A code of before the last used one.
    let account = app.account("viewer");
    let earlier = code(&account);
    app.clock.advance_seconds(30);
    app.client().log_in(&account.login(&code(&account))).expect(200);
    app.client().log_in(&account.login(&earlier)).problem("invalid-login");
    // The client's clock is not asked.
    let account = app.account("viewer");
    let shown = code(&account);
    app.clock.advance_seconds(600);
    let client = app.client();
    let call = client.request("POST", "/v1/login").header("date", "Tue, 01 Jan 2030 00:00:00 GMT");
    call.header("x-timestamp", "1893456000").json(&account.login(&shown)).send().problem("invalid-login");
}
