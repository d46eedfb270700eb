//! `orgvault serve`: the HTTP interface, its upkeep, and a stop that finishes what was acknowledged.

use crate::ambient::describe_metrics;
use crate::cli::ServeArgs;
use crate::command::migrate;
use crate::compose::{self, Lock, Vault, Whole};
use crate::failure::Failure;
use crate::hardening;
use crate::listeners::{ListenerParts, Listeners};
use crate::parts;
use crate::settings::{Database, Settings};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use vault_core::usecase::{AuditTally, Operator};
use vault_http::{MetricsText, Readiness};

/// How often expired rows are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// How long a round of deleting may take: a tenth of the time, in milliseconds.
const SWEEP_MILLIS: i64 = 6_000;
/// How often counted acts are recorded.
const TALLY_EVERY: Duration = Duration::from_secs(5);
/// Upper bounds of the latency histograms, in seconds.
const LATENCY_BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// How far the database server's clock may lie from ours before we are not ready, in milliseconds.
const MAX_SKEW: i64 = 2_000;

/// Opens the vault under the server's lock and serves it.
pub(crate) async fn open_and_run(settings: Settings, args: ServeArgs) -> Result<(), Failure> {
    if args.migrate {
        migrate::apply(&settings).await?;
    }
    let lock = compose::lock(&settings, "serve")?;
    let whole = compose::open_whole(&settings).await?;
    run(settings, whole, lock).await
}

/// Serves until told to stop.
pub(crate) async fn run(settings: Settings, whole: Whole, lock: Lock) -> Result<(), Failure> {
    hardening::raise_file_limit()?;
    let memory_locked = hardening::lock_memory();
    let metrics = PrometheusBuilder::new().set_buckets(&LATENCY_BUCKETS)?.install_recorder()?;
    describe_metrics();
    let Whole { vault, opener } = whole;
    let tally = Arc::new(AuditTally::new(vault.ambient.clone(), vault.store.audit.clone()));
    let parts = ListenerParts {
        storage: parts::storage(&settings, &vault)?,
        readiness: readiness(&vault),
        metrics: rendered(&metrics),
        tally: Arc::clone(&tally),
    };
    let listeners = Listeners::bind(&settings, &vault, opener, parts)?;
    if !memory_locked {
        tracing::warn!(
            "memory may be swapped out, keys with it: allow locking it (LimitMEMLOCK=infinity), or turn swap off"
        );
    }
    listeners.announce(&settings);
    announce(&settings, &vault);

    let (end_upkeep, upkeep_ends) = oneshot::channel();
    let upkeep = tokio::spawn(upkeep(vault.operator_with(Arc::clone(&tally)), metrics, upkeep_ends));
    let watched = vault.clone();
    let failed = listeners
        .serve_until(async move {
            tokio::select! {
                signal = wait_for_signal() => signal.map(|()| false),
                () = watched.failed() => Ok(true),
            }
        })
        .await?;
    if failed {
        return Err(Failure::new(
            "the disk failed while the database was written: what was not acknowledged may be lost. See to the disk, then \
             start again",
        ));
    }
    // Asked to end rather than cut off, so that what it is recording is recorded.
    drop(end_upkeep);
    upkeep.await?;
    tally.flush(true).await?;
    vault.close().await;
    drop(lock);
    tracing::info!("stopped");
    Ok(())
}

/// Ready while the store answers and its clock, where it has one, agrees with ours.
fn readiness(vault: &Vault) -> Readiness {
    let (housekeeping, clock) = (vault.store.operator.clone(), vault.ambient.clock.clone());
    Readiness::new(move || {
        let (housekeeping, clock) = (housekeeping.clone(), clock.clone());
        async move {
            match housekeeping.check(clock.now()).await {
                Ok(skew) if skew.is_none_or(|skew| skew.abs() <= MAX_SKEW) => true,
                Ok(skew) => {
                    tracing::warn!(skew_ms = skew, "not ready: the database server's clock is not ours");
                    false
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "not ready: the store does not answer");
                    false
                }
            }
        }
    })
}

fn rendered(metrics: &PrometheusHandle) -> MetricsText {
    let metrics = metrics.clone();
    Arc::new(move || metrics.render())
}

/// Records counted acts and deletes what has expired, for as long as the server runs.
async fn upkeep(operator: Operator, metrics: PrometheusHandle, mut ends: oneshot::Receiver<()>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut record = tokio::time::interval(TALLY_EVERY);
    loop {
        tokio::select! {
            _ = &mut ends => return,
            _ = sweep.tick() => {
                let tidied = operator.tidy(SWEEP_MILLIS).await;
                for (expired, error) in &tidied.failed {
                    let error = error as &dyn std::error::Error;
                    tracing::warn!(error, "expired {} were not deleted; next try in a minute", expired.as_str());
                }
            }
            _ = record.tick() => {
                metrics.run_upkeep();
                if let Err(error) = operator.record_counts(false).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "counted acts were not recorded; next try in seconds");
                }
            }
        }
    }
}

async fn wait_for_signal() -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Says which vault it is, and what is not secure about this set-up.
fn announce(settings: &Settings, vault: &Vault) {
    if let Some(mode) = compose::open_mode(&settings.data_dir) {
        tracing::warn!(
            "the data directory {} has mode {mode:04o} and is open to others: run chmod 700 on it",
            settings.data_dir.display()
        );
    }
    tracing::info!(database = %settings.database, instance = %vault.instance, root_key = %vault.root_key, "vault open");
    match &settings.database {
        Database::Sqlite(file) if file.parent() == settings.root_key_file.parent() => tracing::warn!(
            "the root key lies beside the database it protects: whoever takes the disk has both; move it to another disk \
             and name it with --root-key-file"
        ),
        Database::Sqlite(_) => {}
        Database::Postgres(_) => tracing::warn!(
            "whether PostgreSQL's disk is encrypted cannot be seen from here: addresses, names and the audit lie there in clear"
        ),
    }
    if settings.allow_http_links {
        tracing::warn!("direct links without TLS are accepted");
    }
}
