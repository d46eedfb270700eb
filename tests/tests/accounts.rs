//! Accounts: commands of operators, what is logged, and a race.

use serde_json::{Value, json};
use std::sync::Barrier;
use std::thread;
use vault_tests::passcode::{Authenticator, current_step};
use vault_tests::{Account, Client, Database, Vault, on_both_databases};

on_both_databases! {
    concurrent_mutual_re_enrolments_keep_one_admin,
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

/// Confirms an enrolment with the current code of its authenticator.
#[track_caller]
fn confirm(client: &Client, invited: &Value, drafted: &Value) {
    let code = Authenticator::new(text(&drafted["totp"]["secret"])).code(current_step());
    client.confirm_enrolment(text(&invited["enrolment_code"]), &code).expect(204);
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
    vault.run(&["account", "show", "--email", &admin.email]).done().prints("re-enrolling").prints("code until");
    let invited = json!({"id": admin.id, "enrolment_code": code});
    let drafted = enrol(&client, &invited);
    confirm(&client, &invited, &drafted);
    let session = Account::enrolled("Acme", &invited, &drafted, PASSWORD).log_in(&client);
    assert_eq!(text(&session.own_account()["role"]), "admin");
}

fn concurrent_mutual_re_enrolments_keep_one_admin(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    for round in 0..3 {
        let organization = format!("Round {round}");
        let admins = [0; 2].map(|_| vault.account(&organization, "admin"));
        let sessions = admins.each_ref().map(|admin| admin.log_in(&client).on(&vault.client()));
        let barrier = Barrier::new(2);
        let mut statuses = thread::scope(|scope| {
            let threads = [0, 1].map(|number| {
                let (session, other, barrier) = (&sessions[number], &admins[1 - number], &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    session.re_enrol(&other.id).status
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 401]);
        let live: Vec<_> = sessions.iter().filter(|session| session.is_live()).collect();
        assert_eq!(live.len(), 1);
        let mut states: Vec<_> =
            live[0].accounts().into_values().map(|account| text(&account["state"]).to_owned()).collect();
        states.sort_unstable();
        assert_eq!(states, ["active", "re-enrolling"]);
    }
}
