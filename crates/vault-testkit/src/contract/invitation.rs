//! Cases of invitations.

use super::ContractStore;
use super::tools::{Settled, by_address, is_unknown_account, race};
use super::world::{Holder, World};
use vault_core::Refusal;
use vault_core::account::{Account, AccountKey, AccountRights, AccountState, FoundAccount, ListedAccount};
use vault_core::audit::AuditAction;
use vault_core::email::EmailAddress;
use vault_core::hourly::{HOUR_SECONDS, HourlyLimit};
use vault_core::id::OrganizationId;
use vault_core::invitation::{ConfirmEnrolment, INVITATION_SECONDS, Invitation, InvitationChange, WriteDraft};
use vault_core::login::{AttemptOutcome, Reservation};
use vault_core::organization::OrganizationState;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{IdGenerator, LoginRefusal};
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;

/// A new invitation is found by code, address and id, and is listed; it does not permit a login.
pub async fn invitation_is_found_as_created(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (invitation, address) = world.invited(Role::Editor).await;
    let open = world.open(&invitation).await.expect("it is open");
    assert_eq!(*open.invitation, invitation);
    assert_eq!(open.draft, None);
    assert_eq!(open.invited_by, None, "an operator invited");

    let found = FoundAccount::Invitation(Box::new(invitation.clone()));
    let by_id = AccountKey::Id(world.organization, invitation.grant.account);
    for key in [by_address(&invitation.grant.email), by_id] {
        assert_eq!(world.find(Principal::Operator, key).await, Some(found.clone()));
    }
    let elsewhere = AccountKey::Id(other.organization, invitation.grant.account);
    assert_eq!(world.find(Principal::Operator, elsewhere).await, None);
    let listed = invitation.listed();
    assert_eq!(world.accounts(Some(world.organization)).await, std::slice::from_ref(&listed));
    assert!(world.accounts(None).await.contains(&listed));
    assert_eq!(other.accounts(Some(other.organization)).await, []);
    assert!(is_unknown_account(&world.reserve_attempt(world.attempt(&address, world.network())).await));
    assert_eq!(world.audited(AuditAction::AccountInvited).await, 1);
}

/// No organization can invite an address that is in use, and each refusal is recorded. A pending invitation prevents
/// other invitations and accounts for the address only in its own organization.
pub async fn invited_address_is_reserved(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (first, _) = world.invited(Role::Editor).await;
    let account = world.holder(Role::Editor).await;
    let invites = async |elsewhere: &World<'_>, email| {
        let second = elsewhere.invitation_for(email, Role::Viewer);
        let outcome = elsewhere.invites(elsewhere.invite(&Principal::Operator, &second)).await;
        assert_eq!(elsewhere.open(&second).await.is_some(), outcome == Ok(()));
        outcome
    };
    for elsewhere in [&world, &other] {
        let entries = elsewhere.audit_length().await;
        assert_eq!(invites(elsewhere, &account.account.grant.email).await, Err(Refusal::AddressInUse));
        assert_eq!(elsewhere.audited(AuditAction::InvitationRefused).await, 1);
        assert_eq!(elsewhere.audit_length().await, entries + 1);
    }
    let entries = world.audit_length().await;
    assert_eq!(invites(&world, &first.grant.email).await, Err(Refusal::AlreadyInvited));
    let second = world.new_holder(Role::Admin).at(&first.grant.email);
    let outcome = world.run(world.create_account(&second)).await.decided();
    assert_eq!(outcome, Err(Refusal::AddressTaken));
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(invites(&other, &first.grant.email).await, Ok(()));
    let found = world.find(Principal::Operator, by_address(&first.grant.email)).await;
    assert_eq!(found, Some(FoundAccount::Invitations(2)));
}

/// If two organizations invite one address, the first confirmation gets it, also under concurrency.
pub async fn first_confirmation_gets_address(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (first, address) = world.invited(Role::Editor).await;
    let second = other.invitation_for(&first.grant.email, Role::Viewer);
    other.invites(other.invite(&Principal::Operator, &second)).await.unwrap();
    world.drafted(&first).await;
    other.drafted(&second).await;
    let step = TimeStep::at(world.now());
    let commands = [
        world.confirm_enrolment(&world.open(&first).await.unwrap(), step),
        other.confirm_enrolment(&other.open(&second).await.unwrap(), step),
    ];
    let outcomes = race(commands.into_iter().map(|command| {
        let confirming = world.running(&world.store, Principal::Operator, command);
        async move { confirming.await.decided() }
    }))
    .await;
    let enrolled: Vec<_> = outcomes.iter().map(|outcome| *outcome == Ok(())).collect();
    assert!(enrolled[0] != enrolled[1], "{outcomes:?}");
    assert!(outcomes.contains(&Err(Refusal::AddressInUse)), "{outcomes:?}");
    assert_eq!([world.open(&first).await.is_none(), other.open(&second).await.is_none()], *enrolled);
    let has_it = if enrolled[0] { &first } else { &second };
    assert_eq!(world.account(&address).await.unwrap().grant, has_it.enrolled());
}

/// After twenty addresses in use, an organization's admins cannot invite anyone until an hour after the first, even to
/// a free address; operators and other organizations are not affected.
pub async fn twenty_addresses_in_use_stop_invitations(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let taken = other.holder(Role::Viewer).await;
    let admin = world.holder(Role::Admin).await;
    let session = Principal::Session(world.log_in_for(&admin, 3 * HOUR_SECONDS).await);
    let taken = &taken.account.grant.email;
    let invites = async |principal: &Principal, email: Option<&EmailAddress>| {
        let (mut invitation, _) = world.invitation(Role::Viewer);
        if let Some(email) = email {
            invitation.grant.email = email.clone();
        }
        world.invites(world.invite(principal, &invitation)).await
    };
    for _ in 0..HourlyLimit::ADDRESS_CONFLICTS {
        assert_eq!(invites(&session, None).await, Ok(()));
        assert_eq!(invites(&session, Some(taken)).await, Err(Refusal::AddressInUse));
    }
    let recorded = world.audited(AuditAction::InvitationRefused).await;
    assert_eq!(recorded, usize::try_from(HourlyLimit::ADDRESS_CONFLICTS).unwrap());
    for address in [None, Some(taken)] {
        let outcome = invites(&session, address).await;
        assert!(matches!(outcome, Err(Refusal::TooManyConflicts(1..=3_601))), "{outcome:?}");
    }
    assert_eq!(world.audited(AuditAction::InvitationRefused).await, recorded);
    assert_eq!(invites(&Principal::Operator, None).await, Ok(()));
    assert_eq!(invites(&Principal::Operator, Some(taken)).await, Err(Refusal::AddressInUse));
    other.invited(Role::Viewer).await;

    world.clock.advance_millis(HOUR_SECONDS * 1000 - 1);
    assert!(matches!(invites(&session, None).await, Err(Refusal::TooManyConflicts(1))));
    world.clock.advance_millis(1);
    assert_eq!(invites(&session, None).await, Ok(()));
    assert_eq!(invites(&session, Some(taken)).await, Err(Refusal::AddressInUse));
}

/// Of concurrent invitations and accounts for one address in one organization exactly one succeeds.
pub async fn parallel_invitations_of_one_address_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (wanted, _) = world.invitation(Role::Viewer);
    let created =
        race((0..16).map(|index| {
            let invitation = world.invitation_for(&wanted.grant.email, Role::Viewer);
            let invite = world.running_by(world.invite(&Principal::Operator, &invitation));
            let holder = world.new_holder(Role::Viewer).at(&wanted.grant.email);
            let create = world.running_by(world.create_account(&holder));
            async move {
                if index % 4 < 2 { invite.await.decided() == Ok(Ok(())) } else { create.await.decided() == Ok(()) }
            }
        }))
        .await;
    assert_eq!(created.iter().filter(|created| **created).count(), 1);
    assert_eq!(world.accounts(Some(world.organization)).await.len(), 1);
}

/// An expired invitation cannot be used and is not listed; its address is free for another invitation or account of the
/// organization, which inherits nothing from it.
pub async fn expired_invitation_is_replaced(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for by_account in [false, true] {
        let (invitation, _) = world.invited(Role::Admin).await;
        world.drafted(&invitation).await;
        let open = world.open(&invitation).await.unwrap();
        world.clock.advance_millis(INVITATION_SECONDS * 1000 - 1);
        assert!(world.open(&invitation).await.is_some());
        world.clock.advance_millis(1);
        assert!(world.open(&invitation).await.is_none());
        assert!(!world.writes(world.write_draft(&invitation)).await);
        let late = world.confirm_enrolment(&open, TimeStep::at(world.now()));
        assert!(!world.confirms(late).await);
        let listed = |list: Vec<ListedAccount>| list.iter().any(|row| row.grant.account == invitation.grant.account);
        assert!(!listed(world.accounts(Some(world.organization)).await));

        if by_account {
            let successor = world.new_holder(Role::Viewer).at(&invitation.grant.email);
            let outcome = world.run(world.create_account(&successor)).await.decided();
            assert_eq!(outcome, Ok(()));
            assert_eq!(world.read(&successor).await.account, successor.account);
        } else {
            let successor = world.invitation_for(&invitation.grant.email, Role::Viewer);
            world.invites(world.invite(&Principal::Operator, &successor)).await.unwrap();
            assert!(world.open(&successor).await.unwrap().draft.is_none());
        }
        assert!(world.open(&invitation).await.is_none());
        let by_id = AccountKey::Id(world.organization, invitation.grant.account);
        assert_eq!(world.find(Principal::Operator, by_id).await, None, "it is gone");
    }
}

/// Without an organization no invitation is created and the address stays free.
pub async fn invitation_requires_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let nowhere = OrganizationId::from_uuid(world.ids.random());
    let (at_home, _) = world.invitation(Role::Viewer);
    let mut invitation = at_home.clone();
    invitation.grant.organization = nowhere;
    let outcome = world.invites(world.invite(&Principal::Operator, &invitation)).await;
    assert_eq!(outcome, Err(Refusal::NoOrganization));
    assert_eq!(world.audited_in(nowhere, AuditAction::AccountInvited).await, 0);
    world.invites(world.invite(&Principal::Operator, &at_home)).await.unwrap();
}

/// Only the newest draft can be confirmed.
pub async fn newest_draft_applies(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (invitation, address) = world.invited(Role::Editor).await;
    world.drafted(&invitation).await;
    let first = world.open(&invitation).await.unwrap();
    let draft = world.drafted(&invitation).await;
    let second = world.open(&invitation).await.unwrap();
    assert_eq!(second.draft, Some(draft.clone()));
    assert_eq!(second.invitation, first.invitation, "a draft changes nothing else");
    assert_eq!(world.audited(AuditAction::EnrolmentDrafted).await, 2);

    let step = TimeStep::at(world.now());
    assert!(!world.confirms(world.confirm_enrolment(&first, step)).await);
    assert_eq!(world.account(&address).await, None);
    assert!(world.confirms(world.confirm_enrolment(&second, step)).await);
    let holder = holder_of(&world, &invitation, &address).await;
    assert_eq!(holder.secrets, draft.secrets);
}

/// A confirmed invitation becomes an ordinary account, created now, with the recovery codes of the draft; the
/// confirming passcode is used up. Nothing remains of the invitation.
pub async fn confirmed_invitation_creates_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (invitation, address) = world.invited(Role::Editor).await;
    let draft = world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    world.clock.advance_seconds(60);
    let step = TimeStep::at(world.now());
    assert!(world.confirms(world.confirm_enrolment(&open, step)).await);

    let grant = AccountRights { state: AccountState::Active, ..invitation.grant.clone() };
    let account = Account::new(grant, draft.secrets.id, world.now());
    let listed = world.account(&address).await.expect("the account is there");
    assert_eq!((&listed.grant, listed.created_at), (&account.grant, world.now()));
    assert_eq!(world.accounts(Some(world.organization)).await, [listed]);
    assert!(world.open(&invitation).await.is_none());
    assert!(!world.writes(world.write_draft(&invitation)).await);
    assert!(!world.confirms(world.confirm_enrolment(&open, TimeStep(step.0 + 1))).await);
    assert_eq!(world.audited(AuditAction::AccountEnrolled).await, 1);

    let holder = holder_of(&world, &invitation, &address).await;
    assert_eq!((&holder.account, &holder.secrets), (&account, &draft.secrets));
    for (spent, outcome) in [
        (TimeStep(step.0 - 1), AttemptOutcome::Refused(LoginRefusal::ReusedPasscode)),
        (step, AttemptOutcome::Refused(LoginRefusal::ReusedPasscode)),
        (TimeStep(step.0 + 1), AttemptOutcome::Completed),
    ] {
        let login = world.complete_login(&holder, world.network(), PasscodeProof::Step(spent));
        assert_eq!(world.conclude(login).await, outcome);
    }
    let code = PasscodeProof::RecoveryCode(draft.recovery_codes[3]);
    let login = world.complete_login(&holder, world.network(), code);
    let session = super::tools::principal_of(&login);
    assert_eq!(world.conclude(login).await, AttemptOutcome::Completed);
    let own = world.own_account(&session).await;
    assert_eq!(own.account, account);
    assert_eq!(own.recovery_codes_left, 9);
}

/// Of concurrent confirmations exactly one creates the account.
pub async fn parallel_confirmations_create_one_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (invitation, _) = world.invited(Role::Editor).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    let step = TimeStep::at(world.now());
    let confirmed = race((0..16).map(|_| {
        let confirming = world.running(&world.store, Principal::Operator, world.confirm_enrolment(&open, step));
        async move { confirming.await.decided() == Ok(()) }
    }))
    .await;
    assert_eq!(confirmed.iter().filter(|confirmed| **confirmed).count(), 1);
    assert_eq!(world.audited(AuditAction::AccountEnrolled).await, 1);
    assert_eq!(world.accounts(Some(world.organization)).await.len(), 1);
}

/// An invitation that changed since it was read, or belongs to another, cannot be drafted or confirmed.
pub async fn stray_draft_or_confirmation_changes_nothing(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (invitation, address) = world.invited(Role::Editor).await;
    let (second, _) = world.invited(Role::Admin).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    let entries = world.audit_length().await;

    let draft = || world.write_draft(&invitation);
    for stray in [
        WriteDraft { code: second.code, ..draft() },
        WriteDraft { account: second.grant.account, ..draft() },
        WriteDraft { organization: other.organization, ..draft() },
    ] {
        assert!(!world.writes(stray).await);
    }
    let step = TimeStep::at(world.now());
    let confirm = || world.confirm_enrolment(&open, step);
    for stray in [
        ConfirmEnrolment { code: second.code, ..confirm() },
        ConfirmEnrolment { secrets: world.secrets().id, ..confirm() },
        ConfirmEnrolment { organization: other.organization, ..confirm() },
        ConfirmEnrolment { account: second.grant.account, ..confirm() },
    ] {
        assert!(!world.confirms(stray).await);
    }
    assert_eq!(world.account(&address).await, None);
    assert_eq!(world.open(&invitation).await.unwrap().draft, open.draft);
    assert!(world.open(&second).await.unwrap().draft.is_none());
    assert_eq!((world.audit_length().await, other.audited(AuditAction::AccountEnrolled).await), (entries, 0));
    assert!(world.confirms(confirm()).await);
}

/// Invitations of a disabled organization cannot be used until it is enabled again.
pub async fn disabled_organization_refuses_enrolment(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (invitation, _) = world.invited(Role::Editor).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    world.set_state(OrganizationState::Disabled).await;
    assert!(world.open(&invitation).await.is_none());
    assert!(!world.writes(world.write_draft(&invitation)).await);
    let confirm = || world.confirm_enrolment(&open, TimeStep::at(world.now()));
    assert!(!world.confirms(confirm()).await);
    world.set_state(OrganizationState::Active).await;
    assert!(world.confirms(confirm()).await);
}

/// A change of the role replaces only the rights. The role at the confirmation applies.
pub async fn invited_role_is_replaced(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (invitation, address) = world.invited(Role::Admin).await;
    world.drafted(&invitation).await;
    let before = world.open(&invitation).await.unwrap();
    let change = InvitationChange::Role(Role::Viewer);
    let command = world.change_invitation(&Principal::Operator, &invitation, change);
    for _ in 0..2 {
        let listed = world.run(command.clone()).await.unwrap();
        assert_eq!(listed.grant, invitation.with_role(Role::Viewer).grant);
    }

    let after = world.open(&invitation).await.unwrap();
    assert_eq!(*after.invitation, invitation.with_role(Role::Viewer));
    assert_eq!(after.invitation.version(), before.invitation.version() + 1, "nothing changes twice");
    assert_eq!(after.draft, before.draft);
    assert_eq!(world.audited(AuditAction::InvitationChanged).await, 1);

    let step = TimeStep::at(world.now());
    assert!(world.confirms(world.confirm_enrolment(&before, step)).await);
    assert_eq!(world.account(&address).await.unwrap().grant.role, Role::Viewer);
}

/// A withdrawn invitation is deleted, whether pending or expired, and its address can be used again.
pub async fn invitation_is_withdrawn(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for over in [false, true] {
        let (invitation, _) = world.invited(Role::Admin).await;
        world.drafted(&invitation).await;
        if over {
            world.clock.advance_seconds(INVITATION_SECONDS);
        }
        let withdraw = || world.change_invitation(&Principal::Operator, &invitation, InvitationChange::Delete);
        let mut elsewhere = withdraw();
        elsewhere.payload.organization = other.organization;
        assert_eq!(world.run(elsewhere).await.decided(), Err(Refusal::NotFound));
        world.run(withdraw()).await.unwrap();
        assert_eq!(world.run(withdraw()).await.decided(), Err(Refusal::NotFound));
        assert!(world.open(&invitation).await.is_none());
        assert_eq!(world.find(Principal::Operator, by_address(&invitation.grant.email)).await, None);
        let successor = other.new_holder(Role::Viewer).at(&invitation.grant.email);
        let outcome = other.run(other.create_account(&successor)).await.decided();
        assert_eq!(outcome, Ok(()));
    }
    assert_eq!(world.audited(AuditAction::InvitationDeleted).await, 2);
    assert_eq!(other.audited(AuditAction::InvitationDeleted).await, 0);
}

/// An admin's session creates and withdraws invitations only in its own organization, while it is valid.
pub async fn admin_session_manages_only_own_invitations(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let admin = world.holder(Role::Admin).await;
    let session = world.log_in(&admin).await;
    let authority = Principal::Session(session.clone());

    let (invitation, _) = world.invitation(Role::Viewer);
    let invitation = Invitation { invited_by: Some(session.account), ..invitation };
    let outcome = world.invites(world.invite(&authority, &invitation)).await;
    assert_eq!(outcome, Ok(()));
    let open = world.open(&invitation).await.unwrap();
    assert_eq!(*open.invitation, invitation);
    assert_eq!(open.invited_by, Some(admin.account.grant.email.clone()));
    let (foreign, _) = other.invitation(Role::Viewer);
    let foreign = Invitation { invited_by: Some(session.account), ..foreign };
    let outcome = other.invites(other.invite(&Principal::Operator, &foreign)).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(other.open(&foreign).await.unwrap().invited_by, None, "no account of another organization");
    let (theirs, _) = other.invitation(Role::Viewer);
    let outcome = other.invites(other.invite(&authority, &theirs)).await;
    assert_eq!(outcome, Err(Refusal::NoOrganization));
    let (theirs, _) = other.invited(Role::Viewer).await;
    let withdrawal = other.change_invitation(&authority, &theirs, InvitationChange::Delete);
    assert_eq!(other.run(withdrawal).await.decided(), Err(Refusal::NotFound));
    assert!(other.open(&theirs).await.is_some());

    let before = world.open(&invitation).await.unwrap();
    world.log_out(&session).await;
    let entries = world.audit_length().await;
    let ended = Denial::SessionEnded;
    let (second, _) = world.invitation(Role::Viewer);
    let outcome = world.run(world.invite(&authority, &second)).await;
    assert_eq!(outcome.settled().map(drop), Err(ended));
    for change in [InvitationChange::Delete, InvitationChange::Role(Role::Viewer)] {
        let command = world.change_invitation(&authority, &invitation, change);
        assert_eq!(world.run(command).await.settled(), Err(ended));
    }
    assert_eq!(world.open(&invitation).await.unwrap().invitation, before.invitation);
    assert_eq!(world.audit_length().await, entries);
}

/// A role change concurrent with a confirmation never grants a role that was revoked before.
pub async fn concurrently_lowered_role_is_lowered(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for _ in 0..8 {
        let (invitation, address) = world.invited(Role::Admin).await;
        world.drafted(&invitation).await;
        let open = world.open(&invitation).await.unwrap();
        let confirmation = world.confirm_enrolment(&open, TimeStep::at(world.now()));
        let change = InvitationChange::Role(Role::Viewer);
        let lowering = world.change_invitation(&Principal::Operator, &invitation, change);
        let done =
            race(
                [true, false].map(|confirm| {
                    let confirming = world.running(&world.store, Principal::Operator, confirmation.clone());
                    let lowering = world.running_by(lowering.clone());
                    async move {
                        if confirm { confirming.await.decided() == Ok(()) } else { lowering.await.decided().is_ok() }
                    }
                }),
            )
            .await;
        assert!(done[0], "it is confirmed with one role or the other");
        let role = if done[1] { Role::Viewer } else { Role::Admin };
        assert_eq!(world.account(&address).await.map(|account| account.grant.role), Some(role));
    }
}

/// Returns the secrets of the user of a confirmed invitation.
async fn holder_of(world: &World<'_>, invitation: &Invitation, address: &EmailAddress) -> Holder {
    let attempt = world.attempt(address, world.network());
    let Reservation::Account(facts) = world.reserve_attempt(attempt).await else { panic!("the account is there") };
    assert_eq!(facts.account.grant, invitation.enrolled());
    Holder { account: facts.account, secrets: facts.secrets.expect("they open"), recovery_codes: Vec::new() }
}
