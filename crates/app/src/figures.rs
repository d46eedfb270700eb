//! Metrics that are sampled rather than counted: load, stored objects and key usage.

use crate::receivers::Alarm;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use vault_core::credential_counts::CredentialCounts;
use vault_core::maintenance::COUNT_SLICE;
use vault_core::usecase::{KeyUsage, Operator};
use vault_embed::OpenVault;

/// Interval of sampling keys and the audit log.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Minimum interval of counting credentials.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// Minimum pause after a count, as a multiple of its duration. Counting uses at most 2 % of a database reader's time.
const REST: u32 = 50;

/// Share of its usage limit from which a key raises an alarm.
const NEARING: f64 = 0.8;

const WAITING: &str = "orgvault_store_waiting_changes";
const BATCH: &str = "orgvault_store_batch_changes";
const CONNECTIONS: &str = "orgvault_store_connections";
const CONNECTION_LIMIT: &str = "orgvault_store_connection_limit";
const CONNECTION_WAITS: &str = "orgvault_store_connection_wait_seconds";
const HASH_SLOTS: &str = "orgvault_hash_slots";
const KEY_USES: &str = "orgvault_key_uses_ratio";
const AUDIT_LAG: &str = "orgvault_audit_unsealed_age_seconds";
const DISK_FREE: &str = "orgvault_disk_free_bytes";
const DISK_SIZE: &str = "orgvault_disk_size_bytes";
const CREDENTIALS: &str = "orgvault_credentials";
const EXPIRING: &str = "orgvault_credentials_expiring";

/// Metric of batch sizes, and its histogram bounds up to the largest batch.
pub(crate) const BATCH_SIZES: (&str, [f64; 11]) =
    (BATCH, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0]);

/// Registers the descriptions of the metrics.
pub(crate) fn describe() {
    metrics::describe_gauge!(
        WAITING,
        "Queued changes: on SQLite for the writer, on PostgreSQL for a shared transaction. At most 4,096 of a kind"
    );
    metrics::describe_histogram!(BATCH, "Changes that the embedded database committed together, 1 to 1,024");
    metrics::describe_gauge!(
        CONNECTIONS,
        "Database connections, by `state`: `in-use`, `idle` (of the embedded database only readers)"
    );
    metrics::describe_gauge!(CONNECTION_LIMIT, "Maximum number of concurrent database connections");
    metrics::describe_histogram!(
        CONNECTION_WAITS,
        metrics::Unit::Seconds,
        "Waits for a database connection when none was free"
    );
    metrics::describe_gauge!(
        HASH_SLOTS,
        "Slots in the queue for password hashing, by `state`: `used`, `free`. Without a free slot, logins get 503"
    );
    metrics::describe_gauge!(
        KEY_USES,
        "Uses of the most used active key as a fraction of 2^28, by `purpose`. A key of an organization is replaced \
         automatically from 0.0625 on"
    );
    metrics::describe_gauge!(
        AUDIT_LAG,
        metrics::Unit::Seconds,
        "Age of the oldest audit entry that is in no checkpoint"
    );
    metrics::describe_gauge!(DISK_FREE, metrics::Unit::Bytes, "Free space of the data directory's file system");
    metrics::describe_gauge!(DISK_SIZE, metrics::Unit::Bytes, "Size of the data directory's file system");
    metrics::describe_gauge!(
        CREDENTIALS,
        "Saved credentials, by `health`: `unchecked`, `healthy`, `failing`, `expiring`, `expired`"
    );
    metrics::describe_gauge!(
        EXPIRING,
        "Saved credentials that expire `within` `24h`, `7d`, `30d`, without those that have expired"
    );
}

/// Creates the series of events, so that they are visible before the first event.
pub(crate) fn begin_series() {
    for outcome in ["obtained", "timed-out"] {
        let _ = metrics::histogram!(CONNECTION_WAITS, "outcome" => outcome); // no value yet
    }
}

/// Records the size of a batch.
pub(crate) fn count_batch(changes: usize) {
    metrics::histogram!(BATCH).record(number(changes));
}

/// Records the duration of a wait for a connection.
pub(crate) fn count_wait(waited: Duration, obtained: bool) {
    let outcome = if obtained { "obtained" } else { "timed-out" };
    metrics::histogram!(CONNECTION_WAITS, "outcome" => outcome).record(waited);
}

/// Updates the load metrics. Called at each scrape.
pub(crate) fn show_load(vault: &OpenVault, data_dir: &Path) {
    if let Ok(disk) = rustix::fs::statvfs(data_dir) {
        metrics::gauge!(DISK_FREE).set(bytes(disk.f_bavail.saturating_mul(disk.f_frsize)));
        metrics::gauge!(DISK_SIZE).set(bytes(disk.f_blocks.saturating_mul(disk.f_frsize)));
    }
    let load = vault.load();
    if vault.database_key().is_some() {
        metrics::gauge!(WAITING).set(number(load.store.waiting));
    }
    metrics::gauge!(CONNECTIONS, "state" => "in-use").set(number(load.store.in_use));
    metrics::gauge!(CONNECTIONS, "state" => "idle").set(number(load.store.idle));
    metrics::gauge!(CONNECTION_LIMIT).set(number(load.store.limit));
    metrics::gauge!(HASH_SLOTS, "state" => "used").set(number(load.slots_used));
    metrics::gauge!(HASH_SLOTS, "state" => "free").set(number(load.hash_slots.saturating_sub(load.slots_used)));
}

/// Samples keys, audit log and credentials until it is cancelled. Every replica reports the same values.
pub(crate) async fn keep(operator: Operator, nearing_limit: Alarm) {
    let mut count_at = Instant::now();
    let mut turn = tokio::time::interval(LOOK_EVERY);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turn.tick().await;
        match operator.key_usage().await {
            Ok(key_usage) => {
                show_key_usage(&key_usage);
                nearing_limit.set(key_usage.organization_key >= NEARING).await;
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(error, "metrics of keys and audit were not updated; the next attempt is in 15 seconds");
            }
        }
        let began = Instant::now();
        if began < count_at {
            continue;
        }
        match operator.count_by_state(COUNT_SLICE).await {
            Ok(credential_counts) => show_stock(&credential_counts),
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(error, "credentials were not counted for the metrics; the next attempt is in a minute");
            }
        }
        count_at = began + COUNT_EVERY.max(began.elapsed().saturating_mul(REST));
    }
}

fn show_key_usage(key_usage: &KeyUsage) {
    metrics::gauge!(KEY_USES, "purpose" => "organization").set(key_usage.organization_key);
    let millis = u64::try_from(key_usage.unsealed_millis).unwrap_or_default();
    metrics::gauge!(AUDIT_LAG).set(Duration::from_millis(millis).as_secs_f64());
}

fn show_stock(credential_counts: &CredentialCounts) {
    for (state, count) in credential_counts.by_health() {
        metrics::gauge!(CREDENTIALS, "health" => state.as_str()).set(number(count));
    }
    for (window, count) in credential_counts.by_expiry() {
        metrics::gauge!(EXPIRING, "within" => window.as_str()).set(number(count));
    }
}

/// As a metric, in whole MiB.
fn bytes(count: u64) -> f64 {
    number(count >> 20) * 1_048_576.0
}

/// Converts a count to a metric value. Values above 2^32-1 are clamped.
fn number(count: impl TryInto<u32>) -> f64 {
    f64::from(count.try_into().unwrap_or(u32::MAX))
}
