//! Signing keys of federation tokens: import, encryption, and RS256 signatures (RFC 7515, 7518).

mod import;
mod sign;
#[cfg(test)]
mod tests;

pub use sign::FederationSigner;

use crate::blob;
use crate::context::Context;
use crate::error::{damaged, does_not_open, not_sealed, unknown_key};
use crate::instance_keys::InstanceKeyring;
use import::PrivateKey;
use secrecy::SecretString;
use std::sync::Arc;
use vault_core::federation::{FederationIssuer, FederationKeyState, Jwk, StoredFederationKey};
use vault_core::id::KeyId;
use vault_core::keyring::KeyPurpose;
use vault_core::port::{Entropy, FederationKeySealer, FederationKeyVerifier, SealError};
use vault_core::sealed::{Blob, InstanceRecord};
use vault_core::time::Timestamp;

/// Adapters for signing keys that share one set of instance keys. None gives access to another.
#[derive(Clone)]
pub struct FederationCrypto {
    /// Encrypts keys and changes the keyring.
    pub sealer: Arc<dyn FederationKeySealer>,
    /// Verifies stored keys.
    pub verifier: Arc<dyn FederationKeyVerifier>,
    /// Creates signers.
    pub signers: FederationSigners,
}

/// Creates signers of federation tokens.
#[derive(Clone)]
pub struct FederationSigners(Arc<InstanceKeyring>);

impl FederationSigners {
    /// Returns the signer of `issuer`, without a key.
    pub fn signer(&self, issuer: FederationIssuer) -> FederationSigner {
        FederationSigner::new(FederationSealing::new(Arc::clone(&self.0)), issuer)
    }
}

/// Instance keys with which signing keys are sealed.
pub(crate) struct FederationSealing {
    keys: Arc<InstanceKeyring>,
}

impl FederationSealing {
    pub(crate) const fn new(keys: Arc<InstanceKeyring>) -> Self {
        Self { keys }
    }

    /// Decrypts the private key of a row. It must belong to the row's public key.
    fn open(&self, stored: &StoredFederationKey) -> Result<PrivateKey, SealError> {
        let (context, sealed) = (Context::federation_key(self.keys.instance(), stored.key.id), &stored.private_key);
        let keys = match blob::sealing_key(sealed) {
            Some(id) => self.keys.find(id).ok_or_else(|| unknown_key(&context, id))?,
            None => return Err(damaged(&context, "truncated")),
        };
        let bytes = keys.federation.open(&context, sealed).map_err(|error| does_not_open(&context, error))?;
        let private = PrivateKey::from_pkcs8(&bytes).ok_or_else(|| damaged(&context, "malformed inside"))?;
        match private.jwk() {
            Some(jwk) if jwk == stored.key.jwk => Ok(private),
            _ => Err(damaged(&context, "does not belong to the public key of the row")),
        }
    }

    /// Checks the private key of a row, and that the keyring names the key unless it is retired.
    pub(crate) fn check(&self, stored: &StoredFederationKey) -> Result<(), SealError> {
        self.open(stored)?;
        let is_named = self.keys.document().content.has(KeyPurpose::Federation, stored.key.id);
        if is_named || stored.key.state == FederationKeyState::Retired {
            return Ok(());
        }
        let context = Context::federation_key(self.keys.instance(), stored.key.id);
        Err(damaged(&context, "the keyring does not name this key: it was removed, or added outside the service"))
    }
}

struct Sealer {
    sealing: FederationSealing,
    entropy: Arc<dyn Entropy>,
}

impl FederationCrypto {
    pub(crate) fn new(keys: &Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        let sealing = || FederationSealing::new(Arc::clone(keys));
        Self {
            sealer: Arc::new(Sealer { sealing: sealing(), entropy }),
            verifier: Arc::new(sealing()),
            signers: FederationSigners(Arc::clone(keys)),
        }
    }
}

impl FederationKeySealer for Sealer {
    fn import(&self, id: KeyId, pem: &SecretString) -> Result<Option<(Jwk, Blob)>, SealError> {
        let Some(pkcs8) = import::pkcs8_of(pem) else { return Ok(None) };
        let Some(jwk) = PrivateKey::from_pkcs8(&pkcs8).and_then(|key| key.jwk()) else { return Ok(None) };
        let keys = &self.sealing.keys;
        let context = Context::federation_key(keys.instance(), id);
        let sealed = keys.active().federation.seal(&*self.entropy, &context, &pkcs8).map_err(not_sealed)?;
        Ok(Some((jwk, sealed)))
    }

    fn keyring(
        &self,
        current: &InstanceRecord,
        added: &[KeyId],
        dropped: &[KeyId],
        now: Timestamp,
    ) -> Result<Blob, SealError> {
        self.sealing.keys.with_federation_keys(&*self.entropy, current, (added, dropped), now)
    }
}

impl FederationKeyVerifier for FederationSealing {
    fn named(&self) -> Vec<KeyId> {
        let document = self.keys.document().content;
        let terms = document.terms().iter().filter(|term| term.purpose == KeyPurpose::Federation);
        terms.map(|term| term.id).collect()
    }

    fn verify(&self, key: &StoredFederationKey) -> Result<(), SealError> {
        self.open(key).map(drop)
    }
}

impl crate::Keyring {
    /// Returns the adapters for signing keys of federation tokens: one encrypts them, one verifies them, and one signs with
    /// them.
    pub fn federation(&self) -> FederationCrypto {
        FederationCrypto::new(&self.keys, Arc::clone(&self.entropy))
    }
}
