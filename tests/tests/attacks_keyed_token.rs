//! Tokens forged with the vault's own key: their claims are still verified.

use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use vault_core::id::InstanceId;
use vault_core::port::TokenIssuer as _;
use vault_core::role::Role;
use vault_core::session::SessionClaims;
use vault_core::time::Timestamp;
use vault_crypto::{Keyring, LoadedRootKey, OsEntropy, PasetoIssuer};
use vault_diesel::{PostgresSettings, PostgresStore, Store};
use vault_tests::sql::Sql;
use vault_tests::{Account, Client, Database, Vault};

/// The attacker: the vault's key, and an active session.
struct Forger {
    issuer: PasetoIssuer,
    claims: SessionClaims,
}

impl Forger {
    /// Creates the attacker for the only session of `account`.
    fn of(vault: &Vault, account: &Account, role: Role) -> Self {
        let sql = Sql::of(vault);
        let value = |column| sql.value(&format!("SELECT {column} FROM sessions WHERE account_id = '{}'", account.id));
        let (issuer, instance) = issuer(vault);
        let claims = SessionClaims {
            instance,
            session: value("id").parse().unwrap(),
            account: account.id.parse().unwrap(),
            organization: value("organization_id").parse().unwrap(),
            role,
            version: 1,
            issued_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(0),
        };
        Self { issuer, claims }
    }

    /// Forges a token for the session with these issue and expiry times, in seconds.
    fn token(&self, issued_at: i64, expires_at: i64) -> String {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let claims = SessionClaims { issued_at: at(issued_at), expires_at: at(expires_at), ..self.claims.clone() };
        self.issuer.issue(&claims).unwrap().0.expose_secret().to_owned()
    }
}

fn issuer(vault: &Vault) -> (PasetoIssuer, InstanceId) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = PostgresSettings::new(SecretString::from(vault.url()));
        let keys = Store::Postgres(PostgresStore::connect(settings).await.unwrap()).ports().keys;
        let record = keys.instance().await.unwrap().unwrap();
        let others = keys.instance_keys().await.unwrap();
        let root = LoadedRootKey::load(&vault.data_dir().join("root.key"), Arc::new(OsEntropy)).unwrap();
        let keyring = Keyring::open(&root, Arc::new(OsEntropy), &record, &[], &others).unwrap();
        (keyring.token_issuer(0), keyring.instance())
    })
}

#[expect(clippy::disallowed_methods, reason = "a forger has a clock of its own")]
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn status(client: &Client, token: &str) -> u16 {
    client.get("/v1/organization-vault").bearer(token).send().status
}

/// Exact to the second on every replica: requests before the expiry succeed, later ones fail.
#[test]
fn a36_token_expires_to_the_second() {
    let vault = Vault::start(Database::Postgres);
    let others = [vault.replica(), vault.replica()];
    let account = vault.admin();
    account.log_in(&vault.client());
    let forger = Forger::of(&vault, &account, Role::Admin);
    let mut clients = vec![vault.client()];
    clients.extend(others.iter().map(|server| server.client()));
    for client in &clients {
        let (mut accepted, mut refused) = (false, false);
        while !(accepted && refused) {
            let expires_at = now() + 1;
            let token = forger.token(now() - 60, expires_at);
            for _ in 0..2_000 {
                let before = now();
                let status = status(client, &token);
                let after = now();
                if after < expires_at {
                    assert_eq!(status, 200, "it has not expired");
                    accepted = true;
                }
                if before >= expires_at {
                    assert_eq!(status, 401, "it has expired");
                    refused = true;
                    break;
                }
            }
        }
        assert_eq!(status(client, &forger.token(now() - 3600, now() - 1)), 401);
    }
}

#[test]
fn a37_token_from_the_future_is_refused() {
    let vault = Vault::start(Database::Postgres);
    let (account, client) = (vault.admin(), vault.client());
    account.log_in(&client);
    let forger = Forger::of(&vault, &account, Role::Admin);
    for ahead in [3600, 60, 30] {
        let issued_at = now() + ahead;
        let status = status(&client, &forger.token(issued_at, issued_at + 600));
        assert!(status == 401 || now() >= issued_at - 5, "{ahead} s ahead: {status}");
    }
    // Clocks of replicas may differ slightly.
    assert_eq!(status(&client, &forger.token(now() + 4, now() + 600)), 200);
}

/// The key makes a token authentic. The rows determine whether its session is active, and its role.
#[test]
fn forged_token_is_limited_to_rights_in_rows() {
    let vault = Vault::start(Database::Postgres);
    let (viewer, client, hour) = (vault.account("Acme", "viewer"), vault.client(), 3600);
    let session = viewer.log_in(&client);
    let mut forger = Forger::of(&vault, &viewer, Role::Viewer);
    assert_eq!(status(&client, &forger.token(now(), now() + hour)), 200, "a copy of the real one");
    forger.claims.role = Role::Admin;
    assert_eq!(status(&client, &forger.token(now(), now() + hour)), 401, "a role that the account does not have");
    drop(session.log_out().expect(204));
    forger.claims.role = Role::Viewer;
    assert_eq!(status(&client, &forger.token(now(), now() + hour)), 401, "a session that has ended");
}
