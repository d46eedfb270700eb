//! Attacks on access tokens and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use vault_core::port::TokenIssuer as _;
use vault_core::role::Role;
use vault_core::session::SessionClaims;
use vault_core::time::Timestamp;
use vault_crypto::{Keyring, LoadedRootKey, OsEntropy};
use vault_diesel::{PostgresSettings, PostgresStore, Store};
use vault_tests::sql::Sql;
use vault_tests::{Client, Database, Session, Vault};

/// Returns the decoded payload and footer of `v4.local.<payload>.<footer>`.
fn parts(token: &str) -> [Vec<u8>; 2] {
    let parts: Vec<&str> = token.strip_prefix("v4.local.").unwrap().split('.').collect();
    [0, 1].map(|number| URL_SAFE_NO_PAD.decode(parts[number]).unwrap())
}

/// Asserts that a token is rejected as invalid.
#[track_caller]
fn refused(client: &Client, token: &str) {
    let answer = client.get("/v1/organization-vault").bearer(token).send().problem("invalid-token");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{token}");
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
fn a48_similar_tokens_are_never_confused() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    let accounts = ["Acme", "Globex"].map(|name| vault.account(name, "admin"));
    let sessions: Vec<_> = accounts.iter().flat_map(|account| [0; 2].map(|_| account.log_in(&client))).collect();
    // Parts of one token combined with parts of another.
    for one in &sessions {
        for other in sessions.iter().filter(|other| other.token != one.token) {
            let (one, other) = (parts(&one.token), parts(&other.token));
            let (end, tag) = (one[0].len(), one[0].len() - 32);
            for range in [0..32, 32..tag, tag..end] {
                let mut payload = one[0].clone();
                payload[range.clone()].copy_from_slice(&other[0][range]);
                let [payload, footer] = [&payload, &one[1]].map(|part| URL_SAFE_NO_PAD.encode(part));
                refused(&client, &format!("v4.local.{payload}.{footer}"));
            }
        }
    }
    sessions[0].log_out().expect(204);
    let live: Vec<bool> = sessions.iter().map(Session::is_live).collect();
    assert_eq!(live, [false, true, true, true]);
}

/// The key makes a token authentic. The rows determine whether its session is active, and its role.
#[test]
#[expect(clippy::disallowed_methods, reason = "a forger has a clock of its own")]
fn forged_token_is_limited_to_rights_in_rows() {
    let vault = Vault::start(Database::Postgres);
    let (viewer, client, sql) = (vault.account("Acme", "viewer"), vault.client(), Sql::of(&vault));
    let session = viewer.log_in(&client);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (issuer, instance) = runtime.block_on(async {
        let settings = PostgresSettings::new(SecretString::from(vault.url()));
        let keys = Store::Postgres(PostgresStore::connect(settings).await.unwrap()).ports().keys;
        let record = keys.instance().await.unwrap().unwrap();
        let root = LoadedRootKey::load(&vault.data_dir().join("root.key"), Arc::new(OsEntropy)).unwrap();
        let keyring = Keyring::open(&root, Arc::new(OsEntropy), &record).unwrap();
        (keyring.token_issuer(0), keyring.instance())
    });
    let value = |column| sql.value(&format!("SELECT {column} FROM sessions WHERE account_id = '{}'", viewer.id));
    let (id, organization) = (value("id").parse().unwrap(), value("organization_id").parse().unwrap());
    let forged = |role| {
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
        let claims = SessionClaims {
            instance,
            session: id,
            account: viewer.id.parse().unwrap(),
            organization,
            role,
            version: 1,
            issued_at: Timestamp::from_millis(now * 1000),
            expires_at: Timestamp::from_millis((now + 3600) * 1000),
        };
        issuer.issue(&claims).unwrap().0.expose_secret().to_owned()
    };
    client.get("/v1/organization-vault").bearer(&forged(Role::Viewer)).send().expect(200); // a copy of the real one
    refused(&client, &forged(Role::Admin)); // a role that the account does not have
    session.log_out().expect(204);
    refused(&client, &forged(Role::Viewer)); // a session that has ended
}
