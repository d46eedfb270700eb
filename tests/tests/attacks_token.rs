//! Attacks on access tokens and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::fs;
use std::thread;
use vault_tests::samples::small;
use vault_tests::sql::Sql;
use vault_tests::wire::{Wire, request};
use vault_tests::{Client, Database, Session, Vault, on_both_databases};

on_both_databases! {
    a43_session_end_takes_effect_immediately,
}

/// The decoded parts of `v4.local.<payload>.<footer>`.
struct Parts {
    payload: Vec<u8>,
    footer: Vec<u8>,
}

impl Parts {
    fn of(token: &str) -> Self {
        let parts: Vec<&str> = token.split('.').collect();
        let [version, purpose, payload, footer] = parts[..] else { panic!("{} parts", parts.len()) };
        assert_eq!([version, purpose], ["v4", "local"]);
        let decode = |part| URL_SAFE_NO_PAD.decode(part).unwrap();
        Self { payload: decode(payload), footer: decode(footer) }
    }

    fn token(&self, header: &str) -> String {
        format!("{header}{}.{}", URL_SAFE_NO_PAD.encode(&self.payload), URL_SAFE_NO_PAD.encode(&self.footer))
    }
}

/// Asserts that a token is rejected as invalid.
#[track_caller]
fn refused(client: &Client, token: &str) {
    let answer = client.get("/v1/organization-vault").bearer(token).send().problem("invalid-token");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{token}");
}

#[test]
fn a31_every_bit_of_a_token_is_verified() {
    let vault = Vault::start(Database::Sqlite);
    let (session, client) = (vault.admin_session(), vault.client());
    let parts = Parts::of(&session.token);
    let flip = |bytes: &[u8], bit: usize| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    for bit in 0..parts.payload.len() * 8 {
        let changed = Parts { payload: flip(&parts.payload, bit), footer: parts.footer.clone() };
        refused(&client, &changed.token("v4.local."));
    }
    for bit in 0..parts.footer.len() * 8 {
        let changed = Parts { payload: parts.payload.clone(), footer: flip(&parts.footer, bit) };
        refused(&client, &changed.token("v4.local."));
    }
    // Changes in the text too: the last character of a part has unused bits.
    let characters: Vec<char> = session.token.chars().collect();
    for at in 0..characters.len() {
        for other in ['A', 'B', 'w', '_', '.'] {
            let mut changed = characters.clone();
            changed[at] = other;
            if changed != characters {
                refused(&client, &String::from_iter(changed));
            }
        }
        refused(&client, &String::from_iter(&characters[..at.max(1)]));
    }
    for changed in [
        format!("{}A", session.token),
        format!("{}=", session.token),
        format!("{}.", session.token),
        format!("A{}", session.token),
    ] {
        refused(&client, &changed);
    }
    assert!(session.is_live());
}

#[test]
fn a33_other_kinds_of_token_are_refused() {
    let vault = Vault::start(Database::Sqlite);
    let (session, client) = (vault.admin_session(), vault.client());
    let parts = Parts::of(&session.token);
    for header in [
        "v1.local.",
        "v2.local.",
        "v3.local.",
        "v5.local.",
        "v4.public.",
        "v3.public.",
        "V4.local.",
        "v4.LOCAL.",
        "v4.local",
        "v4..",
        "",
        ".",
    ] {
        refused(&client, &parts.token(header));
    }
    // Other token formats: unsigned, signed with a file name as key, encrypted.
    let claims = json!({"sub": "admin", "role": "admin", "exp": 4_102_444_800_u64});
    for head in [
        json!({"alg": "none"}),
        json!({"alg": "HS256", "kid": "../../dev/null"}),
        json!({"alg": "dir", "enc": "A256GCM"}),
    ] {
        let [head, claims] = [head, claims.clone()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        refused(&client, &format!("{head}.{claims}."));
        refused(&client, &format!("{head}.{claims}.c2lnbmF0dXJl"));
        refused(&client, &format!("{head}..{claims}.AAAA.AAAA"));
    }
    let signed = Parts { payload: [claims.to_string().as_bytes(), &[0; 64]].concat(), footer: parts.footer.clone() };
    refused(&client, &signed.token("v4.public."));
    for payload in [vec![], vec![0; 31], vec![0; 64], vec![0; 65], vec![0xff; 2000]] {
        refused(&client, &Parts { payload, footer: parts.footer.clone() }.token("v4.local."));
    }
    assert!(session.is_live());
}

#[test]
fn a38_token_of_another_deployment_is_refused() {
    let [here, there] = [0, 1].map(|_| Vault::start(Database::Sqlite));
    let [session, other] = [&here, &there].map(Vault::admin_session);
    refused(&here.client(), &other.token);
    refused(&there.client(), &session.token);
    // Not even with the same root key.
    let mut shared = Vault::absent(Database::Sqlite);
    let key = shared.scratch("root.key");
    fs::copy(here.data_dir().join("root.key"), &key).unwrap();
    let with_key = ["--root-key", key.to_str().unwrap()];
    let init = shared.run(&[&["init"][..], &with_key].concat());
    if init.status == Some(0) {
        shared.serve_with(&with_key);
        refused(&shared.client(), &session.token);
    } else {
        init.refused();
    }
    assert!(session.is_live() && other.is_live());
}

#[test]
fn a39_footer_names_only_a_key() {
    let vault = Vault::start(Database::Sqlite);
    let (session, client) = (vault.admin_session(), vault.client());
    let parts = Parts::of(&session.token);
    let own: serde_json::Value = serde_json::from_slice(&parts.footer).unwrap();
    let kid = own["kid"].as_str().unwrap();
    assert_eq!(own, json!({"kid": kid}), "nothing else stands in a footer");
    assert!(kid.starts_with("k4.lid."), "{kid}");
    let mut footers: Vec<String> =
        ["", "../../etc/passwd", "/dev/zero", "' OR '1'='1", "'; DROP TABLE sessions; --", "k4.lid.AAAA", "%00"]
            .iter()
            .map(|kid| json!({"kid": kid}).to_string())
            .collect();
    footers.extend([
        String::new(),
        "{}".into(),
        "null".into(),
        kid.to_owned(),
        format!(r#"{{"kid":"{kid}","kid":"{kid}"}}"#),
        format!(r#"{{"kid":"{kid}","kid":"other"}}"#),
        format!(r#"{{"kid":"{kid}"}} "#),
        format!(r#" {{"kid":"{kid}"}}"#),
        format!(r#"{{"kid":["{kid}"]}}"#),
        format!(r#"{{"kid":{{"kid":"{kid}"}}}}"#),
        format!(r#"{{"kid":"{kid}","wpk":"k4.local-wrap.pie.AAAA"}}"#),
        format!(r#"{{"kid":"{}"}}"#, kid.replace("k4.lid.", "k4.sid.")),
        "[".repeat(2000),
        format!(r#"{{"kid":"{}"}}"#, "k".repeat(2500)),
    ]);
    for footer in footers {
        refused(&client, &Parts { payload: parts.payload.clone(), footer: footer.into_bytes() }.token("v4.local."));
    }
    refused(&client, &Parts { payload: parts.payload.clone(), footer: vec![b'x'; 10 * 1024] }.token("v4.local."));
    let without = session.token.rsplit_once('.').unwrap().0.to_owned();
    refused(&client, &without);
    assert!(session.is_live());
}

fn a43_session_end_takes_effect_immediately(database: Database) {
    let vault = Vault::start(database);
    let client = vault.client();
    let by = |commands: &[&[&str]]| {
        for (number, command) in commands.iter().enumerate() {
            let account = vault.account(&format!("Org {number} {}", command[1]), "admin");
            let mut arguments = command.to_vec();
            match command[0] {
                "account" => arguments.extend(["--email", &account.email]),
                _ => arguments.push(account.organization.as_str()),
            }
            let sessions = [account.log_in(&client), account.log_in(&client)];
            let id = sessions[0].save(&small("a", 1));
            vault.run(&arguments).done();
            for session in sessions {
                refused(&client, &session.token);
                session.try_save(&small("a", 2)).problem("invalid-token");
                session.show(&id).problem("invalid-token");
                session.delete(&id).problem("invalid-token");
                session.log_out().problem("invalid-token");
            }
        }
    };
    by(&[
        &["account", "set", "--state", "disabled"],
        &["account", "re-enrol"],
        &["account", "delete", "--yes"],
        &["account", "set-role", "--role", "viewer"],
        &["account", "set-role", "--role", "editor"],
        &["org", "set", "--state", "disabled"],
        &["org", "delete", "--yes"],
    ]);
    // A right that was removed and granted again does not make an old token valid.
    let account = vault.account("Org again", "admin");
    let before = account.log_in(&client);
    for state in ["disabled", "enabled"] {
        vault.run(&["account", "set", "--state", state, "--email", &account.email]).done();
    }
    assert!(!before.is_live());
    assert!(account.log_in(&client).is_live());
}

#[test]
fn a46_token_is_accepted_in_one_header_only() {
    let vault = Vault::start_with(Database::Sqlite, &["--log-level", "debug"]);
    let (session, client) = (vault.admin_session(), vault.client());
    let token = &session.token;
    let vault_path = "/v1/organization-vault";
    for name in ["access_token", "token", "authorization", "bearer_token"] {
        let answer = client.get(&format!("{vault_path}?{name}={token}")).send().problem("invalid-token");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "no credentials were sent");
        client.get(vault_path).header("cookie", &format!("{name}={token}")).send().problem("invalid-token");
        client.get(vault_path).header(&format!("x-{name}").replace('_', "-"), token).send().problem("invalid-token");
        let form = client.request("PATCH", vault_path).header("content-type", "application/x-www-form-urlencoded");
        form.body(format!("{name}={token}")).send().problem("invalid-token");
        let mut body = small("a", 1);
        body[name] = json!(token);
        client.request("PATCH", vault_path).json(&body).send().problem("invalid-token");
    }
    client.get(vault_path).header("proxy-authorization", &format!("Bearer {token}")).send().problem("invalid-token");
    assert!(session.is_live());
    assert!(!vault.log().contains(token.as_str()), "the token was logged");
}

#[test]
fn a47_every_header_form_has_defined_response() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let token = &session.token;
    let ask = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let answer = Wire::exchange(vault.address(), request("GET", "/v1/organization-vault", &lines, b"")).unwrap();
        answer.check_common();
        (answer.status, answer.header("www-authenticate").map(str::to_owned))
    };
    let line = |value: &str| vec![format!("Authorization: {value}")];
    for scheme in ["Bearer", "bearer", "BEARER", "bEARER"] {
        assert_eq!(ask(&line(&format!("{scheme} {token}"))), (200, None), "{scheme}");
    }
    for sound in [vec![format!("authorization:Bearer {token}")], vec![format!("AUTHORIZATION:   Bearer {token}  ")]] {
        assert_eq!(ask(&sound), (200, None), "white space around the value is not part of it");
    }
    let invalid = (401, Some("Bearer error=\"invalid_token\"".to_owned()));
    for value in [
        "Bearer".to_owned(),
        format!("Bearer  {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer {token},"),
        format!("Bearer {token} {token}"),
        format!("Bearer \"{token}\""),
        format!("Bearer token={token}"),
        format!("Bearer {}", "a".repeat(9 * 1024)),
        "Bearer =".to_owned(),
        "Bearer \u{e4}".to_owned(),
    ] {
        assert_eq!(ask(&line(&value)), invalid, "{value}");
    }
    assert_eq!(ask(&[line(&format!("Bearer {token}")), line(&format!("Bearer {token}"))].concat()), invalid);
    assert_eq!(ask(&[line(&format!("Bearer {token}")), line("Basic YTpi")].concat()), invalid);
    let plain = (401, Some("Bearer".to_owned()));
    for value in ["Basic YTpi", "Digest username=\"a\"", "Negotiate abcd", "DPoP abcd"] {
        assert_eq!(ask(&line(value)), plain, "{value}: not our scheme, so no credentials of ours");
    }
    assert_eq!(ask(&[]), plain);

    let viewer = vault.account("Acme", "viewer").log_in(&vault.client());
    let answer = viewer.try_save(&small("a", 1)).problem("insufficient-role");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
}

#[test]
fn a48_similar_tokens_are_never_confused() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let accounts = ["Acme", "Globex"].map(|name| vault.account(name, "admin"));
    let sessions: Vec<(Session, String)> = accounts
        .iter()
        .flat_map(|account| {
            [account.log_in(&client), account.log_in(&client)].map(|session| (session, account.organization.clone()))
        })
        .collect();
    for (session, organization) in &sessions {
        session.save(&small(&organization.to_lowercase(), 1));
    }
    // Parts of one token combined with parts of another.
    for (one, _) in &sessions {
        for (other, _) in sessions.iter().filter(|(other, _)| other.token != one.token) {
            let (one, other) = (Parts::of(&one.token), Parts::of(&other.token));
            let (end, tag) = (one.payload.len(), one.payload.len() - 32);
            for range in [0..32, 32..tag, tag..end] {
                let mut payload = one.payload.clone();
                payload[range.clone()].copy_from_slice(&other.payload[range]);
                refused(&client, &Parts { payload, footer: one.footer.clone() }.token("v4.local."));
            }
        }
    }
    // Concurrent requests return only their own organization's data.
    thread::scope(|scope| {
        for (session, organization) in &sessions {
            scope.spawn(move || {
                for _ in 0..25 {
                    let list = session.list();
                    assert_eq!(list.len(), 2);
                    assert!(
                        list.iter().all(|item| item["namespace"] == organization.to_lowercase()),
                        "{organization}: {list:?}"
                    );
                }
            });
        }
    });
    sessions[0].0.log_out().expect(204);
    let live: Vec<bool> = sessions.iter().map(|(session, _)| session.is_live()).collect();
    assert_eq!(live, [false, true, true, true]);
}

/// An attacker with SQL write access can end sessions, but not create or extend one.
#[test]
fn session_requires_its_rows() {
    let vault = Vault::start(Database::Postgres);
    let (client, sql) = (vault.client(), Sql::of(&vault));
    let viewer = vault.account("Acme", "viewer");
    let account = vault.admin();
    for statement in [
        "DELETE FROM sessions",
        "UPDATE sessions SET expires_at = created_at",
        &format!("UPDATE sessions SET account_id = '{}'", viewer.id),
    ] {
        let session = account.log_in(&client);
        sql.run(statement);
        refused(&client, &session.token);
    }
    let session = viewer.log_in(&client);
    sql.run(&format!("UPDATE accounts SET role = 'admin' WHERE id = '{}'", viewer.id));
    let answer = session.try_save(&small("a", 1));
    assert!(matches!(answer.status, 401 | 403), "{}", answer.text());
    client.log_in(&viewer.sound_login()).problem("invalid-login");
}
