//! Cases of account re-enrolment: [`AccountChange::ReEnrol`] and the confirmation of its invitation.

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{By, Settled as _, by_address, principal_of, race};
use super::world::{Holder, World};
use vault_core::Refusal;
use vault_core::account::{AccountChange, AccountSecrets, AccountState, FoundAccount};
use vault_core::audit::AuditAction;
use vault_core::invitation::{ConfirmEnrolment, INVITATION_SECONDS};
use vault_core::login::{AttemptOutcome, Reservation};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::LoginRefusal;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;

/// Re-enrolment invalidates all secrets of the user. ID, address, role and login records remain, and the account is
/// listed once. Its address remains in use.
pub async fn re_enrolling_account_cannot_log_in(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let login = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(holder.recovery_codes[0]));
    world.log_in(&holder).await;
    let before = world.read(&holder).await;
    world.clock.advance_seconds(60);
    let invitation = world.re_enrolling(&holder).await;

    let account = world.read(&holder).await;
    let after = before.account.without_secrets(world.now());
    assert_eq!(after.grant.state, AccountState::ReEnrolling);
    assert_eq!((&account.account, &account.logins), (&after, &before.logins));
    assert_eq!(account.listed.invitation_expires_at, Some(world.now().plus_seconds(INVITATION_SECONDS)));
    assert_eq!(world.accounts(Some(world.organization)).await, std::slice::from_ref(&account.listed));
    let found = Some(FoundAccount::Account(Box::new(account.listed)));
    assert_eq!(world.find(Principal::Operator, by_address(&holder.account.grant.email)).await, found);

    let (organization, account) = (world.organization, holder.account.grant.account);
    let closed = Reservation::Disabled(organization, account);
    assert_eq!(format!("{:?}", world.reserve(&holder, world.network()).await), format!("{closed:?}"));
    assert_eq!(world.conclude(login).await, AttemptOutcome::Refused(LoginRefusal::Overtaken));
    let again = world.invitation_for(&holder.account.grant.email, Role::Admin);
    assert_eq!(world.invites(world.invite(&Principal::Operator, &again)).await, Err(Refusal::AddressInUse));

    let open = world.open(&invitation).await.expect("it is open");
    assert_eq!(*open.invitation, invitation);
    assert_eq!(open.draft, None);
    assert_eq!(world.audited(AuditAction::AccountReEnrolled).await, 1);
}

/// After confirmation the account is restored with the secrets of the draft. Nothing remains of the invitation, and the
/// confirming passcode is used up.
pub async fn re_enrolled_account_keeps_role_and_data(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    world.log_in(&holder).await;
    let before = world.read(&holder).await;
    for _ in 0..3 {
        world.conclude(world.refuse(&holder, true)).await;
    }
    let invitation = world.re_enrolling(&holder).await;
    world.clock.advance_seconds(60);
    let draft = world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    let PasscodeProof::Step(step) = world.fresh_step() else { panic!("a step") };
    assert!(world.confirms(world.confirm_enrolment(&open, step)).await);
    let AccountSecrets { id, .. } = draft.secrets;
    let enrolled = Holder {
        account: before.account.without_secrets(world.now()).re_enrolled(id, world.now()),
        secrets: draft.secrets,
        recovery_codes: draft.recovery_codes,
    };

    let account = world.read(&holder).await;
    assert_eq!(account.account, enrolled.account);
    assert_eq!(account.account.grant, before.account.grant);
    assert_eq!(account.listed.invitation_expires_at, None);
    assert_eq!(account.logins.last_login_at, before.logins.last_login_at);
    assert!(!account.logins.is_locked());
    assert_eq!(account.logins.wrong_passcodes, 0);
    assert_eq!(world.accounts(Some(world.organization)).await, [account.listed]);
    assert!(world.open(&invitation).await.is_none());
    assert!(!world.writes(world.write_draft(&invitation)).await);
    assert!(!world.confirms(world.confirm_enrolment(&open, TimeStep(step.0 + 1))).await);

    let facts = match world.reserve(&holder, world.network()).await {
        Reservation::Account(facts) => *facts,
        other => panic!("it is active: {other:?}"),
    };
    assert_eq!(facts.secrets.as_ref(), Some(&enrolled.secrets));
    let conclude =
        async |holder: &Holder, proof| world.conclude(world.complete_login(holder, world.network(), proof)).await;
    let overtaken = AttemptOutcome::Refused(LoginRefusal::Overtaken);
    let old_code = PasscodeProof::RecoveryCode(holder.recovery_codes[0]);
    assert_eq!(conclude(&holder, old_code).await, overtaken);
    assert_eq!(conclude(&holder, world.fresh_step()).await, overtaken);
    assert_eq!(conclude(&enrolled, old_code).await, AttemptOutcome::Refused(LoginRefusal::WrongPasscode));
    let spent = conclude(&enrolled, PasscodeProof::Step(step)).await;
    assert_eq!(spent, AttemptOutcome::Refused(LoginRefusal::ReusedPasscode));
    let by_code = PasscodeProof::RecoveryCode(enrolled.recovery_codes[3]);
    assert_eq!(conclude(&enrolled, by_code).await, AttemptOutcome::Completed);
    let session = world.log_in(&enrolled).await;
    let own = world.own_account(&session).await;
    assert_eq!((own.account.passcode_enrolled_at, own.recovery_codes_left), (world.now(), 9));
    assert_eq!(world.audited(AuditAction::AccountEnrolled).await, 1);
}

/// A repeated re-enrolment invalidates the earlier code and everything drafted with it.
pub async fn newest_re_enrolment_applies(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let first = world.re_enrolling(&holder).await;
    world.drafted(&first).await;
    let open = world.open(&first).await.unwrap();
    let second = world.re_enrolling(&holder).await;
    assert!(world.open(&first).await.is_none());
    assert!(!world.writes(world.write_draft(&first)).await);
    let step = TimeStep::at(world.now());
    assert!(!world.confirms(world.confirm_enrolment(&open, step)).await);
    assert!(world.open(&second).await.unwrap().draft.is_none(), "the draft went with its code");
    let enrolled = world.re_enrolled(&second).await;
    world.log_in(&enrolled).await;
}

/// After an expired re-enrolment the account stays without secrets until a new re-enrolment.
pub async fn expired_re_enrolment_revives_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    for _ in 0..2 {
        let invitation = world.re_enrolling(&holder).await;
        world.drafted(&invitation).await;
        let open = world.open(&invitation).await.unwrap();
        world.clock.advance_seconds(INVITATION_SECONDS);
        assert!(world.open(&invitation).await.is_none());
        assert!(!world.writes(world.write_draft(&invitation)).await);
        assert!(!world.confirms(world.confirm_enrolment(&open, TimeStep::at(world.now()))).await);
        let account = world.read(&holder).await;
        assert_eq!((account.account.secrets, account.account.grant.state), (None, AccountState::ReEnrolling));
        assert_eq!(account.listed.invitation_expires_at, None);
        let reservation = world.reserve(&holder, world.network()).await;
        assert!(matches!(reservation, Reservation::Disabled(..)), "{reservation:?}");
    }
    let invitation = world.re_enrolling(&holder).await;
    world.re_enrolled(&invitation).await;
}

/// Role and state are those of the account at confirmation, not at the request.
pub async fn role_and_state_at_confirmation_apply(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for state in [AccountState::ReEnrolling, AccountState::Disabled] {
        let holder = world.holder(Role::Admin).await;
        let invitation = world.re_enrolling(&holder).await;
        world.drafted(&invitation).await;
        let open = world.open(&invitation).await.unwrap();
        world.change(&holder, regrant(Role::Viewer, state)).await;
        assert!(world.confirms(world.confirm_enrolment(&open, TimeStep::at(world.now()))).await);
        let grant = world.read(&holder).await.account.grant;
        let active = state == AccountState::ReEnrolling;
        let expected = if active { AccountState::Active } else { AccountState::Disabled };
        assert_eq!((grant.role, grant.state), (Role::Viewer, expected));
        let reservation = world.reserve(&holder, world.network()).await;
        assert_eq!(matches!(reservation, Reservation::Account(_)), active, "{reservation:?}");
    }
}

/// Deleting an account deletes its enrolment code, and its address is free.
pub async fn deleted_account_is_not_re_enrolled(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Admin).await;
    let invitation = world.re_enrolling(&holder).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    world.change(&holder, AccountChange::Delete).await;
    assert!(world.open(&invitation).await.is_none());
    let confirmation = || world.confirm_enrolment(&open, TimeStep::at(world.now()));
    assert!(!world.confirms(confirmation()).await);
    let as_new = ConfirmEnrolment { re_enrols: false, ..confirmation() };
    assert!(!world.confirms(as_new).await);
    assert_eq!(world.account(&holder.account.grant.email).await, None);
    assert_eq!(world.accounts(Some(world.organization)).await, []);
    let again = world.new_holder(Role::Viewer).at(&holder.account.grant.email);
    assert_eq!(world.run(world.create_account(&again)).await.decided(), Ok(()));
}

/// An invitation for a new account cannot re-enrol one, and one for re-enrolment cannot create one.
pub async fn confirmation_creates_or_re_enrols_by_invitation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let re_enrolment = world.re_enrolling(&holder).await;
    let (invitation, _) = world.invited(Role::Admin).await;
    let before = world.read(&holder).await;
    let step = TimeStep::at(world.now());
    for (invitation, re_enrols) in [(&re_enrolment, false), (&invitation, true)] {
        world.drafted(invitation).await;
        let open = world.open(invitation).await.unwrap();
        let command = ConfirmEnrolment { re_enrols, ..world.confirm_enrolment(&open, step) };
        assert_eq!(world.operate(&Principal::Operator, command).await.decided(), Err(Refusal::InvalidEnrolment));
    }
    assert_eq!(world.read(&holder).await, before);
    assert_eq!(world.audited(AuditAction::AccountEnrolled).await, 0);
}

/// Users of a disabled organization cannot re-enrol until it is enabled again.
pub async fn disabled_organization_refuses_re_enrolment(suite: &dyn ContractStore) {
    use vault_core::organization::OrganizationState;
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let invitation = world.re_enrolling(&holder).await;
    world.drafted(&invitation).await;
    let open = world.open(&invitation).await.unwrap();
    world.set_state(OrganizationState::Disabled).await;
    assert!(world.open(&invitation).await.is_none());
    assert!(!world.confirms(world.confirm_enrolment(&open, TimeStep::at(world.now()))).await);
    world.set_state(OrganizationState::Active).await;
    world.re_enrolled(&invitation).await;
}

/// An admin requires re-enrolment only of accounts in the admin's organization.
pub async fn session_re_enrols_only_in_its_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (admin, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Admin).await);
    let stranger = other.holder(Role::Viewer).await;
    let session = world.log_in(&admin).await;
    let by = |command| By { principal: Principal::Session(session.clone()), ..command };
    let (before, entries) = (other.read(&stranger).await, other.audit_length().await);
    let (change, foreign) = other.re_enrolment(&stranger);
    let command = by(other.change_account(&stranger, change));
    assert_eq!(other.run(command).await.decided().map(drop), Err(Refusal::NotFound));
    assert!(other.open(&foreign).await.is_none());
    assert_eq!((other.read(&stranger).await, other.audit_length().await), (before, entries));

    let (change, invitation) = world.re_enrolment(&colleague);
    let command = by(world.change_account(&colleague, change));
    assert_eq!(world.run(command).await.decided().map(drop), Ok(()));
    assert!(world.open(&invitation).await.is_some());
    let own = world.list_accounts(Principal::Session(session.clone()), Scope::One(world.organization));
    let states: Vec<_> = world.run(own).await.unwrap().iter().map(|row| row.grant.state).collect();
    assert_eq!(states, [AccountState::ReEnrolling, AccountState::Active]);
}

/// The user and every other admin of the organization are notified each time; only the newest notice is kept.
pub async fn owner_and_admins_get_notice_of_re_enrolment(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let [first, second, disabled, target] = [
        world.holder(Role::Admin).await,
        world.holder(Role::Admin).await,
        world.holder(Role::Admin).await,
        world.holder(Role::Admin).await,
    ];
    let (editor, stranger) = (world.holder(Role::Editor).await, other.holder(Role::Admin).await);
    world.change(&disabled, regrant(Role::Admin, AccountState::Disabled)).await;
    let third = world.holder(Role::Viewer).await;
    world.re_enrolling(&target).await;
    world.clock.advance_seconds(1);
    world.re_enrolling(&third).await;
    let invitation = world.re_enrolling(&target).await;
    let at = world.now().as_millis();

    let about = |holder: &Holder| (NoticeCode::ColleagueReEnrolled(holder.account.grant.account), at);
    let reported = async |world: &World<'_>, holder: &Holder| {
        let mut notices = world.notices(&world.log_in(holder).await).await;
        notices.sort_by_key(|(code, _)| code.stored().into_owned());
        notices
    };
    let mut both = vec![about(&target), about(&third)];
    both.sort_by_key(|(code, _)| code.stored().into_owned());
    assert_eq!(reported(&world, &first).await, both);
    assert_eq!(reported(&world, &second).await, both);
    assert_eq!(reported(&world, &editor).await, []);
    assert_eq!(reported(&other, &stranger).await, []);
    world.change(&disabled, regrant(Role::Admin, AccountState::Active)).await;
    let disabled = Holder { account: world.read(&disabled).await.account, ..disabled };
    assert_eq!(reported(&world, &disabled).await, both, "also one that cannot see it yet");
    let enrolled = world.re_enrolled(&invitation).await;
    assert_eq!(reported(&world, &enrolled).await, [about(&third), (NoticeCode::ReEnrolled, at)]);
}

/// Of concurrent confirmations exactly one succeeds.
pub async fn parallel_confirmations_re_enrol_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let invitation = world.re_enrolling(&holder).await;
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
}

/// A role change, a deletion or another re-enrolment concurrent with a confirmation runs entirely before or after it: no
/// change is lost.
pub async fn concurrent_change_survives_re_enrolment(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for round in 0..12 {
        let holder = world.holder(Role::Admin).await;
        let invitation = world.re_enrolling(&holder).await;
        world.drafted(&invitation).await;
        let open = world.open(&invitation).await.unwrap();
        let confirmation = world.confirm_enrolment(&open, TimeStep::at(world.now()));
        let wanted = match round % 3 {
            0 => AccountChange::Role(Role::Viewer),
            1 => AccountChange::Delete,
            _ => world.re_enrolment(&holder).0,
        };
        let change = world.change_account(&holder, wanted.clone());
        let done = race([true, false].map(|confirm| {
            let confirming = world.running(&world.store, Principal::Operator, confirmation.clone());
            let changing = world.running_by(change.clone());
            async move {
                match confirm {
                    true => confirming.await.decided().is_ok(),
                    false => changing.await.decided().is_ok(),
                }
            }
        }))
        .await;
        assert!(done[1], "an operator changes any account");
        let grant = world.account(&holder.account.grant.email).await.map(|account| account.grant);
        let (role, state) = (grant.as_ref().map(|grant| grant.role), grant.as_ref().map(|grant| grant.state));
        match wanted {
            AccountChange::Delete => assert_eq!(grant, None),
            AccountChange::Role(_) => {
                assert_eq!((done[0], role, state), (true, Some(Role::Viewer), Some(AccountState::Active)))
            }
            _ => assert_eq!(state, Some(AccountState::ReEnrolling)),
        }
    }
}

/// A login concurrent with a re-enrolment is rejected, or its session has already ended when it returns.
pub async fn concurrent_login_leaves_no_session_after_re_enrolment(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for _ in 0..8 {
        let holder = world.holder(Role::Editor).await;
        let login = world.complete_login(&holder, world.network(), world.fresh_step());
        let session = principal_of(&login);
        let (change, _) = world.re_enrolment(&holder);
        let change = world.change_account(&holder, change);
        let done = race([true, false].map(|logs_in| {
            let change = world.running_by(change.clone());
            let login = world.concluding(login.clone());
            async move {
                match logs_in {
                    true => login.await == AttemptOutcome::Completed,
                    false => change.await.decided().is_ok(),
                }
            }
        }))
        .await;
        assert!(done[1], "a login does not touch what it was decided on");
        assert!(world.acts(&session).await.is_err());
        assert_eq!(world.read(&holder).await.account.grant.state, AccountState::ReEnrolling);
    }
}
