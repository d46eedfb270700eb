//! Cases of [`FreezeRepository`](vault_core::port::FreezeRepository).

use super::ContractStore;
use super::tools::{namespace, race};
use super::world::World;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::port::{
    FreezeNamespace, FreezeOutcome, FrozenNamespace, IdGenerator, IntegrationScope, ListFrozen, TakeOutcome,
};
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;

const OPERATOR: Principal = Principal::Operator;

/// Frozen once, listed, thawed once; each on record once. Others are not touched by it.
pub async fn a_namespace_is_frozen_until_it_is_thawed(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let since = world.now();
    for (name, outcome) in [
        ("b/nightly", FreezeOutcome::Changed),
        ("a", FreezeOutcome::Changed),
        ("b/nightly", FreezeOutcome::Unchanged),
        ("B/nightly", FreezeOutcome::Changed),
    ] {
        let command = world.freeze(&OPERATOR, name, true);
        assert_eq!(world.store.freeze_namespace(command).await.unwrap(), outcome, "{name}");
        world.clock.advance_seconds(1);
    }
    let expected: Vec<_> = [("B/nightly", 3), ("a", 1), ("b/nightly", 0)]
        .map(|(name, after)| FrozenNamespace {
            organization: world.organization,
            namespace: namespace(name),
            frozen_at: since.plus_seconds(after),
        })
        .into();
    assert_eq!(frozen(&world, IntegrationScope::Organization(world.organization)).await, expected);
    assert_eq!(frozen(&world, IntegrationScope::Organization(other.organization)).await, []);
    let everywhere = frozen(&world, IntegrationScope::Everywhere).await;
    let ours: Vec<_> = everywhere.into_iter().filter(|row| row.organization == world.organization).collect();
    assert_eq!(ours, expected);

    world.set_frozen("a", false).await;
    for name in ["a", "never"] {
        let command = world.freeze(&OPERATOR, name, false);
        assert_eq!(world.store.freeze_namespace(command).await.unwrap(), FreezeOutcome::Unchanged);
    }
    assert_eq!(frozen(&world, IntegrationScope::Organization(world.organization)).await.len(), 2);
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
    assert_eq!(world.store.freeze_namespace(command).await.unwrap(), FreezeOutcome::Changed);
    let scope = IntegrationScope::Session(session.clone());
    assert_eq!(frozen(&world, scope.clone()).await.len(), 1);
    let nobody = OrganizationId::from_uuid(world.ids.random());
    for command in [
        other.freeze(&authority, "contract", true),
        FreezeNamespace { organization: nobody, ..world.freeze(&OPERATOR, "contract", true) },
    ] {
        assert_eq!(world.store.freeze_namespace(command).await.unwrap(), FreezeOutcome::NoOrganization);
    }
    assert!(world.store.end_session(world.end_session(&session)).await.unwrap());
    let ended = Denial::SessionEnded;
    let command = world.freeze(&authority, "contract", false);
    assert_eq!(world.store.freeze_namespace(command).await.unwrap(), FreezeOutcome::Refused(ended));
    let query = ListFrozen { scope, now: world.now() };
    assert_eq!(world.store.list_frozen(query).await.unwrap(), Err(ended));
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
                let outcome = store.take_credentials(before).await.unwrap();
                assert!(matches!(outcome, TakeOutcome::Taken(_) | TakeOutcome::Frozen), "{outcome:?}");
                return 0;
            }
            let changed = store.freeze_namespace(freeze).await.unwrap() == FreezeOutcome::Changed;
            assert_eq!(store.take_credentials(after).await.unwrap(), TakeOutcome::Frozen);
            usize::from(changed)
        }
    }))
    .await;
    assert_eq!(outcomes.into_iter().sum::<usize>(), 1);
    assert_eq!(world.audited(AuditAction::NamespaceFrozen).await, 1);
}

async fn frozen(world: &World<'_>, scope: IntegrationScope) -> Vec<FrozenNamespace> {
    let query = ListFrozen { scope, now: world.now() };
    world.store.list_frozen(query).await.unwrap().expect("the session may act")
}
