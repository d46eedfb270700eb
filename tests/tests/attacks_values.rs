//! Attacks with values in requests: invalid text, commands, forged cursors, reused keys.

use serde_json::{Value, json};
use vault_tests::samples::{every_type, s3, small};
use vault_tests::wire::{Wire, request};
use vault_tests::{Database, Session, Vault, on_both_databases};

on_both_databases! {
    a79_invalid_text_is_refused,
    a91_command_like_input_is_text,
}

const JSON: &str = "Content-Type: application/json";

/// Returns every location of a string in a body, with the rest of the body.
fn string_places() -> Vec<(Value, String)> {
    fn places(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at.to_owned()),
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), found))
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    for sample in every_type() {
        let mut found = Vec::new();
        places(&sample.request, "", &mut found);
        all.extend(found.into_iter().map(|place| (sample.request.clone(), place)));
    }
    all
}

fn a79_invalid_text_is_refused(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    let account = vault.admin();
    // The bytes between the quotation marks.
    let flawed: [&[u8]; 14] = [
        b"\xff",
        b"a\xc3(",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"\\ud83d\\u0041",
        b"\\u00",
        b"\\uZZZZ",
        b"a\\u0000b",
        b"\\u0000",
        b"a\x00b",
    ];
    let marked = |mut body: Value, place: &str, text: &[u8]| {
        *body.pointer_mut(place).unwrap() = json!("MARK");
        let whole = body.to_string();
        let (before, after) = whole.split_once("MARK").unwrap();
        [before.as_bytes(), text, after.as_bytes()].concat()
    };
    for (body, place) in string_places() {
        for text in flawed {
            let body = marked(body.clone(), &place, text);
            let answer = session.call("PATCH", "/v1/organization-vault").json_text(body).send();
            // Within a key file that is an object, unknown members may contain any valid text.
            let free =
                place.starts_with("/data/service_account_key/") && [&b"\\u0000"[..], b"a\\u0000b"].contains(&text);
            let refused = matches!(answer.status, 400 | 422);
            assert!(
                refused || (free && answer.status == 201),
                "{place} {:?}: {}",
                String::from_utf8_lossy(text),
                answer.status
            );
        }
    }
    for member in ["email", "password", "passcode"] {
        for text in flawed {
            let body = marked(account.login("000000"), &format!("/{member}"), text);
            let answer = vault.client().request("POST", "/v1/login").json_text(body).send();
            assert!(
                matches!(answer.status, 400 | 401),
                "{member} {:?}: {}",
                String::from_utf8_lossy(text),
                answer.status
            );
        }
    }
    let body = s3().request.to_string();
    let utf16: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for whole in [
        [b"\xef\xbb\xbf", body.as_bytes()].concat(),
        utf16.clone(),
        [b"\xff\xfe", &utf16[..]].concat(),
        body.as_bytes()[..200].to_vec(),
    ] {
        session.call("PATCH", "/v1/organization-vault").json_text(whole).send().problem("malformed-request");
    }
    for query in [
        "namespace=%00",
        "namespace=%ff",
        "namespace=a%00b",
        "type=%00",
        "cursor=%00",
        "limit=%00",
        "%00=a",
        "%ff",
        "namespace=%ed%a0%80",
    ] {
        let answer = session.call("GET", &format!("/v1/organization-vault?{query}")).send();
        assert!(matches!(answer.status, 400 | 422), "{query}: {}", answer.status);
    }
    for key in ["a\u{0}", "\u{e4}", "a b"] {
        let headers = [JSON, &format!("Authorization: Bearer {}", session.token), &format!("Idempotency-Key: {key}")];
        let answer =
            Wire::exchange(vault.address(), request("PATCH", "/v1/organization-vault", &headers, body.as_bytes()));
        assert!(answer.is_none_or(|answer| answer.status == 400), "{key:?}");
    }
}

const COMMANDS: [&str; 18] = [
    "'; DROP TABLE credentials; --",
    "' OR '1'='1",
    "\" OR \"\"=\"",
    "1; SELECT pg_sleep(10)",
    "$1",
    "?1",
    ":organization",
    "%27%20OR%201=1",
    "\\'; --",
    "{\"$gt\": \"\"}",
    "*)(uid=*))(|(uid=*",
    "$(id)",
    "`id`",
    "| id",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "../../../../etc/passwd",
];

fn a91_command_like_input_is_text(database: Database) {
    let vault = Vault::start(database);
    let session = vault.admin_session();
    let mut kept = Vec::new();
    for (body, place) in string_places() {
        for command in COMMANDS {
            let mut body = body.clone();
            *body.pointer_mut(&place).unwrap() = json!(command);
            let answer = session.try_save(&body);
            match answer.status {
                // The shown value is exactly the given one.
                201 => kept.push((answer.json()["id"].as_str().unwrap().to_owned(), place.clone(), command)),
                400 | 422 => assert!(!answer.text().contains(command), "{command} was repeated"),
                status => panic!("{place} {command}: {status}"),
            }
        }
    }
    let count = kept.len();
    for (id, place, command) in kept {
        let shown = session.show(&id).expect(200).json();
        let name = place.trim_start_matches("/data/");
        if let Some(value) = shown["information"].get(name).filter(|_| !["access_key_id", "client_id"].contains(&name))
        {
            assert_eq!(value, command, "{place}");
        }
    }
    assert_eq!(session.list().len(), count);
    for command in COMMANDS {
        let encoded: String = command.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for name in ["namespace", "type", "limit", "cursor", "sort", "order", "filter"] {
            let answer = session.call("GET", &format!("/v1/organization-vault?{name}={encoded}")).send();
            assert!(matches!(answer.status, 400 | 422), "{name}={command}: {}", answer.status);
        }
        let answer = session.call("DELETE", &format!("/v1/organization-vault/{encoded}")).send();
        answer.problem("not-found");
        let body = json!({"email": format!("{command}@example.com"), "password": command, "passcode": command});
        vault.client().log_in(&body).problem("invalid-login");
    }
    assert_eq!(session.list().len(), count);
}

#[test]
fn a91_forged_cursor_is_refused() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    for number in 0..3 {
        session.save(&small("a", number));
    }
    let answer = session.call("GET", "/v1/organization-vault?limit=1").send().expect(200);
    let link = answer.header("link").unwrap();
    let cursor = link.split("cursor=").nth(1).and_then(|rest| rest.split(['>', '&']).next()).unwrap();
    let ask = |query: &str| session.call("GET", &format!("/v1/organization-vault?{query}")).send();
    ask(&format!("cursor={cursor}")).expect(200);
    let characters: Vec<char> = cursor.chars().collect();
    for at in 0..characters.len() {
        for other in ['A', 'Q', '_', '='] {
            let mut forged = characters.clone();
            forged[at] = other;
            if forged != characters {
                let answer = ask(&format!("cursor={}", String::from_iter(&forged)));
                assert_eq!(answer.problem("refused-value").refused_fields(), [("/cursor".into(), "malformed".into())]);
            }
        }
    }
    for forged in
        ["", "A", &cursor[1..], &format!("{cursor}A"), &cursor.repeat(2), "0193aaaa-0000-7000-8000-000000000000"]
    {
        ask(&format!("cursor={forged}")).problem("refused-value");
    }
    // A valid cursor with filters other than those it was created for.
    for filter in ["namespace=a", "type=s3"] {
        ask(&format!("{filter}&cursor={cursor}")).problem("refused-value");
    }
    ask(&format!("cursor={cursor}&cursor={cursor}")).problem("malformed-request");
}

#[test]
fn a93_idempotency_key_identifies_one_request() {
    let mut vault = Vault::start(Database::Sqlite);
    let account = vault.account("Acme", "editor");
    let session = account.log_in(&vault.client());
    let with = |session: &Session, key: &str, body: &Value| {
        session.call("PATCH", "/v1/organization-vault").header("idempotency-key", key).json(body).send()
    };
    let body = s3().request;
    let first = with(&session, "key-1", &body).expect(201);
    for again in [with(&session, "key-1", &body), with(&account.log_in(&vault.client()), "key-1", &body)] {
        assert_eq!((again.status, again.json()), (201, first.json()));
        assert_eq!(again.header("location"), first.header("location"));
    }
    // The same request in another spelling: member order, white space and escapes.
    let spelled = format!("{{ \"data\": {},\n\"namespace\": \"imports\\/nightly\", \"type\": \"s3\" }}", body["data"]);
    let again =
        session.call("PATCH", "/v1/organization-vault").header("idempotency-key", "key-1").json_text(spelled).send();
    assert_eq!((again.status, again.json()), (201, first.json()));
    for (pointer, value) in [
        ("/namespace", json!("elsewhere")),
        ("/data/bucket", json!("other")),
        ("/data/secret_access_key", json!("an0therSecretOf40Characters/abcdefghijkl")),
    ] {
        let mut other = body.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        with(&session, "key-1", &other).problem("idempotency-mismatch");
    }
    assert_eq!(session.list().len(), 1, "one effect");

    vault.kill_and_restart();
    let session = session.on(&vault.client());
    assert_eq!(with(&session, "key-1", &body).expect(201).json(), first.json(), "kept over a crash");
    // Keys are compared exactly, and are separate for each account.
    let other = vault.account("Acme", "editor").log_in(&vault.client());
    let foreign = vault.account("Globex", "editor").log_in(&vault.client());
    let mut ids = vec![first.json()];
    for (session, key) in [(&session, "Key-1"), (&session, "key-2"), (&other, "key-1"), (&foreign, "key-1")] {
        ids.push(with(session, key, &body).expect(201).json());
    }
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(id), "{id} twice");
    }
    assert_eq!(session.list().len(), 4);
    for key in ["", " ", "a b", "\u{e4}", &"k".repeat(256)] {
        let call = session.call("PATCH", "/v1/organization-vault").header("idempotency-key", key);
        assert_eq!(call.json(&body).send().status, 400, "{key:?}");
    }
    let call =
        session.call("PATCH", "/v1/organization-vault").header("idempotency-key", "a").header("idempotency-key", "b");
    call.json(&body).send().problem("malformed-request");
    with(&session, &"k".repeat(255), &body).expect(201);
    // A rejected save does not use its key.
    let mut flawed = body.clone();
    flawed["data"]["bucket"] = json!("");
    with(&session, "key-3", &flawed).problem("refused-value");
    with(&session, "key-3", &body).expect(201);
}
