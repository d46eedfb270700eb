//! Rewraps the instance key under another root key.

use crate::context::Context;
use crate::instance_keys::unwrap;
use crate::keyring::Keyring;
use crate::keyring_error::KeyringError;
use crate::root_key::LoadedRootKey;
use std::sync::Arc;
use vault_core::port::Entropy;
use vault_core::sealed::InstanceRecord;
use vault_core::time::Timestamp;

/// Instance whose instance key was rewrapped under another root key.
pub struct RewrappedInstance {
    /// Instance record, with its instance key wrapped by the new root key.
    pub record: InstanceRecord,
    /// Time at which the instance key replaced an earlier one, if it did.
    pub replaced_at: Option<Timestamp>,
    /// True if an earlier one is not destroyed yet.
    pub retires: bool,
}

/// Rewraps the instance key of `record` from `current` to `next`.
///
/// The result is verified before it is returned: it is opened with `next`. Nothing below the instance key changes.
///
/// # Errors
/// - `record` does not open.
/// - The operating system returns no randomness.
pub fn rewrap_instance_key(
    record: &InstanceRecord,
    current: &LoadedRootKey,
    next: &LoadedRootKey,
    entropy: Arc<dyn Entropy>,
) -> Result<RewrappedInstance, KeyringError> {
    let key = unwrap(current, record)?;
    let wrapped = next.wrap(&Context::instance_key(record.id, record.instance_key), &key)?;
    let record = InstanceRecord { root_key: next.id(), wrapped, ..record.clone() };
    let keyring = Keyring::open(next, entropy, &record)?;
    let (replaced_at, retires) = (keyring.instance_key_replaced_at(), keyring.instance_key_retires());
    Ok(RewrappedInstance { record, replaced_at, retires })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsEntropy;
    use crate::testing::{entropy, id, root};
    use vault_core::id::InstanceId;
    use vault_core::sealed::Blob;

    #[test]
    fn rewrapped_keys_open_only_under_new_root_key() {
        let (_directory, first) = root();
        let directory = tempfile::tempdir().unwrap();
        let second = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
        let instance = InstanceId::from_uuid(id(1));
        let made = Keyring::create(&first, entropy(), instance, Timestamp::from_millis(0)).unwrap();
        let rewrapped = rewrap_instance_key(&made.instance, &first, &second, Arc::new(OsEntropy));
        let RewrappedInstance { record: moved, replaced_at, retires } = rewrapped.unwrap();
        assert_eq!((replaced_at, retires), (None, false), "it is the first");
        assert_eq!((moved.root_key, moved.instance_key), (second.id(), made.instance.instance_key));
        assert_eq!((&moved.keyring, moved.id), (&made.instance.keyring, made.instance.id));
        Keyring::open(&second, entropy(), &moved).unwrap();
        let refused = Keyring::open(&first, entropy(), &moved).unwrap_err();
        assert!(matches!(refused, KeyringError::WrongRoot { .. }));
        // Checks the id and the content: a row that only names another root key opens with neither key.
        let renamed = InstanceRecord { root_key: first.id(), ..moved.clone() };
        assert!(rewrap_instance_key(&renamed, &first, &second, entropy()).is_err());
        let refused = rewrap_instance_key(&moved, &first, &second, entropy());
        assert!(matches!(refused, Err(KeyringError::WrongRoot { .. })));
        let keyring = Blob::from_bytes(Vec::new());
        let none =
            rewrap_instance_key(&InstanceRecord { keyring, ..made.instance }, &first, &second, Arc::new(OsEntropy));
        assert!(matches!(none, Err(KeyringError::Document { .. })), "what the new wrap opens is proven first");
    }
}
