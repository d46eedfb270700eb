//! Federation tokens, and the check of the provider trust with them.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::Arc;
use tokio::time::timeout;
use vault_core::check::CheckReason;
use vault_core::credential::CredentialData;
use vault_core::federation::{ActivationClaims, FederationAudience, FederationClaims, FederationSubject};
use vault_core::port::{FederationTokenSigner, IdGenerator, ProviderTrust, VendOrder};
use vault_core::time::Timestamp;

use crate::{Storage, azure, gcs, s3};

/// Signs tokens for one exchange.
pub(crate) struct Signing<'a> {
    pub(crate) signer: &'a Arc<dyn FederationTokenSigner>,
    pub(crate) ids: &'a Arc<dyn IdGenerator>,
    pub(crate) session_tags: bool,
}

impl Signing<'_> {
    /// Returns a token for the credential of `order`.
    pub(crate) async fn token(
        &self,
        order: &VendOrder,
        audience: FederationAudience,
    ) -> Result<SecretString, CheckReason> {
        let caller = order.integration.zip(order.activation);
        // A check has no tag of an integration.
        let order_of_tags = VendOrder { integration: caller.map(|(integration, _)| integration), ..order.clone() };
        let session_tags = if self.session_tags { s3::session_tags(&order_of_tags) } else { Vec::new() };
        let activation = ActivationClaims { namespace: order.namespace.clone(), caller, session_tags };
        let subject = FederationSubject::new(order.organization, order.credential);
        self.sign(subject, audience, order.now, Some(activation)).await
    }

    /// Returns a token for a trust check.
    pub(crate) async fn token_of_no_credential(
        &self,
        subject: &FederationSubject,
        audience: FederationAudience,
        now: Timestamp,
    ) -> Result<SecretString, CheckReason> {
        self.sign(*subject, audience, now, None).await
    }

    async fn sign(
        &self,
        subject: FederationSubject,
        audience: FederationAudience,
        now: Timestamp,
        activation: Option<ActivationClaims>,
    ) -> Result<SecretString, CheckReason> {
        let (issuer, id) = (self.signer.issuer().clone(), self.ids.random());
        self.signer.sign(&FederationClaims { issuer, subject, audience, now, id, activation }).await
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
