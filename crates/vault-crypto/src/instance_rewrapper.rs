//! Creates keys of the instance, and the documents that list them.

use crate::context::Context;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, fault, no_entropy, not_sealed};
use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::KeyId;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::port::{Entropy, InstanceRewrapper, NextInstanceKey, SealError};
use vault_core::sealed::{Blob, InstanceKeyPurpose, InstanceKeyRecord, InstanceRecord};
use vault_core::time::Timestamp;

/// Creates instance keys, and moves the keys of purposes to them. It cannot open credentials.
pub struct InstanceKeyRewrapper {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
}

impl InstanceKeyRewrapper {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy }
    }

    /// Returns the active key of `current` and the keyring document that it opens.
    fn document(&self, current: &InstanceRecord) -> Result<(Arc<InstanceKeys>, Document), SealError> {
        let active = self.keys.find(current.instance_key);
        let active = active.ok_or_else(|| fault("the active instance key is not loaded"))?;
        let opened = active.open_document(current.id, &current.keyring);
        let document = opened.map_err(|error| does_not_open(&Context::keyring(current.id), error))?;
        Ok((active, document))
    }

    fn rewrap(
        &self,
        context: &Context,
        from: &InstanceKeys,
        to: &InstanceKeys,
        wrapped: &Blob,
    ) -> Result<Blob, SealError> {
        let key = from.wrap.unwrap(context, wrapped).map_err(|error| does_not_open(context, error))?;
        to.wrap.wrap(&*self.entropy, context, &key).map_err(not_sealed)
    }
}

#[async_trait]
impl InstanceRewrapper for InstanceKeyRewrapper {
    fn terms(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError> {
        Ok(self.document(current)?.1.content.terms().to_vec())
    }

    async fn next_instance_key(
        &self,
        current: &InstanceRecord,
        keys: &[InstanceKeyRecord],
        now: Timestamp,
    ) -> Result<NextInstanceKey, SealError> {
        let instance = current.id;
        let (from, document) = self.document(current)?;
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let to = InstanceKeys::derive(id, &key);
        let wrapped = self.keys.wrap_under_root(&Context::instance_key(instance, id), &key, current.root_key)?;
        let mut made = Vec::with_capacity(InstanceKeyPurpose::ALL.len());
        for purpose in InstanceKeyPurpose::ALL {
            made.push(to.new_purpose_key(&*self.entropy, instance, purpose, now).map_err(not_sealed)?);
        }
        let terms: Vec<_> =
            made.iter().map(|key| (key.purpose.into(), key.id)).chain([(KeyPurpose::Instance, id)]).collect();
        let document = document.content.with_terms(document.hash, &terms, now).map_err(fault)?;
        let keyring = to.seal_document(&*self.entropy, instance, &document).map_err(not_sealed)?;
        let mut rewrapped = Vec::with_capacity(keys.len());
        for row in keys {
            let context = Context::purpose_key(instance, row.purpose, row.id);
            let wrapped = self.rewrap(&context, &from, &to, &row.wrapped)?;
            rewrapped.push(InstanceKeyRecord { wrapped, ..row.clone() });
        }
        rewrapped.append(&mut made);
        let instance = InstanceRecord { instance_key: id, wrapped, keyring, ..current.clone() };
        Ok(NextInstanceKey { instance, keys: rewrapped })
    }

    fn keyring_without(&self, current: &InstanceRecord, key: KeyId) -> Result<Blob, SealError> {
        let (active, document) = self.document(current)?;
        if !document.content.retiring().any(|term| term.id == key) {
            return Ok(current.keyring.clone());
        }
        let document = document.content.without_term(document.hash, key).map_err(fault)?;
        active.seal_document(&*self.entropy, current.id, &document).map_err(not_sealed)
    }
}
