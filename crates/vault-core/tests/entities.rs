//! Documents of entities.

use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;
use vault_core::entity::{Entity as _, EntityKey, Index, Kind, Opened};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::namespace::NamespaceState;
use vault_core::operation::Cache;
use vault_core::port::{EntityRow, EntitySealer, SealError};
use vault_core::sealed::{Blob, OrganizationKeys};
use vault_core::time::Timestamp;
use vault_testkit::crypto::FakeDigester;
use zeroize::Zeroizing;

fn key(id: u128) -> EntityKey {
    EntityKey { organization: OrganizationId::from_bytes([1; 16]), kind: Kind::Namespace, id: Uuid::from_u128(id) }
}

fn row(sealed: Blob) -> EntityRow {
    EntityRow { key: key(1), version: 1, due_at: None, last_used_at: None, sealed }
}

fn opened(document: &[u8]) -> Option<NamespaceState> {
    let sealer = FakeDigester::default();
    let sealed = sealer.seal(&key(1), 1, document).unwrap();
    let opened = Opened::open(&sealer, &row(sealed));
    opened.ok().map(Opened::into_value)
}

/// A rule that became stricter does not make stored documents unreadable, and neither does a field of a newer version.
#[test]
fn stored_value_is_not_validated_again() {
    let long = "n".repeat(500);
    let text = format!(r#"{{"namespace":"{long}","frozen_at":1,"unknown":true}}"#);
    assert_eq!(opened(text.as_bytes()).unwrap().namespace.as_str(), long);
    assert_eq!(opened(br#"{"namespace":7}"#), None);
}

/// Counts the documents that it decrypts.
#[derive(Default)]
struct Counting(FakeDigester, Cache, AtomicUsize);

impl EntitySealer for Counting {
    fn active_key(&self) -> KeyId {
        self.0.active_key()
    }

    fn cache(&self) -> Option<&Cache> {
        Some(&self.1)
    }

    fn has_key_of(&self, sealed: &Blob) -> bool {
        self.0.has_key_of(sealed)
    }

    fn seal(&self, key: &EntityKey, version: i64, document: &[u8]) -> Result<Blob, SealError> {
        self.0.seal(key, version, document)
    }

    fn open(&self, key: &EntityKey, version: i64, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        self.2.fetch_add(1, Ordering::Relaxed);
        self.0.open(key, version, sealed)
    }

    fn rewrap_keys(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
    ) -> Result<Option<OrganizationKeys>, &'static str> {
        self.0.rewrap_keys(organization, keys)
    }
}

/// A row that differs from the cached one in anything is decrypted, and rejected if it does not open.
#[test]
fn cached_document_belongs_to_equal_rows_only() {
    let sealer = Counting::default();
    let row = row(sealer.seal(&key(1), 1, br#"{"namespace":"a","frozen_at":null}"#).unwrap());
    let opens = |row: &EntityRow| Opened::<NamespaceState>::open(&sealer, row).is_ok();
    let (mut bytes, moved) = (row.sealed.as_bytes().to_vec(), EntityRow { key: key(2), ..row.clone() });
    *bytes.last_mut().unwrap() ^= 1;
    let changed = EntityRow { sealed: Blob::from_bytes(bytes), ..row.clone() };
    let put_back = EntityRow { version: 2, ..row.clone() };
    let planted = EntityRow { due_at: Some(Timestamp::from_millis(1)), ..row.clone() };
    assert!((0..3).all(|_| opens(&row)));
    assert_eq!(sealer.2.load(Ordering::Relaxed), 1);
    assert_eq!([&changed, &moved, &put_back, &planted].map(opens), [false; 4]);
    assert!(opens(&row));
    assert_eq!(sealer.2.load(Ordering::Relaxed), 4, "the column of the last one is compared with the cached document");
}

proptest! {
    #[test]
    fn namespace_is_found_as_frozen_only_while_it_is(namespace in "[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", at in proptest::option::of(any::<i64>())) {
        let namespace = vault_core::namespace::Namespace::parse(&namespace, "").unwrap();
        let state = NamespaceState { namespace: namespace.clone(), frozen_at: at.map(Timestamp::from_millis) };
        let document = serde_json::to_vec(&state).unwrap();
        prop_assert_eq!(opened(&document), Some(state.clone()));
        let indexes: Vec<Index> = state.lookups(Uuid::nil()).into_iter().map(|lookup| lookup.index).collect();
        let expected: &[Index] = if at.is_some() { &[Index::Namespace, Index::FrozenNamespace] } else { &[Index::Namespace] };
        prop_assert_eq!(indexes, expected);
        prop_assert!(state.lookups(Uuid::nil()).iter().all(|lookup| lookup.value == namespace.as_str()));
    }
}
