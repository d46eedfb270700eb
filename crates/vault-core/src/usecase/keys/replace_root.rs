//! Replacement of the root key that wraps the instance key.

use super::Keys;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::Error;
use crate::id::KeyId;
use crate::port::{Event, ReplaceRootKey};
use crate::sealed::{Blob, InstanceRecord};

impl Keys {
    /// Replaces the root key of the instance as read in `current`: stores `wrapped`, the instance key wrapped by
    /// `root_key`, which the caller has verified. Returns `false` and changes nothing if the root key or the instance
    /// key was replaced since.
    ///
    /// # Errors
    /// The store failed.
    pub async fn replace_root(&self, current: InstanceRecord, root_key: KeyId, wrapped: Blob) -> Result<bool, Error> {
        let (action, now) = (AuditAction::RootKeyReplaced, self.environment.now());
        let audit = self.environment.record(now, None, Actor::Operator, action, Subject::Instance);
        let recorded = Event::recorded(&audit);
        let replaced = self.store.replace_root_key(ReplaceRootKey { current, root_key, wrapped, audit }).await?;
        if replaced {
            self.environment.emit(recorded);
        }
        Ok(replaced)
    }
}
