//! Sampled metrics: database, hash slots, keys, audit log, and credentials by health and expiry. Also metrics of
//! retries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vault_tests::samples::small;
use vault_tests::{Database, Vault};

/// Maximum time to wait for the server's background work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns each sample by name and labels.
fn samples(vault: &Vault) -> BTreeMap<String, f64> {
    let page = vault.server().admin_client().get("/metrics").send().expect(200).text();
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Polls until `is_met` is true for the samples.
fn until(vault: &Vault, what: &str, is_met: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
    let began = Instant::now();
    loop {
        let samples = samples(vault);
        if is_met(&samples) {
            return samples;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {samples:?}");
        std::thread::sleep(Duration::from_millis(20)); // leaves processor time to the server
    }
}

fn moves(database: Database) {
    let mut vault = Vault::start(database);
    let session = vault.admin_session();
    const HEALTH: &str = "orgvault_credentials{health=\"unchecked\"}";
    const EXPIRING: &str = "orgvault_credentials_expiring{within=\"24h\"}";
    const KEYS: &str = "orgvault_key_uses_ratio{purpose=\"organization\"}";
    const SEALED: &str = "orgvault_audit_unsealed_age_seconds";
    let before = until(&vault, "credentials are counted", |samples| samples.contains_key(HEALTH));
    assert_eq!((before[HEALTH], before[EXPIRING], before[KEYS]), (0.0, 0.0, 0.0));
    assert!(before.contains_key(SEALED) && before.contains_key("orgvault_store_connections{state=\"idle\"}"));
    assert!(before["orgvault_store_connection_limit"] >= 1.0);
    assert!(before["orgvault_hash_slots{state=\"free\"}"] >= 32.0);
    assert_eq!(before["orgvault_hash_slots{state=\"used\"}"], 0.0);

    for number in 0..3 {
        session.save(&small("imports", number));
    }
    let mut expiring = small("imports", 3);
    expiring["expires_at"] = (OffsetDateTime::now_utc() + time::Duration::HOUR).format(&Rfc3339).unwrap().into();
    session.save(&expiring);
    let after = samples(&vault);
    match database {
        Database::Sqlite => {
            assert_eq!(after["orgvault_store_waiting_changes"], 0.0);
            let sum = |samples: &BTreeMap<String, f64>| samples["orgvault_store_batch_changes_sum"];
            assert!(sum(&after) >= sum(&before) + 4.0, "{after:?}");
            assert!(after["orgvault_store_batch_changes_bucket{le=\"1024\"}"] > 0.0);
        }
        Database::Postgres => assert!(!after.contains_key("orgvault_store_waiting_changes"), "there is no writer"),
    }
    // Credentials are counted at start and once a minute.
    vault.restart();
    let counted = until(&vault, "credentials are counted", |samples| samples.contains_key(HEALTH));
    assert_eq!((counted[HEALTH], counted[EXPIRING]), (3.0, 1.0));
    assert_eq!(counted["orgvault_credentials{health=\"expiring\"}"], 1.0);
    assert_eq!(counted[KEYS], 4.0 / f64::from(1 << 28), "a stop stores the uses");
}

#[test]
fn metrics_of_embedded_vault_change() {
    moves(Database::Sqlite);
}

#[test]
fn metrics_of_vault_on_postgresql_change() {
    moves(Database::Postgres);
}

#[test]
fn retries_are_counted() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let save = || {
        let body = small("imports", 0);
        session.call("PATCH", "/v1/organization-vault").header("idempotency-key", "nightly").json(&body).send()
    };
    const REPEATED: &str = "orgvault_requests_repeated_total";
    let first = save().expect(201).json()["id"].clone();
    assert_eq!(vault.metric(REPEATED), 0);
    assert_eq!(save().expect(201).json()["id"], first);
    assert_eq!(vault.metric(REPEATED), 1);

    assert_eq!(
        vault.metric("orgvault_commits_indeterminate_total") + vault.metric("orgvault_events_taken_over_total"),
        0
    );
}
