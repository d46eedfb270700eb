//! Cases of sessions that administer integrations and namespaces, for stores that have sessions.

use super::ContractStore;
use super::tools::{Settled as _, with};
use super::world::World;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::namespace::{ListFrozen, SetFrozen};
use vault_core::port::{Find, IdGenerator, IntegrationChange, IntegrationKey};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::role::Role;

const OPERATOR: Principal = Principal::Operator;

/// An admin's session creates, finds, lists and changes integrations of its own organization, and finds none of
/// another.
pub async fn admin_session_manages_only_own_integrations(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let [session, _] = world.two_sessions(Role::Admin).await;
    let (authority, own) = (Principal::Session(session), Scope::One(world.organization));
    let created = world.new_integration("nightly");
    let outcome = world.store.create_integration(world.create_integration(&authority, &created)).await.decided();
    assert_eq!(outcome, Ok(()));
    let stored = world.find_integration(&authority, IntegrationKey::Id(created.id)).await.unwrap();
    assert_eq!(world.integrations(&authority, own).await, std::slice::from_ref(&stored));

    let strange = other.integration().await;
    let outcome = other.store.create_integration(other.create_integration(&authority, &other.new_integration("mine")));
    assert_eq!(outcome.await.decided(), Err(Refusal::NoOrganization));
    assert_eq!(other.find_integration(&authority, IntegrationKey::Id(strange.integration.id)).await, None);
    for scope in [Scope::One(other.organization), Scope::All] {
        let listed = world.store.list_integrations(world.list_integrations(&authority, scope)).await.settled();
        assert_eq!(listed, Err(Denial::InsufficientRole));
    }
    let attempt = other.change_integration(&authority, &strange, IntegrationChange::Delete);
    assert_eq!(other.store.change_integration(attempt).await.decided(), Err(Refusal::NotFound));

    let deletion = world.change_integration(&authority, &stored, IntegrationChange::Delete);
    world.store.change_integration(deletion).await.unwrap();
    assert_eq!(world.integrations(&authority, own).await, []);
}

/// Every request of a session that has ended is denied before any other check.
pub async fn ended_session_cannot_manage_integrations(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let [session, _] = world.two_sessions(Role::Admin).await;
    let stored = world.integration().await;
    world.log_out(&session).await;
    let entries = world.audit_length().await;
    let (authority, ended) = (Principal::Session(session), Denial::SessionEnded);
    let created = world.create_integration(&authority, &stored.integration);
    assert_eq!(world.store.create_integration(created).await.settled(), Err(ended));
    let deletion = world.change_integration(&authority, &stored, IntegrationChange::Delete);
    let stale = with(deletion, |payload| payload.version -= 1);
    assert_eq!(world.store.change_integration(stale).await.settled(), Err(ended));
    let (organization, now) = (world.organization, world.now());
    let key = IntegrationKey::Id(stored.integration.id);
    let query = Find { principal: authority.clone(), of: organization, key, now };
    assert_eq!(world.store.find_integration(query).await.settled(), Err(ended));
    let query = world.list_integrations(&authority, Scope::One(organization));
    assert_eq!(world.store.list_integrations(query).await.settled(), Err(ended));
    assert_eq!(world.read_integration(&stored.integration).await, Some(stored));
    assert_eq!(world.audit_length().await, entries);
}

/// An admin's session freezes and lists only namespaces of its own organization. An ended session cannot do either.
pub async fn session_freezes_only_namespaces_of_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let [session, _] = world.two_sessions(Role::Admin).await;
    let authority = Principal::Session(session.clone());
    assert!(world.operate(&authority, world.freeze("contract", true)).await.unwrap().changed);
    let list = async |scope| world.operate(&authority, ListFrozen { scope, after: None, limit: 10 }).await;
    let own = Scope::One(world.organization);
    assert_eq!(list(own).await.unwrap().len(), 1);
    for scope in [Scope::One(other.organization), Scope::All] {
        assert_eq!(list(scope).await.settled(), Err(Denial::InsufficientRole));
    }
    let strange = world.operate(&authority, other.list_namespaces()).await;
    assert_eq!(strange.settled(), Err(Denial::InsufficientRole));
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    let nowhere = SetFrozen { organization: nonexistent, ..world.freeze("contract", true) };
    assert_eq!(world.operate(&OPERATOR, nowhere).await.decided(), Err(Refusal::NoOrganization));
    let strange = world.operate(&authority, other.freeze("contract", true)).await;
    assert_eq!(strange.decided(), Err(Refusal::NoOrganization));
    world.log_out(&session).await;
    let ended = Denial::SessionEnded;
    assert_eq!(world.operate(&authority, world.freeze("contract", false)).await.settled(), Err(ended));
    assert_eq!(list(own).await.settled(), Err(ended));
    assert_eq!(world.operate(&authority, world.list_namespaces()).await.settled(), Err(ended));
    assert_eq!(world.audited(AuditAction::NamespaceThawed).await, 0);
    assert_eq!(other.audited(AuditAction::NamespaceFrozen).await, 0);
}
