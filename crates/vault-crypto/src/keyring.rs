//! The unwrapped keys of one instance: generated once, verified at every start, and used through adapters.

use crate::anchor::Anchors;
use crate::audit::HmacAuditSealer;
use crate::context::Context;
use crate::credential::CredentialCrypto;
use crate::digest::HmacDigester;
use crate::entity::EntityDocuments;
use crate::entropy::{random_key, random_key_id};
use crate::instance_keys::{InstanceKeyring, InstanceKeys, Secrets};
use crate::instance_rewrapper::InstanceKeyRewrapper;
use crate::keyring_error::KeyringError;
use crate::organization_keys::OrganizationKeyring;
use crate::passcode::TotpVerifier;
use crate::password::{Argon2Hasher, Argon2Parameters, HashingPool};
use crate::root_key::LoadedRootKey;
use crate::token::PasetoIssuer;
use std::fmt;
use std::sync::Arc;
use vault_core::id::InstanceId;
use vault_core::keyring::{KeyPurpose, KeyringDocument};
use vault_core::port::{Clock, Entropy, KeyRepository, NoEntropy, PasswordHasher, SealError};
use vault_core::sealed::InstanceRecord;
use vault_core::time::Timestamp;

/// The unwrapped keys of one instance. Drop it after creating the adapters, which wipes it.
pub struct Keyring {
    pub(crate) keys: Arc<InstanceKeyring>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// A new instance, for the store.
pub struct NewInstance {
    /// The instance with its wrapped instance key.
    pub instance: InstanceRecord,
    /// The same keys, unwrapped. Its audit sealer seals the audit entry of their creation.
    pub keyring: Keyring,
}

impl Keyring {
    /// Generates the keys of a new instance.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn create(
        wrapper: &LoadedRootKey,
        entropy: Arc<dyn Entropy>,
        instance: InstanceId,
        now: Timestamp,
    ) -> Result<NewInstance, KeyringError> {
        let (instance_key_id, instance_key) = (random_key_id(&*entropy)?, random_key(&*entropy)?);
        let wrapped = wrapper.wrap(&Context::instance_key(instance, instance_key_id), &instance_key)?;
        let made = InstanceKeys::derive(instance_key_id, &instance_key);
        let secrets = new_secrets(&*entropy)?;
        let mut ids = [instance_key_id; KeyPurpose::ALL.len()];
        ids.iter_mut().skip(1).zip(secrets.keys()).for_each(|(id, key)| *id = *key);
        let document = KeyringDocument::first(ids, now);
        let keyring = made.seal_document(&*entropy, instance, &document, &secrets)?;
        let record = InstanceRecord {
            id: instance,
            root_key: wrapper.id(),
            instance_key: instance_key_id,
            wrapped,
            keyring,
            created_at: now,
            restore_epoch: 0,
        };
        let keyring = Self::open(wrapper, entropy, &record)?;
        Ok(NewInstance { instance: record, keyring })
    }

    /// Loads the keys of an instance. The root key is verified first: it unwraps the instance key, which decrypts the
    /// keyring document with all other keys. Writes nothing, and uses the root key once.
    ///
    /// # Errors
    /// The root key is a different one, or a record cannot be decrypted. The error contains only IDs.
    pub fn open(
        wrapper: &LoadedRootKey,
        entropy: Arc<dyn Entropy>,
        record: &InstanceRecord,
    ) -> Result<Self, KeyringError> {
        let opened = InstanceKeyring::open(wrapper, record)?;
        Ok(Self { keys: Arc::new(opened), entropy })
    }

    /// Returns the ID of the instance.
    pub fn instance(&self) -> InstanceId {
        self.keys.instance()
    }

    /// Returns the time at which the active instance key replaced another one, or `None` if it is the first.
    pub fn instance_key_replaced_at(&self) -> Option<Timestamp> {
        let document = self.keys.document().content;
        document.active(KeyPurpose::Instance).filter(|_| document.number() > 1).map(|entry| entry.since)
    }

    /// Enables its adapters to reload the instance keys from `repository` when they encounter an unknown one, and to
    /// unwrap them with `wrapper`. Otherwise, they have only the keys that existed when this was loaded.
    pub fn renewing(&self, wrapper: Arc<LoadedRootKey>, repository: Arc<dyn KeyRepository>) {
        self.keys.renewing(wrapper, repository);
    }

    /// Returns whether an instance key is retiring.
    pub fn instance_key_retires(&self) -> bool {
        self.keys.document().content.retiring().any(|entry| entry.purpose == KeyPurpose::Instance)
    }

    /// Returns the adapter for keyed digests. `clock` determines which keys are in use.
    pub fn digester(&self, clock: Arc<dyn Clock>) -> HmacDigester {
        HmacDigester::new(Arc::clone(&self.keys), clock)
    }

    /// Returns the adapter that seals and opens the documents of entities.
    pub fn entity_sealer(&self) -> EntityDocuments {
        EntityDocuments::new(Arc::clone(&self.keys), Arc::clone(&self.entropy))
    }

    /// Returns the adapter that computes MACs of audit entries.
    pub fn audit_sealer(&self) -> HmacAuditSealer {
        HmacAuditSealer::new(Arc::clone(&self.keys))
    }

    /// Returns the anchors of this instance.
    pub fn anchors(&self) -> Anchors {
        Anchors::new(Arc::clone(&self.keys))
    }

    /// Returns the adapter that issues and verifies access tokens. Tokens of another `epoch` are refused. A restore
    /// raises the epoch, so that earlier tokens are no longer accepted.
    pub fn token_issuer(&self, epoch: u64) -> PasetoIssuer {
        PasetoIssuer::new(Arc::clone(&self.keys), epoch)
    }

    /// Returns the adapter that generates instance keys, and rewraps and reseals values with them. For operators only.
    pub fn instance_rewrapper(&self) -> InstanceKeyRewrapper {
        InstanceKeyRewrapper::new(Arc::clone(&self.keys), Arc::clone(&self.entropy))
    }

    /// Returns the adapter for passcodes and recovery codes.
    pub fn passcodes(&self) -> TotpVerifier {
        TotpVerifier::new(Arc::clone(&self.entropy))
    }

    /// Returns the adapter that hashes and verifies passwords: new ones with `parameters`, stored ones with their own.
    /// `legacy` contains the other parameters of stored hashes. Each login also hashes once with each of them, so that
    /// its duration does not disclose which is stored.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn password_hasher(
        &self,
        pool: Arc<HashingPool>,
        parameters: Argon2Parameters,
        legacy: Vec<Argon2Parameters>,
    ) -> Result<impl PasswordHasher + use<>, SealError> {
        Argon2Hasher::new(pool, parameters, legacy, Arc::clone(&self.entropy))
    }

    /// Returns two adapters with one cache of unwrapped keys: one seals credentials and opens their cards, and one decrypts their
    /// data. Neither gives access to the other.
    pub fn credentials(&self) -> CredentialCrypto {
        CredentialCrypto::new(OrganizationKeyring::new(Arc::clone(&self.keys), Arc::clone(&self.entropy)))
    }
}

/// Generates a key for each purpose but the instance key.
///
/// # Errors
/// The operating system returns no randomness.
pub(crate) fn new_secrets(entropy: &dyn Entropy) -> Result<Secrets, NoEntropy> {
    KeyPurpose::OTHERS.iter().map(|_| Ok((random_key_id(entropy)?, random_key(entropy)?))).collect()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.instance())
    }
}

#[cfg(test)]
mod tests;
