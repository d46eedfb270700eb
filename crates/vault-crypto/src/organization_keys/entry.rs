//! One organization's keys, ready for use, and the uses that are left.

use crate::aead::AeadKey;
use crate::blob::OpenError;
use crate::context::Context;
use crate::derive::Label;
use crate::error::{damaged, does_not_open};
use crate::mac::MacKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tokio::sync::Mutex;
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::SealError;
use vault_core::sealed::{KeyState, OrganizationKeys};

/// What is derived from one organization key.
pub(crate) struct DerivedKeys {
    /// Seals what a list shows.
    pub(crate) information: AeadKey,
    /// Wraps data keys.
    pub(crate) wrap: AeadKey,
}

impl DerivedKeys {
    /// The organization key's id.
    pub(crate) const fn id(&self) -> KeyId {
        self.wrap.id()
    }
}

/// What is known of one organization's keys.
pub(crate) struct OrganizationEntry {
    organization: OrganizationId,
    fingerprint: MacKey,
    active: Arc<DerivedKeys>,
    retiring: Vec<Arc<DerivedKeys>>,
    /// Uses of the active key that are handed out in the store.
    uses: AtomicI64,
    /// Of those, what is left to us.
    left: AtomicI64,
    /// Held by whoever takes the next block.
    pub(super) refill: Mutex<()>,
    /// When it was last used, in the cache's count.
    pub(super) last_used: AtomicU64,
}

impl OrganizationEntry {
    /// Opens an organization's keys.
    pub(super) fn open(
        instance: InstanceId,
        organization: OrganizationId,
        wrap: &AeadKey,
        rows: &OrganizationKeys,
    ) -> Result<Self, SealError> {
        let context = Context::fingerprint_key(instance, organization, rows.fingerprint_key);
        let fingerprint =
            wrap.unwrap(&context, &rows.fingerprint_wrapped).map_err(|error| does_not_open(&context, error))?;
        let mut active = None;
        let mut retiring = Vec::new();
        for row in &rows.keys {
            let context = Context::organization_key(instance, organization, row.id);
            if row.organization != organization {
                return Err(does_not_open(&context, OpenError::NotAuthentic));
            }
            let key = wrap.unwrap(&context, &row.wrapped).map_err(|error| does_not_open(&context, error))?;
            let derived = Arc::new(DerivedKeys {
                information: Label::Information.sealing_key(&key, row.id),
                wrap: Label::OrganizationWrap.sealing_key(&key, row.id),
            });
            match row.state {
                KeyState::Retiring => retiring.push(derived),
                KeyState::Active if active.is_none() => active = Some((derived, row.uses)),
                KeyState::Active => return Err(damaged(&context, "two keys of the organization are active")),
            }
        }
        let Some((active, uses)) = active else {
            return Err(damaged(&context, "no key of the organization is active"));
        };
        Ok(Self {
            organization,
            fingerprint: Label::Fingerprint.mac_key(&fingerprint),
            active,
            retiring,
            uses: AtomicI64::new(uses),
            left: AtomicI64::new(0),
            refill: Mutex::new(()),
            last_used: AtomicU64::new(0),
        })
    }

    /// The organization.
    pub(crate) const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// The key for fingerprints.
    pub(crate) const fn fingerprint(&self) -> &MacKey {
        &self.fingerprint
    }

    /// The key that seals.
    pub(super) const fn active(&self) -> &Arc<DerivedKeys> {
        &self.active
    }

    /// The key of this id.
    pub(crate) fn find(&self, key: KeyId) -> Option<Arc<DerivedKeys>> {
        std::iter::once(&self.active).chain(&self.retiring).find(|known| known.id() == key).cloned()
    }

    /// Takes one use of what is left. Never more succeed than were added.
    pub(super) fn take_use(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) > 0
    }

    /// Uses handed out in the store, as far as we know.
    pub(super) fn uses(&self) -> i64 {
        self.uses.load(Ordering::Acquire)
    }

    /// Adds a block that was taken in the store. Only whoever holds `refill` does so, and nothing is left then.
    pub(super) fn add_uses(&self, block: i64) {
        self.uses.fetch_add(block, Ordering::AcqRel);
        self.left.store(block, Ordering::Release);
    }
}
