//! One deployment's keys, unwrapped: generated once, proven at every start, used through adapters.

use crate::aead::SealingError;
use crate::anchor::Anchors;
use crate::audit::HmacAuditSealer;
use crate::blob::OpenError;
use crate::context::Context;
use crate::credential::CredentialCrypto;
use crate::digest::HmacDigester;
use crate::entropy::{random_key, random_key_id};
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use crate::instance_rewrapper::InstanceKeyRewrapper;
use crate::organization_keys::OrganizationKeyring;
use crate::passcode::TotpVerifier;
use crate::password::{Argon2Hasher, Argon2Parameters, HashingPool};
use crate::purpose_keys::{PurposeKeys, Sealed};
use crate::receiver::ReceiverCrypto;
use crate::token::PasetoIssuer;
use crate::wrapper::{KeyWrapper, WrapError};
use std::fmt;
use std::sync::Arc;
use vault_core::id::{InstanceId, KeyId};
use vault_core::keyring::{KeyringDocument, TermPurpose};
use vault_core::port::{Clock, Entropy, KeyRepository, NoEntropy, PasswordHasher, SealError};
use vault_core::sealed::{InstanceKeyPurpose, InstanceKeyRecord, InstanceRecord, RetiringInstanceKey};
use vault_core::time::Timestamp;

/// The unwrapped keys of one deployment. Drop it once the adapters are taken from it; dropping wipes it.
pub struct Keyring {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

/// A new deployment, for the store.
pub struct NewInstance {
    /// The deployment and its wrapped instance key.
    pub instance: InstanceRecord,
    /// Its instance-wide keys.
    pub keys: Vec<InstanceKeyRecord>,
    /// The same keys, unwrapped. Its audit sealer seals the record of their creation.
    pub keyring: Keyring,
}

/// A deployment's keys could not be generated or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// The keys are wrapped under another root key.
    #[error(
        "wrong root key: this vault needs root key {expected}, but was given root key {given}. Use root key {expected}"
    )]
    WrongRoot {
        /// The root key that the keys name.
        expected: KeyId,
        /// The root key given.
        given: KeyId,
    },
    /// The instance key does not unwrap.
    #[error("cannot decrypt instance key {key}: {cause}")]
    InstanceKey {
        /// The instance key.
        key: KeyId,
        /// Why.
        #[source]
        cause: WrapError,
    },
    /// The instance key unwraps but does not open the keyring document.
    #[error("cannot decrypt the vault's keyring with instance key {key}: {cause}")]
    Document {
        /// The instance key.
        key: KeyId,
        /// Why.
        #[source]
        cause: OpenError,
    },
    /// An instance-wide key does not unwrap.
    #[error("cannot decrypt {} key {key}: {cause}", .purpose.as_str())]
    PurposeKey {
        /// What the key is for.
        purpose: InstanceKeyPurpose,
        /// The key.
        key: KeyId,
        /// Why.
        #[source]
        cause: OpenError,
    },
    /// A purpose has no key.
    #[error("the vault has no {} key", .0.as_str())]
    NoKey(InstanceKeyPurpose),
    /// New keys could not be wrapped.
    #[error(transparent)]
    Wrap(#[from] WrapError),
    /// New keys could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealingError),
    /// The operating system returns no randomness.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

impl Keyring {
    /// Generates the keys of a new deployment.
    ///
    /// # Errors
    /// The root key cannot wrap, or there is no entropy.
    pub async fn create(
        wrapper: &dyn KeyWrapper,
        entropy: Arc<dyn Entropy>,
        instance: InstanceId,
        now: Timestamp,
    ) -> Result<NewInstance, KeyringError> {
        let (instance_key_id, instance_key) = (random_key_id(&*entropy)?, random_key(&*entropy)?);
        let wrapped = wrapper.wrap(&Context::instance_key(instance, instance_key_id), &instance_key).await?;
        let made = InstanceKeys::derive(instance_key_id, &instance_key);
        let mut keys = Vec::new();
        for purpose in InstanceKeyPurpose::ALL {
            keys.push(made.new_purpose_key(&*entropy, instance, purpose, now)?);
        }
        let mut ids = [instance_key_id; TermPurpose::ALL.len()];
        ids.iter_mut().skip(1).zip(&keys).for_each(|(id, key)| *id = key.id); // both in the order of purposes
        let document = KeyringDocument::first(ids, now);
        let record = InstanceRecord {
            id: instance,
            root_key: wrapper.id(),
            instance_key: instance_key_id,
            wrapped,
            keyring: made.seal_document(&*entropy, instance, &document)?,
            created_at: now,
        };
        let above = |id| (id == made.id()).then_some(&made);
        let purposes = PurposeKeys::open(&Sealed { instance, document: &document, rows: &keys, above }, None)?;
        let opened = Arc::new(InstanceKeyring::of(instance, made, Document::new(document), purposes));
        let keyring = Self { keys: opened, entropy };
        Ok(NewInstance { instance: record, keys, keyring })
    }

    /// Opens a deployment's keys. The root key is proven first: it unwraps the instance key, which opens the keyring document.
    /// Rows of keys that the document does not name are left out.
    /// Writes nothing and uses the root key once, and once for each of `retiring`.
    ///
    /// # Errors
    /// Another root key, or a record that does not open. The error names ids only.
    pub async fn open(
        wrapper: &dyn KeyWrapper,
        entropy: Arc<dyn Entropy>,
        record: &InstanceRecord,
        retiring: &[RetiringInstanceKey],
        keys: &[InstanceKeyRecord],
    ) -> Result<Self, KeyringError> {
        let opened = InstanceKeyring::open(wrapper, record, retiring, keys).await?;
        Ok(Self { keys: Arc::new(opened), entropy })
    }

    /// The deployment.
    pub fn instance(&self) -> InstanceId {
        self.keys.instance()
    }

    /// When the active instance key took the place of another one. `None`: it is the first.
    pub fn instance_key_replaced_at(&self) -> Option<Timestamp> {
        let document = self.keys.document().content;
        document.active(TermPurpose::Instance).filter(|_| document.number() > 1).map(|term| term.since)
    }

    /// Has its adapters read the instance keys again from `repository` when they meet one that they do not know, and unwrap
    /// it with `wrapper`, which they keep. Without this, they know the keys that there were when this was opened.
    pub fn renewing(&self, wrapper: Arc<dyn KeyWrapper>, repository: Arc<dyn KeyRepository>) {
        self.keys.renewing(wrapper, repository);
    }

    /// The adapter for keyed digests. `clock` says which keys are in use by now.
    pub fn digester(&self, clock: Arc<dyn Clock>) -> HmacDigester {
        HmacDigester::new(Arc::clone(&self.keys), clock)
    }

    /// The adapter that gives audit records their codes.
    pub fn audit_sealer(&self) -> HmacAuditSealer {
        HmacAuditSealer::new(Arc::clone(&self.keys))
    }

    /// The anchors of this deployment.
    pub fn anchors(&self) -> Anchors {
        Anchors::new(Arc::clone(&self.keys))
    }

    /// The adapter that issues and verifies access tokens. Tokens of another `epoch` are refused: a restore raises it, so
    /// that earlier tokens stop working.
    pub fn token_issuer(&self, epoch: u64) -> PasetoIssuer {
        PasetoIssuer::new(Arc::clone(&self.keys), epoch)
    }

    /// The adapter that makes instance keys, and moves to them what they wrap and seal. For operators only.
    pub fn instance_rewrapper(&self) -> InstanceKeyRewrapper {
        InstanceKeyRewrapper::new(Arc::clone(&self.keys), Arc::clone(&self.entropy))
    }

    /// The adapter for passcodes and recovery codes.
    pub fn passcodes(&self) -> TotpVerifier {
        TotpVerifier::new(Arc::clone(&self.keys), Arc::clone(&self.entropy))
    }

    /// The adapter that hashes and verifies passwords: new ones with `parameters`, stored ones with theirs. `legacy` names
    /// the other sets of parameters that stored hashes still have; each login hashes once with each of them too.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn password_hasher(
        &self,
        pool: Arc<HashingPool>,
        parameters: Argon2Parameters,
        legacy: Vec<Argon2Parameters>,
    ) -> Result<impl PasswordHasher + use<>, SealError> {
        Argon2Hasher::new(Arc::clone(&self.keys), pool, parameters, legacy, Arc::clone(&self.entropy))
    }

    /// What is secret of receivers: one adapter seals it, another one opens it.
    pub fn receivers(&self) -> ReceiverCrypto {
        ReceiverCrypto::new(Arc::clone(&self.keys), Arc::clone(&self.entropy))
    }

    /// Four adapters over one cache of the keys in `repository`: one seals credentials, one opens their information, one
    /// moves them from one organization key to another, one opens their data. None gives access to another.
    pub fn credentials(&self, repository: Arc<dyn KeyRepository>) -> CredentialCrypto {
        let keys = OrganizationKeyring::new(Arc::clone(&self.keys), repository, Arc::clone(&self.entropy));
        CredentialCrypto::new(keys)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({})", self.instance())
    }
}

#[cfg(test)]
mod tests;
