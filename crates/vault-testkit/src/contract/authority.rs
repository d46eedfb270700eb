//! Cases of account administration by an admin's session and by the operator.

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{By, Settled, by_address, race};
use super::world::{Holder, World};
use vault_core::account::{AccountChange, AccountKey, AccountState, ChangeAccount, FoundAccount};
use vault_core::audit::AuditAction;

use vault_core::principal::{Denial, Principal, Scope, SessionPrincipal};
use vault_core::role::Role;
use vault_core::{ErrorKind, Refusal};

/// A session finds and lists only accounts of its own organization.
pub async fn session_lists_only_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (admin, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Viewer).await);
    let stranger = other.holder(Role::Viewer).await;
    other.invited(Role::Viewer).await;
    let session = world.log_in(&admin).await;
    let authority = Principal::Session(session.clone());
    for holder in [&admin, &colleague] {
        let found = Some(FoundAccount::Account(Box::new(world.read(holder).await.listed)));
        for key in keys(holder) {
            assert_eq!(world.find(authority.clone(), key.clone()).await, found);
            assert_eq!(world.find(Principal::Operator, key).await, found);
        }
    }
    let [by_address, by_id] = keys(&stranger);
    let misplaced = AccountKey::Id(world.organization, stranger.account.grant.account);
    for key in [by_address.clone(), by_id.clone(), misplaced] {
        assert_eq!(world.find(authority.clone(), key).await, None);
    }
    // An operator who names an organization finds no account of another.
    for key in [by_address, by_id] {
        let mut confined = world.look_for(Principal::Operator, key);
        confined.payload.scope = Scope::One(world.organization);
        assert_eq!(world.run(confined).await.unwrap(), None);
    }
    let (invitation, _) = world.invited(Role::Editor).await;
    let own = world.list_accounts(authority.clone(), Scope::One(world.organization));
    let listed = world.run(own).await.unwrap();
    assert_eq!(listed, world.accounts(Some(world.organization)).await);
    assert_eq!(listed.len(), 3);
    for beyond in [Scope::All, Scope::One(other.organization)] {
        let query = world.list_accounts(authority.clone(), beyond);
        assert_eq!(world.run(query).await.settled(), Err(Denial::InsufficientRole));
    }
    let invited = listed.iter().find(|account| account.grant.account == invitation.grant.account).unwrap();
    assert_eq!(invited.grant.state, AccountState::Invited);
}

/// A session that is no longer valid sees and changes nothing.
pub async fn ended_session_cannot_administer(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (admin, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Viewer).await);
    let session = world.log_in(&admin).await;
    world.log_out(&session).await;
    let (before, entries) = (world.read(&colleague).await, world.audit_length().await);
    let refusal = Denial::SessionEnded;
    let nonexistent = AccountKey::Id(world.organization, vault_core::id::AccountId::from_bytes([0x55; 16]));
    for key in keys(&colleague).into_iter().chain([nonexistent]) {
        let query = world.look_for(Principal::Session(session.clone()), key);
        assert_eq!(world.run(query).await.settled(), Err(refusal));
    }
    let query = world.list_accounts(Principal::Session(session.clone()), Scope::One(world.organization));
    assert_eq!(world.run(query).await.settled(), Err(refusal));
    for change in [AccountChange::Delete, AccountChange::Role(Role::Admin)] {
        let command = by(&session, world.change_account(&colleague, change));
        assert_eq!(world.run(command).await.settled(), Err(refusal));
    }
    assert_eq!((world.read(&colleague).await, world.audit_length().await), (before, entries));
}

/// An admin's session changes and deletes only accounts of its own organization.
pub async fn session_changes_only_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (admin, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Viewer).await);
    let stranger = other.holder(Role::Viewer).await;
    let session = world.log_in(&admin).await;
    let change = async |world: &World<'_>, holder: &Holder, change: AccountChange| {
        world.run(by(&session, world.change_account(holder, change))).await.decided().map(drop)
    };
    assert_eq!(change(&world, &colleague, AccountChange::Role(Role::Editor)).await, Ok(()));
    assert_eq!(world.read(&colleague).await.account.grant.role, Role::Editor);
    assert_eq!(change(&world, &colleague, AccountChange::Delete).await, Ok(()));
    assert_eq!(world.account(&colleague.account.grant.email).await, None);

    let (before, entries) = (other.read(&stranger).await, other.audit_length().await);
    for attempt in [AccountChange::Role(Role::Admin), AccountChange::Delete] {
        assert_eq!(change(&other, &stranger, attempt).await, Err(Refusal::NotFound));
    }
    assert_eq!((other.read(&stranger).await, other.audit_length().await), (before, entries));
}

/// A session cannot remove an organization's last active admin, not even its own; disabled and re-enrolling admins,
/// other roles, invitations and admins of other organizations do not count. An operator can.
pub async fn last_active_admin_cannot_be_removed(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let admin = world.holder(Role::Admin).await;
    let disabled = world.holder(Role::Admin).await;
    let re_enrolling = world.holder(Role::Admin).await;
    world.re_enrolling(&re_enrolling).await;
    world.change(&disabled, regrant(Role::Admin, AccountState::Disabled)).await;
    world.holder(Role::Editor).await;
    world.invited(Role::Admin).await;
    other.holder(Role::Admin).await;
    let session = world.log_in(&admin).await;
    let version = world.read(&admin).await.account.sessions.since;
    let entries = world.audit_length().await;
    for taking in takings(&world, &admin) {
        let command = by(&session, world.change_account(&admin, taking));
        assert_eq!(world.run(command).await.decided().map(drop), Err(Refusal::LastAdmin));
    }
    assert_eq!((world.read(&admin).await.account.sessions.since, world.audit_length().await), (version, entries));

    // A change that keeps the admin role is permitted.
    let command = by(&session, world.change_account(&admin, AccountChange::Role(Role::Admin)));
    world.run(command).await.unwrap();
    // With a second admin the first may be removed; an operator may demote even the last.
    let successor = world.holder(Role::Admin).await;
    let command = by(&session, world.change_account(&admin, AccountChange::Delete));
    world.run(command).await.unwrap();
    world.change(&successor, regrant(Role::Viewer, AccountState::Active)).await;
    assert_eq!(world.read(&successor).await.account.grant.role, Role::Viewer);
}

/// If two admins concurrently demote, disable, re-enrol or delete each other, one of them remains.
pub async fn admins_cannot_demote_each_other_concurrently(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for round in 0..8 {
        let (one, two) = (world.holder(Role::Admin).await, world.holder(Role::Admin).await);
        let (ones, twos) = (world.log_in(&one).await, world.log_in(&two).await);
        let mut commands = Vec::new();
        for (session, target) in [(&ones, &two), (&twos, &one)] {
            let change = takings(&world, target).into_iter().nth(round % 4).unwrap();
            commands.push(by(session, world.change_account(target, change)));
        }
        let outcomes = race(commands.into_iter().map(|command| {
            let changing = world.running_by(command);
            async move { changing.await.map(drop).map_err(|error| error.kind()) }
        }))
        .await;
        let changed = outcomes.iter().filter(|outcome| **outcome == Ok(())).count();
        assert_eq!(changed, 1, "{outcomes:?}");
        // The admin whose change came second lost its session by the first.
        let refused = [Err(ErrorKind::Unauthenticated), Err(Refusal::LastAdmin.kind())];
        assert!(refused.iter().any(|refused| outcomes.contains(refused)), "{outcomes:?}");
        let list = world.accounts(Some(world.organization)).await;
        let left: Vec<_> = list.iter().filter(|account| account.grant.is_active_admin()).collect();
        assert_eq!(left.len(), 1);
        let left = [one, two].into_iter().find(|holder| holder.account.grant.account == left[0].grant.account).unwrap();
        world.change(&left, AccountChange::Delete).await;
    }
}

/// If all admins concurrently give up the role, one of them keeps it.
pub async fn concurrent_demotions_keep_one_active_admin(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let mut commands = Vec::new();
    for _ in 0..6 {
        let admin = world.holder(Role::Admin).await;
        let session = world.log_in(&admin).await;
        commands.push(by(&session, world.change_account(&admin, AccountChange::Role(Role::Viewer))));
    }
    let outcomes = race(commands.into_iter().map(|command| {
        let changing = world.running_by(command);
        async move { changing.await.map(drop).map_err(|error| error.kind()) }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(())).count(), 5);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(Refusal::LastAdmin.kind())).count(), 1);
    assert_eq!(world.audited(AuditAction::AccountRoleChanged).await, 5);
}

/// Returns the changes that remove an admin.
fn takings(world: &World<'_>, admin: &Holder) -> [AccountChange; 4] {
    [AccountChange::Role(Role::Editor), AccountChange::Disable, world.re_enrolment(admin).0, AccountChange::Delete]
}

fn by(session: &SessionPrincipal, command: By<ChangeAccount>) -> By<ChangeAccount> {
    By { principal: Principal::Session(session.clone()), ..command }
}

fn keys(holder: &Holder) -> [AccountKey; 2] {
    [
        by_address(&holder.account.grant.email),
        AccountKey::Id(holder.account.grant.organization, holder.account.grant.account),
    ]
}
