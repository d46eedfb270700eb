//! Sealed documents of entities.

use crate::blob;
use crate::context::Context;
use crate::error::not_sealed;
use crate::instance_keys::InstanceKeyring;
use std::sync::Arc;
use vault_core::entity::EntityKey;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::operation::Cache;
use vault_core::port::{EntitySealer, Entropy, SealError};
use vault_core::sealed::{Blob, OrganizationKeys};
use zeroize::Zeroizing;

/// Seals and opens the documents of entities with keys that are derived from instance keys.
pub struct EntityDocuments {
    keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
    cache: Cache,
}

impl EntityDocuments {
    pub(crate) fn new(keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { keys, entropy, cache: Cache::default() }
    }
}

impl EntitySealer for EntityDocuments {
    fn active_key(&self) -> KeyId {
        self.keys.active().id()
    }

    fn cache(&self) -> Option<&Cache> {
        Some(&self.cache)
    }

    fn has_key_of(&self, sealed: &Blob) -> bool {
        blob::sealing_key(sealed).is_none_or(|id| self.keys.find(id).is_some())
    }

    fn seal(&self, key: &EntityKey, version: i64, document: &[u8]) -> Result<Blob, SealError> {
        let context = Context::entity(self.keys.instance(), key, version);
        self.keys.active().entity.seal(&*self.entropy, &context, document).map_err(not_sealed)
    }

    fn open(&self, key: &EntityKey, version: i64, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        let keys = blob::sealing_key(sealed).and_then(|id| self.keys.find(id));
        let keys = keys.ok_or("its document names no key")?;
        let context = Context::entity(self.keys.instance(), key, version);
        keys.entity.open(&context, sealed).map_err(|error| error.reason())
    }

    fn rewrap_keys(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
    ) -> Result<Option<OrganizationKeys>, &'static str> {
        let (instance, fingerprint, active) = (self.keys.instance(), keys.fingerprint.id, self.keys.active());
        let (mut keys, mut changed) = (keys.clone(), false);
        for key in keys.all_mut() {
            let context = match key.id == fingerprint {
                true => Context::fingerprint_key(instance, organization, key.id),
                false => Context::organization_key(instance, organization, key.id),
            };
            let above = blob::sealing_key(&key.wrapped).and_then(|id| self.keys.find(id));
            let above = above.ok_or("a wrapped key names no key")?;
            let unwrapped = above.wrap.unwrap(&context, &key.wrapped).map_err(|error| error.reason())?;
            if above.id() != active.id() {
                let wrapped = active.wrap.wrap(&*self.entropy, &context, &unwrapped);
                key.wrapped = wrapped.map_err(|_| "the operating system returns no randomness")?;
                changed = true;
            }
        }
        Ok(changed.then_some(keys))
    }
}
