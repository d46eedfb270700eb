//! Replacement of the root key that wraps the instance key.

use super::Keys;
use crate::error::Error;
use crate::id::KeyId;
use crate::operation::{InstanceChange, ReplaceInstance, ReplacedInstance};
use crate::sealed::{Blob, InstanceRecord};

impl Keys {
    /// Replaces the root key of the instance as read in `current`: stores `wrapped`, the instance key wrapped by
    /// `root_key`, which the caller has verified. Returns `false` and changes nothing if a key was replaced since.
    ///
    /// # Errors
    /// The store failed.
    pub async fn replace_root(&self, current: InstanceRecord, root_key: KeyId, wrapped: Blob) -> Result<bool, Error> {
        let (next, change) = (InstanceRecord { root_key, wrapped, ..current.clone() }, InstanceChange::RootKey);
        Ok(self.run(ReplaceInstance { current, next, change }).await? == ReplacedInstance::Replaced)
    }
}
