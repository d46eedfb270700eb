//! Text that databases, shells and browsers could interpret is stored and shown unchanged.

use serde_json::{Value, json};
use vault_tests::samples::every_type;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    a91_command_like_input_is_text,
}

/// Returns every location of a string in a value.
fn string_places(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::String(_) => vec![at.to_owned()],
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| string_places(value, &format!("{at}/{name}"))).collect()
        }
        _ => Vec::new(),
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
    let samples = every_type().into_iter().map(|sample| sample.request);
    let places = samples.flat_map(|body| string_places(&body, "").into_iter().map(move |place| (body.clone(), place)));
    for (body, place) in places {
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
            let answer = session.get(&format!("/organization-vault?{name}={encoded}"));
            assert!(matches!(answer.status, 400 | 422), "{name}={command}: {}", answer.status);
        }
        let answer = session.remove(&format!("/organization-vault/{encoded}"));
        answer.problem("not-found");
        let body = json!({"email": format!("{command}@example.com"), "password": command, "passcode": command});
        vault.client().log_in(&body).problem("invalid-login");
    }
    assert_eq!(session.list().len(), count);
}
