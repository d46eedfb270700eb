//! Documents of entities.

use proptest::prelude::*;
use uuid::Uuid;
use vault_core::entity::{Entity as _, EntityKey, Index, Kind, Opened};
use vault_core::id::OrganizationId;
use vault_core::namespace::NamespaceState;
use vault_core::port::{EntityRow, EntitySealer as _};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_testkit::crypto::FakeDigester;
use vault_testkit::strategy::namespace;

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

proptest! {
    #[test]
    fn namespace_is_found_as_frozen_only_while_it_is(namespace in namespace(), at in proptest::option::of(any::<i64>())) {
        let state = NamespaceState { namespace: namespace.clone(), frozen_at: at.map(Timestamp::from_millis) };
        let document = serde_json::to_vec(&state).unwrap();
        prop_assert_eq!(opened(&document), Some(state.clone()));
        let indexes: Vec<Index> = state.lookups(Uuid::nil()).into_iter().map(|lookup| lookup.index).collect();
        let expected: &[Index] = if at.is_some() { &[Index::Namespace, Index::FrozenNamespace] } else { &[Index::Namespace] };
        prop_assert_eq!(indexes, expected);
        prop_assert!(state.lookups(Uuid::nil()).iter().all(|lookup| lookup.value == namespace.as_str()));
    }
}
