//! Signatures of federation tokens.

use super::FederationSealing;
use super::import::PrivateKey;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use std::sync::{Arc, PoisonError, RwLock};
use vault_core::check::CheckReason;
use vault_core::federation::{FederationClaims, FederationIssuer, StoredFederationKey};
use vault_core::port::{FederationSigningKey, FederationTokenSigner, SealError};

/// Signer with the current signing key. It has none until one is selected.
pub struct FederationSigner {
    sealing: FederationSealing,
    issuer: FederationIssuer,
    current: RwLock<Option<Arc<Current>>>,
}

struct Current {
    kid: String,
    key: PrivateKey,
}

impl FederationSigner {
    pub(super) const fn new(sealing: FederationSealing, issuer: FederationIssuer) -> Self {
        Self { sealing, issuer, current: RwLock::new(None) }
    }

    fn current(&self) -> Option<Arc<Current>> {
        // The value is replaced as a whole, so a poisoned lock contains a consistent one.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, current: Option<Current>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current.map(Arc::new);
    }
}

impl FederationSigningKey for FederationSigner {
    fn select(&self, key: Option<&StoredFederationKey>) -> Result<(), SealError> {
        let opened = key.map(|stored| {
            let key = self.sealing.open(stored)?;
            Ok(Current { kid: stored.key.jwk.kid().to_owned(), key })
        });
        match opened.transpose() {
            Ok(current) => {
                self.set(current);
                Ok(())
            }
            Err(error) => {
                self.set(None);
                Err(error)
            }
        }
    }
}

#[async_trait]
impl FederationTokenSigner for FederationSigner {
    fn issuer(&self) -> &FederationIssuer {
        &self.issuer
    }

    async fn sign(&self, claims: &FederationClaims) -> Result<SecretString, CheckReason> {
        let current = self.current().ok_or(CheckReason::FederationNotReady)?;
        let header = format!(r#"{{"alg":"RS256","typ":"JWT","kid":"{}"}}"#, current.kid);
        let mut token = [header, claims.to_json()].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let signature = current.key.sign(token.as_bytes()).ok_or(CheckReason::FederationNotReady)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(SecretString::from(token))
    }
}
