//! Keys of organizations: loaded, unwrapped and derived once, then cached in memory.

mod entry;

use crate::blob;
use crate::context::Context;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, no_entropy, not_sealed};
use crate::instance_keys::InstanceKeyring;
pub(crate) use entry::{DerivedKeys, OrganizationEntry};
use quick_cache::sync::Cache;
use std::sync::Arc;
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{Entropy, KeyRepository, SealError};
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys};
use vault_core::time::Timestamp;

/// Maximum number of organizations whose keys are cached.
const KEPT: usize = 10_000;

/// Organization keys of one instance.
pub(crate) struct OrganizationKeyring {
    instance_keys: Arc<InstanceKeyring>,
    repository: Arc<dyn KeyRepository>,
    entropy: Arc<dyn Entropy>,
    cache: Cache<OrganizationId, Arc<OrganizationEntry>>,
}

impl OrganizationKeyring {
    pub(crate) fn new(
        instance_keys: Arc<InstanceKeyring>,
        repository: Arc<dyn KeyRepository>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self { instance_keys, repository, entropy, cache: Cache::new(KEPT) }
    }

    /// Returns the instance.
    pub(crate) fn instance(&self) -> InstanceId {
        self.instance_keys.instance()
    }

    /// Returns the source of nonces and keys.
    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    /// Returns the organization's keys, current or earlier.
    pub(crate) async fn entry(&self, organization: OrganizationId) -> Result<Arc<OrganizationEntry>, SealError> {
        match self.cache.get(&organization) {
            Some(entry) => Ok(entry),
            None => self.read(organization).await,
        }
    }

    /// Returns the organization's key with this id. An unknown id causes a new read of the rows.
    pub(crate) async fn key(
        &self,
        organization: OrganizationId,
        key: KeyId,
    ) -> Result<Option<Arc<DerivedKeys>>, SealError> {
        if let Some(entry) = self.cache.get(&organization)
            && let Some(found) = entry.find(key)
        {
            return Ok(Some(found));
        }
        Ok(self.read(organization).await?.find(key))
    }

    async fn read(&self, organization: OrganizationId) -> Result<Arc<OrganizationEntry>, SealError> {
        let Some(rows) = self.repository.organization_keys(organization).await? else {
            return Err(SealError::NoKeys);
        };
        self.verify(organization, &rows).await
    }

    /// Unwraps keys that were read from the store, and caches them. Fails if they are not those that were stored last.
    pub(crate) async fn verify(
        &self,
        organization: OrganizationId,
        rows: &OrganizationKeys,
    ) -> Result<Arc<OrganizationEntry>, SealError> {
        let wrapped = rows.keys.iter().map(|row| &row.wrapped).chain([&rows.fingerprint_wrapped]);
        let above: Vec<_> = wrapped.filter_map(blob::sealing_key).collect();
        self.instance_keys.load_keys(&above).await?;
        let entry = Arc::new(OrganizationEntry::open(&self.instance_keys, organization, rows)?);
        self.cache.insert(organization, Arc::clone(&entry));
        Ok(entry)
    }

    /// Reloads the instance keys.
    pub(crate) async fn reload_keys(&self) -> Result<(), SealError> {
        self.instance_keys.reload_keys().await
    }

    /// Generates and wraps the keys of a new organization.
    pub(crate) fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError> {
        let keys = vec![self.new_key(organization, now)?];
        let unwrapped = |fingerprint_key| OrganizationKeys {
            fingerprint_key,
            fingerprint_wrapped: Blob::from_bytes(Vec::new()),
            keys: keys.clone(),
        };
        let (id, fingerprint_wrapped) =
            self.generate(|id| Context::fingerprint_key(self.instance(), organization, &unwrapped(id)))?;
        Ok(OrganizationKeys { fingerprint_wrapped, ..unwrapped(id) })
    }

    /// Wraps the fingerprint key again, bound to the keys `after`.
    pub(crate) async fn bind(
        &self,
        organization: OrganizationId,
        before: &OrganizationKeys,
        after: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError> {
        self.instance_keys
            .load_keys(&blob::sealing_key(&before.fingerprint_wrapped).into_iter().collect::<Vec<_>>())
            .await?;
        let context = Context::fingerprint_key(self.instance(), organization, before);
        let above = self.instance_keys.sealed(&context, &before.fingerprint_wrapped)?;
        let key = above.wrap.unwrap(&context, &before.fingerprint_wrapped);
        let key = key.map_err(|error| does_not_open(&context, error))?;
        let context = Context::fingerprint_key(self.instance(), organization, after);
        let wrapped = self.instance_keys.active().wrap.wrap(&*self.entropy, &context, &key).map_err(not_sealed)?;
        Ok(ReboundKeys { before: before.fingerprint_wrapped.clone(), after: wrapped })
    }

    /// Generates and wraps a new active key of an organization.
    pub(crate) fn new_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        let (id, wrapped) = self.generate(|id| Context::organization_key(self.instance(), organization, id))?;
        Ok(OrganizationKeyRecord { organization, id, state: KeyState::Active, wrapped, uses: 0, created_at: now })
    }

    fn generate(&self, context: impl Fn(KeyId) -> Context) -> Result<(KeyId, Blob), SealError> {
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let wrapped = self.instance_keys.active().wrap.wrap(&*self.entropy, &context(id), &key).map_err(not_sealed)?;
        Ok((id, wrapped))
    }
}

#[cfg(test)]
mod tests;
