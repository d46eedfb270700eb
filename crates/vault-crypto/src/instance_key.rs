//! Rewraps the instance key under another root key.

use crate::context::Context;
use crate::keyring::Keyring;
use crate::keyring_error::KeyringError;
use crate::root_key::LoadedRootKey;
use std::sync::Arc;
use vault_core::port::Entropy;
use vault_core::sealed::{InstanceKeyRecord, InstanceRecord};
use vault_core::time::Timestamp;

/// Instance whose instance key was rewrapped under another root key.
pub struct RewrappedInstance {
    /// Instance record, with its instance key wrapped by the new root key.
    pub record: InstanceRecord,
    /// Time at which the instance key replaced an earlier one, if it did.
    pub replaced_at: Option<Timestamp>,
}

/// Rewraps the instance key of `record` from `current` to `next`.
///
/// The result is verified before it is returned: it is opened with `next`, together with `keys`. Nothing below the
/// instance key changes.
///
/// # Errors
/// - `record` or `keys` do not open.
/// - The operating system returns no randomness.
pub fn rewrap_instance_key(
    record: &InstanceRecord,
    keys: &[InstanceKeyRecord],
    current: &LoadedRootKey,
    next: &LoadedRootKey,
    entropy: Arc<dyn Entropy>,
) -> Result<RewrappedInstance, KeyringError> {
    if record.root_key != current.id() {
        return Err(KeyringError::WrongRoot { expected: record.root_key, given: current.id() });
    }
    let (context, key) = (Context::instance_key(record.id, record.instance_key), record.instance_key);
    let unwrapped =
        current.unwrap(&context, &record.wrapped).map_err(|cause| KeyringError::InstanceKey { key, cause })?;
    let wrapped = next.wrap(&context, &unwrapped)?;
    let record = InstanceRecord { root_key: next.id(), wrapped, ..record.clone() };
    let replaced_at = Keyring::open(next, entropy, &record, &[], keys)?.instance_key_replaced_at();
    Ok(RewrappedInstance { record, replaced_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsEntropy;
    use crate::testing::{entropy, id, root};
    use vault_core::id::InstanceId;

    #[test]
    fn rewrapped_keys_open_only_under_new_root_key() {
        let (_directory, first) = root();
        let directory = tempfile::tempdir().unwrap();
        let second = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
        let instance = InstanceId::from_uuid(id(1));
        let made = Keyring::create(&first, entropy(), instance, Timestamp::from_millis(0)).unwrap();
        let rewrapped = rewrap_instance_key(&made.instance, &made.keys, &first, &second, Arc::new(OsEntropy));
        let RewrappedInstance { record: moved, replaced_at } = rewrapped.unwrap();
        assert_eq!(replaced_at, None, "it is the first");
        assert_eq!((moved.root_key, moved.instance_key), (second.id(), made.instance.instance_key));
        assert_eq!((&moved.keyring, moved.id), (&made.instance.keyring, made.instance.id));
        Keyring::open(&second, entropy(), &moved, &[], &made.keys).unwrap();
        let refused = Keyring::open(&first, entropy(), &moved, &[], &made.keys).unwrap_err();
        assert!(matches!(refused, KeyringError::WrongRoot { .. }));
        // Checks the id and the content: a row that only names another root key opens with neither key.
        let renamed = InstanceRecord { root_key: first.id(), ..moved.clone() };
        assert!(rewrap_instance_key(&renamed, &made.keys, &first, &second, entropy()).is_err());
        let refused = rewrap_instance_key(&moved, &made.keys, &first, &second, entropy());
        assert!(matches!(refused, Err(KeyringError::WrongRoot { .. })));
        let no_keys = rewrap_instance_key(&made.instance, &[], &first, &second, Arc::new(OsEntropy));
        assert!(matches!(no_keys, Err(KeyringError::NoKey(_))), "what the new wrap opens is proven first");
    }
}
