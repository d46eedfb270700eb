//! Cases of namespaces: freezing, thawing and lists.

use super::ContractStore;
use super::tools::{namespace, paged};
use super::world::World;
use futures_util::future::join_all;
use vault_core::audit::AuditAction;
use vault_core::namespace::{Freezing, ListNamespaces, ListedNamespace, Namespace};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;

const OPERATOR: Principal = Principal::Operator;

/// A namespace is frozen once, listed, and thawed once. Each change is recorded once. Other namespaces are unchanged.
pub async fn namespace_is_frozen_until_it_is_thawed(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let since = world.now();
    world.saved_in("a").await;
    world.saved_in("a").await;
    world.saved_in("c").await;
    world.integration().await;
    for (name, changed, credentials, integrations) in [
        ("b/nightly", true, 0, 0),
        ("a", true, 2, 0),
        ("b/nightly", false, 0, 0),
        ("B/nightly", true, 0, 0),
        ("contract", false, 0, 1),
    ] {
        let expected = Freezing { changed, credentials, integrations };
        let freezing = world.operate(&OPERATOR, world.freeze(name, name != "contract")).await.unwrap();
        assert_eq!(freezing, expected, "{name}");
        world.clock.advance_seconds(1);
    }
    let expected = [("B/nightly", 3), ("a", 1), ("b/nightly", 0)];
    let expected = expected.map(|(name, after)| (namespace(name), since.plus_seconds(after)));
    assert_eq!(frozen(&world).await, expected);
    assert_eq!(frozen(&other).await, []);

    world.set_frozen("a", false).await;
    for name in ["a", "never"] {
        assert!(!world.operate(&OPERATOR, world.freeze(name, false)).await.unwrap().changed);
    }
    assert_eq!(frozen(&world).await.len(), 2);
    assert_eq!(world.audited(AuditAction::NamespaceFrozen).await, 3);
    assert_eq!(world.audited(AuditAction::NamespaceThawed).await, 1);
}

/// If several requests freeze the same namespace, exactly one succeeds, and the same applies to thawing it.
pub async fn parallel_freezes_of_one_namespace_freeze_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for (frozen, action) in [(true, AuditAction::NamespaceFrozen), (false, AuditAction::NamespaceThawed)] {
        let freezes = (0..8).map(|_| world.operate(&OPERATOR, world.freeze("contract", frozen)));
        let outcomes = join_all(freezes).await;
        assert_eq!(outcomes.into_iter().filter(|outcome| outcome.as_ref().unwrap().changed).count(), 1);
        assert_eq!(world.audited(action).await, 1);
    }
}

/// Namespaces that have credentials or are frozen are listed by name, page by page. Their counts have an upper limit.
pub async fn namespaces_are_listed_with_counts(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for name in ["b", "a/1", "b", "a/1", "b", "A"] {
        world.saved_in(name).await;
        other.saved_in("other").await;
    }
    world.set_frozen("b", true).await;
    world.set_frozen("empty", true).await;
    let frozen_at = Some(world.now());
    let expected: Vec<_> = [("A", 1, None), ("a/1", 2, None), ("b", 3, frozen_at), ("empty", 0, frozen_at)]
        .map(|(name, credentials, frozen_at)| ListedNamespace { namespace: namespace(name), credentials, frozen_at })
        .into();
    for limit in 1..=5 {
        let page = async |last: Option<&ListedNamespace>| {
            let after = last.map(|row| row.namespace.clone());
            world.operate(&OPERATOR, ListNamespaces { after, limit, ..world.list_namespaces() }).await.unwrap()
        };
        let rows = paged(limit, page).await;
        assert_eq!(rows, expected, "{limit} at a time");
    }
}

async fn frozen(world: &World<'_>) -> Vec<(Namespace, Timestamp)> {
    let listed = world.operate(&OPERATOR, world.list_namespaces()).await.unwrap();
    listed.into_iter().filter_map(|listed| Some((listed.namespace, listed.frozen_at?))).collect()
}
