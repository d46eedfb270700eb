//! The signing keys of a server: published, selected, checked and promoted in the background. Counts exchanges of the
//! tokens that they sign.

use crate::background::{Background, Stopped};
use crate::egress;
use crate::receivers::{Alarm, Alarms};
use crate::settings::Settings;
use async_trait::async_trait;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vault_cli::failure::Failure;
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::federation::{FederationIssuer, FederationKeyState, FederationSubject};
use vault_core::port::{
    CredentialVendor, FederationSigningKey, FederationTokenSigner, ProviderTrust, ShortLived, VendOrder,
};
use vault_core::receiver::EventKind;
use vault_core::time::Timestamp;
use vault_core::usecase::Federation;
use vault_core::usecase::federation::{FederationPublisher, PublicationReport, PublishedKeys};
use vault_crypto::FederationSigner;
use vault_embed::OpenVault;
use vault_storage::{PublicationClient, Storage};

/// Interval of reading the keys.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Interval of promotions and publication checks. A check is due 15 minutes after the previous one of any process.
const ADVANCE_EVERY: Duration = Duration::from_secs(60);
/// Pause after a failure of the database.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Metric: age of the keys.
const AGE: &str = "orgvault_federation_key_age_seconds";
/// Metric: result of the last publication check.
const PUBLISHED: &str = "orgvault_federation_published";
/// Metric: number of exchanges.
const EXCHANGES: &str = "orgvault_federation_exchanges_total";
/// Outcome of an exchange that issued a credential.
const SUCCEEDED: &str = "succeeded";
/// Outcome of a trust check whose subject was refused, as it must be.
const TRUST_CLOSED: &str = "trust-closed";

/// Registers the descriptions of the metrics.
pub(crate) fn describe() {
    metrics::describe_gauge!(
        AGE,
        metrics::Unit::Seconds,
        "Time since the signing key entered its `state`: `next`, `current`; 0 without such a key. Only with \
         `--federation-issuer`"
    );
    metrics::describe_gauge!(
        PUBLISHED,
        "1 if the last publication check found no problem, otherwise 0. Only with `--federation-issuer`"
    );
    metrics::describe_counter!(
        EXCHANGES,
        "Exchanges of federation tokens, and trust checks (`trust-closed`, `trust-open`). Only with `--federation-issuer`"
    );
}

/// Creates the series of outcomes that depend on the configuration, so that they are visible before the first exchange.
pub(crate) fn begin_exchanges() {
    let reasons = [
        CheckReason::TrustMissing,
        CheckReason::TrustOpen,
        CheckReason::IssuerUnreachable,
        CheckReason::IssuerNotTrusted,
        CheckReason::FederationNotReady,
    ];
    for provider in CredentialType::ALL.into_iter().filter_map(provider) {
        for outcome in reasons.map(CheckReason::as_str).into_iter().chain([SUCCEEDED, TRUST_CLOSED]) {
            metrics::counter!(EXCHANGES, "provider" => provider, "outcome" => outcome).absolute(0);
        }
    }
}

/// The federation issuer of this process.
#[derive(Clone)]
pub(crate) struct Issuing {
    /// Documents for the public listener.
    pub(crate) published: Arc<PublishedKeys>,
    signer: Option<Arc<FederationSigner>>,
}

impl Issuing {
    /// Returns the federation issuer of the settings. Only a process with the activation listener can sign.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let issuer = settings.server.federation_issuer.clone()?;
        let signs = settings.server.activation().is_some();
        let signer = signs.then(|| Arc::new(FederationSigner::new(issuer.clone())));
        Some(Self { published: Arc::new(PublishedKeys::new(issuer)), signer })
    }

    /// Returns the signer for the storage client of the activation listener.
    pub(crate) fn signer(&self) -> Option<Arc<dyn FederationTokenSigner>> {
        self.signer.clone().map(|signer| signer as Arc<dyn FederationTokenSigner>)
    }

    /// Starts the tasks. A process with the activation listener also checks the publication and promotes keys.
    ///
    /// # Errors
    /// A file that the settings name cannot be used.
    pub(crate) fn start(&self, settings: &Settings, vault: &OpenVault, alarms: &Alarms) -> Result<Background, Failure> {
        let issuer = self.published.issuer().clone();
        if self.signer.is_some() {
            begin_exchanges();
        }
        let signing = self.signer.clone().map(|signer| signer as Arc<dyn FederationSigningKey>);
        let advancing = match &signing {
            None => None,
            Some(_) => Some(Advancing {
                federation: vault.federation(),
                publication: publication(settings)?,
                alarm: alarms.of(EventKind::FederationUnpublished),
                issuer,
            }),
        };
        let publisher = FederationPublisher::new(vault.federation(), Arc::clone(&self.published), signing);
        Ok(Background::start(|stopped| work(publisher, advancing, stopped)))
    }
}

/// Returns the client that reads the published documents.
///
/// # Errors
/// A file that the settings name cannot be used.
pub(crate) fn publication(settings: &Settings) -> Result<PublicationClient, Failure> {
    Ok(PublicationClient::new(&egress::of(settings)?)?)
}

/// A storage client that counts exchanges.
pub(crate) struct CountedStorage(pub(crate) Arc<Storage>);

#[async_trait]
impl CredentialVendor for CountedStorage {
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let vended = self.0.vend(data, order).await;
        count(data, vended.as_ref().map_or_else(|reason| reason.as_str(), |_| SUCCEEDED));
        vended
    }
}

#[async_trait]
impl ProviderTrust for CountedStorage {
    async fn check_trust(
        &self,
        data: &CredentialData,
        subject: &FederationSubject,
        now: Timestamp,
    ) -> Result<(), CheckReason> {
        let checked = self.0.check_trust(data, subject, now).await;
        count(data, checked.map_or_else(CheckReason::as_str, |()| TRUST_CLOSED));
        checked
    }
}

fn count(data: &CredentialData, outcome: &'static str) {
    if let Some(provider) = provider(data.kind()) {
        metrics::counter!(EXCHANGES, "provider" => provider, "outcome" => outcome).increment(1);
    }
}

/// Returns the label of the provider that exchanges tokens for credentials of a keyless type.
const fn provider(kind: CredentialType) -> Option<&'static str> {
    match kind {
        CredentialType::S3Federated => Some("s3"),
        CredentialType::AzureFederated => Some("azure"),
        CredentialType::GcsFederated => Some("gcs"),
        CredentialType::S3 | CredentialType::AzureIdentity | CredentialType::Gcs | CredentialType::DirectLink => None,
    }
}

struct Advancing {
    federation: Federation,
    publication: PublicationClient,
    alarm: Alarm,
    issuer: FederationIssuer,
}

async fn work(mut publisher: FederationPublisher, advancing: Option<Advancing>, mut stopped: Stopped) {
    let mut advance_at = Instant::now();
    loop {
        let mut wait = READ_EVERY;
        if let Err(error) = publisher.refresh().await {
            warn(&error, "the signing keys were not read; the previous ones stay in use");
            wait = AFTER_FAILURE;
        }
        show(&publisher);
        if let Some(advancing) = advancing.as_ref().filter(|_| Instant::now() >= advance_at) {
            advance_at = Instant::now() + ADVANCE_EVERY;
            tokio::select! {
                _ = &mut stopped => return,
                done = advancing.run() => {
                    if let Err(error) = done {
                        warn(&error, "the signing keys were not checked; the next attempt is in a minute");
                    }
                }
            }
        }
        tokio::select! {
            _ = &mut stopped => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

impl Advancing {
    /// Checks the publication, if that is due, and promotes the next key when providers have read it.
    async fn run(&self) -> Result<(), vault_core::Error> {
        if let Some(report) = self.federation.check_if_due(&self.issuer, &self.publication).await? {
            self.note(&report).await;
        }
        if self.federation.advance(&self.issuer).await? {
            tracing::info!(issuer = %self.issuer, "promoted the next signing key; see `orgvault federation status`");
        }
        Ok(())
    }

    async fn note(&self, report: &PublicationReport) {
        for (failure, kid) in &report.findings {
            tracing::warn!(finding = failure.as_str(), "{}", failure.explain(&self.issuer, kid.as_deref()));
        }
        // A single failure may be a restart of the web server.
        if report.is_lasting() || report.findings.is_empty() {
            self.alarm.set(report.is_lasting()).await;
        }
    }
}

/// Updates the metrics. Every replica reports the same values.
fn show(publisher: &FederationPublisher) {
    metrics::gauge!(PUBLISHED).set(if publisher.is_found() { 1.0 } else { 0.0 });
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    for state in [FederationKeyState::Next, FederationKeyState::Current] {
        let key = publisher.keys().into_iter().find(|key| key.state == state);
        let since = key.map(|key| Duration::from_millis(u64::try_from(key.since().as_millis()).unwrap_or_default()));
        let age = since.map_or(0.0, |since| now.saturating_sub(since).as_secs_f64());
        metrics::gauge!(AGE, "state" => state.as_str()).set(age);
    }
}

fn warn(error: &vault_core::Error, what: &str) {
    tracing::warn!(error = error as &dyn Error, "{what}");
}
