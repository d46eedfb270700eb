//! Unwrapped keys of one organization.

use crate::aead::AeadKey;
use crate::blob::OpenError;
use crate::context::Context;
use crate::derive::Label;
use crate::error::does_not_open;
use crate::instance_keys::InstanceKeyring;
use crate::key::SymmetricKey;
use crate::mac::MacKey;
use std::sync::Arc;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::SealError;
use vault_core::sealed::{Blob, OrganizationKeys};

/// Keys derived from one organization key.
pub(crate) struct DerivedKeys {
    /// Seals cards.
    pub(crate) card: AeadKey,
    /// Wraps data keys.
    pub(crate) wrap: AeadKey,
}

impl DerivedKeys {
    /// Returns the organization key's id.
    pub(crate) const fn id(&self) -> KeyId {
        self.wrap.id()
    }
}

/// Keys of one organization.
pub(crate) struct OrganizationEntry {
    fingerprint: MacKey,
    keys: Vec<Arc<DerivedKeys>>,
}

impl OrganizationEntry {
    /// Unwraps an organization's keys. Fails if they, their states or the name differ from those that were stored last.
    pub(super) fn open(
        above: &InstanceKeyring,
        organization: OrganizationId,
        rows: &OrganizationKeys,
    ) -> Result<Self, SealError> {
        let instance = above.instance();
        let context = Context::fingerprint_key(instance, organization, rows);
        let fingerprint = unwrap(above, &context, &rows.fingerprint_wrapped)?;
        let mut keys = Vec::with_capacity(rows.keys.len());
        for row in &rows.keys {
            let context = Context::organization_key(instance, organization, row.id);
            if row.organization != organization {
                return Err(does_not_open(&context, OpenError::NotAuthentic));
            }
            let key = unwrap(above, &context, &row.wrapped)?;
            keys.push(Arc::new(DerivedKeys {
                card: Label::Card.sealing_key(&key, row.id),
                wrap: Label::OrganizationWrap.sealing_key(&key, row.id),
            }));
        }
        let fingerprint = Label::Fingerprint.mac_key(&fingerprint);
        Ok(Self { fingerprint, keys })
    }

    /// Returns the key for fingerprints.
    pub(crate) const fn fingerprint(&self) -> &MacKey {
        &self.fingerprint
    }

    /// Returns the key with this id.
    pub(crate) fn find(&self, key: KeyId) -> Option<Arc<DerivedKeys>> {
        self.keys.iter().find(|known| known.id() == key).cloned()
    }
}

/// Unwraps a key with the instance key that it names.
fn unwrap(above: &InstanceKeyring, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, SealError> {
    let keys = above.sealed(context, wrapped)?;
    keys.wrap.unwrap(context, wrapped).map_err(|error| does_not_open(context, error))
}
