//! Cases of the last step of a login attempt: [`FinishAttempt`](vault_core::login::FinishAttempt).

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{Conclusion, principal_of, proof_of, race};
use super::world::{Holder, Wanted, World};
use vault_core::account::{AccountChange, AccountSecrets, AccountState};
use vault_core::audit::AuditAction;
use vault_core::lockout::{CLOSING_ATTEMPTS, FORGIVEN_SECONDS, WRONG_PASSCODES};
use vault_core::login::{AttemptOutcome, Reservation, VerifiedFactors};
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::LoginRefusal;
use vault_core::role::Role;

/// A login creates a working session, the time of the login and an audit record.
pub async fn login_creates_session(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    assert_eq!(world.read(&holder).await.logins.last_login_at, None);
    world.clock.advance_seconds(5);
    let sessions = [world.log_in(&holder).await, world.log_in(&holder).await];
    for session in sessions {
        assert_eq!(world.acts(&session).await, Ok(()));
    }
    assert_eq!(world.read(&holder).await.logins.last_login_at, Some(world.now()));
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, 2);
}

/// A time step can be used for one login, even if attempts run concurrently.
pub async fn step_is_spent_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    spent_once(&world, &holder, world.fresh_step()).await;
}

/// A recovery code can be used for one login, even if attempts run concurrently.
pub async fn recovery_code_is_spent_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let [code, other, ..] = holder.recovery_codes[..] else { panic!("there are ten") };
    spent_once(&world, &holder, PasscodeProof::RecoveryCode(code)).await;
    let other = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(other));
    completes(&world, other).await;
}

/// After a time step was used, it and all earlier ones are rejected. A rejection changes nothing.
pub async fn earlier_step_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let step = TimeStep::at(world.now());
    let at = |step| world.complete_login(&holder, world.network(), PasscodeProof::Step(step));
    completes(&world, at(step)).await;
    let before = world.read(&holder).await;
    world.clock.advance_seconds(1);
    for spent in [step, TimeStep(step.0 - 1), TimeStep(step.0 - 1_000)] {
        refused(&world, at(spent), AttemptOutcome::Refused(LoginRefusal::ReusedPasscode)).await;
    }
    assert_eq!(world.read(&holder).await.account, before.account);
    completes(&world, at(TimeStep(step.0 + 1))).await;
}

/// A recovery code that was never issued, or belongs to another account, is rejected.
pub async fn only_own_recovery_codes_are_accepted(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    for code in [world.recovery_code(), colleague.recovery_codes[0]] {
        let command = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(code));
        refused(&world, command, AttemptOutcome::Refused(LoginRefusal::WrongPasscode)).await;
    }
    let code = PasscodeProof::RecoveryCode(colleague.recovery_codes[0]);
    completes(&world, world.complete_login(&colleague, world.network(), code)).await;
}

/// A recovery code does not affect time steps, and works when they are disabled.
pub async fn recovery_code_spends_no_step(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let step = world.fresh_step();
    for proof in [PasscodeProof::RecoveryCode(holder.recovery_codes[0]), step] {
        completes(&world, world.complete_login(&holder, world.network(), proof)).await;
    }
}

/// If role, state, password, TOTP secret, account or organization changed since the reservation, the login is rejected
/// and the passcode is not used up.
pub async fn login_fails_after_concurrent_account_change(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    type Change = fn(&World<'_>, &Holder) -> Wanted;
    let changes: [Change; 4] = [
        |_, _| AccountChange::Role(Role::Admin).into(),
        |_, _| AccountChange::Disable.into(),
        |world, holder| world.re_enrolment(holder).0.into(),
        |_, _| AccountChange::Delete.into(),
    ];
    for change in changes {
        let holder = world.holder(Role::Viewer).await;
        let command = login_by_code(&world, &holder);
        let change = change(&world, &holder);
        world.change(&holder, change.clone()).await;
        refused(&world, command, AttemptOutcome::Refused(LoginRefusal::Overtaken)).await;

        if matches!(change.0[..], [AccountChange::ReEnrol(_) | AccountChange::Delete]) {
            continue;
        }
        // With the new values, the same passcode is accepted.
        world.change(&holder, regrant(Role::Viewer, AccountState::Active)).await;
        let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
        let holder = holder.as_reserved(&facts);
        completes(&world, login_by_code(&world, &holder)).await;
    }
}

/// The same applies to changes of the organization.
pub async fn login_fails_after_organization_is_disabled(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    world.set_state(OrganizationState::Disabled).await;
    refused(&world, login_by_code(&world, &holder), AttemptOutcome::Refused(LoginRefusal::Overtaken)).await;
    world.set_state(OrganizationState::Active).await;
    completes(&world, login_by_code(&world, &holder)).await;

    world.delete_organization().await;
    let late = world.complete_login(&holder, world.network(), world.fresh_step());
    let outcome = world.conclude(late).await;
    assert_eq!(outcome, AttemptOutcome::Refused(LoginRefusal::Overtaken));
}

/// A rehash with new parameters is stored and does not count as a password change: a concurrent login completes.
pub async fn rehash_is_no_password_change(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let other_login =
        world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(holder.recovery_codes[0]));
    let mut command = world.complete_login(&holder, world.network(), world.fresh_step());
    let rehashed = world.secrets().password;
    proof_of(&mut command).rehashed = Some(rehashed.clone());
    let session = completes(&world, command).await;

    let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(facts.secrets, Some(AccountSecrets { password: rehashed, ..holder.secrets.clone() }));
    assert_eq!(facts.account, holder.account);
    completes(&world, other_login).await;
    assert_eq!(world.acts(&session).await, Ok(()));
}

/// A rejected login stores no rehash.
pub async fn refused_login_stores_no_verifier(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let unknown = PasscodeProof::RecoveryCode(world.recovery_code());
    let mut command = world.complete_login(&holder, world.network(), unknown);
    proof_of(&mut command).rehashed = Some(world.secrets().password);
    refused(&world, command, AttemptOutcome::Refused(LoginRefusal::WrongPasscode)).await;
    let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(facts.secrets, Some(holder.secrets));
}

/// Twenty wrong passcodes within a week, regardless of successes in between, disable time steps but not recovery codes,
/// until the TOTP secret is replaced.
pub async fn twenty_wrong_passcodes_disable_steps(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let by_step = |holder: &Holder| world.complete_login(holder, world.network(), world.fresh_step());
    for _ in 1..WRONG_PASSCODES {
        refuse(&world, &holder, true).await;
        refuse(&world, &holder, false).await;
    }
    completes(&world, by_step(&holder)).await;
    assert_eq!(world.conclude(world.refuse(&holder, true)).await, AttemptOutcome::PasscodeDisabled);
    let disabled = AttemptOutcome::Refused(LoginRefusal::PasscodeDisabled);
    refused(&world, by_step(&holder), disabled).await;
    let logins = world.read(&holder).await.logins;
    assert!(logins.passcode_disabled() && logins.is_locked());
    assert_eq!((logins.wrong_passcode_at, logins.locked_since()), (Some(world.now()), Some(world.now())));
    completes(&world, login_by_code(&world, &holder)).await;
    world.clock.advance_seconds(100 * FORGIVEN_SECONDS);
    refused(&world, by_step(&holder), disabled).await;
    world.change(&holder, AccountChange::Unlock).await;
    refused(&world, by_step(&holder), disabled).await;

    let again = world.re_enrolled(&world.re_enrolling(&holder).await).await;
    completes(&world, by_step(&again)).await;
    assert_eq!(world.read(&holder).await.logins.wrong_passcodes, 0);
    // Three were rejected because time steps were disabled.
    let wrong = usize::try_from(WRONG_PASSCODES).unwrap();
    assert_eq!(world.audited(AuditAction::LoginPasscodeRefused).await, wrong + 3);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, wrong - 1);
}

/// A correct but used time step is rejected and does not count as a wrong passcode; an unknown recovery code does.
pub async fn spent_step_does_not_count_as_wrong(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let step = world.fresh_step();
    completes(&world, world.complete_login(&holder, world.network(), step)).await;
    for _ in 0..WRONG_PASSCODES {
        let again = world.complete_login(&holder, world.network(), step);
        refused(&world, again, AttemptOutcome::Refused(LoginRefusal::ReusedPasscode)).await;
    }
    assert_eq!(world.read(&holder).await.logins.wrong_passcodes, 0);
    completes(&world, world.complete_login(&holder, world.network(), world.fresh_step())).await;
    let unknown = PasscodeProof::RecoveryCode(world.recovery_code());
    let unknown = world.complete_login(&holder, world.network(), unknown);
    refused(&world, unknown, AttemptOutcome::Refused(LoginRefusal::WrongPasscode)).await;
    assert_eq!(world.read(&holder).await.logins.wrong_passcodes, 1);
}

/// One wrong passcode expires for each week since the latest one.
pub async fn wrong_passcode_count_decreases_weekly(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let wrong = async || world.read(&holder).await.logins.wrong_passcodes;
    for _ in 0..3 {
        refuse(&world, &holder, true).await;
    }
    world.clock.advance_millis(FORGIVEN_SECONDS * 1000 - 1);
    assert_eq!(wrong().await, 3);
    world.clock.advance_millis(1);
    assert_eq!(wrong().await, 2);
    refuse(&world, &holder, true).await;
    assert_eq!(wrong().await, 3);
    world.clock.advance_seconds(10 * FORGIVEN_SECONDS);
    assert_eq!(wrong().await, 0);
}

/// The wrong passcode that disables the time steps is recorded once and the user is notified, regardless of concurrent
/// or later ones.
pub async fn twentieth_wrong_passcode_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    for _ in 2..WRONG_PASSCODES {
        refuse(&world, &holder, true).await;
    }
    assert_eq!(world.audited(AuditAction::LoginPasscodeDisabled).await, 0);
    world.clock.advance_seconds(1);
    race((0..8).map(|_| world.concluding(world.refuse(&holder, true)))).await;
    let disabled_at = world.now().as_millis();
    world.clock.advance_seconds(1);
    refuse(&world, &holder, true).await;
    assert_eq!(world.audited(AuditAction::LoginPasscodeDisabled).await, 1);
    let login = login_by_code(&world, &holder);
    let session = completes(&world, login).await;
    let used_at = world.now().as_millis();
    let reported = [(NoticeCode::PasscodeDisabled, disabled_at), (NoticeCode::RecoveryCodeUsed, used_at)];
    assert_eq!(world.notices(&session).await, reported);
}

/// The audit record of a lockout is written with that of the rejected attempt, if there is one, and with a notice to
/// the user. Neither is written for a successful login.
pub async fn locked_bucket_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let mut refused = world.refuse(&holder, false);
    refused.attempt.attempts = CLOSING_ATTEMPTS;
    world.conclude(refused).await;
    let closed_at = world.now().as_millis();
    world.clock.advance_seconds(1);
    refuse(&world, &holder, false).await;
    assert_eq!(world.audited(AuditAction::LoginLocked).await, 1);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 2);
    let mut login = world.complete_login(&holder, world.network(), world.fresh_step());
    login.attempt.attempts = CLOSING_ATTEMPTS;
    let session = completes(&world, login).await;
    assert_eq!(world.audited(AuditAction::LoginLocked).await, 1);
    assert_eq!(world.notices(&session).await, [(NoticeCode::LoginLocked, closed_at)]);
}

/// A wrong password is rejected regardless of the passcode: no recovery code is used up, and no wrong passcode is
/// counted.
pub async fn wrong_password_spends_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let recovery_code = Some(holder.recovery_codes[0]);
    let command = world.bring(&holder, world.network(), VerifiedFactors::WrongPassword { recovery_code });
    assert_eq!(world.conclude(command).await, AttemptOutcome::Refused(LoginRefusal::WrongPassword));
    let logins = world.read(&holder).await.logins;
    assert_eq!((logins.wrong_passcodes, logins.last_refused_at), (0, Some(world.now())));
    completes(&world, login_by_code(&world, &holder)).await;
}

/// Concurrent wrong passcodes are all counted.
pub async fn parallel_wrong_passcodes_all_count(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    race((0..WRONG_PASSCODES).map(|_| world.concluding(world.refuse(&holder, true)))).await;
    let command = world.complete_login(&holder, world.network(), world.fresh_step());
    refused(&world, command, AttemptOutcome::Refused(LoginRefusal::PasscodeDisabled)).await;
    assert_eq!(world.audited(AuditAction::LoginPasscodeRefused).await, 21);
}

/// A refusal is recorded even if the account no longer exists.
pub async fn refusal_outlives_its_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    world.change(&holder, AccountChange::Delete).await;
    refuse(&world, &holder, true).await;
    refuse(&world, &holder, false).await;
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 2);
}

fn login_by_code(world: &World<'_>, holder: &Holder) -> Conclusion {
    world.complete_login(holder, world.network(), PasscodeProof::RecoveryCode(holder.recovery_codes[0]))
}

async fn refuse(world: &World<'_>, holder: &Holder, wrong_passcode: bool) {
    let conclusion = world.conclude(world.refuse(holder, wrong_passcode)).await;
    assert!(matches!(conclusion, AttemptOutcome::Refused(_)), "{conclusion:?}");
}

/// Asserts that the login completes and its session works.
async fn completes(world: &World<'_>, command: Conclusion) -> vault_core::principal::SessionPrincipal {
    let principal = principal_of(&command);
    assert_eq!(world.conclude(command).await, AttemptOutcome::Completed);
    assert_eq!(world.acts(&principal).await, Ok(()));
    principal
}

/// Asserts that the login has the result `conclusion` in one transaction that records the rejection, without a session
/// or an audit record of a login.
async fn refused(world: &World<'_>, command: Conclusion, conclusion: AttemptOutcome) {
    let recorded = world.audited(AuditAction::LoginSucceeded).await;
    let entries = world.audit_length().await;
    let session = principal_of(&command);
    assert_eq!(world.conclude(command).await, conclusion);
    assert!(world.acts(&session).await.is_err());
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, recorded);
    assert_eq!(world.audit_length().await, entries + 1);
}

/// Asserts that of sixteen concurrent logins with one passcode exactly one completes, and that later ones are rejected.
async fn spent_once(world: &World<'_>, holder: &Holder, proof: PasscodeProof) {
    let logins: Vec<_> = (0..16).map(|_| world.complete_login(holder, world.network(), proof)).collect();
    let principals: Vec<_> = logins.iter().map(principal_of).collect();
    let outcomes = race(logins.into_iter().map(|login| world.concluding(login))).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == AttemptOutcome::Completed).count(), 1);
    let spent = AttemptOutcome::Refused(match proof {
        PasscodeProof::Step(_) => LoginRefusal::ReusedPasscode,
        PasscodeProof::RecoveryCode(_) => LoginRefusal::WrongPasscode,
    });
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == spent).count(), 15);
    for (principal, outcome) in principals.into_iter().zip(outcomes) {
        let works = world.acts(&principal).await.is_ok();
        assert_eq!(works, outcome == AttemptOutcome::Completed);
    }
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, 1);
    let late = world.complete_login(holder, world.network(), proof);
    refused(world, late, spent).await;
}
