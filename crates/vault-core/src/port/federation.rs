//! Ports for keyless storage access.

use crate::check::CheckReason;
use crate::credential::CredentialData;
use crate::federation::{FederationClaims, FederationIssuer, FederationSubject};
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;

/// Port that signs federation tokens with the current signing key.
#[async_trait]
pub trait FederationTokenSigner: Send + Sync {
    /// Returns the issuer of the tokens.
    fn issuer(&self) -> &FederationIssuer;

    /// Returns the signed token (RFC 7519, RS256). Only the provider may receive it.
    ///
    /// # Errors
    /// [`CheckReason::FederationNotReady`] if there is no current signing key.
    async fn sign(&self, claims: &FederationClaims) -> Result<SecretString, CheckReason>;
}

/// Port that checks the configuration at a provider that accepts federation tokens.
#[async_trait]
pub trait ProviderTrust: Send + Sync {
    /// Exchanges a token for the target of the keyless credential `data` with `subject`, which belongs to another
    /// organization. Returns `Ok` if the provider refuses the subject, so that the trust is closed.
    ///
    /// # Errors
    /// [`CheckReason::TrustOpen`] if the provider accepts the subject. Otherwise the reason why this is unknown.
    async fn check_trust(
        &self,
        data: &CredentialData,
        subject: &FederationSubject,
        now: Timestamp,
    ) -> Result<(), CheckReason>;
}
