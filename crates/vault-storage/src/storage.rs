//! Implementation of the ports for checks and short-lived credentials.

use crate::federation::Signing;
use crate::guard::{GuardedClient, SystemResolver};
use crate::probe::{Trial, refused, skipped};
use crate::{Places, Resolve, StorageSettings, TrustError, azure, gcs, link, s3};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use vault_core::activation::ShortData;
use vault_core::check::{Check, CheckKind, CheckReason, CheckReport};
use vault_core::credential::CredentialData;
use vault_core::port::{
    CredentialVendor, FederationTokenSigner, IdGenerator, ProbeRequest, ShortLived, StorageProbe, VendOrder,
};

/// A client of storage providers. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    pub(crate) client: GuardedClient,
    ids: Arc<dyn IdGenerator>,
    pub(crate) places: Arc<Places>,
    pub(crate) whole: Duration,
    /// Additional time for removing an object that a check has written.
    grace: Duration,
    session_tags: bool,
    signer: Option<Arc<dyn FederationTokenSigner>>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage(..)")
    }
}

impl Storage {
    /// Creates a client. `ids` name the objects that a check writes.
    ///
    /// # Errors
    /// The CA certificates cannot be read.
    pub fn new(settings: StorageSettings, ids: Arc<dyn IdGenerator>) -> Result<Self, TrustError> {
        Self::with_resolver(settings, ids, Arc::new(SystemResolver::new()))
    }

    /// Same as [`Storage::new`], with another resolver. The egress policy also applies to its addresses.
    ///
    /// # Errors
    /// The CA certificates cannot be read.
    pub fn with_resolver(
        settings: StorageSettings,
        ids: Arc<dyn IdGenerator>,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, TrustError> {
        let client = GuardedClient::new(&settings, resolver)?;
        let StorageSettings { deadlines, places, session_tags, .. } = settings;
        let (whole, grace) = (deadlines.whole, deadlines.exchange * 2);
        Ok(Self { client, ids, places: Arc::new(places), whole, grace, session_tags, signer: None })
    }

    /// Enables keyless credentials. Only the storage of an activation listener may have a signer.
    #[must_use]
    pub fn signer(self, signer: Option<Arc<dyn FederationTokenSigner>>) -> Self {
        Self { signer, ..self }
    }

    /// Returns what signs federation tokens.
    pub(crate) fn signing(&self) -> Result<Signing<'_>, CheckReason> {
        let signer = self.signer.as_ref().ok_or(CheckReason::FederationOff)?;
        Ok(Signing { signer, ids: &self.ids })
    }
}

#[async_trait]
impl CredentialVendor for Storage {
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let (client, places) = (&self.client, &*self.places);
        let vending = async {
            match data {
                CredentialData::S3(data) => s3::vend(client, data, &order, self.session_tags).await,
                CredentialData::AzureIdentity(data) => azure::vend(client, places, data, &order).await,
                CredentialData::Gcs(data) => gcs::vend(client, places, data, &order).await,
                CredentialData::S3Federated(data) => s3::vend_keyless(client, data, &self.signing()?, &order).await,
                CredentialData::AzureFederated(data) => {
                    azure::vend_keyless(client, places, data, &self.signing()?, &order).await
                }
                CredentialData::GcsFederated(data) => {
                    gcs::vend_keyless(client, places, data, &self.signing()?, &order).await
                }
                CredentialData::DirectLink(_) => Err(CheckReason::TypeHasNone),
            }
        };
        timeout(self.whole, vending).await.unwrap_or(Err(CheckReason::Unreachable))
    }
}

#[async_trait]
impl StorageProbe for Storage {
    async fn check(&self, data: &CredentialData, request: ProbeRequest) -> CheckReport {
        let trial = Trial {
            name: format!("orgvault-check-{}", self.ids.random()),
            now: request.now,
            deadline: Instant::now() + self.whole,
            operations: request.operations,
        };
        let (client, places) = (&self.client, &*self.places);
        let checking = async {
            match (data, request.short) {
                (CredentialData::S3(data), None) => s3::check(client, data, &trial).await,
                (CredentialData::S3(data), Some(ShortData::S3(short))) => {
                    s3::check_short(client, data.location(), &short, &trial).await
                }
                (CredentialData::S3Federated(data), Some(ShortData::S3(short))) => {
                    s3::check_short(client, data.location(), &short, &trial).await
                }
                (CredentialData::AzureFederated(data), Some(ShortData::AzureIdentity(short))) => {
                    azure::check_keyless(client, data, short, &trial).await
                }
                (CredentialData::GcsFederated(data), Some(ShortData::Gcs(short))) => {
                    gcs::check_keyless(client, places, data, short, &trial).await
                }
                (CredentialData::AzureIdentity(data), None) => azure::check(client, places, data, &trial).await,
                (CredentialData::AzureIdentity(data), Some(ShortData::AzureIdentity(short))) => {
                    azure::check_short(client, data, short, &trial).await
                }
                (CredentialData::Gcs(data), None) => gcs::check(client, places, data, &trial).await,
                (CredentialData::Gcs(data), Some(ShortData::Gcs(short))) => {
                    gcs::check_short(client, places, data, short, &trial).await
                }
                (CredentialData::DirectLink(data), _) => link::check(client, data, &trial).await,
                // A short-lived credential of another type than its source, or a keyless credential without one.
                (_, Some(_))
                | (
                    CredentialData::S3Federated(_)
                    | CredentialData::AzureFederated(_)
                    | CredentialData::GcsFederated(_),
                    None,
                ) => refused(CheckReason::Unexpected, &trial.operations),
            }
        };
        let checks = timeout(self.whole + self.grace, checking).await.unwrap_or_else(|_| {
            let failed = Check::failed(CheckKind::Authenticate, CheckReason::Unreachable);
            std::iter::once(failed).chain(skipped(&trial.operations)).collect()
        });
        CheckReport { checks }
    }
}
