use super::*;
use crate::testing::{NOW, NoEntropyLeft, entropy, id, new_instance, root};
use crate::wrapper::WrapError;
use crate::{OsEntropy, RootKeyFile, SymmetricKey};
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::digest::DigestPurpose;
use vault_core::id::KeyId;
use vault_core::port::KeyedDigester as _;
use vault_core::sealed::Blob;

async fn open(root: &dyn KeyWrapper, made: &NewInstance) -> Result<Keyring, KeyringError> {
    Keyring::open(root, entropy(), &made.instance, &[], &made.keys).await
}

#[tokio::test]
async fn created_keyring_opens() {
    let (_directory, root) = root();
    let made = new_instance(&root).await;
    let opened = open(&root, &made).await.unwrap();
    assert_eq!(opened.instance(), made.instance.id);
    let digest = |keyring: &Keyring, purpose| keyring.digester(Arc::new(NOW)).digest(purpose, &[b"a@example.com"]);
    for purpose in [DigestPurpose::Address, DigestPurpose::AccountRights] {
        assert_eq!(digest(&opened, purpose), digest(&made.keyring, purpose));
    }
    assert_eq!(format!("{opened:?}"), format!("Keyring({})", made.instance.id));
}

/// A65
#[tokio::test]
async fn wrong_root_key_is_reported_by_id() {
    let (_directory, root) = root();
    let made = new_instance(&root).await;
    let directory = tempfile::tempdir().unwrap();
    let wrong = RootKeyFile::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
    let error = open(&wrong, &made).await.unwrap_err();
    let expected = format!(
        "wrong root key: this vault needs root key {}, but got root key {}. Use root key {}",
        root.id(),
        wrong.id(),
        root.id()
    );
    assert_eq!(error.to_string(), expected);
}

/// A62
#[tokio::test]
async fn every_flipped_byte_is_refused() {
    let (_directory, root) = root();
    let made = new_instance(&root).await;
    let flip = |blob: &Blob, place: usize| {
        let mut bytes = blob.as_bytes().to_vec();
        bytes[place] ^= 0x40;
        Blob::from_bytes(bytes)
    };
    for place in 0..made.instance.wrapped.as_bytes().len() {
        let record = InstanceRecord { wrapped: flip(&made.instance.wrapped, place), ..made.instance.clone() };
        let error = Keyring::open(&root, entropy(), &record, &[], &made.keys).await.unwrap_err();
        assert!(matches!(error, KeyringError::InstanceKey { .. }), "{place}");
    }
    for place in 0..made.instance.keyring.as_bytes().len() {
        let record = InstanceRecord { keyring: flip(&made.instance.keyring, place), ..made.instance.clone() };
        let error = Keyring::open(&root, entropy(), &record, &[], &made.keys).await.unwrap_err();
        assert!(matches!(error, KeyringError::Document { .. }), "{place}");
    }
    for row in 0..made.keys.len() {
        for place in 0..made.keys[row].wrapped.as_bytes().len() {
            let mut keys = made.keys.clone();
            keys[row].wrapped = flip(&keys[row].wrapped, place);
            let error = Keyring::open(&root, entropy(), &made.instance, &[], &keys).await.unwrap_err();
            assert!(matches!(error, KeyringError::PurposeKey { .. }), "{row}, {place}");
        }
    }
}

#[tokio::test]
async fn swapped_keys_are_refused() {
    let (_directory, root) = root();
    let made = new_instance(&root).await;
    let refused = |keys: Vec<InstanceKeyRecord>| {
        let (root, instance) = (&root, &made.instance);
        async move { Keyring::open(root, entropy(), instance, &[], &keys).await.unwrap_err() }
    };
    let mut swapped = made.keys.clone();
    (swapped[0].purpose, swapped[1].purpose) = (swapped[1].purpose, swapped[0].purpose);
    let not_named = |error| matches!(error, KeyringError::NoKey(_));
    assert!(not_named(refused(swapped).await), "the keyring names them for other purposes");
    let mut renamed = made.keys.clone();
    renamed[0].id = renamed[1].id;
    assert!(not_named(refused(renamed).await));
    let mut exchanged = made.keys.clone();
    (exchanged[0].wrapped, exchanged[1].wrapped) = (exchanged[1].wrapped.clone(), exchanged[0].wrapped.clone());
    assert!(matches!(refused(exchanged).await, KeyringError::PurposeKey { .. }));
    for missing in 0..made.keys.len() {
        let mut keys = made.keys.clone();
        let purpose = keys.remove(missing).purpose;
        assert!(matches!(refused(keys).await, KeyringError::NoKey(found) if found == purpose));
    }
    let other = InstanceRecord { id: InstanceId::from_uuid(id(2)), ..made.instance.clone() };
    let error = Keyring::open(&root, entropy(), &other, &[], &made.keys).await.unwrap_err();
    assert!(matches!(error, KeyringError::InstanceKey { .. }));
}

/// Counts the calls of the root key during a start.
struct Counting<'a>(&'a RootKeyFile, AtomicUsize);

#[async_trait::async_trait]
impl KeyWrapper for Counting<'_> {
    fn id(&self) -> KeyId {
        self.0.id()
    }

    async fn wrap(&self, context: &Context, key: &SymmetricKey) -> Result<Blob, WrapError> {
        self.0.wrap(context, key).await
    }

    async fn unwrap(&self, context: &Context, wrapped: &Blob) -> Result<SymmetricKey, WrapError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unwrap(context, wrapped).await
    }
}

#[tokio::test]
async fn start_uses_root_key_once() {
    let (_directory, root) = root();
    let made = new_instance(&root).await;
    let counting = Counting(&root, AtomicUsize::new(0));
    open(&counting, &made).await.unwrap();
    assert_eq!(counting.1.into_inner(), 1);
}

#[tokio::test]
async fn creation_fails_without_entropy() {
    let (_directory, root) = root();
    let made = Keyring::create(&root, Arc::new(NoEntropyLeft), InstanceId::from_uuid(id(1)), NOW).await;
    assert!(matches!(made.err(), Some(KeyringError::NoEntropy(_))));
}
