//! Attacks on the second factor.

use serde_json::{Value, json};
use std::sync::Barrier;
use std::thread;
use vault_tests::passcode::within_one_step;
use vault_tests::sql::Sql;
use vault_tests::{Account, Database, Vault, on_both_databases};

on_both_databases! {
    a17_passcode_works_once,
    a20_earlier_step_is_refused_after_later_one,
    a27_passcode_is_a_string,
}

fn a17_passcode_works_once(database: Database) {
    let mut vault = Vault::start(database);
    let (login, observed) = within_one_step(|step| {
        let (account, client) = (vault.admin(), vault.client());
        let login = account.login(&account.authenticator.code(step));
        let observed = [0; 3].map(|_| client.log_in(&login).status);
        (login, observed)
    });
    assert_eq!(observed, [200, 401, 401]);
    vault.kill_and_restart();
    vault.client().log_in(&login).problem("invalid-login");
}

fn a20_earlier_step_is_refused_after_later_one(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    for (order, expected) in [([0, -1], [200, 401]), ([-1, 0], [200, 200])] {
        let observed = within_one_step(|step| {
            let account = vault.admin();
            order.map(|offset| client.log_in(&account.login(&account.authenticator.code(step + offset))).status)
        });
        assert_eq!(observed, expected, "{order:?}");
    }
}

#[test]
fn a21_only_two_steps_are_accepted() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let offsets = [-20, -3, -2, -1, 0, 1, 2, 3];
    let observed = within_one_step(|step| {
        let accounts = offsets.map(|_| vault.admin());
        let mut logins = accounts.iter().zip(offsets);
        offsets.map(|_| {
            let (account, offset) = logins.next().unwrap();
            client.log_in(&account.login(&account.authenticator.code(step + offset))).status
        })
    });
    assert_eq!(observed, [401, 401, 401, 200, 200, 401, 401, 401], "{offsets:?}");
}

#[test]
fn a24_client_time_is_ignored() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let observed = within_one_step(|step| {
        let account = vault.admin();
        let early = account.login(&account.authenticator.code(step + 4));
        let log_in = |body: &Value| {
            let call = client.request("POST", "/v1/login").header("date", "Thu, 20 Nov 2031 12:02:00 GMT");
            call.header("x-time", "1953028920").header("x-timestamp", "1953028920").json(body).send().status
        };
        let mut stamped = early.clone();
        stamped["timestamp"] = json!(1_953_028_920);
        [log_in(&early), log_in(&stamped), log_in(&account.login(&account.authenticator.code(step)))]
    });
    assert_eq!(observed, [401, 400, 200]);
}

fn a27_passcode_is_a_string(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    let account = vault.admin();
    let before = vault.password_evaluations();
    for (value, code) in [
        (None, "required"),
        (Some(json!(null)), "wrong-type"),
        (Some(json!(false)), "wrong-type"),
        (Some(json!(true)), "wrong-type"),
        (Some(json!(0)), "wrong-type"),
        (Some(json!(123_456)), "wrong-type"),
        (Some(json!([])), "wrong-type"),
        (Some(json!(["000000"])), "wrong-type"),
        (Some(json!({})), "wrong-type"),
    ] {
        let mut body = account.login("");
        match &value {
            None => drop(body.as_object_mut().unwrap().remove("passcode")),
            Some(value) => body["passcode"] = value.clone(),
        }
        let answer = client.log_in(&body).problem("malformed-request");
        assert_eq!(answer.refused_fields(), [("/passcode".to_owned(), code.to_owned())], "{value:?}");
    }
    assert_eq!(vault.password_evaluations(), before, "nothing is compared for a malformed login");
    let refused = client.log_in(&account.login("")).problem("invalid-login");
    assert_eq!((refused.header("set-cookie"), refused.json().get("access_token")), (None, None));
    if database == Database::Postgres {
        assert_eq!(Sql::of(&vault).value("SELECT count(*) FROM sessions"), "0", "no session, not even half of one");
    }
}

/// Twenty wrong codes after a correct password disable the time-based passcode, even with other logins in between.
#[test]
fn a22_wrong_codes_disable_the_passcode() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let log_in = |body: &Value| {
        // As if the longest lockout had passed since the last attempt.
        sql.run("UPDATE attempt_classes SET latest = latest - 1000000");
        client.log_in(body)
    };
    let with_current_code = |account: &Account| {
        within_one_step(|step| {
            // The code is unused in every attempt of the test.
            sql.run("UPDATE account_logins SET last_step = 0");
            log_in(&account.login(&account.authenticator.code(step))).status
        })
    };
    let wrong_codes = |account: &Account, count: usize| {
        for passcode in ["99999-99999-99999-99999", "", "nonsense", "12345"].iter().cycle().take(count) {
            log_in(&account.login(passcode)).problem("invalid-login");
            let wrong = json!({"email": account.email, "password": "not the password", "passcode": "000000"});
            log_in(&wrong).problem("invalid-login");
        }
    };
    let almost = vault.admin();
    wrong_codes(&almost, 19);
    assert_eq!(with_current_code(&almost), 200);

    let account = vault.admin();
    wrong_codes(&account, 20);
    assert_eq!(with_current_code(&account), 401, "disabled");
    log_in(&account.sound_login()).expect(200);
    assert_eq!(with_current_code(&account), 401, "a recovery code logs in, and does not bring the passcode back");
    let again = vault.json(&["account", "re-enrol", "--email", &account.email]);
    assert_eq!(with_current_code(&account.enrolled_again(&again, &client)), 200, "until the user has enrolled again");
}

#[test]
fn a29_recovery_code_works_once() {
    let mut vault = Vault::start(Database::Sqlite);
    let account = vault.admin();
    let code = account.recovery_code();
    let spellings = [code.clone(), code.replace('-', "")];
    let barrier = Barrier::new(16);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let logins: Vec<_> = (0..16)
            .map(|number: usize| {
                let (client, body, barrier) = (vault.client(), account.login(&spellings[number % 2]), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    client.log_in(&body).status
                })
            })
            .collect();
        logins.into_iter().map(|login| login.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|&&status| status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 401 | 503)), "{statuses:?}");
    vault.kill_and_restart();
    for spelling in &spellings {
        vault.run(&["account", "unlock", "--email", &account.email]).done();
        vault.client().log_in(&account.login(spelling)).problem("invalid-login");
    }
    account.log_in(&vault.client());
}

#[test]
fn a29_every_recovery_code_works() {
    let vault = Vault::start(Database::Sqlite);
    let account = vault.admin();
    for _ in 0..10 {
        account.log_in(&vault.client());
    }
    // Only the complete code in its exact spelling is valid.
    let account = vault.admin();
    let code = account.recovery_code();
    let full_width: String = code.chars().map(|c| if c == '1' { '\u{ff11}' } else { c }).collect();
    for flawed in [&code[1..], &format!(" {code}"), &format!("{code}\n"), &code.replacen('-', "", 1)] {
        vault.client().log_in(&account.login(flawed)).problem("invalid-login");
    }
    vault.run(&["account", "unlock", "--email", &account.email]).done();
    for flawed in
        [&code.replace('-', " "), &code.replace('-', "\u{2013}"), &format!("{code}{code}"), &format!("x{full_width}")]
    {
        vault.client().log_in(&account.login(flawed)).problem("invalid-login");
    }
    vault.client().log_in(&account.login(&code)).expect(200);
}

/// A clock that was moved back does not make a used code valid again, because the database stores the step.
#[test]
fn a30_clock_moved_back_revives_no_code() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let observed = within_one_step(|step| {
        let account = vault.admin();
        // As if the login had been ten minutes ahead of the current time.
        let first = client.log_in(&account.login(&account.authenticator.code(step - 1))).status;
        sql.run(&format!("UPDATE account_logins SET last_step = last_step + 20 WHERE account_id = '{}'", account.id));
        [first, client.log_in(&account.login(&account.authenticator.code(step))).status]
    });
    assert_eq!(observed, [200, 401]);
}

#[test]
fn new_seed_replaces_the_old_one() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let old = vault.admin();
    let before = old.log_in(&client);
    let again = vault.json(&["account", "re-enrol", "--email", &old.email]);
    let new = old.enrolled_again(&again, &client);
    assert_ne!(new.secret, old.secret);
    assert!(!before.is_live(), "its sessions have ended");
    client.log_in(&old.sound_login()).problem("invalid-login");
    let observed = within_one_step(|step| {
        [&old, &new].map(|account| client.log_in(&new.login(&account.authenticator.code(step))).status)
    });
    assert_eq!(observed, [401, 200]);
    assert!(new.log_in(&client).is_live());
}
