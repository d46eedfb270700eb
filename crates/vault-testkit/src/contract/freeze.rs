//! Cases of [`FreezeRepository`](vault_core::port::FreezeRepository).

use super::ContractStore;
use super::tools::{Settled as _, namespace, race, with};
use super::world::World;
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::port::{Freezing, FrozenNamespace, IdGenerator, List, ListedNamespace, TakenCredential};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::role::Role;

const OPERATOR: Principal = Principal::Operator;
const FROZEN: Result<Vec<TakenCredential>, Refusal> = Err(Refusal::Frozen);

/// Frozen once, listed, thawed once; each on record once. Others are not touched by it.
pub async fn a_namespace_is_frozen_until_it_is_thawed(suite: &dyn ContractStore) {
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
        let command = world.freeze(&OPERATOR, name, name != "contract");
        let expected = Freezing { changed, credentials, integrations };
        assert_eq!(world.store.freeze_namespace(command).await.unwrap(), Some(expected), "{name}");
        world.clock.advance_seconds(1);
    }
    let expected: Vec<_> = [("B/nightly", 3), ("a", 1), ("b/nightly", 0)]
        .map(|(name, after)| FrozenNamespace {
            organization: world.organization,
            namespace: namespace(name),
            frozen_at: since.plus_seconds(after),
        })
        .into();
    assert_eq!(frozen(&world, Scope::One(world.organization)).await, expected);
    assert_eq!(frozen(&world, Scope::One(other.organization)).await, []);
    let everywhere = frozen(&world, Scope::All).await;
    let ours: Vec<_> = everywhere.into_iter().filter(|row| row.organization == world.organization).collect();
    assert_eq!(ours, expected);

    world.set_frozen("a", false).await;
    for name in ["a", "never"] {
        let command = world.freeze(&OPERATOR, name, false);
        assert!(world.store.freeze_namespace(command).await.unwrap().is_some_and(|freezing| !freezing.changed));
    }
    assert_eq!(frozen(&world, Scope::One(world.organization)).await.len(), 2);
    assert_eq!(world.audited(AuditAction::NamespaceFrozen).await, 3);
    assert_eq!(world.audited(AuditAction::NamespaceThawed).await, 1);
}

/// An admin's session freezes and lists its own organization's alone, an ended one nothing.
pub async fn a_session_freezes_its_own_organizations_namespaces(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let admin = world.holder(Role::Admin).await;
    let session = world.log_in(&admin).await;
    let authority = Principal::Session(session.clone());
    let command = world.freeze(&authority, "contract", true);
    assert!(world.store.freeze_namespace(command).await.unwrap().is_some_and(|freezing| freezing.changed));
    let query = |world: &World<'_>, scope| List {
        principal: authority.clone(),
        of: scope,
        after: None,
        limit: 10,
        now: world.now(),
    };
    let own = Scope::One(world.organization);
    assert_eq!(world.store.list_frozen(query(&world, own)).await.unwrap().len(), 1);
    for scope in [Scope::One(other.organization), Scope::All] {
        assert_eq!(world.store.list_frozen(query(&world, scope)).await.settled(), Err(Denial::InsufficientRole));
    }
    let strange = List { principal: authority.clone(), ..other.list_namespaces() };
    assert_eq!(world.store.list_namespaces(strange).await.settled(), Err(Denial::InsufficientRole));
    let nobody = OrganizationId::from_uuid(world.ids.random());
    let nowhere = with(world.freeze(&OPERATOR, "contract", true), |act| act.organization = nobody);
    for command in [other.freeze(&authority, "contract", true), nowhere] {
        assert_eq!(world.store.freeze_namespace(command).await.unwrap(), None);
    }
    assert!(world.store.end_session(world.end_session(&session)).await.unwrap());
    let ended = Denial::SessionEnded;
    let command = world.freeze(&authority, "contract", false);
    assert_eq!(world.store.freeze_namespace(command).await.settled(), Err(ended));
    assert_eq!(world.store.list_frozen(query(&world, own)).await.settled(), Err(ended));
    let namespaces = List { principal: authority.clone(), ..world.list_namespaces() };
    assert_eq!(world.store.list_namespaces(namespaces).await.settled(), Err(ended));
    assert_eq!(world.audited(AuditAction::NamespaceThawed).await, 0);
    assert_eq!(other.audited(AuditAction::NamespaceFrozen).await, 0);
}

/// Of several that freeze at once, one is told that it did. What is activated after that knows of it.
pub async fn a_freeze_holds_beside_activations(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.saved_in("contract").await;
    let principal = world.activator(&world.integration().await);
    let outcomes = race((0..12).map(|turn| {
        let store = Arc::clone(&world.store);
        let freeze = world.freeze(&OPERATOR, "contract", true);
        let (before, after) = (world.take(&principal, "contract"), world.take(&principal, "contract"));
        async move {
            if turn % 2 == 0 {
                // Activated beside it: before or after, but nothing in between.
                let outcome = store.take_credentials(before).await.decided();
                assert!(outcome.is_ok() || outcome == FROZEN, "{outcome:?}");
                return 0;
            }
            let changed = store.freeze_namespace(freeze).await.unwrap().is_some_and(|freezing| freezing.changed);
            assert_eq!(store.take_credentials(after).await.decided(), FROZEN);
            usize::from(changed)
        }
    }))
    .await;
    assert_eq!(outcomes.into_iter().sum::<usize>(), 1);
    assert_eq!(world.audited(AuditAction::NamespaceFrozen).await, 1);
}

/// Those that have credentials or are frozen, by name, page by page; counts stop.
pub async fn namespaces_are_listed_with_what_they_have(suite: &dyn ContractStore) {
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
        let mut rows: Vec<ListedNamespace> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.namespace.clone());
            let page = world.store.list_namespaces(List { after, limit, ..world.list_namespaces() }).await;
            let page = page.unwrap();
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit);
            rows.extend(page);
        }
        assert_eq!(rows, expected, "{limit} at a time");
    }
}

async fn frozen(world: &World<'_>, scope: Scope) -> Vec<FrozenNamespace> {
    let (principal, now) = (OPERATOR, world.now());
    world.store.list_frozen(List { principal, of: scope, after: None, limit: 1_000, now }).await.unwrap()
}
