//! Cases of the end of a login: [`complete_proof`](vault_core::port::LoginGuard::complete_proof) and
//! [`refuse_attempt`](vault_core::port::LoginGuard::refuse_attempt).

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{Settled, address, bucket, principal_of, race};
use super::world::{Holder, World};
use std::sync::Arc;
use vault_core::account::AccountState;
use vault_core::audit::AuditAction;
use vault_core::lockout::{FIRST_WAIT_SECONDS, FREE_ATTEMPTS, WRONG_PASSCODES};
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    AccountChange, CompleteProof, CompleteProofOutcome, DeleteOrganization, RefuseAttempt, Reservation, ReserveAttempt,
};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// A session that works, the time of the login, an audit entry.
pub async fn a_login_makes_a_session(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    assert_eq!(world.read(&holder).await.last_login_at, None);
    world.clock.advance_seconds(5);
    let sessions = [world.log_in(&holder).await, world.log_in(&holder).await];
    for session in sessions {
        assert_eq!(world.listed(&Principal::Session(session)).await, []);
    }
    assert_eq!(world.read(&holder).await.last_login_at, Some(world.now()));
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, 2);
}

/// A time step proves one login, however many bring it at once.
pub async fn a_step_is_spent_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    spent_once(&world, &holder, world.fresh_step()).await;
}

/// A recovery code proves one login, however many bring it at once, and no later one.
pub async fn a_recovery_code_is_spent_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let [code, other, ..] = holder.recovery_codes[..] else { panic!("there are ten") };
    spent_once(&world, &holder, PasscodeProof::RecoveryCode(code)).await;
    let other = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(other));
    completes(&world, other).await;
}

/// After a step, neither it nor an earlier one proves anything; a refusal changes nothing.
pub async fn an_earlier_step_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let step = TimeStep::at(world.now());
    let at = |step| world.complete_login(&holder, world.network(), PasscodeProof::Step(step));
    completes(&world, at(step)).await;
    let before = world.read(&holder).await;
    world.clock.advance_seconds(1);
    for spent in [step, TimeStep(step.0 - 1), TimeStep(step.0 - 1_000)] {
        refused(&world, at(spent), CompleteProofOutcome::PasscodeSpent).await;
    }
    assert_eq!(world.read(&holder).await, before);
    completes(&world, at(TimeStep(step.0 + 1))).await;
}

/// Neither a code that was never given out nor another account's is one.
pub async fn only_the_accounts_own_recovery_codes_count(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    for code in [world.recovery_code(), colleague.recovery_codes[0]] {
        let command = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(code));
        refused(&world, command, CompleteProofOutcome::PasscodeSpent).await;
    }
    let code = PasscodeProof::RecoveryCode(colleague.recovery_codes[0]);
    completes(&world, world.complete_login(&colleague, world.network(), code)).await;
}

/// A recovery code leaves the steps as they are, and goes on working when they do not.
pub async fn a_recovery_code_spends_no_step(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let step = world.fresh_step();
    for proof in [PasscodeProof::RecoveryCode(holder.recovery_codes[0]), step] {
        completes(&world, world.complete_login(&holder, world.network(), proof)).await;
    }
}

/// If role, state, password, seed, account or organization changed since the reservation, nothing is done; the
/// proof is not spent either.
pub async fn a_login_is_overtaken_by_each_change(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    type Change = fn(&World<'_>, &Holder) -> AccountChange;
    let changes: [Change; 5] = [
        |_, holder| regrant(holder, Role::Admin, AccountState::Active),
        |_, holder| regrant(holder, Role::Viewer, AccountState::Disabled),
        |world, _| AccountChange::Password(world.password()),
        |world, holder| AccountChange::Passcode { seed: world.seed(), recovery_codes: holder.recovery_codes.clone() },
        |_, _| AccountChange::Delete,
    ];
    for change in changes {
        let holder = world.holder(Role::Viewer).await;
        let command = login_by_code(&world, &holder);
        let change = change(&world, &holder);
        world.change(&holder, change.clone()).await;
        refused(&world, command, CompleteProofOutcome::Overtaken).await;

        if matches!(change, AccountChange::Delete) {
            continue;
        }
        // On the new facts the same proof works.
        world.change(&holder, regrant(&holder, Role::Viewer, AccountState::Active)).await;
        let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
        let holder = Holder { password_version: facts.password_version, seed: facts.seed, ..holder };
        completes(&world, login_by_code(&world, &holder)).await;
    }
}

/// The same of the organization.
pub async fn a_login_is_overtaken_by_its_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    world.set_state(OrganizationState::Disabled).await;
    refused(&world, login_by_code(&world, &holder), CompleteProofOutcome::Overtaken).await;
    world.set_state(OrganizationState::Active).await;
    completes(&world, login_by_code(&world, &holder)).await;

    let audit = world.audit(AuditAction::OrganizationDeleted);
    let deletion = DeleteOrganization { organization: world.organization, audit };
    assert!(world.store.delete_organization(deletion).await.unwrap());
    let late = world.complete_login(&holder, world.network(), world.fresh_step());
    let outcome = world.store.complete_proof(late).await.unwrap();
    assert_eq!(outcome, CompleteProofOutcome::Overtaken);
}

/// A verifier at new parameters is stored, and is no change of the password: a login beside it completes.
pub async fn a_new_verifier_is_no_new_password(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let beside = world.complete_login(&holder, world.network(), PasscodeProof::RecoveryCode(holder.recovery_codes[0]));
    let mut command = world.complete_login(&holder, world.network(), world.fresh_step());
    let rehashed = world.password();
    command.rehashed = Some(rehashed.clone());
    let session = Principal::Session(completes(&world, command).await);

    let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!((&facts.password, facts.password_version), (&rehashed, holder.password_version));
    completes(&world, beside).await;
    assert_eq!(world.listed(&session).await, []);
}

/// A login that is refused stores no verifier.
pub async fn a_refused_login_stores_no_verifier(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let unknown = PasscodeProof::RecoveryCode(world.recovery_code());
    let mut command = world.complete_login(&holder, world.network(), unknown);
    command.rehashed = Some(world.password());
    refused(&world, command, CompleteProofOutcome::PasscodeSpent).await;
    let Reservation::Account(facts) = world.reserve(&holder, world.network()).await else { panic!("it is free") };
    assert_eq!(facts.password, holder.password);
}

/// Twenty wrong passcodes, whatever succeeds between them, disable the steps but not the recovery codes, until
/// the passcode is replaced.
pub async fn twenty_wrong_passcodes_disable_steps(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let by_step = |holder: &Holder| world.complete_login(holder, world.network(), world.fresh_step());
    for _ in 1..WRONG_PASSCODES {
        refuse(&world, &holder, true).await;
        refuse(&world, &holder, false).await;
    }
    completes(&world, by_step(&holder)).await;
    refuse(&world, &holder, true).await;
    refused(&world, by_step(&holder), CompleteProofOutcome::PasscodeSpent).await;
    completes(&world, login_by_code(&world, &holder)).await;
    world.change(&holder, AccountChange::Unlock).await;
    refused(&world, by_step(&holder), CompleteProofOutcome::PasscodeSpent).await;

    let seed = world.seed();
    world.change(&holder, AccountChange::Passcode { seed: seed.clone(), recovery_codes: Vec::new() }).await;
    completes(&world, by_step(&Holder { seed, ..holder })).await;
    let wrong = usize::try_from(WRONG_PASSCODES).unwrap();
    assert_eq!(world.audited(AuditAction::LoginPasscodeRefused).await, wrong);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, wrong - 1);
}

/// The wrong passcode that disables the steps is recorded as such, once, and the owner is told, however many come at
/// once or later.
pub async fn the_twentieth_wrong_passcode_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    for _ in 2..WRONG_PASSCODES {
        refuse(&world, &holder, true).await;
    }
    assert_eq!(world.audited(AuditAction::LoginPasscodeDisabled).await, 0);
    world.clock.advance_seconds(1);
    race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.refuse(&holder, true));
        async move { store.refuse_attempt(command).await.unwrap() }
    }))
    .await;
    let disabled_at = world.now().as_millis();
    world.clock.advance_seconds(1);
    refuse(&world, &holder, true).await;
    assert_eq!(world.audited(AuditAction::LoginPasscodeDisabled).await, 1);
    let login = login_by_code(&world, &holder);
    let session = completes(&world, login).await;
    let used_at = world.now().as_millis();
    let told = [(NoticeCode::PasscodeDisabled, disabled_at), (NoticeCode::RecoveryCodeUsed, used_at)];
    assert_eq!(world.notices(&session).await, told);
}

/// The record that a class was closed is kept beside the refusal's, where one is given.
pub async fn a_closed_class_is_recorded(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let RefuseAttempt::Account(mut refused) = world.refuse(&holder, false) else { unreachable!("it is one") };
    refused.class_closed = Some(world.audit(AuditAction::LoginClassClosed));
    world.store.refuse_attempt(RefuseAttempt::Account(refused)).await.unwrap();
    refuse(&world, &holder, false).await;
    assert_eq!(world.audited(AuditAction::LoginClassClosed).await, 1);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 2);
}

/// Refusing an attempt on an unknown address changes nothing: its bucket counts as it did.
pub async fn refusing_an_unknown_address_changes_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let bucket = bucket(4);
    let attempt = ReserveAttempt { bucket, ..world.attempt(address("nobody@nowhere.example"), world.network()) };
    for _ in 0..FREE_ATTEMPTS {
        assert!(matches!(world.store.reserve_attempt(attempt).await.unwrap(), Reservation::Unknown));
        world.store.refuse_attempt(RefuseAttempt::Unknown { bucket, now: attempt.now }).await.unwrap();
    }
    let waits = world.store.reserve_attempt(attempt).await.unwrap();
    assert!(matches!(waits, Reservation::TurnedAway { account: None }));
    world.store.refuse_attempt(RefuseAttempt::Unknown { bucket, now: attempt.now }).await.unwrap();
    let now = attempt.now.plus_seconds(FIRST_WAIT_SECONDS);
    let later = world.store.reserve_attempt(ReserveAttempt { now, ..attempt }).await.unwrap();
    assert!(matches!(later, Reservation::Unknown));
}

/// Wrong passcodes at once are all counted.
pub async fn parallel_wrong_passcodes_all_count(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    race((0..WRONG_PASSCODES).map(|_| {
        let (store, command) = (Arc::clone(&world.store), world.refuse(&holder, true));
        async move { store.refuse_attempt(command).await.unwrap() }
    }))
    .await;
    let command = world.complete_login(&holder, world.network(), world.fresh_step());
    refused(&world, command, CompleteProofOutcome::PasscodeSpent).await;
    assert_eq!(world.audited(AuditAction::LoginPasscodeRefused).await, 20);
}

/// A refusal is recorded, also if the account is gone by then.
pub async fn a_refusal_outlasts_its_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    world.change(&holder, AccountChange::Delete).await;
    refuse(&world, &holder, true).await;
    refuse(&world, &holder, false).await;
    assert_eq!(world.audited(AuditAction::LoginPasscodeRefused).await, 1);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 1);
}

fn login_by_code(world: &World<'_>, holder: &Holder) -> CompleteProof {
    world.complete_login(holder, world.network(), PasscodeProof::RecoveryCode(holder.recovery_codes[0]))
}

async fn refuse(world: &World<'_>, holder: &Holder, wrong_passcode: bool) {
    world.store.refuse_attempt(world.refuse(holder, wrong_passcode)).await.unwrap();
}

/// The login completes and its session works.
async fn completes(world: &World<'_>, command: CompleteProof) -> vault_core::principal::SessionPrincipal {
    let principal = principal_of(&command);
    assert_eq!(world.store.complete_proof(command).await.unwrap(), CompleteProofOutcome::Completed);
    world.listed(&Principal::Session(principal.clone())).await;
    principal
}

/// The login comes to `outcome`, and there is neither a session nor a record of it.
async fn refused(world: &World<'_>, command: CompleteProof, outcome: CompleteProofOutcome) {
    let recorded = world.audited(AuditAction::LoginSucceeded).await;
    let principal = Principal::Session(principal_of(&command));
    assert_eq!(world.store.complete_proof(command).await.unwrap(), outcome);
    assert!(world.store.list_credentials(world.list(&principal)).await.settled().is_err());
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, recorded);
}

/// Of sixteen logins at once by one proof, one completes; later ones are refused.
async fn spent_once(world: &World<'_>, holder: &Holder, proof: PasscodeProof) {
    let logins: Vec<_> = (0..16).map(|_| world.complete_login(holder, world.network(), proof)).collect();
    let principals: Vec<_> = logins.iter().map(principal_of).collect();
    let outcomes = race(logins.into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.complete_proof(command).await.unwrap() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == CompleteProofOutcome::Completed).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == CompleteProofOutcome::PasscodeSpent).count(), 15);
    for (principal, outcome) in principals.into_iter().zip(outcomes) {
        let works = world.store.list_credentials(world.list(&Principal::Session(principal))).await.settled().is_ok();
        assert_eq!(works, outcome == CompleteProofOutcome::Completed);
    }
    assert_eq!(world.audited(AuditAction::LoginSucceeded).await, 1);
    let late = world.complete_login(holder, world.network(), proof);
    refused(world, late, CompleteProofOutcome::PasscodeSpent).await;
}
