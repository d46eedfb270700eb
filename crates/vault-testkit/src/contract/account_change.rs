//! Cases of [`ChangeAccount`](vault_core::account::ChangeAccount).

use super::ContractStore;
use super::tools::{Settled, is_unknown_account};
use super::world::{Holder, Wanted, World};
use vault_core::Refusal;
use vault_core::account::{AccountChange, AccountRights, AccountState};
use vault_core::audit::AuditAction;
use vault_core::id::AccountId;
use vault_core::login::{AttemptOutcome, Reservation, ReservedAccount};
use vault_core::passcode::PasscodeProof;
use vault_core::port::{IdGenerator, LoginRefusal};
use vault_core::principal::Denial;
use vault_core::role::Role;

/// A change of role and state replaces them, and revokes the sessions.
pub async fn account_rights_are_replaced(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let before = world.read(&holder).await;
    let change = regrant(Role::Editor, AccountState::Disabled);
    world.change(&holder, change).await;

    let after = world.read(&holder).await;
    let grant = AccountRights { role: Role::Editor, state: AccountState::Disabled, ..holder.account.grant.clone() };
    assert_eq!(after.account.grant, grant);
    assert_eq!(after.account.sessions.since, holder.account.sessions.since + 2);
    assert_eq!((after.account.created_at, after.logins), (before.account.created_at, before.logins));
    assert_eq!(world.accounts(Some(world.organization)).await, [after.listed]);
    assert_eq!(world.audited(AuditAction::AccountRoleChanged).await, 1);
    assert_eq!(world.audited(AuditAction::AccountDisabled).await, 1);
    let reservation = world.reserve(&holder, world.network()).await;
    assert!(matches!(reservation, Reservation::Disabled(..)), "{reservation:?}");
    world.change(&holder, regrant(Role::Editor, AccountState::Active)).await;
    let (reserved, after) = (reserved(&world, &holder).await, world.read(&holder).await);
    assert_eq!(reserved.account, after.account);
}

/// A deleted account is removed with its sessions; its address is free.
pub async fn account_is_deleted(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Editor).await, world.holder(Role::Viewer).await);
    let session = world.log_in(&holder).await;
    world.change(&holder, AccountChange::Delete).await;

    assert_eq!(world.account(&holder.account.grant.email).await, None);
    assert!(is_unknown_account(&world.reserve(&holder, world.network()).await));
    assert_eq!(world.acts(&session).await, Err(Denial::AccountChanged));
    assert_eq!(world.audited(AuditAction::AccountDeleted).await, 1);
    assert_eq!(world.acts(&world.log_in(&colleague).await).await, Ok(()));

    let successor = world.new_holder(Role::Viewer).at(&holder.account.grant.email);
    let outcome = world.run(world.create_account(&successor)).await.decided();
    assert_eq!(outcome, Ok(()));
    assert_eq!(world.read(&successor).await.account, successor.account);
    let stale = PasscodeProof::RecoveryCode(holder.recovery_codes[0]);
    assert_eq!(complete(&world, &holder, stale).await, AttemptOutcome::Refused(LoginRefusal::Overtaken));
}

/// Every change except unlocking ends all sessions of the account and no others.
pub async fn every_change_but_unlocking_ends_sessions(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let colleague = world.holder(Role::Editor).await;
    let colleague = world.log_in(&colleague).await;
    type Change = fn(&World<'_>, &Holder) -> Wanted;
    let changes: [(Change, Result<(), Denial>); 6] = [
        (|_, _| AccountChange::Unlock.into(), Ok(())),
        // It changes nothing.
        (|_, _| regrant(Role::Editor, AccountState::Active), Ok(())),
        (|world, holder| world.re_enrolment(holder).0.into(), Err(Denial::AccountChanged)),
        (|_, _| regrant(Role::Viewer, AccountState::Active), Err(Denial::AccountChanged)),
        (|_, _| regrant(Role::Editor, AccountState::Disabled), Err(Denial::AccountChanged)),
        (|_, _| AccountChange::Delete.into(), Err(Denial::AccountChanged)),
    ];
    for (change, expected) in changes {
        let holder = world.holder(Role::Editor).await;
        let change = change(&world, &holder);
        let sessions = [world.log_in(&holder).await, world.log_in(&holder).await];
        world.change(&holder, change.clone()).await;
        for session in &sessions {
            assert_eq!(world.acts(session).await, expected, "after {change:?}");
        }
        assert_eq!(world.acts(&colleague).await, Ok(()));
    }
}

/// A role that is restored by another change does not revive a session.
pub async fn restored_role_does_not_revive_sessions(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Admin).await;
    let session = world.log_in(&holder).await;
    world.change(&holder, regrant(Role::Viewer, AccountState::Active)).await;
    world.change(&holder, regrant(Role::Admin, AccountState::Active)).await;
    assert_eq!(world.acts(&session).await, Err(Denial::SessionEnded));
}

/// A change of an unknown account changes nothing.
pub async fn stray_change_changes_nothing(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let holder = world.holder(Role::Viewer).await;
    let before = world.read(&holder).await;
    let (entries, strange_entries) = (world.audit_length().await, other.audit_length().await);
    let mut elsewhere = world.change_account(&holder, AccountChange::Role(Role::Admin));
    elsewhere.payload.organization = other.organization;
    let mut nonexistent = world.change_account(&holder, AccountChange::Delete);
    nonexistent.payload.account = AccountId::from_uuid(world.ids.random());
    for command in [elsewhere, nonexistent] {
        assert_eq!(world.run(command).await.decided().map(drop), Err(Refusal::NotFound));
    }
    assert_eq!(world.read(&holder).await, before);
    assert_eq!((world.audit_length().await, other.audit_length().await), (entries, strange_entries));
}

/// Returns a change of role and state.
pub(super) fn regrant(role: Role, state: AccountState) -> Wanted {
    let state = if state == AccountState::Disabled { AccountChange::Disable } else { AccountChange::Enable };
    Wanted(vec![AccountChange::Role(role), state])
}

async fn reserved(world: &World<'_>, holder: &Holder) -> ReservedAccount {
    match world.reserve(holder, world.network()).await {
        Reservation::Account(reserved) => *reserved,
        other => panic!("the attempt is within the free ones, but: {other:?}"),
    }
}

async fn complete(world: &World<'_>, holder: &Holder, proof: PasscodeProof) -> AttemptOutcome {
    world.conclude(world.complete_login(holder, world.network(), proof)).await
}
