//! Cases of creating, finding and reading accounts.

use super::ContractStore;
use super::tools::{Settled as _, address, race};
use super::world::World;
use vault_core::Refusal;
use vault_core::account::{AccountLogins, ListedAccount};
use vault_core::audit::AuditAction;
use vault_core::id::OrganizationId;
use vault_core::port::IdGenerator;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;

/// A new account is found by its address and in the lists as it was created.
pub async fn account_is_found_as_created(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.new_holder(Role::Viewer);
    assert_eq!(world.account(&holder.account.grant.email).await, None);
    let outcome = world.run(world.create_account(&holder)).await.decided();
    assert_eq!(outcome, Ok(()));

    let found = world.read(&holder).await;
    let (grant, created_at) = (holder.account.grant.clone(), world.now());
    let created = ListedAccount { grant, created_at, logins: AccountLogins::default(), invitation_expires_at: None };
    assert_eq!((found.account, &found.listed), (holder.account, &created));
    assert_eq!(world.accounts(Some(world.organization)).await, std::slice::from_ref(&created));
    assert!(world.accounts(None).await.contains(&created));
    assert_eq!(world.audited(AuditAction::AccountCreated).await, 1);
}

/// An address belongs to one account across all organizations.
pub async fn address_belongs_to_one_account(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let holder = world.holder(Role::Admin).await;
    for elsewhere in [&world, &other] {
        let mut second = elsewhere.new_holder(Role::Admin);
        second.account.grant.email = holder.account.grant.email.clone();
        let audited = elsewhere.audited(AuditAction::AccountCreated).await;
        let outcome = elsewhere.run(elsewhere.create_account(&second)).await.decided();
        assert_eq!(outcome, Err(Refusal::AddressTaken));
        assert_eq!(elsewhere.audited(AuditAction::AccountCreated).await, audited);
    }
    assert_eq!(world.read(&holder).await.account, holder.account);
    assert_eq!(other.accounts(Some(other.organization)).await, []);
}

/// Of concurrent accounts with one address in two organizations exactly one is created.
pub async fn parallel_creations_of_one_address_create_one(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let wanted = address(&format!("{}@contract.example", world.ids.random()));
    let outcomes = race((0..16).map(|index| {
        let world = if index % 2 == 0 { &world } else { &other };
        let mut holder = world.new_holder(Role::Editor);
        holder.account.grant.email = wanted.clone();
        let creating = world.running_by(world.create_account(&holder));
        async move { creating.await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(())).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(Refusal::AddressTaken)).count(), 15);
    let mut audited = 0;
    let mut accounts = 0;
    for world in [&world, &other] {
        audited += world.audited(AuditAction::AccountCreated).await;
        accounts += world.accounts(Some(world.organization)).await.len();
    }
    assert_eq!((audited, accounts), (1, 1));
}

/// Without an organization no account is created and the address stays free.
pub async fn account_requires_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let nowhere = OrganizationId::from_uuid(world.ids.random());
    let mut holder = world.new_holder(Role::Admin);
    let at_home = holder.clone();
    holder.account.grant.organization = nowhere;
    assert_eq!(world.run(world.create_account(&holder)).await.decided(), Err(Refusal::NoOrganization));
    assert_eq!(world.audited_in(nowhere, AuditAction::AccountCreated).await, 0);
    let outcome = world.run(world.create_account(&at_home)).await.decided();
    assert_eq!(outcome, Ok(()));
}

/// Accounts and invitations of an organization are listed newest first; in a list of all organizations they are grouped
/// by organization. Pages neither omit nor repeat entries.
pub async fn accounts_are_listed_by_organization_newest_first(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for role in [Role::Viewer, Role::Admin, Role::Editor] {
        world.clock.advance_seconds(1);
        world.holder(role).await;
        other.holder(role).await;
        world.clock.advance_seconds(1);
        world.invited(role).await;
    }
    let of_one = world.accounts(Some(world.organization)).await;
    assert_eq!(of_one.len(), 6);
    assert!(of_one.is_sorted_by(|a, b| a.grant.account > b.grant.account));
    assert_eq!(of_one.iter().filter(|listed| listed.invitation_expires_at.is_some()).count(), 3);
    assert!(of_one.iter().all(|account| account.grant.organization == world.organization));
    let of_all = world.accounts(None).await;
    let place = of_all.iter().position(|account| *account == of_one[0]).unwrap();
    assert_eq!(of_all[place..place + 6], of_one);

    for (scope, whole) in [(Scope::One(world.organization), &of_one), (Scope::All, &of_all)] {
        let mut paged = Vec::new();
        loop {
            let place = |last: &ListedAccount| (last.grant.organization, last.grant.account);
            let after = paged.last().map(place);
            let limit = if scope == Scope::All { 1_000 } else { 4 };
            let mut query = world.list_accounts(Principal::Operator, scope);
            (query.payload.after, query.payload.limit) = (after, limit);
            let page = world.run(query).await.unwrap();
            let is_last = page.len() < limit;
            paged.extend(page);
            if is_last {
                break;
            }
        }
        let ours = |listed: &&ListedAccount| listed.grant.organization == world.organization;
        assert_eq!(paged.iter().filter(ours).collect::<Vec<_>>(), whole.iter().filter(ours).collect::<Vec<_>>());
    }
}
