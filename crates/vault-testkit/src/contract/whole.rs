//! Cases that need ports of several groups.

use super::ContractStore;
use super::organization::another;
use super::tools::{Settled, by_address, is_unknown_account};
use super::world::World;
use vault_core::audit::ListEntries;
use vault_core::maintenance::Expired;
use vault_core::organization::{DeleteOrganization, FindOrganization, OrganizationState};
use vault_core::port::{AuditOrder, AuditRange};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::role::Role;

/// Disabling an organization ends its sessions permanently, even if it is enabled again.
pub async fn disabling_revokes_sessions_permanently(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let principal = Principal::Session(world.log_in(&holder).await);
    let act = async || world.try_page(&principal, world.list(&principal)).await.settled().map(drop);
    assert_eq!(act().await, Ok(()));
    world.set_state(OrganizationState::Disabled).await;
    assert_eq!(act().await, Err(Denial::OrganizationDisabled));
    world.set_state(OrganizationState::Active).await;
    assert_eq!(act().await, Err(Denial::SessionEnded));
    let principal = Principal::Session(world.log_in(&holder).await);
    assert_eq!(world.try_page(&principal, world.list(&principal)).await.settled().map(drop), Ok(()));
}

/// Deletion removes accounts, sessions, credentials and keys, and keeps the audit log.
pub async fn deletion_leaves_only_audit_log(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let principal = Principal::Session(world.log_in(&holder).await);
    world.saved(&principal).await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    world.drafted(&invitation).await;
    let entries = world.audit_length().await;

    world.operate(&Principal::Operator, DeleteOrganization(world.organization)).await.unwrap();

    assert_eq!(world.read_organization().await, None);
    assert_eq!(world.operate(&Principal::Operator, FindOrganization(world.name.clone())).await.unwrap(), None);
    assert_eq!(world.account(&holder.account.grant.email).await, None);
    assert_eq!(world.accounts(Some(world.organization)).await, []);
    assert!(world.open(&invitation).await.is_none());
    assert_eq!(world.find(Principal::Operator, by_address(&invitation.grant.email)).await, None);
    assert!(is_unknown_account(&world.reserve(&holder, world.network()).await));
    for principal in [&principal, &world.embedder()] {
        let answer = world.try_page(principal, world.list(principal)).await.settled();
        assert_eq!(answer.unwrap_err(), Denial::OrganizationDisabled);
    }
    assert_eq!(world.audit_length().await, entries + 1);
    while world.delete_expired(Expired::Erasures).await > 0 {}
    assert_eq!(suite.rows(world.organization).await, Vec::<String>::new());
}

/// Name and addresses of a deleted organization are free, and new users of them inherit nothing.
pub async fn deletion_frees_name_and_addresses(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Admin).await;
    let (_, invited) = world.invited(Role::Viewer).await;
    world.saved(&world.embedder()).await;
    world.operate(&Principal::Operator, DeleteOrganization(world.organization)).await.unwrap();

    let successor = another(&world, world.name.as_str());
    let id = successor.id;
    world.operate(&Principal::Operator, successor).await.unwrap();
    assert_eq!(world.accounts(Some(id)).await, []);
    let mut moved = world.new_holder(Role::Viewer);
    moved.account.grant.organization = id;
    moved.account.grant.email = holder.account.grant.email.clone();
    let outcome = world.run(world.create_account(&moved)).await.decided();
    assert_eq!(outcome, Ok(()));
    assert_eq!(world.read(&moved).await.account, moved.account);
    let mut second = world.new_holder(Role::Viewer);
    (second.account.grant.organization, second.account.grant.email) = (id, invited);
    let outcome = world.run(world.create_account(&second)).await.decided();
    assert_eq!(outcome, Ok(()));
}

/// Deletion does not affect another organization.
pub async fn deletion_affects_no_other_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let holder = other.holder(Role::Editor).await;
    let principal = Principal::Session(other.log_in(&holder).await);
    let credential = other.saved(&principal).await;
    world.operate(&Principal::Operator, DeleteOrganization(world.organization)).await.unwrap();
    assert_eq!(other.listed(&principal).await, [credential]);
    assert_eq!(other.accounts(Some(other.organization)).await.len(), 1);
}

/// A valid session lists only the audit records of its own organization.
pub async fn sessions_list_their_own_organizations_entries(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let holder = world.holder(Role::Admin).await;
    let session = world.log_in(&holder).await;
    let principal = Principal::Session(session.clone());
    let list = async |scope| {
        let range = AuditRange { scope, from: None, until: None, order: AuditOrder::NewestFirst };
        world.operate(&principal, ListEntries { range, after: None, limit: 10 }).await.settled().map(drop)
    };
    assert_eq!(list(Scope::One(world.organization)).await, Ok(()));
    for scope in [Scope::One(other.organization), Scope::All] {
        assert_eq!(list(scope).await, Err(Denial::InsufficientRole));
    }
    world.log_out(&session).await;
    assert_eq!(list(Scope::One(world.organization)).await, Err(Denial::SessionEnded));
}
