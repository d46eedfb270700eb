//! `orgvault serve`: the HTTP interface, its upkeep, and a stop that finishes what was acknowledged.

use crate::ambient::describe_metrics;
use crate::cli::ServeArgs;
use crate::command::migrate;
use crate::compose::{self, Lock, Vault};
use crate::failure::Failure;
use crate::hardening;
use crate::parts;
use crate::settings::{Database, Settings};
use crate::tls::TlsFiles;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use vault_core::credential::DataPolicy;
use vault_core::usecase::AuditTally;
use vault_http::{AdminParts, AdminSettings, ListenerSettings, Readiness, ServerSettings, admin_server, server};

/// How often expired rows are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
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
    let vault = compose::open(&settings).await?;
    run(settings, vault, lock).await
}

/// An address that cannot be listened on.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(format!("cannot listen on {address}: {error}; choose another with --listen or --admin-listen"))
}

/// Serves until told to stop.
pub(crate) async fn run(settings: Settings, vault: Vault, lock: Lock) -> Result<(), Failure> {
    hardening::raise_file_limit()?;
    let memory_locked = hardening::lock_memory();
    let metrics = PrometheusBuilder::new().set_buckets(&LATENCY_BUCKETS)?.install_recorder()?;
    describe_metrics();
    let tally = Arc::new(AuditTally::new(vault.ambient.clone(), vault.store.audit.clone()));
    let readiness = readiness(&vault);

    let tls = settings.tls.as_ref().map(TlsFiles::load).transpose()?;
    let mut listener = ListenerSettings::new(vec![settings.listen]);
    listener.tls = tls.as_ref().map(|loaded| loaded.tls.clone());
    listener.trusted_proxies.clone_from(&settings.trusted_proxies);
    listener.proxies_only = tls.is_none() && !settings.listen.ip().is_loopback();
    let server_settings = ServerSettings {
        listener,
        base_path: settings.base_path.clone(),
        data_policy: DataPolicy { allow_http_links: settings.allow_http_links },
        rate: settings.login_rate,
    };
    let public = server(&server_settings, parts::of(&settings, &vault, &tally, &readiness))
        .map_err(|error| cannot_listen(settings.listen, &error))?;
    let admin = match settings.admin_listen {
        None => None,
        Some(address) => {
            let parts = AdminParts {
                runtime: Handle::current(),
                metrics: rendered(&metrics),
                readiness,
                ids: vault.ambient.ids.clone(),
            };
            let settings = AdminSettings { listener: ListenerSettings::new(vec![address]) };
            Some(admin_server(&settings, parts).map_err(|error| cannot_listen(address, &error))?)
        }
    };
    if !memory_locked {
        tracing::warn!(
            "memory may be swapped out, keys with it: allow locking it (LimitMEMLOCK=infinity), or turn swap off"
        );
    }
    announce(&settings, &vault, &public.addresses, admin.as_ref().map(|admin| admin.addresses.as_slice()));

    let certificates = tls.map(|loaded| tokio::spawn(loaded.follow()));
    let (end_upkeep, upkeep_ends) = oneshot::channel();
    let upkeep = tokio::spawn(upkeep(vault.clone(), Arc::clone(&tally), metrics, upkeep_ends));
    let (public_handle, admin_handle) = (public.server.handle(), admin.as_ref().map(|admin| admin.server.handle()));
    let watched = vault.clone();
    let stopping = tokio::spawn(async move {
        let failed = tokio::select! {
            signal = wait_for_signal() => signal.map(|()| false)?,
            () = watched.failed() => true,
        };
        tracing::info!("stopping: no new requests; those under way are finished");
        public_handle.stop(true).await;
        if let Some(handle) = admin_handle {
            handle.stop(true).await;
        }
        Ok::<bool, Failure>(failed)
    });
    match admin {
        Some(admin) => {
            let (public, admin) = tokio::join!(public.server, admin.server);
            public?;
            admin?;
        }
        None => public.server.await?,
    }
    let failed = stopping.await??;
    if let Some(certificates) = certificates {
        certificates.abort();
    }
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
    let (housekeeping, clock) = (vault.store.housekeeping.clone(), vault.ambient.clock.clone());
    Arc::new(move || {
        let (housekeeping, clock) = (housekeeping.clone(), clock.clone());
        Box::pin(async move {
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
        })
    })
}

fn rendered(metrics: &PrometheusHandle) -> vault_http::MetricsText {
    let metrics = metrics.clone();
    Arc::new(move || metrics.render())
}

/// Records counted acts and deletes what has expired, for as long as the server runs.
async fn upkeep(vault: Vault, tally: Arc<AuditTally>, metrics: PrometheusHandle, mut ends: oneshot::Receiver<()>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut record = tokio::time::interval(TALLY_EVERY);
    loop {
        tokio::select! {
            _ = &mut ends => return,
            _ = sweep.tick() => {
                if let Err(error) = vault.store.housekeeping.sweep(vault.ambient.now()).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "expired rows were not deleted; next try in a minute");
                }
            }
            _ = record.tick() => {
                metrics.run_upkeep();
                if let Err(error) = tally.flush(false).await {
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

/// Says what is served where, with which database, and what is not secure about this set-up.
fn announce(settings: &Settings, vault: &Vault, public: &[SocketAddr], admin: Option<&[SocketAddr]>) {
    for address in public {
        tracing::info!(%address, url = settings.base_url(*address), "serving the interface");
    }
    for address in admin.into_iter().flatten() {
        tracing::info!(%address, "serving /metrics, /livez and /readyz to operators");
    }
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
    match (&settings.tls, settings.listen.ip().is_loopback()) {
        (None, false) => tracing::warn!(
            "without TLS: between the proxy and this service, passwords and tokens travel in clear; only trusted proxies \
             and this machine are served"
        ),
        (None, true) if settings.trusted_proxies.is_empty() => {
            tracing::warn!("without TLS: only programs on this machine can reach the interface");
        }
        _ => {}
    }
    if settings.allow_http_links {
        tracing::warn!("direct links without TLS are accepted");
    }
}
