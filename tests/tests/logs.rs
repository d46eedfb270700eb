//! The log contains actions, rejections with reasons, and request IDs. Commands show who is locked out.

use serde_json::{Value, json};
use vault_tests::samples::small;
use vault_tests::wire::{Wire, request};
use vault_tests::{ActivationListener, Answer, Database, Integration, Vault};

/// Returns the lines with this message in order.
fn lines(vault: &Vault, message: &str) -> Vec<Value> {
    let log = vault.log();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["message"] == message).collect()
}

/// Returns the line with this message that belongs to the request of `answer`.
#[track_caller]
fn line_of(vault: &Vault, message: &str, answer: &Answer) -> Value {
    let request = answer.header("x-request-id").unwrap();
    let found: Vec<_> =
        lines(vault, message).into_iter().filter(|line| line["span"]["request_id"] == request).collect();
    let [line] = &found[..] else { panic!("{message}: {found:?} in {}", vault.log()) };
    assert_eq!(line["level"], "INFO");
    line.clone()
}

#[test]
fn refused_logins_and_lockouts_are_logged_with_their_reason() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let (jane, joe) = (vault.admin(), vault.account("Acme", "viewer"));
    vault.run(&["account", "set", "--state", "disabled", "--email", &joe.email]).done();
    let wrong_password = json!({"email": jane.email, "password": "a wrong password", "passcode": "000000"});
    let unknown = json!({"email": "someone.unknown@example.net", "password": "a password", "passcode": "000000"});
    let no_address = json!({"email": "no address", "password": "a password", "passcode": "000000"});
    let spent = jane.sound_login();
    client.log_in(&spent).expect(200);
    for (body, reason, account) in [
        (&wrong_password, "wrong-password", Some(&jane.id)),
        (&spent, "wrong-passcode", Some(&jane.id)),
        (&joe.sound_login(), "disabled", Some(&joe.id)),
        (&unknown, "unknown-address", None),
        (&no_address, "malformed", None),
    ] {
        let answer = client.log_in(body);
        let line = line_of(&vault, "login.refused", &answer);
        assert_eq!((&line["reason"], line["account"].as_str()), (&json!(reason), account.map(String::as_str)));
        assert_eq!(line["network"], "127.0.0.0/24");
        answer.problem("invalid-login");
    }
    assert_eq!(lines(&vault, "login.locked"), [] as [Value; 0]);

    for _ in 0..2 {
        client.log_in(&wrong_password).problem("invalid-login");
    }
    let fifth = client.log_in(&wrong_password);
    let line = line_of(&vault, "login.locked", &fifth);
    assert_eq!((&line["account"], &line["attempts"]), (&json!(jane.id), &json!(5)));
    assert!(line["until"].as_str().unwrap().ends_with('Z'), "{line}");
    let answer = client.log_in(&jane.sound_login());
    assert_eq!(line_of(&vault, "login.refused", &answer)["reason"], "locked");

    vault.run(&["account", "unlock", "--email", &jane.email]).done();
    let answer = client.log_in(&jane.sound_login()).expect(200);
    let line = line_of(&vault, "login.succeeded", &answer);
    assert_eq!((&line["account"], &line["network"]), (&json!(jane.id), &json!("127.0.0.0/24")));

    let log = vault.log();
    for unsaid in ["someone.unknown", "example.net", "no address", "a wrong password", &jane.email, &jane.password] {
        assert!(!log.contains(unsaid), "{unsaid}");
    }
}

#[test]
fn actions_are_logged_with_actor() {
    let (vault, listener) = ActivationListener::open(Database::Sqlite);
    let admin = vault.admin();
    let session = admin.log_in(&vault.client());
    let actor = format!("account:{}", admin.id);
    let by_admin = |message: &str, answer: &Answer, subject: Option<String>| {
        let line = line_of(&vault, message, answer);
        assert_eq!(line["actor"], *actor, "{line}");
        if let Some(subject) = subject {
            assert_eq!(line["subject"], *subject, "{line}");
        }
        line
    };
    let saved = session.try_save(&small("imports/nightly", 1)).expect(201);
    let id = saved.json()["id"].as_str().unwrap().to_owned();
    let line = by_admin("credential.saved", &saved, Some(format!("credential:{id}")));
    assert!(line["session"].is_string() && line["organization"].is_string(), "{line}");

    let invited = session.invite("grace@example.com", "viewer").expect(201);
    by_admin("account.invited", &invited, Some(format!("account:{}", invited.json()["id"].as_str().unwrap())));
    let frozen = session.post("/namespaces/freeze", &json!({"namespace": "imports/nightly"}));
    let line = by_admin("namespace.frozen", &frozen.expect(200), None);
    assert_eq!(line["namespace"], "imports/nightly");

    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let client = listener.client();
    let refused = integration.activate(&client, "imports/nightly");
    let line = line_of(&vault, "activation.refused-frozen", &refused.problem("frozen"));
    assert_eq!(line["actor"], format!("integration:{}", integration.id));
    let thawed = session.post("/namespaces/thaw", &json!({"namespace": "imports/nightly"}));
    by_admin("namespace.thawed", &thawed, None);
    let purpose = json!({"namespace": "imports/nightly", "purpose": "text of the client"});
    let activated = integration.activate_with(&client, &purpose).expect(201);
    let line = line_of(&vault, "namespace.activated", &activated);
    assert_eq!((&line["namespace"], &line["network"]), (&json!("imports/nightly"), &json!("127.0.0.0/24")));
    assert_eq!(line["credentials"], format!("{id} 1 raw"));
    assert_eq!(line["subject"], format!("activation:{}", activated.json()["id"].as_str().unwrap()));

    integration.administer(&vault, "set", &["--state", "disabled"]).done();
    let refused = integration.activate(&client, "imports/nightly").problem("invalid-token");
    let line = line_of(&vault, "integration.refused", &refused);
    assert_eq!((&line["reason"], &line["integration"]), (&json!("disabled"), &json!(integration.id)));

    by_admin("credential.deleted", &session.delete(&id).expect(204), Some(format!("credential:{id}")));
    by_admin("session.logged-out", &session.log_out().expect(204), None);
    let log = vault.log();
    assert!(!log.contains("text of the client") && !log.contains(&integration.token), "{log}");
    assert!(!log.contains("integration.disabled"), "the command prints its own result");
}

#[test]
fn a92_request_is_one_log_line() {
    for format in ["json", "text"] {
        let mut vault = Vault::start_with(Database::Sqlite, &["--log-level", "debug", "--log-format", format]);
        let forged = "2026-11-20T12:00:00Z ERROR forged";
        let agents = [
            format!("a\u{1b}[31m{forged}"),
            format!("a\u{2028}{forged}"),
            "u".repeat(8 * 1024),
            "\u{9b}31m".to_owned(),
            format!("a\\n{forged}"),
        ];
        for agent in &agents {
            let headers = [
                &*format!("User-Agent: {agent}"),
                &format!("X-Request-Id: {agent}"),
                &format!("X-Forwarded-For: {agent}"),
            ];
            let target = format!("/nonsense%0d%0a{}?a=%0a%1b[31m", forged.replace(' ', "%20"));
            let _ = Wire::once(vault.address(), request(&format!("GET {target}"), &headers, ""));
            let _ = Wire::once(vault.address(), request("G\u{1b}[31mT /", &headers, ""));
            let email = format!("x\r\n{agent}@example.com");
            vault
                .client()
                .log_in(&json!({"email": email, "password": agent, "passcode": agent}))
                .problem("invalid-login");
        }
        vault.stop();
        let log = vault.log();
        assert!(!log.is_empty());
        let escaped = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
        assert!(!log.contains(escaped), "a control character in the log: {log:?}");
        for line in log.lines() {
            assert!(!line.starts_with(forged), "{line}");
            assert!(line.len() < 4096, "a line of {} bytes", line.len());
            if format == "json" {
                assert!(serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()), "{line}");
            }
        }
    }
}
