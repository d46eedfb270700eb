//! Fakes for this crate's tests.

use crate::instance_keys::{Document, InstanceKeyring, InstanceKeys};
use crate::key::SymmetricKey;
use crate::keyring::{Keyring, NewInstance};
use crate::purpose_keys::Given;
use crate::root_key::LoadedRootKey;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;
use vault_core::activation::VendRule;
use vault_core::credential::{
    Card, CardVersion, CredentialType, Description, Information, Labels, Metadata, Superseded,
};
use vault_core::id::{InstanceId, KeyId, VersionId};
use vault_core::json::{Member, Node};
use vault_core::keyring::KeyringDocument;
use vault_core::namespace::Namespace;
use vault_core::port::{Entropy, NoEntropy};
use vault_core::time::Timestamp;

/// Deterministic entropy: the same bytes in every run, never repeated within a run.
#[derive(Default)]
pub(crate) struct SameEntropy(AtomicU64);

impl Entropy for SameEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for chunk in bytes.chunks_mut(32) {
            let block = Sha256::digest(self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
        Ok(())
    }
}

/// Entropy source that always fails.
pub(crate) struct NoEntropyLeft;

impl Entropy for NoEntropyLeft {
    fn fill(&self, _: &mut [u8]) -> Result<(), NoEntropy> {
        Err(NoEntropy)
    }
}

pub(crate) fn entropy() -> Arc<dyn Entropy> {
    Arc::new(SameEntropy::default())
}

pub(crate) fn key(first: u8) -> SymmetricKey {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(first..).for_each(|(byte, value)| *byte = value);
    SymmetricKey::take(&mut bytes)
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// A card with a value in each of its parts.
pub(crate) fn card() -> Card {
    let version = |number: i64, superseded| CardVersion {
        number,
        id: VersionId::from_uuid(id(number.unsigned_abs().into())),
        created_at: NOW,
        superseded,
        expires_at: Some(NOW.plus_seconds(number)),
        information: Information::from_json(r#"{"secrets":["url"],"fingerprint":"000000000000"}"#.to_owned()).unwrap(),
    };
    let label = Member { name: "stage".to_owned(), value: Node::String("nightly".into()) };
    let labels = Labels::parse(Node::Object(vec![label]), "").unwrap();
    let mut metadata = Metadata::default();
    metadata.labels = labels;
    metadata.description = Some(Description::parse("Files of a supplier.", "").unwrap());
    metadata.set_expires_at(3, Some(NOW.plus_seconds(9)));
    Card {
        kind: CredentialType::DirectLink,
        namespace: Namespace::parse("imports", "").unwrap(),
        vend: VendRule::Any,
        highest: 5,
        current: version(3, None),
        others: vec![version(2, Some(Superseded { at: NOW, destroy_at: NOW.plus_seconds(7) })), version(5, None)],
        metadata,
    }
}

pub(crate) fn key_id(number: u128) -> KeyId {
    KeyId::from_uuid(id(number))
}

/// Returns the instance keys of instance 1, with this single instance key.
pub(crate) fn instance_keys(number: u8) -> Arc<InstanceKeyring> {
    Arc::new(instance_keyring(InstanceId::from_uuid(id(1)), number))
}

/// Returns the instance keys of `instance`, with this single instance key.
pub(crate) fn instance_keyring(instance: InstanceId, number: u8) -> InstanceKeyring {
    keyring_of(instance, number, &[number], &[number])
}

/// Returns the keys of `instance`: this single instance key, and the audit and token keys with the active one first.
pub(crate) fn keyring_of(instance: InstanceId, number: u8, audit: &[u8], token: &[u8]) -> InstanceKeyring {
    let own = key_id(number.into());
    let document = KeyringDocument::first([own, key_id(1_001), key_id(1_002), key_id(1_003)], NOW);
    let numbered =
        |numbers: &[u8]| numbers.iter().map(|number| (key_id((*number).into()), key(*number))).collect::<Vec<_>>();
    let (audit, token) = (numbered(audit), numbered(token));
    let lookup = [(key_id(1_001), key(2))];
    let given = Given { lookup: &lookup, audit: &audit, token: &token };
    InstanceKeyring::of(instance, InstanceKeys::derive(own, &key(number)), Document::new(document), given.into())
}

/// 2026-11-20T12:00:00Z
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_176_000_000);

/// Creates a root key in a temporary directory.
pub(crate) fn root() -> (tempfile::TempDir, LoadedRootKey) {
    let directory = tempfile::tempdir().unwrap();
    let root = LoadedRootKey::generate(&directory.path().join("root.key"), entropy()).unwrap();
    (directory, root)
}

pub(crate) fn new_instance(root: &LoadedRootKey) -> NewInstance {
    Keyring::create(root, entropy(), InstanceId::from_uuid(id(1)), NOW).unwrap()
}
