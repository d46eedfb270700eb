//! Creates keys of the instance, and the documents that list them.

use crate::context::Context;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, fault, no_entropy, not_sealed};
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys, Secrets};
use crate::keyring::new_secrets;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{Entropy, InstanceRewrapper, SealError};
use vault_core::sealed::{Blob, InstanceRecord};
use vault_core::time::Timestamp;

/// Creates instance keys and keyrings. It cannot open credentials.
pub struct InstanceKeyRewrapper {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

impl InstanceKeyRewrapper {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy }
    }

    /// Returns the active key of `current` and the keyring document that it opens.
    fn document(&self, current: &InstanceRecord) -> Result<(Arc<InstanceKeys>, Document, Secrets), SealError> {
        let active = self.keys.find(current.instance_key);
        let active = active.ok_or_else(|| fault("the active instance key is not loaded"))?;
        let opened = active.open_document(current.id, &current.keyring);
        let (document, secrets) = opened.map_err(|error| does_not_open(&Context::keyring(current.id), error))?;
        Ok((active, document, secrets))
    }
}

#[async_trait]
impl InstanceRewrapper for InstanceKeyRewrapper {
    fn entries(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError> {
        Ok(self.document(current)?.1.content.entries().to_vec())
    }

    async fn next_instance_key(&self, current: &InstanceRecord, now: Timestamp) -> Result<InstanceRecord, SealError> {
        let (_, document, mut secrets) = self.document(current)?;
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let (wrapped, before) = self.keys.replace_under_root(current, id, &key)?;
        let made = new_secrets(&*self.entropy).map_err(no_entropy)?;
        let entries = KeyPurpose::OTHERS.into_iter().zip(made.keys().copied()).chain([(KeyPurpose::Instance, id)]);
        let document =
            document.content.with_entries(document.hash, &entries.collect::<Vec<_>>(), now).map_err(fault)?;
        secrets.extend(made);
        secrets.insert(current.instance_key, before);
        let to = InstanceKeys::derive(id, &key);
        let keyring = to.seal_document(&*self.entropy, current.id, &document, &secrets).map_err(not_sealed)?;
        Ok(InstanceRecord { instance_key: id, wrapped, keyring, ..current.clone() })
    }

    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError> {
        let (active, document, mut secrets) = self.document(current)?;
        let document = document.content.without_entry(document.hash, key).map_err(fault)?;
        secrets.remove(&key);
        active.seal_document(&*self.entropy, current.id, &document, &secrets).map_err(not_sealed)
    }
}
