//! Accounts over HTTP: from an invitation to an account, and operations of its owner and of admins.

use serde_json::{Value, json};
use std::sync::Barrier;
use std::thread;
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::samples::small;
use vault_tests::{Account, Answer, Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    one_confirmation_creates_account,
    last_admin_survives_concurrent_requests,
}

const PASSWORD: &str = "a sentence for these tests";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// Drafts an enrolment.
#[track_caller]
fn enrol(client: &Client, invited: &Value) -> Value {
    client.enrol(text(&invited["enrolment_code"]), PASSWORD).expect(200).json()
}

/// Confirms an enrolment with the current code of its authenticator, and returns the code.
#[track_caller]
fn confirm(client: &Client, invited: &Value, drafted: &Value) -> String {
    let code = Authenticator::new(text(&drafted["totp"]["secret"])).code(current_step());
    let answer = client.confirm_enrolment(text(&invited["enrolment_code"]), &code).expect(204);
    assert_eq!((answer.body.len(), answer.header("content-type")), (0, None));
    code
}

/// Invites and enrols a user.
#[track_caller]
fn member(admin: &Session, email: &str, role: &str) -> Account {
    let client = admin.client();
    let invited = admin.invite(email, role).expect(201).json();
    let drafted = enrol(client, &invited);
    confirm(client, &invited, &drafted);
    Account::enrolled("Acme", &invited, &drafted, PASSWORD)
}

#[test]
fn operator_names_one_of_several_invitations() {
    let vault = Vault::init(Database::Sqlite);
    let email = ["--email", "shared@example.com"];
    for organization in ["Acme", "Globex"] {
        vault.organization(organization);
        let invite = ["account", "invite", "--role", "viewer", "--org", organization];
        vault.run(&[&invite[..], &email].concat()).done();
    }
    let account = |command: &[&str], more: &[&str]| vault.run(&[&["account"], command, &email, more].concat());
    for command in [&["show"][..], &["delete", "--yes"], &["set-role", "--role", "editor"]] {
        let output = account(command, &[]).refused().stderr;
        assert!(output.contains("2 organizations have invited this address: name one with --org"), "{output}");
        account(command, &["--org", "Nowhere"]).refused();
    }
    account(&["set-role", "--role", "editor"], &["--org", "globex"]).done();
    let shown = |organization: &str| account(&["show"], &["--org", organization, "--json"]).done().json();
    assert_eq!((&shown("Acme")["role"], &shown("Globex")["role"]), (&json!("viewer"), &json!("editor")));
    account(&["delete", "--yes"], &["--org", "Acme"]).done();
    account(&["show"], &["--org", "Acme"]).refused();
    assert_eq!(account(&["show"], &["--json"]).done().json()["organization"], "Globex");
}

#[test]
fn operator_invites_too() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    vault.organization("Acme");
    let invite =
        |email: &str| vault.run(&["account", "invite", "--org", "acme", "--email", email, "--role", "admin", "--json"]);
    let invited = invite("first@example.com").done().json();
    assert_eq!(text(&invited["organization"]), "Acme");
    let state = || vault.json(&["account", "list"])[0]["state"].clone();
    assert_eq!((state(), vault.json(&["account", "list"])[0]["role"].clone()), ("invited".into(), "admin".into()));
    for command in [&["set", "--state", "disabled"][..], &["set", "--state", "enabled"], &["unlock"], &["re-enrol"]] {
        vault.run(&[&["account"], command, &["--email", "first@example.com"]].concat()).refused();
    }
    invite("FIRST@example.com").refused();
    invite("not an address").refused();
    vault.run(&["account", "create", "--org", "Acme", "--email", "first@example.com", "--role", "viewer"]).refused();
    vault.run(&["account", "invite", "--org", "Nowhere", "--email", "a@example.com", "--role", "viewer"]).refused();
    let printed = vault.json(&["account", "set-role", "--role", "viewer", "--email", "first@example.com"]);
    assert_eq!((text(&printed["role"]), text(&printed["state"])), ("viewer", "invited"));

    let drafted = enrol(&client, &invited);
    confirm(&client, &invited, &drafted);
    assert_eq!(state(), "active");
    let session = Account::enrolled("Acme", &invited, &drafted, PASSWORD).log_in(&client);
    session.try_save(&small("a", 1)).problem("insufficient-role");

    // Text output for pasting (tested in `printed_lines`), and withdrawing the invitation.
    let invite = ["account", "invite", "--org", "Acme", "--email", "second@example.com", "--role", "viewer"];
    let output = vault.run(&invite).done().stdout;
    let code = output.lines().find_map(|line| line.trim().strip_prefix("enrolment code ")).unwrap();
    assert!(output.contains(&format!("/#/enrol/{code}")), "{output}");
    vault.run(&["account", "delete", "--yes", "--email", "second@example.com"]).done();
    client.enrol(code, PASSWORD).problem("invalid-enrolment");
}

#[test]
fn a15_weak_passwords_are_refused_to_their_owners() {
    let vault = Vault::start(Database::Sqlite);
    let (admin, client) = (vault.admin_session(), vault.client());
    let email = "someone@example.com";
    let invited = admin.invite(email, "viewer").expect(201).json();
    let code = text(&invited["enrolment_code"]);
    let long = "p".repeat(1025);
    let weak = ["", "short", "seven77", "password1", "12345678", email, "SOMEONE@example.com", "OrgVault1", &long];
    let named = |answer: Answer, pointer: &str| {
        let fields = answer.problem("refused-value").refused_fields();
        assert_eq!(fields.iter().map(|(found, _)| &**found).collect::<Vec<_>>(), [pointer]);
    };
    for password in weak {
        named(client.enrol(code, password), "/password");
    }
    let drafted = enrol(&client, &invited);
    confirm(&client, &invited, &drafted);
    let account = Account::enrolled("Acme", &invited, &drafted, PASSWORD);
    let session = account.log_in(&client);
    for password in weak {
        let body = json!({"password": "wrong", "passcode": "wrong", "new_password": password});
        named(session.post_account("password", &body), "/new_password");
    }
    client.log_in(&account.sound_login()).expect(200);
}

#[test]
fn a25_code_that_enrolled_does_not_log_in() {
    let vault = Vault::start(Database::Sqlite);
    let (admin, client) = (vault.admin_session(), vault.client());
    let invited = admin.invite("new@example.com", "viewer").expect(201).json();
    let drafted = enrol(&client, &invited);
    let code = confirm(&client, &invited, &drafted);
    let account = Account::enrolled("Acme", &invited, &drafted, PASSWORD);
    client.log_in(&account.login(&code)).problem("invalid-login");
    account.log_in(&client);
    client.log_in(&account.login(&code)).problem("invalid-login");
}

#[test]
fn a45_new_secrets_revoke_other_sessions() {
    let vault = Vault::start(Database::Sqlite);
    let (bystander, client) = (vault.admin_session(), vault.client());

    let account = vault.account("Acme", "viewer");
    let [other, session] = [0; 2].map(|_| account.log_in(&client));
    let mut body = account.proof();
    body["new_password"] = json!(PASSWORD);
    session.post_account("password", &body).expect(204);
    assert!(session.is_live() && !other.is_live());
    client.log_in(&account.sound_login()).problem("invalid-login");
    let mut login = account.sound_login();
    login["password"] = json!(PASSWORD);
    client.log_in(&login).expect(200);

    let account = vault.account("Acme", "viewer");
    let [other, session] = [0; 2].map(|_| account.log_in(&client));
    let new = session.post_account("recovery-codes", &account.proof()).expect(200).json();
    assert!(session.is_live() && !other.is_live());
    client.log_in(&account.sound_login()).problem("invalid-login");
    client.log_in(&account.login(text(&new["recovery_codes"][0]))).expect(200);
    assert_eq!(session.own_account()["recovery_codes_left"], 9);

    // Failed re-authentication changes nothing and counts as a failed login.
    let mut answers = Vec::new();
    for path in ["password", "passcode", "recovery-codes"] {
        let mut body = json!({"password": "wrong", "passcode": "000000"});
        if path == "password" {
            body["new_password"] = json!("a horse of another colour");
        }
        answers.push(session.post_account(path, &body).problem("invalid-login").indistinct());
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    assert!(session.is_live() && bystander.is_live());
}

#[test]
fn a54_invited_user_may_do_nothing() {
    let vault = Vault::start(Database::Sqlite);
    let (admin, client) = (vault.admin_session(), vault.client());
    let id = admin.save(&small("a", 1));
    let invited = admin.invite("owner@example.com", "admin").expect(201).json();
    let code = text(&invited["enrolment_code"]);
    let drafted = enrol(&client, &invited);
    let account = Account::enrolled("Acme", &invited, &drafted, PASSWORD);
    let authenticator = account.authenticator.code(current_step());
    for passcode in [&*authenticator, &account.recovery_code(), code] {
        client.log_in(&account.login(passcode)).problem("invalid-login");
    }
    for token in [code, text(&drafted["totp"]["secret"])] {
        for (method, path) in [
            ("GET", "/v1/organization-vault".to_owned()),
            ("GET", format!("/v1/organization-vault/{id}")),
            ("DELETE", format!("/v1/organization-vault/{id}")),
            ("GET", "/v1/accounts".to_owned()),
            ("GET", "/v1/account".to_owned()),
        ] {
            client.request(method, &path).bearer(token).send().problem("invalid-token");
        }
    }
    assert_eq!(admin.ids(), [id]);
    // A login with an invited address gets the same response as one with an unknown address.
    let unknown = client.log_in(&json!({"email": "unknown@example.com", "password": PASSWORD, "passcode": "000000"}));
    assert_eq!(client.log_in(&account.login("000000")).indistinct(), unknown.indistinct());
    // Enrolment is impossible while the organization is disabled.
    vault.run(&["org", "set", "--state", "disabled", "Acme"]).done();
    client.enrol(code, PASSWORD).problem("invalid-enrolment");
    client.confirm_enrolment(code, &account.authenticator.code(current_step())).problem("invalid-enrolment");
    vault.run(&["org", "set", "--state", "enabled", "Acme"]).done();
    confirm(&client, &invited, &drafted);
}

#[test]
fn a56_role_has_one_spelling_over_http() {
    let vault = Vault::start(Database::Sqlite);
    let admin = vault.admin_session();
    let viewer = vault.account("Acme", "viewer");
    let before = admin.accounts();
    for role in [
        " ADMIN",
        "Admin",
        "admin ",
        "admin\u{0}",
        "\u{ff41}\u{ff44}\u{ff4d}\u{ff49}\u{ff4e}",
        "adm\u{131}n",
        "",
        "owner",
    ] {
        admin.invite("x@example.com", role).problem("refused-value");
        admin.change_account(&viewer.id, &json!({"role": role})).problem("refused-value");
    }
    for role in [json!(["admin"]), json!(1), json!(null), json!({"role": "admin"})] {
        admin.change_account(&viewer.id, &json!({"role": role})).problem("malformed-request");
        let invite = admin.call("POST", "/v1/accounts").json(&json!({"email": "x@example.com", "role": role}));
        invite.send().problem("malformed-request");
    }
    assert_eq!(admin.accounts(), before);
}

/// Returns the statuses of `count` requests that start simultaneously.
fn concurrently(count: usize, act: impl Fn(usize) -> Answer + Sync) -> Vec<u16> {
    let barrier = Barrier::new(count);
    thread::scope(|scope| {
        let (act, barrier) = (&act, &barrier);
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    barrier.wait();
                    act(number).status
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn one_confirmation_creates_account(database: Database) {
    let vault = Vault::start(database);
    let (admin, client) = (vault.admin_session(), vault.client());
    let invited = admin.invite("new@example.com", "viewer").expect(201).json();
    let drafted = enrol(&client, &invited);
    let code = Authenticator::new(text(&drafted["totp"]["secret"])).code(current_step());
    let mut statuses = concurrently(8, |_| vault.client().confirm_enrolment(text(&invited["enrolment_code"]), &code));
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 401, 401, 401, 401, 401, 401, 401]);
    assert_eq!(admin.accounts().len(), 2);
    Account::enrolled("Acme", &invited, &drafted, PASSWORD).log_in(&client);
}

fn last_admin_survives_concurrent_requests(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    for (round, change) in [json!({"role": "viewer"}), json!({"state": "disabled"})].into_iter().enumerate() {
        let organization = format!("Round {round}");
        let admins = [0; 2].map(|_| vault.account(&organization, "admin"));
        let sessions = [0, 1].map(|number| admins[number].log_in(&client));
        // Each admin demotes the other.
        let statuses = concurrently(2, |number| {
            sessions[number].on(&vault.client()).change_account(&admins[1 - number].id, &change)
        });
        assert!(statuses.contains(&200), "{statuses:?}");
        assert!(statuses.iter().any(|status| matches!(status, 401 | 409)), "{statuses:?}");
        let live: Vec<_> = sessions.iter().filter(|session| session.is_live()).collect();
        assert_eq!(live.len(), 1, "one of them is left");
        let left = &admins[usize::from(sessions[1].is_live())];
        for change in [json!({"role": "editor"}), json!({"state": "disabled"})] {
            live[0].change_account(&left.id, &change).problem("conflict");
        }
        live[0].call("DELETE", &format!("/v1/accounts/{}", left.id)).send().problem("conflict");
        // Operators may demote the last admin.
        vault.run(&["account", "set-role", "--role", "viewer", "--email", &left.email]).done();
    }
}

#[test]
fn nothing_of_an_enrolment_is_logged() {
    let vault = Vault::start_with(Database::Sqlite, &["--log-level", "debug"]);
    let admin = vault.admin_session();
    let invited = admin.invite("new@example.com", "editor").expect(201).json();
    let client = vault.client();
    let drafted = enrol(&client, &invited);
    confirm(&client, &invited, &drafted);
    let account = Account::enrolled("Acme", &invited, &drafted, PASSWORD);
    let session = account.log_in(&client);
    let new = session.post_account("passcode", &account.proof()).expect(200).json();
    let codes = session.post_account("recovery-codes", &account.proof()).expect(200).json();
    let log = vault.log();
    assert!(log.contains("enrol") && log.contains("replace-recovery-codes"), "requests are logged at debug");
    let secrets = [
        &invited["enrolment_code"],
        &drafted["totp"]["secret"],
        &drafted["recovery_codes"][0],
        &new["totp"]["secret"],
        &codes["recovery_codes"][0],
    ];
    for secret in secrets.into_iter().map(text).chain([PASSWORD, "new@example.com", &session.token]) {
        assert!(!log.contains(secret), "{secret}");
    }
    // The list contains each of many members once.
    let mine = member(&admin, "another@example.com", "viewer");
    assert_eq!(admin.accounts()["another@example.com"]["id"], json!(mine.id));
}
