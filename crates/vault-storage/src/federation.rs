//! Federation tokens, and the check of the provider trust with them.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::Arc;
use tokio::time::timeout;
use vault_core::check::CheckReason;
use vault_core::credential::CredentialData;
use vault_core::federation::{FederationAudience, FederationClaims, FederationSubject};
use vault_core::port::{FederationTokenSigner, IdGenerator, ProviderTrust};
use vault_core::time::Timestamp;

use crate::{Storage, azure, gcs, s3};

/// Signs tokens for one exchange.
pub(crate) struct Signing<'a> {
    pub(crate) signer: &'a Arc<dyn FederationTokenSigner>,
    pub(crate) ids: &'a Arc<dyn IdGenerator>,
}

impl Signing<'_> {
    /// Returns a token for `subject`.
    pub(crate) async fn token(
        &self,
        subject: FederationSubject,
        audience: FederationAudience,
        now: Timestamp,
    ) -> Result<SecretString, CheckReason> {
        let (issuer, id) = (self.signer.issuer().clone(), self.ids.random());
        self.signer.sign(&FederationClaims { issuer, subject, audience, now, id }).await
    }
}

#[async_trait]
impl ProviderTrust for Storage {
    async fn check_trust(
        &self,
        data: &CredentialData,
        subject: &FederationSubject,
        now: Timestamp,
    ) -> Result<(), CheckReason> {
        let signing = self.signing()?;
        let exchange = async {
            match data {
                CredentialData::S3Federated(data) => {
                    s3::exchange_for_trust_check(&self.client, data, &signing, subject, now).await
                }
                CredentialData::AzureFederated(data) => {
                    azure::exchange_for_trust_check(&self.client, &self.places, data, &signing, subject, now).await
                }
                CredentialData::GcsFederated(data) => {
                    gcs::exchange_for_trust_check(&self.client, &self.places, data, &signing, subject, now).await
                }
                CredentialData::S3(_)
                | CredentialData::AzureIdentity(_)
                | CredentialData::Gcs(_)
                | CredentialData::DirectLink(_) => Err(CheckReason::Unexpected),
            }
        };
        match timeout(self.whole, exchange).await.unwrap_or(Err(CheckReason::Unreachable)) {
            Ok(()) => Err(CheckReason::TrustOpen),
            Err(CheckReason::TrustMissing) => Ok(()),
            Err(reason) => Err(reason),
        }
    }
}
