//! Sealed documents of entities, and sealed fields of typed tables.

use crate::blob;
use crate::context::Context;
use crate::error::{does_not_open, not_sealed};
use crate::instance_keys::InstanceKeyring;
use std::sync::Arc;
use vault_core::entity::EntityKey;
use vault_core::id::KeyId;
use vault_core::operation::Cache;
use vault_core::port::{EntitySealer, Entropy, InstanceRow, SealError};
use vault_core::sealed::Blob;
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

    fn reseal_row(&self, row: &InstanceRow) -> Result<InstanceRow, SealError> {
        let instance = self.keys.instance();
        let mut row = row.clone();
        match &mut row {
            InstanceRow::Organization { organization, keys } => {
                let context = Context::fingerprint_key(instance, *organization, keys);
                keys.fingerprint_wrapped = self.wrap_again(&context, &keys.fingerprint_wrapped)?;
            }
            InstanceRow::OrganizationKey { organization, key, wrapped } => {
                *wrapped = self.wrap_again(&Context::organization_key(instance, *organization, *key), wrapped)?;
            }
        }
        Ok(row)
    }
}

/// Rows of typed tables.
impl EntityDocuments {
    fn wrap_again(&self, context: &Context, wrapped: &Blob) -> Result<Blob, SealError> {
        let (from, active) = (self.keys.sealed(context, wrapped)?, self.keys.active());
        let key = from.wrap.unwrap(context, wrapped).map_err(|error| does_not_open(context, error))?;
        if from.id() == active.id() {
            return Ok(wrapped.clone());
        }
        active.wrap.wrap(&*self.entropy, context, &key).map_err(not_sealed)
    }
}
