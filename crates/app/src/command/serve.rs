//! `orgvault serve`: runs the listeners and shuts them down gracefully.

use crate::background::Background;
use crate::cli::ServeArgs;
use crate::command::migrate;
use crate::compose;
use crate::egress;
use crate::events::{ServerEvents, describe_metrics};
use crate::federation::Issuing;
use crate::figures;
use crate::listeners::Listeners;
use crate::parts;
use crate::parts::ListenerParts;
use crate::receivers::{self, Alarms, Carrier};
use crate::settings::Settings;
use crate::{audit, backups, inspections};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use vault_cli::failure::Failure;
use vault_cli::hardening;
use vault_core::cursor::PageRequest;
use vault_core::port::Opener;
use vault_core::principal::{Principal, Scope};
use vault_core::receiver::EventKind;
use vault_core::usecase::MAX_SKEW;
use vault_embed::{OpenVault, VaultFailure};
use vault_http::{MetricsText, Readiness};

/// Interval of the metrics recorder's upkeep, and of log lines about suppressed messages.
const MAINTENANCE_EVERY: Duration = Duration::from_secs(5);
/// Upper bounds of the latency histograms, in seconds.
const LATENCY_BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Opens the vault and serves it.
pub(crate) async fn open_and_run(settings: Settings, args: ServeArgs) -> Result<(), Failure> {
    let (settings, events) = (Arc::new(settings), ServerEvents::default());
    let opening = compose::serve(&settings, "serve", &events).await?;
    let mut opening = opening.anchor(compose::anchor(&settings), args.adopt_anchor);
    if args.migrate {
        opening = migrate::with_bar(opening)?;
    }
    let (vault, opener) = opening.with_opener().await.map_err(|error| compose::failure(&settings, error))?;
    run(settings, vault, opener, &events).await
}

/// Serves until a signal asks to stop, and closes the vault.
pub(crate) async fn run(
    settings: Arc<Settings>,
    vault: OpenVault,
    opener: Arc<dyn Opener>,
    events: &ServerEvents,
) -> Result<(), Failure> {
    let served = serve(settings, &vault, opener, events).await;
    let closed = vault.close().await;
    events.log().write_ended(true);
    served?;
    closed?;
    tracing::info!("stopped");
    Ok(())
}

async fn serve(
    settings: Arc<Settings>,
    vault: &OpenVault,
    opener: Arc<dyn Opener>,
    events: &ServerEvents,
) -> Result<(), Failure> {
    hardening::raise_file_limit()?;
    let memory_locked = hardening::lock_memory();
    let (batch, sizes) = figures::BATCH_SIZES;
    let metrics = PrometheusBuilder::new()
        .set_buckets(&LATENCY_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(batch.to_owned()), &sizes)?
        .install_recorder()?;
    describe_metrics();
    backups::describe();
    let carrier = Arc::new(Carrier::of(&settings)?);
    let alarms = Alarms::new(vault.receivers());
    let issuing = Issuing::of(&settings);
    let parts = ListenerParts {
        storage: parts::storage(&settings, vault)?,
        carrier: Arc::clone(&carrier),
        issuing: issuing.clone(),
        readiness: readiness(vault),
        metrics: rendered(&metrics, vault, settings.data_dir.clone()),
    };
    // Only a process with the activation listener decrypts credential data, also for integrity checks.
    let inspecting = settings.server.activation().is_some().then(|| Arc::clone(&opener));
    let listeners = Listeners::bind(&settings, vault, opener, parts)?;
    let background: [Option<Background>; 5] = [
        backups::start(&settings, vault, &alarms)?,
        audit::start(&settings, vault, &alarms).await?,
        Some(inspections::start(vault, inspecting, &alarms)),
        receivers::start(&settings, vault, &carrier)?,
        issuing.map(|issuing| issuing.start(&settings, vault, &alarms)).transpose()?,
    ];
    if !memory_locked {
        tracing::warn!("cannot lock memory; keys may be written to swap. Set LimitMEMLOCK=infinity or disable swap");
    }
    listeners.announce_checks().await;
    listeners.announce(&settings);
    announce(&settings, vault);
    warn_without_accounts(vault).await;

    let maintenance = tokio::spawn(run_maintenance(metrics, events.clone()));
    let nearing_limit = alarms.of(EventKind::KeyNearingLimit);
    let figures = tokio::spawn(figures::keep(vault.operator(), nearing_limit));
    let watched = vault.clone();
    let failed = listeners
        .serve_until(async move {
            tokio::select! {
                signal = wait_for_signal() => signal.map(|()| None),
                failure = watched.failed() => Ok(Some(failure)),
            }
        })
        .await;
    figures.abort();
    for work in background.into_iter().flatten() {
        work.end().await;
    }
    if let Some(failure) = failed? {
        if failure == VaultFailure::RolledBack {
            alarms.of(EventKind::AnchorRefused).raise().await;
        }
        return Err(Failure::new(match failure {
            VaultFailure::RolledBack => {
                "the database was rolled back to an earlier state, or replaced, while a server used it: it no longer contains \
                 the audit checkpoint in the anchor. Use the newest database, then start again"
            }
            _ => {
                "the disk failed while the database was written. Requests that were not acknowledged may be lost. Check the \
                 disk, then start again"
            }
        }));
    }
    maintenance.abort();
    Ok(())
}

/// Returns the readiness check: the database must respond, and its clock must agree with that of this host.
fn readiness(vault: &OpenVault) -> Readiness {
    let operator = vault.operator();
    Readiness::new(move || {
        let operator = operator.clone();
        async move {
            match operator.check_store().await {
                Ok(skew) if skew.is_none_or(|skew| skew.abs() <= MAX_SKEW) => Ok(()),
                Ok(skew) => {
                    let reason = "this server's clock and the database's differ by more than 2 s";
                    tracing::warn!(skew_ms = skew, "not ready: {reason}");
                    Err(reason.to_owned())
                }
                Err(error) => {
                    let reason = Failure::from(error).to_string();
                    tracing::warn!("not ready: {reason}");
                    Err(reason)
                }
            }
        }
    })
}

fn rendered(metrics: &PrometheusHandle, vault: &OpenVault, data_dir: PathBuf) -> MetricsText {
    let (metrics, vault) = (metrics.clone(), vault.clone());
    Arc::new(move || {
        figures::show_load(&vault, &data_dir);
        metrics.render()
    })
}

async fn run_maintenance(metrics: PrometheusHandle, events: ServerEvents) {
    let mut turn = tokio::time::interval(MAINTENANCE_EVERY);
    loop {
        turn.tick().await;
        metrics.run_upkeep();
        events.log().write_ended(false);
    }
}

/// Waits for a signal that asks for a graceful shutdown. This includes SIGHUP, which a closing terminal sends.
async fn wait_for_signal() -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

/// Warns if the vault has no account. An error is ignored here, because the first request reports it.
async fn warn_without_accounts(vault: &OpenVault) {
    let page = PageRequest { limit: 1, ..PageRequest::default() };
    let accounts = vault.accounts().list(&Principal::Operator, Scope::All, page).await;
    if accounts.is_ok_and(|page| page.items.is_empty()) {
        tracing::warn!(
            "the vault has no account, so no one can log in. Run `orgvault org create NAME`, then `orgvault account create \
             --org NAME --email ADDRESS --role admin`"
        );
    }
}

/// Logs which vault is open, and insecure settings.
fn announce(settings: &Settings, vault: &OpenVault) {
    if let Some(mode) = compose::open_mode(&settings.data_dir) {
        tracing::warn!(
            "data directory {0} has mode {mode:04o}, so other users can read it. Run chmod 700 {0}",
            settings.data_dir.display()
        );
    }
    tracing::info!(database = %settings.database, instance = %vault.instance(), root_key = %vault.root_key(), "opened the vault");
    match settings.database.file() {
        Some(file) if settings.root_key.file().is_some_and(|key| key.parent() == file.parent()) => tracing::warn!(
            "the root key is in the same directory as the database, so a stolen disk exposes both. Move it and set \
             --root-key"
        ),
        Some(_) => {}
        None => {
            tracing::warn!("PostgreSQL stores e-mail addresses, names and the audit log unencrypted. Encrypt its disk")
        }
    }
    if egress::sends_password_unencrypted(settings) {
        tracing::warn!(
            "the password in egress-proxy-credentials is sent unencrypted, because --egress-proxy is an http URL. \
             Use an https proxy"
        );
    }
}
