//! Keys of organizations: wrapped in the document of their organization, unwrapped and derived when they are first used, then cached.

use crate::aead::AeadKey;
use crate::blob;
use crate::context::Context;
use crate::derive::Label;
use crate::entropy::{random_key, random_key_id};
use crate::error::{does_not_open, no_entropy, not_sealed, unknown_key};
use crate::instance_keys::InstanceKeyring;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use quick_cache::sync::Cache;
use std::ops::Deref;
use std::sync::Arc;
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{Entropy, SealError};
use vault_core::sealed::{Blob, OrganizationKeys, WrappedKey};
use vault_core::time::Timestamp;

/// Maximum number of cached keys of each kind.
const KEPT: usize = 10_000;

/// Keys derived from one organization key.
pub(crate) struct DerivedKeys {
    /// Seals cards.
    pub(crate) card: AeadKey,
    /// Wraps data keys.
    pub(crate) wrap: AeadKey,
}

/// An unwrapped key with its wrap. It is used only for the same wrap.
pub(crate) struct Unwrapped<K> {
    wrapped: Blob,
    keys: K,
}

impl<K> Deref for Unwrapped<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.keys
    }
}

type Keys<K> = Cache<(OrganizationId, KeyId), Arc<Unwrapped<K>>>;

/// Unwraps the keys of organizations.
pub(crate) struct OrganizationKeyring {
    instance_keys: Arc<InstanceKeyring>,
    entropy: Arc<dyn Entropy>,
    sealing: Keys<DerivedKeys>,
    fingerprint: Keys<MacKey>,
}

impl OrganizationKeyring {
    pub(crate) fn new(instance_keys: Arc<InstanceKeyring>, entropy: Arc<dyn Entropy>) -> Self {
        Self { instance_keys, entropy, sealing: Cache::new(KEPT), fingerprint: Cache::new(KEPT) }
    }

    pub(crate) fn instance(&self) -> InstanceId {
        self.instance_keys.instance()
    }

    /// Returns the source of nonces and keys.
    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    /// Returns the key that sealed a blob at a place.
    pub(crate) fn key_of(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        place: &Context,
        id: KeyId,
    ) -> Result<Arc<Unwrapped<DerivedKeys>>, SealError> {
        let key = keys.find(id).ok_or_else(|| unknown_key(place, id))?;
        self.sealing(organization, key)
    }

    /// Returns the key that seals or sealed credentials.
    pub(crate) fn sealing(
        &self,
        organization: OrganizationId,
        key: &WrappedKey,
    ) -> Result<Arc<Unwrapped<DerivedKeys>>, SealError> {
        let context = Context::organization_key(self.instance(), organization, key.id);
        self.unwrap(&self.sealing, organization, &context, key, |unwrapped| DerivedKeys {
            card: Label::Card.sealing_key(unwrapped, key.id),
            wrap: Label::OrganizationWrap.sealing_key(unwrapped, key.id),
        })
    }

    /// Computes the digest of a fingerprint.
    pub(crate) fn fingerprint(
        &self,
        organization: OrganizationId,
        key: &WrappedKey,
        data: &[u8],
    ) -> Result<[u8; 32], SealError> {
        let context = Context::fingerprint_key(self.instance(), organization, key.id);
        let derive = |unwrapped: &SymmetricKey| Label::Fingerprint.mac_key(unwrapped);
        let unwrapped = self.unwrap(&self.fingerprint, organization, &context, key, derive)?;
        Ok(unwrapped.mac([data]))
    }

    fn unwrap<K>(
        &self,
        cache: &Keys<K>,
        organization: OrganizationId,
        context: &Context,
        key: &WrappedKey,
        derive: impl FnOnce(&SymmetricKey) -> K,
    ) -> Result<Arc<Unwrapped<K>>, SealError> {
        let place = (organization, key.id);
        if let Some(found) = cache.get(&place).filter(|found| found.wrapped == key.wrapped) {
            return Ok(found);
        }
        // The instance key may have been created since the loaded ones were read.
        if let Some(above) = blob::sealing_key(&key.wrapped).filter(|above| self.instance_keys.find(*above).is_none()) {
            return Err(unknown_key(context, above));
        }
        let above = self.instance_keys.sealed(context, &key.wrapped)?;
        let unwrapped = above.wrap.unwrap(context, &key.wrapped).map_err(|error| does_not_open(context, error))?;
        let found = Arc::new(Unwrapped { wrapped: key.wrapped.clone(), keys: derive(&unwrapped) });
        cache.insert(place, Arc::clone(&found));
        Ok(found)
    }

    /// Generates and wraps the keys of a new organization.
    pub(crate) fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError> {
        let of_fingerprint = |id| Context::fingerprint_key(self.instance(), organization, id);
        let fingerprint = self.generate(of_fingerprint, now)?;
        Ok(OrganizationKeys { fingerprint, active: self.new_key(organization, now)?, retiring: Vec::new() })
    }

    /// Generates and wraps a key of an organization.
    pub(crate) fn new_key(&self, organization: OrganizationId, now: Timestamp) -> Result<WrappedKey, SealError> {
        self.generate(|id| Context::organization_key(self.instance(), organization, id), now)
    }

    fn generate(&self, context: impl Fn(KeyId) -> Context, created_at: Timestamp) -> Result<WrappedKey, SealError> {
        let id = random_key_id(&*self.entropy).map_err(no_entropy)?;
        let key = random_key(&*self.entropy).map_err(no_entropy)?;
        let wrapped = self.instance_keys.active().wrap.wrap(&*self.entropy, &context(id), &key).map_err(not_sealed)?;
        Ok(WrappedKey { id, wrapped, created_at })
    }
}
