//! Re-enrolment: how admins help users who lost their authenticator and codes, and attacks on it.

use serde_json::{Value, json};
use std::sync::Barrier;
use std::thread;
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::samples::small;
use vault_tests::{Account, Answer, Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    a45_old_secrets_stay_revoked_during_re_enrolment,
    one_confirmation_re_enrols,
    role_lowered_during_confirmation_stays_lowered,
    concurrent_login_leaves_no_session_after_re_enrolment,
    concurrent_mutual_re_enrolments_keep_one_admin,
}

const PASSWORD: &str = "a sentence for these tests";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

fn passcode(drafted: &Value) -> String {
    Authenticator::new(text(&drafted["totp"]["secret"])).code(current_step())
}

/// Enrols again. Returns the account with its new login details.
#[track_caller]
fn enrolled(client: &Client, account: &Account, code: &str) -> Account {
    let drafted = client.enrol(code, PASSWORD).expect(200).json();
    assert_eq!(text(&drafted["email"]), account.email);
    client.confirm_enrolment(code, &passcode(&drafted)).expect(204);
    Account::enrolled(&account.organization, &json!({"id": account.id}), &drafted, PASSWORD)
}

#[track_caller]
fn code_of(answer: Answer) -> String {
    text(&answer.expect(201).json()["enrolment_code"]).to_owned()
}

#[test]
fn operator_re_enrols_the_last_admin() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let admin = vault.account("Acme", "admin");
    let session = admin.log_in(&client);
    let command = ["account", "re-enrol", "--email", &admin.email];
    let printed = vault.json(&command);
    assert_eq!(text(&printed["organization"]), "Acme");
    assert!(!session.is_live());
    let reported = vault.run(&command).done();
    assert!(reported.stderr.contains("has no active admin until"), "{}", reported.stderr);
    let code = reported.stdout.lines().find_map(|line| line.trim().strip_prefix("enrolment code ")).unwrap().to_owned();
    assert!(reported.stdout.contains(&format!("/#/enrol/{code}")), "{}", reported.stdout);
    client.enrol(text(&printed["enrolment_code"]), PASSWORD).problem("invalid-enrolment");
    let shown = vault.run(&["account", "show", "--email", &admin.email]).done().stdout;
    assert!(shown.contains("re-enrolling") && shown.contains("code until"), "{shown}");
    let session = enrolled(&client, &admin, &code).log_in(&client);
    assert_eq!(text(&session.own_account()["role"]), "admin");
}

/// The account is disabled, enabled, demoted, promoted and re-enrolled. The old password, passcode and codes stay
/// invalid, and the role is the last one that an admin set.
fn a45_old_secrets_stay_revoked_during_re_enrolment(database: Database) {
    let vault = Vault::start(database);
    let (admin, client) = (vault.admin_session(), vault.client());
    let grace = vault.account("Acme", "admin");
    let session = grace.log_in(&client);
    let first = code_of(admin.re_enrol(&grace.id));
    client.enrol(&first, PASSWORD).expect(200);
    let second = code_of(admin.re_enrol(&grace.id));
    client.enrol(&first, PASSWORD).problem("invalid-enrolment");
    let drafted = client.enrol(&second, PASSWORD).expect(200).json();
    for (change, state) in [
        (json!({"state": "active"}), "re-enrolling"),
        (json!({"state": "disabled"}), "disabled"),
        (json!({"state": "active"}), "re-enrolling"),
        (json!({"role": "viewer"}), "re-enrolling"),
        (json!({"state": "disabled"}), "disabled"),
    ] {
        let changed = admin.change_account(&grace.id, &change).expect(200).json();
        assert_eq!(text(&changed["state"]), state, "{change}");
        client.log_in(&grace.sound_login()).problem("invalid-login");
    }
    admin.change_account(&grace.id, &json!({"state": "re-enrolling"})).problem("refused-value");
    client.confirm_enrolment(&second, &passcode(&drafted)).expect(204);
    let again = Account::enrolled("Acme", &json!({"id": grace.id}), &drafted, PASSWORD);
    client.log_in(&again.sound_login()).problem("invalid-login");
    let listed = admin.accounts()[&grace.email].clone();
    assert_eq!((text(&listed["state"]), text(&listed["role"])), ("disabled", "viewer"));
    admin.change_account(&grace.id, &json!({"state": "active"})).expect(200);
    again.log_in(&client).try_save(&small("a", 1)).problem("insufficient-role");
    client.log_in(&grace.sound_login()).problem("invalid-login");
    assert!(!session.is_live());
    // The code of a deleted account is invalid.
    let third = code_of(admin.re_enrol(&grace.id));
    admin.call("DELETE", &format!("/v1/accounts/{}", grace.id)).send().expect(204);
    client.enrol(&third, PASSWORD).problem("invalid-enrolment");
    admin.invite(&grace.email, "viewer").expect(201);
}

#[test]
fn users_cannot_re_enrol_themselves() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let (one, two) = (vault.account("Acme", "admin"), vault.account("Acme", "admin"));
    let (ones, twos) = (one.log_in(&client), two.log_in(&client));
    ones.re_enrol(&one.id).problem("conflict");
    assert!(ones.is_live() && twos.is_live());
    let code = code_of(ones.re_enrol(&two.id));
    twos.re_enrol(&two.id).problem("invalid-token");
    // Now the only active admin.
    for change in [json!({"role": "viewer"}), json!({"state": "disabled"})] {
        ones.change_account(&one.id, &change).problem("conflict");
    }
    ones.re_enrol(&one.id).problem("conflict");
    enrolled(&client, &two, &code);
    ones.change_account(&one.id, &json!({"role": "viewer"})).expect(200);
}

/// Returns the responses to requests that start simultaneously.
fn concurrently<const N: usize>(acts: [&(dyn Fn() -> Answer + Sync); N]) -> [Answer; N] {
    let barrier = Barrier::new(N);
    thread::scope(|scope| {
        let threads = acts.map(|act| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                act()
            })
        });
        threads.map(|thread| thread.join().unwrap())
    })
}

fn one_confirmation_re_enrols(database: Database) {
    let vault = Vault::start(database);
    let (admin, client) = (vault.admin_session(), vault.client());
    let grace = vault.account("Acme", "viewer");
    let code = code_of(admin.re_enrol(&grace.id));
    let drafted = client.enrol(&code, PASSWORD).expect(200).json();
    let passcode = passcode(&drafted);
    let confirm = || vault.client().confirm_enrolment(&code, &passcode);
    let mut statuses = concurrently([&confirm; 8]).map(|answer| answer.status);
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 401, 401, 401, 401, 401, 401, 401]);
    assert_eq!(admin.accounts().len(), 2);
    Account::enrolled("Acme", &json!({"id": grace.id}), &drafted, PASSWORD).log_in(&client);
}

fn role_lowered_during_confirmation_stays_lowered(database: Database) {
    let vault = Vault::start(database);
    let (admin, client) = (vault.admin_session(), vault.client());
    for _ in 0..3 {
        let grace = vault.account("Acme", "admin");
        let code = code_of(admin.re_enrol(&grace.id));
        let drafted = client.enrol(&code, PASSWORD).expect(200).json();
        let passcode = passcode(&drafted);
        let (here, there) = (vault.client(), admin.on(&vault.client()));
        let [confirmed, lowered] = concurrently([&|| here.confirm_enrolment(&code, &passcode), &|| {
            there.change_account(&grace.id, &json!({"role": "viewer"}))
        }]);
        assert_eq!((confirmed.status, lowered.status), (204, 200), "both are decided, one after the other");
        let again = Account::enrolled("Acme", &json!({"id": grace.id}), &drafted, PASSWORD).log_in(&client);
        assert_eq!(text(&again.own_account()["role"]), "viewer");
    }
}

fn concurrent_login_leaves_no_session_after_re_enrolment(database: Database) {
    let vault = Vault::start(database);
    let (admin, client) = (vault.admin_session(), vault.client());
    for _ in 0..3 {
        let grace = vault.account("Acme", "viewer");
        let logins = [0; 3].map(|_| grace.sound_login());
        let clients = [0; 3].map(|_| vault.client());
        let there = admin.on(&vault.client());
        let [first, second, third, created] = concurrently([
            &|| clients[0].log_in(&logins[0]),
            &|| clients[1].log_in(&logins[1]),
            &|| clients[2].log_in(&logins[2]),
            &|| there.re_enrol(&grace.id),
        ]);
        created.expect(201);
        for answer in [first, second, third] {
            if answer.status == 200 {
                assert!(!Session::new(&client, &answer).is_live());
            } else {
                answer.problem("invalid-login");
            }
        }
        assert_eq!(admin.accounts()[&grace.email]["state"], "re-enrolling");
    }
}

fn concurrent_mutual_re_enrolments_keep_one_admin(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    for round in 0..3 {
        let organization = format!("Round {round}");
        let admins = [0; 2].map(|_| vault.account(&organization, "admin"));
        let sessions = [0, 1].map(|number| admins[number].log_in(&client).on(&vault.client()));
        let [one, two] =
            concurrently([&|| sessions[0].re_enrol(&admins[1].id), &|| sessions[1].re_enrol(&admins[0].id)]);
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 401]);
        let live: Vec<_> = sessions.iter().filter(|session| session.is_live()).collect();
        assert_eq!(live.len(), 1);
        let states: Vec<_> =
            live[0].accounts().into_values().map(|account| text(&account["state"]).to_owned()).collect();
        assert!(states.contains(&"active".to_owned()) && states.contains(&"re-enrolling".to_owned()), "{states:?}");
    }
}
