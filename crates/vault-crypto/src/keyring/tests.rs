use super::*;
use crate::OsEntropy;
use crate::testing::{NOW, NoEntropyLeft, entropy, id, new_instance, root};
use vault_core::digest::DigestPurpose;
use vault_core::port::KeyedDigester as _;
use vault_core::sealed::Blob;

fn open(root: &LoadedRootKey, made: &NewInstance) -> Result<Keyring, KeyringError> {
    Keyring::open(root, entropy(), &made.instance)
}

#[test]
fn created_keyring_opens() {
    let (_directory, root) = root();
    let made = new_instance(&root);
    let opened = open(&root, &made).unwrap();
    assert_eq!(opened.instance(), made.instance.id);
    let digest = |keyring: &Keyring, purpose| keyring.digester(Arc::new(NOW)).digest(purpose, &[b"a@example.com"]);
    for purpose in [DigestPurpose::Network, DigestPurpose::Cursor] {
        assert_eq!(digest(&opened, purpose), digest(&made.keyring, purpose));
    }
    assert_eq!(format!("{opened:?}"), format!("Keyring({})", made.instance.id));
}

/// A65
#[test]
fn wrong_root_key_is_reported_by_id() {
    let (_directory, root) = root();
    let made = new_instance(&root);
    let directory = tempfile::tempdir().unwrap();
    let wrong = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
    let error = open(&wrong, &made).unwrap_err();
    let expected = format!(
        "wrong root key: this vault needs root key {}, but got root key {}. Use root key {}",
        root.id(),
        wrong.id(),
        root.id()
    );
    assert_eq!(error.to_string(), expected);
}

/// A62
#[test]
fn every_flipped_byte_is_refused() {
    let (_directory, root) = root();
    let made = new_instance(&root);
    let flip = |blob: &Blob, place: usize| {
        let mut bytes = blob.as_bytes().to_vec();
        bytes[place] ^= 0x40;
        Blob::from_bytes(bytes)
    };
    for place in 0..made.instance.wrapped.as_bytes().len() {
        let record = InstanceRecord { wrapped: flip(&made.instance.wrapped, place), ..made.instance.clone() };
        let error = Keyring::open(&root, entropy(), &record).unwrap_err();
        assert!(matches!(error, KeyringError::InstanceKey { .. }), "{place}");
    }
    for place in 0..made.instance.keyring.as_bytes().len() {
        let record = InstanceRecord { keyring: flip(&made.instance.keyring, place), ..made.instance.clone() };
        let error = Keyring::open(&root, entropy(), &record).unwrap_err();
        assert!(matches!(error, KeyringError::Document { .. }), "{place}");
    }
    let other = InstanceRecord { id: InstanceId::from_uuid(id(2)), ..made.instance.clone() };
    assert!(matches!(Keyring::open(&root, entropy(), &other).unwrap_err(), KeyringError::InstanceKey { .. }));
}

#[test]
fn creation_fails_without_entropy() {
    let (_directory, root) = root();
    let made = Keyring::create(&root, Arc::new(NoEntropyLeft), InstanceId::from_uuid(id(1)), NOW);
    assert!(matches!(made.err(), Some(KeyringError::NoEntropy(_))));
}
