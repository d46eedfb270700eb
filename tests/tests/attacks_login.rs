//! Attacks on the login: enumeration, lockout, passwords.

use serde_json::{Value, json};
use vault_tests::sql::Sql;
use vault_tests::{Account, Answer, Client, Database, Vault, on_both_databases};

on_both_databases! {
    a08_lock_survives_a_killed_server,
    a11_failures_from_elsewhere_do_not_lock_the_owner_out,
}

/// Sends wrong passwords until the account is locked.
#[track_caller]
fn lock(client: &Client, account: &Account) {
    for _ in 0..5 {
        let mut wrong = account.sound_login();
        wrong["password"] = json!("not the password");
        client.log_in(&wrong).problem("invalid-login");
    }
}

#[test]
fn a01_refusals_get_same_response() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let mut answers: Vec<(&str, Answer)> = Vec::new();
    let mut refuse = |name, body: &Value| answers.push((name, client.log_in(body)));

    // At most four failures each, so that no lockout starts.
    let account = vault.admin();
    for (name, member, value) in [
        ("wrong password", "password", json!("not the password")),
        ("empty password", "password", json!("")),
        ("another account's passcode", "passcode", json!(vault.admin().recovery_code())),
        ("empty passcode", "passcode", json!("")),
    ] {
        let mut body = account.sound_login();
        body[member] = value;
        refuse(name, &body);
    }
    let account = vault.admin();
    for passcode in ["000000 ", "００００００", "12345", "not a passcode"] {
        refuse("impossible passcode", &account.login(passcode));
    }
    for email in ["unknown@example.com", "not an address", "", "a@b@c", "\u{0}@example.com", &"a".repeat(5000)] {
        refuse("unknown or impossible address", &json!({"email": email, "password": "p", "passcode": "000000"}));
    }
    let waiting = vault.admin();
    lock(&client, &waiting);
    refuse("right, while it must wait", &waiting.sound_login());
    for _ in 0..6 {
        refuse(
            "unknown address, then while it must wait",
            &json!({"email": "other@example.com", "password": "p", "passcode": "000000"}),
        );
    }
    let disabled = vault.admin();
    vault.run(&["account", "set", "--state", "disabled", "--email", &disabled.email]).done();
    refuse("disabled account", &disabled.sound_login());
    let closed = vault.account("Globex", "admin");
    vault.run(&["org", "set", "--state", "disabled", "Globex"]).done();
    refuse("disabled organization", &closed.sound_login());
    let deleted = vault.account("Initech", "admin");
    vault.run(&["account", "delete", "--yes", "--email", &deleted.email]).done();
    refuse("deleted account", &deleted.sound_login());
    let used = vault.admin();
    let code = used.recovery_code();
    client.log_in(&used.login(&code)).expect(200);
    refuse("used recovery code", &used.login(&code));

    let first = answers[0].1.clone().problem("invalid-login").indistinct();
    for (name, answer) in &answers {
        assert_eq!(answer.indistinct(), first, "{name}");
        assert_eq!(answer.header("retry-after"), None, "{name}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{name}");
    }
}

#[test]
fn a03_spellings_of_an_address_count_as_one() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let account = vault.account_of("a@b\u{fc}cher.example", "correct horse battery");
    let before = vault.password_evaluations();
    let spellings = [
        "a@b\u{fc}cher.example",
        "A@b\u{fc}cher.example",
        "a@B\u{dc}CHER.example",
        "A@xn--bcher-kva.EXAMPLE",
        "a@XN--BCHER-KVA.example",
    ];
    for spelling in spellings {
        let mut body = account.sound_login();
        (body["email"], body["password"]) = (json!(spelling), json!("not the password"));
        client.log_in(&body).problem("invalid-login");
    }
    for spelling in spellings.iter().take(4) {
        let mut body = account.sound_login();
        body["email"] = json!(spelling);
        client.log_in(&body).problem("invalid-login");
    }
    assert_eq!(vault.password_evaluations() - before, 5, "one counter");
}

#[test]
fn a06_only_addresses_with_one_spelling_are_accounts() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let before = vault.password_evaluations();
    let mut refused = vec![
        "user@xn--example-.org",
        "user@xn--a.org",
        "user@[127.0.0.1]",
        "\"us er\"@example.org",
        "\u{fc}ser@example.org",
    ];
    refused.extend([
        "user@example..org",
        "user@",
        "@example.org",
        "user@127.0.0.1",
        " user@example.org",
        "user@example.org ",
    ]);
    for email in refused {
        vault.try_account_of(email, "correct horse battery").refused();
        client
            .log_in(&json!({"email": email, "password": "correct horse battery", "passcode": "000000"}))
            .problem("invalid-login");
    }
    for email in ["us\u{0}er@example.org", "user@example.org\u{0}", "user@exam\nple.org", "\u{feff}user@example.org"] {
        client
            .log_in(&json!({"email": email, "password": "correct horse battery", "passcode": "000000"}))
            .problem("invalid-login");
    }
    assert_eq!(vault.password_evaluations(), before, "no work for what cannot be an account");

    let account = vault.account_of("user@b\u{fc}cher.example", "correct horse battery");
    for same in ["user@xn--bcher-kva.example", "USER@B\u{dc}CHER.example", "user@b\u{fc}cher.example"] {
        vault.try_account_of(same, "correct horse battery").refused();
        let mut body = account.sound_login();
        body["email"] = json!(same);
        client.log_in(&body).expect(200);
    }
}

fn a08_lock_survives_a_killed_server(database: Database) {
    let mut vault = Vault::start(database);
    let account = vault.admin();
    for _ in 0..5 {
        // A correct password with a wrong code counts as a failure.
        vault.client().log_in(&account.login("99999-99999-99999-99999")).problem("invalid-login");
    }
    vault.client().log_in(&account.sound_login()).problem("invalid-login");
    vault.kill_and_restart();
    let before = vault.password_evaluations();
    vault.client().log_in(&account.sound_login()).problem("invalid-login");
    assert_eq!(vault.password_evaluations(), before, "still locked: nothing was compared");
    vault.run(&["account", "unlock", "--email", &account.email]).done();
    account.log_in(&vault.client());
}

#[test]
fn a09_only_address_identifies_account() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let account = vault.admin();
    let before = vault.password_evaluations();
    let local = account.email.split('@').next().unwrap();
    let named = format!("Admin <{}>", account.email);
    for other in [&account.id, local, "Acme", "admin", &*named, &format!("{},{0}", account.email)] {
        let mut body = account.sound_login();
        body["email"] = json!(other);
        client.log_in(&body).problem("invalid-login");
    }
    let code = account.recovery_code();
    for name in ["account_id", "id", "username", "user", "alias", "api_key", "Email"] {
        let mut body = account.login(&code);
        body[name] = json!(account.id);
        let answer = client.log_in(&body).problem("malformed-request");
        assert_eq!(answer.refused_fields(), [(format!("/{name}"), "unknown".to_owned())]);
        body.as_object_mut().unwrap().remove("email");
        client.log_in(&body).problem("malformed-request");
    }
    assert_eq!(vault.password_evaluations(), before);
    client.log_in(&account.login(&code)).expect(200);
}

fn a11_failures_from_elsewhere_do_not_lock_the_owner_out(database: Database) {
    let vault = Vault::start_with(database, &["--trusted-proxy", "127.0.0.0/8"]);
    let client = vault.client();
    let account = vault.admin();
    let from = |network: &str, body: &Value| {
        client.request("POST", "/v1/login").header("x-forwarded-for", network).json(body).send()
    };
    let wrong = json!({"email": account.email, "password": "not the password", "passcode": "000000"});
    from("198.51.100.7", &account.sound_login()).expect(200);
    for round in 0..6 {
        for attempt in 0..5 {
            from(&format!("203.0.113.{attempt}"), &wrong).problem("invalid-login");
            from(&format!("2001:db8:{attempt}::1"), &wrong).problem("invalid-login");
        }
        from(&format!("198.51.100.{round}"), &account.sound_login()).expect(200);
    }
    let before = vault.password_evaluations();
    from("192.0.2.1", &account.sound_login()).problem("invalid-login");
    assert_eq!(vault.password_evaluations(), before, "unknown networks wait together");
    from("198.51.100.99", &account.sound_login()).expect(200);
}

/// A hundred consecutive failures lock a throttle bucket permanently. A known network has a separate bucket.
#[test]
fn a12_hundred_failures_lock_bucket() {
    let vault = Vault::start_with(Database::Postgres, &["--trusted-proxy", "127.0.0.0/8"]);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let account = vault.admin();
    let from = |network: &str, body: &Value| {
        // As if the longest lockout had passed since the last attempt.
        sql.run("UPDATE attempt_classes SET latest = latest - 1000000");
        client.request("POST", "/v1/login").header("x-forwarded-for", network).json(body).send()
    };
    from("198.51.100.7", &account.sound_login()).expect(200);
    let before = vault.password_evaluations();
    let wrong = json!({"email": account.email, "password": "not the password", "passcode": "000000"});
    for _ in 0..100 {
        from("203.0.113.1", &wrong).problem("invalid-login");
    }
    assert_eq!(vault.password_evaluations() - before, 100);
    for network in ["203.0.113.1", "192.0.2.1"] {
        from(network, &account.sound_login()).problem("invalid-login");
    }
    assert_eq!(vault.password_evaluations() - before, 100, "closed: nothing is compared any more");
    from("198.51.100.8", &account.sound_login()).expect(200);
    from("192.0.2.1", &account.sound_login()).expect(200); // that login unlocked the shared bucket
}

#[test]
fn a13_passwords_are_compared_exactly() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let of = |length: usize| -> String {
        (0..length).map(|at| char::from(b'a' + u8::try_from(at * 7 % 26).unwrap())).collect()
    };
    let trimmed = |text: &str| text[..text.len() - 1].to_owned();
    // A password, and others that must not match it.
    let cases: Vec<(String, Vec<String>)> = vec![
        ("trailing space ".into(), vec!["trailing space".into(), "trailing space  ".into()]),
        (" leading space".into(), vec!["leading space".into()]),
        ("Case Matters".into(), vec!["case matters".into()]),
        (of(64), vec![trimmed(&of(64)), of(65)]),
        (of(72), vec![trimmed(&of(72)), of(73)]),
        (of(73), vec![trimmed(&of(73)), of(74)]),
        (of(512), vec![trimmed(&of(512)), of(256)]),
        (of(1024), vec![trimmed(&of(1024)), of(1025)]),
        (
            "pa\u{df}w\u{f6}rt \u{1f511}\u{1f511}".into(),
            vec!["passw\u{f6}rt \u{1f511}\u{1f511}".into(), "pa\u{df}wo\u{308}rt \u{1f511}\u{1f511}".into()],
        ),
        ("before\u{0}after".into(), vec!["before".into(), "before\u{0}other".into()]),
        ("two\nlines\r\nof it".into(), vec!["two\nlines\nof it".into()]),
    ];
    for (number, (password, others)) in cases.iter().enumerate() {
        let account = vault.account_of(&format!("case{number}@example.com"), password);
        for other in others {
            let mut body = account.sound_login();
            body["password"] = json!(other);
            client.log_in(&body).problem("invalid-login");
        }
        client.log_in(&account.sound_login()).expect(200);
    }
}

#[test]
fn a14_impossible_password_costs_no_hash() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let account = vault.admin();
    let before = vault.password_evaluations();
    let code = account.recovery_code();
    let long = |length: usize| json!({"email": account.email, "password": "p".repeat(length), "passcode": code});
    for length in [1_025, 2_048, 60_000] {
        client.log_in(&long(length)).problem("invalid-login");
        let characters =
            json!({"email": account.email, "password": "\u{1f511}".repeat(length / 4 + 1), "passcode": code});
        client.log_in(&characters).problem("invalid-login");
    }
    client.log_in(&long(1 << 20)).problem("too-large");
    assert_eq!(vault.password_evaluations(), before);
    client.log_in(&account.login(&code)).expect(200);
}

#[test]
fn a15_weak_passwords_are_refused() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Acme Imports Inc");
    let email = "someone@acme-imports.example";
    let create = ["account", "create", "--org", "Acme Imports Inc", "--email", email, "--role", "viewer"];
    let with = |arguments: &[&str], password: &str| {
        let file = vault.password_file(password);
        vault.run(&[arguments, &["--json", "--password-file", file.to_str().unwrap()]].concat())
    };
    let weak = [
        "",
        "short",
        "seven77",
        "\u{1f511}\u{1f511}\u{1f511}\u{1f511}",
        "password",
        "PASSWORD",
        "Password1",
        "password123",
        "12345678",
        "qwertyuiop",
        "iloveyou1",
        "football",
        "sunshine",
        "11111111",
        "someone@acme-imports.example",
        "SOMEONE@acme-imports.example",
        "acme imports inc",
        "Acme Imports Inc",
        "Acme Imports Inc1",
        "orgvault",
        "OrgVault1",
        "OrgVault2026!",
        &"p".repeat(1025),
    ];
    for password in weak {
        let output = with(&create, password).refused().stderr;
        // Short passwords and product names occur in any message about passwords, and the names of account and
        // organization in any message about this account.
        let words = ["password", "orgvault", "someone@acme-imports.example", "Acme Imports Inc"];
        let word = password.len() < 8 || words.contains(&password);
        assert!(word || !output.contains(password), "repeated: {output}");
    }
    with(&create, "a longer sentence").done();
}

#[test]
fn a16_server_without_setup_serves_nothing() {
    let mut vault = Vault::absent(Database::Sqlite);
    vault_tests::process::Server::fail(vault.serve_command()).refused();
    assert!(!vault.data_dir().exists(), "a refused start makes nothing");
    vault.run(&["init"]).done();
    vault.serve();
    let client = vault.client();
    let guesses = [
        "admin",
        "admin@example.com",
        "admin@localhost",
        "root@localhost",
        "orgvault@example.com",
        "admin@orgvault.local",
        "user@example.com",
    ];
    for email in guesses {
        for password in ["", "admin", "password", "changeme", "orgvault"] {
            let passcode = if password.is_empty() { "" } else { "000000" };
            client
                .log_in(&json!({"email": email, "password": password, "passcode": passcode}))
                .problem("invalid-login");
        }
    }
    assert_eq!(vault.json(&["account", "list"]), json!([]));
    assert_eq!(vault.json(&["org", "list"]), json!([]));
}
