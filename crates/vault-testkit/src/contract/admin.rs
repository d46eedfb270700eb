//! Cases of sessions that administer integrations and namespaces, for stores that have sessions.

use super::ContractStore;
use super::tools::Settled as _;
use super::world::World;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::namespace::SetFrozen;
use vault_core::port::IdGenerator;
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;

const OPERATOR: Principal = Principal::Operator;

/// An admin's session freezes and lists only namespaces of its own organization. An ended session cannot do either.
pub async fn session_freezes_only_namespaces_of_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let [session, _] = world.two_sessions(Role::Admin).await;
    let authority = Principal::Session(session.clone());
    assert!(world.operate(&authority, world.freeze("contract", true)).await.unwrap().changed);
    let list = async |of: &World<'_>| world.operate(&authority, of.list_namespaces()).await;
    assert_eq!(list(&world).await.unwrap().len(), 1);
    assert_eq!(list(&other).await.settled(), Err(Denial::InsufficientRole));
    let nonexistent = OrganizationId::from_uuid(world.ids.random());
    let nowhere = SetFrozen { organization: nonexistent, ..world.freeze("contract", true) };
    assert_eq!(world.operate(&OPERATOR, nowhere).await.decided(), Err(Refusal::NoOrganization));
    let strange = world.operate(&authority, other.freeze("contract", true)).await;
    assert_eq!(strange.decided(), Err(Refusal::NoOrganization));
    world.log_out(&session).await;
    let ended = Denial::SessionEnded;
    assert_eq!(world.operate(&authority, world.freeze("contract", false)).await.settled(), Err(ended));
    assert_eq!(list(&world).await.settled(), Err(ended));
    assert_eq!(world.audited(AuditAction::NamespaceThawed).await, 0);
    assert_eq!(other.audited(AuditAction::NamespaceFrozen).await, 0);
}
