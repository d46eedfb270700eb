//! Cases of the user's own account, and of the changes to it that [`FinishAttempt`](vault_core::login::FinishAttempt)
//! executes.

use super::ContractStore;
use super::account_change::regrant;
use super::tools::{Conclusion, Settled, race};
use super::world::{Holder, Wanted, World};
use vault_core::account::{
    AccountChange, AccountSecrets, AccountState, ChangeSetAside, ConfirmPasscode, ListSetAside, MAX_SET_ASIDE,
    ReserveConfirmation,
};
use vault_core::audit::AuditAction;
use vault_core::entity::DocumentSecret;
use vault_core::entity::{EntityKey, Kind};
use vault_core::id::SecretsId;
use vault_core::inspect::{InspectedRow, Stage};
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::login::{AttemptOutcome, OwnChange, Reservation, ReservedAccount};
use vault_core::notice::NoticeCode;
use vault_core::passcode::{CONFIRMATIONS, PENDING_SECONDS, PasscodeProof, TimeStep};
use vault_core::port::LoginRefusal;
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::{Error, Refusal};

/// The user sees address, organization, the time of the passcode enrolment and the number of remaining recovery codes.
pub async fn owner_reads_own_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let created = world.now();
    world.clock.advance_seconds(5);
    let session = world.log_in(&holder).await;
    let own = world.own_account(&session).await;
    assert_eq!(own.account, holder.account);
    assert_eq!((own.account.passcode_enrolled_at, own.recovery_codes_left, own.notices), (created, 10, Vec::new()));

    world.clock.advance_seconds(5);
    let again = world.re_enrolled(&world.re_enrolling(&holder).await).await;
    world.clock.advance_seconds(5);
    let session = by_code(&world, &again, again.recovery_codes[0]).await;
    let own = world.own_account(&session).await;
    let left = u32::try_from(again.recovery_codes.len() - 1).unwrap();
    assert_eq!((own.account.passcode_enrolled_at, own.recovery_codes_left), (created.plus_seconds(10), left));
}

/// Concerns that a user sets aside expire, are limited, and are deleted with the account. Other users do not see them, and no entry records them.
pub async fn owner_sets_concerns_aside(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await);
    let (session, other) = (world.log_in(&holder).await, world.log_in(&colleague).await);
    let entries = world.audit_length().await;
    let principal = Principal::Session(session.clone());
    let set = async |concern: &str, seconds: Option<i64>| {
        let until = seconds.map(|seconds| world.now().plus_seconds(seconds));
        let change = ChangeSetAside { session: session.clone(), concern: concern.to_owned(), until };
        world.operate(&principal, change).await
    };
    let listed = async |session: &SessionPrincipal| -> Vec<String> {
        let principal = Principal::Session(session.clone());
        let listed = world.operate(&principal, ListSetAside(session.clone())).await.unwrap();
        listed.into_iter().map(|one| one.concern).collect()
    };
    for (concern, seconds) in [("first", 60), ("second", 60), ("first", 600), ("third", 600)] {
        set(concern, Some(seconds)).await.unwrap();
    }
    assert_eq!(listed(&session).await, ["second", "first", "third"]);
    assert_eq!(listed(&other).await, [""; 0]);
    world.clock.advance_seconds(60);
    assert_eq!(listed(&session).await, ["first", "third"]);
    set("first", None).await.unwrap();
    assert_eq!(listed(&session).await, ["third"]);

    let year = 366 * 86_400;
    let long = "x".repeat(501);
    for (concern, seconds) in [("", 60), (long.as_str(), 60), ("a\n", 60), ("a", 0), ("a", year + 1)] {
        assert!(matches!(set(concern, Some(seconds)).await, Err(Error::Invalid(_))), "{concern:?} {seconds}");
    }
    for number in 1..MAX_SET_ASIDE {
        set(&format!("concern {number}"), Some(year)).await.unwrap();
    }
    let full = Err(Refusal::LimitReached { what: "concerns set aside", limit: 200 });
    assert_eq!(set("one more", Some(60)).await.decided(), full);
    assert_eq!(world.audit_length().await, entries);

    let row = EntityKey { organization: world.organization, kind: Kind::SetAside, id: *session.account.as_uuid() };
    let row = InspectedRow::Entity(row);
    let exists = async || world.rows_of(Stage::Entities(None), 500).await.contains(&row);
    assert!(exists().await);
    assert_eq!(world.findings(row.clone()).await, []);
    world.change(&holder, AccountChange::Delete).await;
    assert!(!exists().await);
}

/// A session that is no longer valid sees nothing of its account and confirms nothing.
pub async fn ended_session_cannot_read_account(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Viewer).await;
    let (session, other) = (world.log_in(&holder).await, world.log_in(&holder).await);
    let seed = pend(&world, &holder, &session).await;
    world.log_out(&session).await;
    let entries = world.audit_length().await;
    let refusal = Denial::SessionEnded;
    let principal = Principal::Session(session.clone());
    assert_eq!(world.read_own(&session).await.settled(), Err(refusal));
    assert_eq!(world.operate(&principal, ReserveConfirmation(session.clone())).await.settled(), Err(refusal));
    let confirmation = confirmation(&session, &seed, TimeStep::at(world.now()));
    assert_eq!(world.operate(&principal, confirmation).await.settled(), Err(refusal));
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(secrets(&world, &holder).await, holder.secrets);
    assert_eq!(reserve(&world, &other).await, Some(seed), "it waits for the account's other session");
}

/// A new password applies to the next login; all other sessions of the user end, and no other user's.
pub async fn owner_replaces_the_password(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (holder, colleague) = (world.holder(Role::Editor).await, world.holder(Role::Editor).await);
    let sessions = [world.log_in(&holder).await, world.log_in(&holder).await, world.log_in(&colleague).await];
    let before = facts(&world, &holder).await;
    let last_login = world.read(&holder).await.logins.last_login_at;
    world.clock.advance_seconds(5);
    let AccountSecrets { id, password, .. } = world.secrets();
    world.proven(&holder, &sessions[0], OwnChange::Password(id, password.clone())).await;

    let after = facts(&world, &holder).await;
    assert_eq!(after.secrets, Some(AccountSecrets { id, password, ..holder.secrets.clone() }));
    assert_eq!(after.account, before.account.with_secrets(id).keeping(sessions[0].session));
    assert_eq!(world.read(&holder).await.logins.last_login_at, last_login, "it is no login");
    assert_eq!(live(&world, &sessions).await, [true, false, true]);
    assert_eq!(world.audited(AuditAction::AccountPasswordChanged).await, 1);
    assert_eq!(world.notices(&sessions[0]).await, [], "no notice for the owner");
    let stale = world.complete_login(&holder, world.network(), world.fresh_step());
    assert_eq!(world.conclude(stale).await, AttemptOutcome::Refused(LoginRefusal::Overtaken));
}

/// All recovery codes are replaced; all other sessions of the user end.
pub async fn owner_replaces_the_recovery_codes(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let sessions = [world.log_in(&holder).await, world.log_in(&holder).await];
    let codes: Vec<_> = (0..10).map(|_| world.recovery_code()).collect();
    // Re-authentication accepts an old recovery code.
    let proof = PasscodeProof::RecoveryCode(holder.recovery_codes[0]);
    let change = world.own_codes(codes.clone());
    let command = world.prove(&holder, &sessions[0], proof, change);
    assert_eq!(world.conclude(command).await, AttemptOutcome::Completed);

    let after = holder.as_reserved(&facts(&world, &holder).await);
    assert_eq!(live(&world, &sessions).await, [true, false]);
    assert_eq!(world.own_account(&sessions[0]).await.recovery_codes_left, 10);
    assert_eq!(world.audited(AuditAction::AccountRecoveryCodesReplaced).await, 1);
    for (code, outcome) in [
        (holder.recovery_codes[1], AttemptOutcome::Refused(LoginRefusal::WrongPasscode)),
        (codes[0], AttemptOutcome::Completed),
    ] {
        let login = world.complete_login(&after, world.network(), PasscodeProof::RecoveryCode(code));
        assert_eq!(world.conclude(login).await, outcome);
    }
}

/// A new TOTP secret changes nothing until a session of its account confirms it. Then it replaces the old one: the
/// confirming step is used up, wrong passcodes are reset and all other sessions end.
pub async fn owner_replaces_the_seed(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let sessions = [world.log_in(&holder).await, world.log_in(&holder).await];
    let seed = pend(&world, &holder, &sessions[0]).await;
    assert_eq!(secrets(&world, &holder).await, holder.secrets);
    assert_eq!(live(&world, &sessions).await, [true, true]);
    for _ in 0..WRONG_PASSCODES {
        world.conclude(world.refuse(&holder, true)).await;
    }

    world.clock.advance_seconds(5);
    assert_eq!(reserve(&world, &sessions[1]).await, Some(seed.clone()), "any session of the account confirms");
    let step = TimeStep::at(world.now());
    let colleague = world.log_in(&world.holder(Role::Admin).await).await;
    assert!(!confirm(&world, &colleague, &seed, step).await.unwrap(), "no other account has the draft");
    assert!(confirm(&world, &sessions[1], &seed, step).await.unwrap());
    let after = facts(&world, &holder).await;
    let (id, new) = seed.clone();
    assert_eq!(after.secrets, Some(AccountSecrets { id, seed: new, ..holder.secrets.clone() }));
    assert_eq!(after.account, holder.account.with_passcode(id, world.now()).keeping(sessions[1].session));
    assert_eq!(live(&world, &sessions).await, [false, true]);
    let own = world.own_account(&sessions[1]).await;
    assert_eq!((own.account.passcode_enrolled_at, own.recovery_codes_left), (world.now(), 10));
    assert_eq!(world.audited(AuditAction::AccountPasscodeDrafted).await, 1);
    assert_eq!(world.audited(AuditAction::AccountPasscodeChanged).await, 1);

    assert!(!confirm(&world, &sessions[1], &seed, TimeStep(step.0 + 1)).await.unwrap());
    assert_eq!(reserve(&world, &sessions[1]).await, None);
    let old = world.complete_login(&holder, world.network(), PasscodeProof::Step(TimeStep(step.0 + 1)));
    assert_eq!(world.conclude(old).await, AttemptOutcome::Refused(LoginRefusal::Overtaken));
    let holder = holder.as_reserved(&after);
    for (step, outcome) in [
        (step, AttemptOutcome::Refused(LoginRefusal::ReusedPasscode)),
        (TimeStep(step.0 + 1), AttemptOutcome::Completed),
    ] {
        let login = world.complete_login(&holder, world.network(), PasscodeProof::Step(step));
        assert_eq!(world.conclude(login).await, outcome);
    }
}

/// A pending TOTP secret is returned for at most five passcodes, concurrent or not, and for one hour; a newer one
/// replaces it.
pub async fn pending_seed_allows_five_attempts_within_an_hour(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in_for(&holder, 3 * PENDING_SECONDS).await;
    assert_eq!(reserve(&world, &session).await, None, "none waits yet");
    let first = pend(&world, &holder, &session).await;
    let tries = race((0..16).map(|_| {
        let reserving = world.running(&world.store, session.clone().into(), ReserveConfirmation(session.clone()));
        async move { reserving.await.unwrap().map(|pending| (pending.id, pending.seed)) }
    }))
    .await;
    let given = tries.iter().filter(|seed| seed.as_ref() == Some(&first)).count();
    assert_eq!(given, usize::try_from(CONFIRMATIONS).unwrap());
    assert_eq!(tries.iter().filter(|seed| seed.is_none()).count(), 16 - given);

    let second = pend(&world, &holder, &session).await;
    let step = TimeStep::at(world.now());
    let late = confirm(&world, &session, &first, step).await.unwrap();
    assert!(!late, "a newer one has taken its place");
    world.clock.advance_millis(PENDING_SECONDS * 1000 - 1);
    assert_eq!(reserve(&world, &session).await, Some(second.clone()));
    world.clock.advance_millis(1);
    assert_eq!(reserve(&world, &session).await, None);
    let late = confirm(&world, &session, &second, step).await.unwrap();
    assert!(!late, "it waited too long");
    assert_eq!(secrets(&world, &holder).await, holder.secrets);
    assert_eq!(world.audited(AuditAction::AccountPasscodeChanged).await, 0);

    let third = pend(&world, &holder, &session).await;
    let confirmed = race((0..8).map(|_| {
        let confirmation = confirmation(&session, &third, step);
        let confirming = world.running(&world.store, session.clone().into(), confirmation);
        async move { confirming.await.unwrap() }
    }))
    .await;
    assert_eq!(confirmed.iter().filter(|confirmed| **confirmed).count(), 1);
}

/// Every change by an administrator except unlocking deletes a pending TOTP secret.
pub async fn change_by_others_drops_pending_seed(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let changes = [
        (Wanted::from(AccountChange::Unlock), true),
        (regrant(Role::Viewer, AccountState::Active), false),
        (Wanted(vec![AccountChange::Disable, AccountChange::Enable]), false),
    ];
    for (change, waits) in changes {
        let holder = world.holder(Role::Editor).await;
        let session = world.log_in(&holder).await;
        let seed = pend(&world, &holder, &session).await;
        world.change(&holder, change).await;
        let holder = holder.as_reserved(&facts(&world, &holder).await);
        let session = world.log_in(&holder).await;
        assert_eq!(reserve(&world, &session).await.is_some(), waits);
        let step = TimeStep::at(world.now());
        assert_eq!(confirm(&world, &session, &seed, step).await.unwrap(), waits);
    }
}

/// A re-authentication changes its own account, for a valid session of that account. Otherwise nothing is changed, the
/// re-authentication is not used up, and the rejection is recorded.
pub async fn re_authentication_requires_session_of_account(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Editor).await, world.holder(Role::Editor).await);
    let stranger = other.holder(Role::Editor).await;
    let ended = world.log_in(&holder).await;
    world.log_out(&ended).await;
    let (theirs, strange) = (world.log_in(&colleague).await, other.log_in(&stranger).await);
    let claimed = SessionPrincipal { account: holder.account.grant.account, ..theirs.clone() };
    let step = world.fresh_step();
    let entries = world.audit_length().await;
    for (principal, refusal) in [
        (&ended, Denial::SessionEnded),
        (&claimed, Denial::SessionEnded),
        (&theirs, Denial::AccountChanged),
        (&strange, Denial::AccountChanged),
    ] {
        let AccountSecrets { id, password, seed } = world.secrets();
        for change in [OwnChange::Password(id, password), OwnChange::PendingSeed(id, seed), world.own_codes(Vec::new())]
        {
            let command = world.prove(&holder, principal, step, change);
            let outcome = world.conclude(command).await;
            assert_eq!(outcome, AttemptOutcome::Denied(refusal), "{principal:?}");
        }
    }
    assert_eq!(world.audit_length().await, entries + 12);
    assert_eq!(world.audited(AuditAction::LoginRefused).await, 12);
    assert_eq!(secrets(&world, &holder).await, holder.secrets);
    let login = world.complete_login(&holder, world.network(), step);
    assert_eq!(world.conclude(login).await, AttemptOutcome::Completed);
}

/// A passcode or recovery code is used once, by a login or by a change. Re-authentication that is based on outdated
/// values changes nothing.
pub async fn passcode_is_spent_once_across_operations(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let step = world.fresh_step();
    let commands: Vec<Conclusion> = (0..16)
        .map(|index| match index % 2 {
            0 => world.complete_login(&holder, world.network(), step),
            _ => world.prove(&holder, &session, step, world.own_codes(vec![world.recovery_code()])),
        })
        .collect();
    let outcomes = race(commands.into_iter().map(|command| world.concluding(command))).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == AttemptOutcome::Completed).count(), 1);
    // Replaced recovery codes also replace the secret that the others read.
    let lost = [LoginRefusal::ReusedPasscode, LoginRefusal::Overtaken].map(AttemptOutcome::Refused);
    assert_eq!(outcomes.iter().filter(|outcome| lost.contains(outcome)).count(), 15);

    let holder = holder.as_reserved(&facts(&world, &holder).await);
    let change = new_password(&world);
    world.proven(&holder, &session, change).await;
    let (before, entries) = (facts(&world, &holder).await, world.audit_length().await);
    let change = new_password(&world);
    let stale = world.prove(&holder, &session, world.fresh_step(), change);
    assert_eq!(world.conclude(stale).await, AttemptOutcome::Refused(LoginRefusal::Overtaken));
    let after = facts(&world, &holder).await;
    assert_eq!((after.secrets, after.account), (before.secrets, before.account));
    assert_eq!(world.audit_length().await, entries + 1, "the refusal is recorded");
}

/// A re-authentication for a change resets the throttle bucket of its attempt and makes its network known, as a login
/// does.
pub async fn re_authentication_resets_its_bucket(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let session = world.log_in(&holder).await;
    let network = world.network();
    let attempts = async |network| match world.reserve(&holder, network).await {
        Reservation::Account(reserved) => reserved.attempts,
        other => panic!("{other:?}"),
    };
    assert_eq!([attempts(network).await, attempts(network).await], [1, 2]);
    let codes = world.own_codes(Vec::new());
    let mut command = world.prove(&holder, &session, world.fresh_step(), codes);
    command.attempt.network = network;
    assert_eq!(world.conclude(command).await, AttemptOutcome::Completed);
    assert_eq!([attempts(network).await, attempts(network).await], [1, 2]);
    assert_eq!(attempts(world.network()).await, 1, "the shared class was reset, and the network is no part of it now");
}

/// The user is notified of each used recovery code, and not of changes by an operator that keep the secrets.
pub async fn owner_gets_notice_of_changes_by_others(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Editor).await;
    let (mut expected, codes) = (Vec::new(), holder.recovery_codes.clone());
    for change in [regrant(Role::Viewer, AccountState::Active), AccountChange::Unlock.into()] {
        world.change(&holder, change).await;
    }
    let holder = holder.as_reserved(&facts(&world, &holder).await);
    world.clock.advance_seconds(1);
    // Two at the same time cause one notice.
    by_code(&world, &holder, codes[0]).await;
    let session = by_code(&world, &holder, codes[1]).await;
    expected.push((NoticeCode::RecoveryCodeUsed, world.now().as_millis()));
    assert_eq!(world.notices(&session).await, expected);
    world.clock.advance_seconds(1);
    let proof = PasscodeProof::RecoveryCode(codes[2]);
    let change = new_password(&world);
    let command = world.prove(&holder, &session, proof, change);
    assert_eq!(world.conclude(command).await, AttemptOutcome::Completed);
    expected.push((NoticeCode::RecoveryCodeUsed, world.now().as_millis()));
    assert_eq!(world.notices(&session).await, expected);
}

/// A TOTP secret that is pending confirmation, with its ID.
type Pending = (SecretsId, DocumentSecret);

/// Creates a pending TOTP secret.
pub(super) async fn pend(world: &World<'_>, holder: &Holder, principal: &SessionPrincipal) -> Pending {
    let AccountSecrets { id, seed, .. } = world.secrets();
    world.proven(holder, principal, OwnChange::PendingSeed(id, seed.clone())).await;
    (id, seed)
}

fn new_password(world: &World<'_>) -> OwnChange {
    let AccountSecrets { id, password, .. } = world.secrets();
    OwnChange::Password(id, password)
}

async fn reserve(world: &World<'_>, principal: &SessionPrincipal) -> Option<Pending> {
    let reserved = world.operate(&principal.clone().into(), ReserveConfirmation(principal.clone())).await.unwrap();
    reserved.map(|pending| (pending.id, pending.seed))
}

async fn secrets(world: &World<'_>, holder: &Holder) -> AccountSecrets {
    facts(world, holder).await.secrets.expect("they open")
}

fn confirmation(principal: &SessionPrincipal, pending: &Pending, step: TimeStep) -> ConfirmPasscode {
    ConfirmPasscode { principal: principal.clone(), pending: pending.0, step }
}

async fn confirm(
    world: &World<'_>,
    principal: &SessionPrincipal,
    pending: &Pending,
    step: TimeStep,
) -> Result<bool, Error> {
    world.operate(&principal.clone().into(), confirmation(principal, pending, step)).await
}

/// Creates a session with a recovery code.
async fn by_code(world: &World<'_>, holder: &Holder, code: vault_core::digest::Digest) -> SessionPrincipal {
    let command = world.complete_login(holder, world.network(), PasscodeProof::RecoveryCode(code));
    let principal = super::tools::principal_of(&command);
    assert_eq!(world.conclude(command).await, AttemptOutcome::Completed);
    principal
}

async fn facts(world: &World<'_>, holder: &Holder) -> ReservedAccount {
    match world.reserve(holder, world.network()).await {
        Reservation::Account(reserved) => *reserved,
        other => panic!("the attempt is within the free ones, but: {other:?}"),
    }
}

/// Returns which of the sessions are valid.
async fn live(world: &World<'_>, sessions: &[SessionPrincipal]) -> Vec<bool> {
    let mut live = Vec::new();
    for session in sessions {
        live.push(world.acts(session).await.is_ok());
    }
    live
}
