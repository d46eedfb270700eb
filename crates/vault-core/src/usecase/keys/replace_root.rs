//! Put another root key in the place of the one that wraps the instance key.

use super::Keys;
use crate::audit::{Actor, AuditAction, Subject};
use crate::error::Error;
use crate::id::KeyId;
use crate::port::{Event, ReplaceRootKey};
use crate::sealed::{Blob, InstanceRecord};

impl Keys {
    /// Has the instance key of the deployment, which was read as `current`, wrapped under `root_key` from now on: by
    /// `wrapped`, which the caller has seen to open. `false`: somebody has replaced the root key or the instance key since;
    /// nothing was changed.
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
