//! Signatures of federation tokens.

use super::import::PrivateKey;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use std::sync::{Arc, PoisonError, RwLock};
use vault_core::check::CheckReason;
use vault_core::federation::{FederationClaims, FederationIssuer, FederationKey};
use vault_core::port::{FederationSigningKey, FederationTokenSigner};

/// Signer with the current signing key. It has none until one is selected.
pub struct FederationSigner {
    issuer: FederationIssuer,
    current: RwLock<Option<Arc<Current>>>,
}

struct Current {
    kid: String,
    key: PrivateKey,
}

impl FederationSigner {
    /// Creates the signer of `issuer`, without a key.
    pub const fn new(issuer: FederationIssuer) -> Self {
        Self { issuer, current: RwLock::new(None) }
    }

    fn current(&self) -> Option<Arc<Current>> {
        // The value is replaced as a whole, so a poisoned lock contains a consistent one.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FederationSigningKey for FederationSigner {
    fn select(&self, key: Option<&FederationKey>) {
        let current = key.and_then(|key| {
            let private = PrivateKey::from_base64(key.private_key.text())?;
            Some(Arc::new(Current { kid: key.kid().to_owned(), key: private }))
        });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
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
