//! The keys of organizations: loaded, unwrapped and derived once, kept, and counted.
//!
//! Random 96-bit nonces bound how often a key may seal (NIST SP 800-38D section 8.3). Uses are taken from the key's
//! row in blocks ahead of use, so that no crash and no number of replicas hands one out twice.

mod cache;
mod entry;
mod limits;

pub use limits::KeyUseLimits;

use crate::aead::AeadKey;
use crate::context::Context;
use crate::credential::CredentialPorts;
use crate::entropy::{random_key, random_key_id};
use crate::error::{no_entropy, not_sealed};
use cache::Cache;
pub(crate) use entry::{DerivedKeys, OrganizationEntry};
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Subject};
use vault_core::id::{AuditId, InstanceId, KeyId, OrganizationId};
use vault_core::port::{Entropy, Event, ReplaceOrganizationKey, SealError, StoreError, TakeKeyUses};
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys};
use vault_core::time::Timestamp;

/// How often a use is tried again when other replicas take blocks or replace the key at the same time.
const ATTEMPTS: usize = 32;

/// The organizations' keys of one deployment.
pub(crate) struct OrganizationKeyring {
    instance: InstanceId,
    wrap: AeadKey,
    ports: CredentialPorts,
    entropy: Arc<dyn Entropy>,
    limits: KeyUseLimits,
    cache: Cache,
}

impl OrganizationKeyring {
    pub(crate) fn new(
        instance: InstanceId,
        wrap: AeadKey,
        ports: CredentialPorts,
        limits: KeyUseLimits,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let limits = limits.within_bounds();
        Self { instance, wrap, ports, entropy, limits, cache: Cache::new(limits.organizations) }
    }

    /// The deployment.
    pub(crate) const fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Where nonces and keys come from.
    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    /// What is known of the organization's keys.
    pub(crate) async fn entry(&self, organization: OrganizationId) -> Result<Arc<OrganizationEntry>, SealError> {
        match self.cache.find(organization) {
            Some(entry) => Ok(entry),
            None => Ok(self.cache.insert(Arc::new(self.read(organization).await?))),
        }
    }

    /// The organization's key of this id; read once more if it is not known.
    pub(crate) async fn opening_key(
        &self,
        organization: OrganizationId,
        key: KeyId,
    ) -> Result<Option<Arc<DerivedKeys>>, SealError> {
        if let Some(found) = self.entry(organization).await?.find(key) {
            return Ok(Some(found));
        }
        let fresh = self.read(organization).await?;
        let found = fresh.find(key);
        // Where it is no newer, what is kept stays, with the uses it has left: a damaged row costs nothing.
        if found.is_some() {
            self.cache.replace(Arc::new(fresh));
        }
        Ok(found)
    }

    /// The organization's active key, and the right to seal once with it.
    pub(crate) async fn sealing_key(&self, organization: OrganizationId) -> Result<Arc<DerivedKeys>, SealError> {
        for _ in 0..ATTEMPTS {
            let entry = self.entry(organization).await?;
            if entry.take_use() {
                return Ok(Arc::clone(entry.active()));
            }
            let _turn = entry.refill.lock().await;
            if entry.take_use() {
                return Ok(Arc::clone(entry.active()));
            }
            // Whoever had the turn before may have replaced the key.
            if self.cache.holds(&entry) && !self.refill(&entry).await? {
                self.cache.forget_entry(&entry);
            }
        }
        Err(StoreError::Unavailable("the organization's key is contended".into()).into())
    }

    /// Takes the next block of uses, or replaces the key. `false`: what is known is out of date.
    async fn refill(&self, entry: &OrganizationEntry) -> Result<bool, SealError> {
        let (key, from) = (entry.active().id(), entry.uses());
        if from >= self.limits.replace_at {
            match self.replace(entry).await {
                Ok(()) => return Ok(false),
                // The key is good up to its end: better late than not at all.
                Err(error) if from < self.limits.stop_at => {
                    tracing::warn!(%key, %error, "an organization key could not be replaced and is used on");
                }
                Err(error) => return Err(error),
            }
        }
        let block = self.limits.block;
        if from.saturating_add(block) > self.limits.stop_at {
            return Err(SealError::Exhausted(key));
        }
        let command = TakeKeyUses { organization: entry.organization(), key, from, block };
        let taken = self.ports.repository.take_key_uses(command).await?;
        if taken {
            entry.add_uses(block);
        }
        Ok(taken)
    }

    async fn replace(&self, entry: &OrganizationEntry) -> Result<(), SealError> {
        let organization = entry.organization();
        let now = self.ports.clock.now();
        let audit = self.ports.audit.seal(AuditRecord {
            id: AuditId::from_uuid(self.ports.ids.ordered(now)),
            at: now,
            organization: Some(organization),
            actor: Actor::System,
            action: AuditAction::OrganizationKeyReplaced,
            subject: Subject::Organization(organization),
            count: 1,
            note: None,
        });
        let current = entry.active().id();
        let command = ReplaceOrganizationKey { current, next: self.new_key(organization, now)?, audit };
        if self.ports.repository.replace_organization_key(command).await? {
            self.ports.events.emit(Event::OrganizationKeyReplaced(current));
        }
        Ok(())
    }

    async fn read(&self, organization: OrganizationId) -> Result<OrganizationEntry, SealError> {
        let Some(rows) = self.ports.repository.organization_keys(organization).await? else {
            return Err(SealError::NoKeys);
        };
        OrganizationEntry::open(self.instance, organization, &self.wrap, &rows)
    }

    /// Forgets what is known of the organization's keys.
    pub(crate) fn forget(&self, organization: OrganizationId) {
        self.cache.forget(organization);
    }

    /// Keys for a new organization, wrapped.
    pub(crate) fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError> {
        let (fingerprint_key, fingerprint_wrapped) =
            self.make(|id| Context::fingerprint_key(self.instance, organization, id))?;
        let keys = vec![self.new_key(organization, now)?];
        Ok(OrganizationKeys { fingerprint_key, fingerprint_wrapped, keys })
    }

    /// A new active key for an organization, wrapped.
    pub(crate) fn new_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        let (id, wrapped) = self.make(|id| Context::organization_key(self.instance, organization, id))?;
        Ok(OrganizationKeyRecord { organization, id, state: KeyState::Active, wrapped, uses: 0, created_at: now })
    }

    fn make(&self, context: impl Fn(KeyId) -> Context) -> Result<(KeyId, Blob), SealError> {
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let wrapped = self.wrap.wrap(&*self.entropy, &context(id), &key).map_err(not_sealed)?;
        Ok((id, wrapped))
    }
}

#[cfg(test)]
mod tests;
