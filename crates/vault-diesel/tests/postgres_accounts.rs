//! Accounts on PostgreSQL, where transactions of several servers lock the same rows. None may end in a deadlock. The
//! database of these tests does not detect deadlocks, so each one would time out.

use crate::support;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join, join_all};
use std::sync::{Arc, LazyLock};
use support::NOW;
use support::postgres::{client, patient_store, query, store, wait_for_waiting};
use support::world::{PASSWORD, RECOVERY_CODE, World, address, bytes, row_code};
use vault_core::account::{AccountRights, AccountState, SignedAccount};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SeedId, SessionId};
use vault_core::invitation::{EnrolmentDraft, Invitation, StoredInvitation};
use vault_core::lockout::CLOSING_ATTEMPTS;
use vault_core::login::{AttemptOutcome, FinishAttempt, Reservation, ReserveAttempt, VerifiedFactors};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    AccountChange, AccountKey, AccountRepository as _, ChangeAccount, ConfirmEnrolment, CreateInvitation, Expired,
    Find, FoundAccount, InvitationRepository as _, Maintenance as _, StoreError, WriteDraft,
};
use vault_core::principal::{Denial, Principal, Scope, SessionPrincipal};
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::session::EndSession;
use vault_core::{Command, Error, Refusal};
use vault_diesel::PostgresStore;
use vault_testkit::postgres::Cluster;

const ROUNDS: u64 = 24;

/// A database without deadlock detection.
fn database() -> &'static str {
    static DATABASE: LazyLock<String> = LazyLock::new(|| {
        let address = Cluster::shared().create_database();
        let name = address.rsplit('/').next().unwrap();
        query(&address, &format!("ALTER DATABASE {name} SET deadlock_timeout = '10min'"));
        address
    });
    &DATABASE
}

/// Two servers.
async fn servers() -> (Arc<PostgresStore>, Arc<PostgresStore>) {
    let (here, there) = (store(database()).await, store(database()).await);
    here.migrate(NOW, &mut |_| {}).await.unwrap();
    (here, there)
}

/// Returns a number for a world that no other test uses.
fn number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed) + (u64::from(std::process::id()) << 8)
}

async fn grant(store: &PostgresStore, account: &SessionPrincipal) -> AccountRights {
    let key = AccountKey::Id(account.organization, account.account);
    let query = Find { principal: Principal::Operator, of: Scope::All, key, now: NOW };
    match store.find_account(query).await.unwrap() {
        Some(FoundAccount::Account(account)) => account.signed.grant,
        other => panic!("{other:?}"),
    }
}

/// `admin` makes `target` a viewer.
async fn lower(
    store: &PostgresStore,
    world: &World,
    admin: &SessionPrincipal,
    target: &SessionPrincipal,
) -> Result<(), StoreError> {
    let grant = AccountRights { role: Role::Viewer, ..grant(store, target).await };
    let seed = SeedId::from_bytes(*target.account.as_bytes());
    let payload = ChangeAccount {
        version: 1,
        after: SignedAccount { version: 2, ..SignedAccount::new(grant, PASSWORD, seed) },
        digest: row_code(1),
        change: AccountChange::Grant,
    };
    let audit = world.audit(Actor::from(admin), AuditAction::AccountRoleChanged, Subject::Account(target.account));
    store.change_account(Command { principal: admin.clone().into(), now: NOW, audit, payload }).await
}

/// Returns the error of the one that failed, and checks that the other succeeded.
fn one_failed(outcomes: (Result<(), StoreError>, Result<(), StoreError>)) -> StoreError {
    match outcomes {
        (Ok(()), Err(error)) | (Err(error), Ok(())) => error,
        both => panic!("{both:?}"),
    }
}

/// Returns the decision of the store.
fn settled<T>(outcome: Result<T, Error>) -> Result<T, Denial> {
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(Error::Denied(denial)) => Err(denial),
        Err(error) => panic!("the store failed: {error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_mutual_demotions_keep_one_admin() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS {
        let world = World::make(&here, number()).await;
        let (one, two) = (world.member(&here, Role::Admin).await, world.member(&here, Role::Admin).await);
        let outcomes = join(lower(&here, &world, &one, &two), lower(&there, &world, &two, &one)).await;
        assert!(matches!(one_failed(outcomes), StoreError::Denied(Denial::AccountChanged)));
        let admins = [grant(&here, &one).await, grant(&here, &two).await];
        assert_eq!(admins.iter().filter(|grant| grant.is_active_admin()).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_self_demotions_keep_one_admin() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS {
        let world = World::make(&here, number()).await;
        let (one, two) = (world.member(&here, Role::Admin).await, world.member(&here, Role::Admin).await);
        let outcomes = join(lower(&here, &world, &one, &one), lower(&there, &world, &two, &two)).await;
        assert!(matches!(one_failed(outcomes), StoreError::Refused(Refusal::LastAdmin)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_end_each_other_leave_one() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS {
        let world = World::make(&here, number()).await;
        let one = world.member(&here, Role::Editor).await;
        let two = SessionPrincipal { session: SessionId::from_bytes(bytes(world.next())), ..one.clone() };
        let login = world.login(grant(&here, &one).await, two.session, PasscodeProof::Step(TimeStep(2)));
        assert_eq!(world.finish(&here, login).await.unwrap(), AttemptOutcome::Completed);
        let end = |store, by: &SessionPrincipal, session| {
            world.running(store, by.clone().into(), EndSession { organization: world.organization, session })
        };
        let ended = join(end(&here, &one, two.session), end(&there, &two, one.session)).await;
        let mut ended = [settled(ended.0), settled(ended.1)];
        ended.sort_by_key(Result::is_err);
        assert_eq!(ended, [Ok(true), Err(Denial::SessionEnded)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn recovery_code_logs_in_once_on_two_servers() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS / 4 {
        let world = World::make(&here, number()).await;
        let member = world.member(&here, Role::Editor).await;
        let grant = grant(&here, &member).await;
        let uses = join_all((0..16).map(|index| {
            let session = SessionId::from_bytes(bytes(world.next()));
            let login = world.login(grant.clone(), session, PasscodeProof::RecoveryCode(RECOVERY_CODE));
            world.finish(if index % 2 == 0 { &here } else { &there }, login)
        }))
        .await;
        let completed = uses.into_iter().filter(|outcome| *outcome.as_ref().unwrap() == AttemptOutcome::Completed);
        assert_eq!(completed.count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn enrolment_is_confirmed_once_on_two_servers() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS / 4 {
        let world = World::make(&here, number()).await;
        let unique = world.next();
        let grant = AccountRights {
            account: AccountId::from_bytes(bytes(unique)),
            organization: world.organization,
            email: EmailAddress::parse(&format!("invited-{unique}@example.com")).unwrap(),
            role: Role::Viewer,
            state: AccountState::Invited,
        };
        let code = address(unique);
        let expires_at = NOW.plus_seconds(60);
        let invitation = Invitation { grant, invited_by: None, code, created_at: NOW, expires_at };
        let audit = || world.audit(Actor::Operator, AuditAction::AccountInvited, Subject::Vault);
        let stored = StoredInvitation {
            invitation: invitation.clone(),
            digest: row_code(1),
            version: StoredInvitation::FIRST_VERSION,
        };
        let payload = CreateInvitation { stored, address: address(unique).into(), address_in_use: audit() };
        let invite = world.by_operator(AuditAction::AccountInvited, payload);
        here.create_invitation(invite).await.unwrap();
        let (organization, account) = (world.organization, invitation.grant.account);
        let seed = SeedId::from_bytes(bytes(unique));
        let draft = EnrolmentDraft {
            password: SealedPassword { id: PASSWORD, blob: Blob::from_bytes(vec![2; 140]) },
            seed: SealedSeed { id: seed, blob: Blob::from_bytes(vec![2; 66]) },
            recovery_codes: vec![RECOVERY_CODE],
            digest: row_code(1),
        };
        let command = WriteDraft { organization, account, code, draft, now: NOW, audit: audit() };
        assert!(here.write_draft(command).await.unwrap());
        let confirmed = join_all((0..16).map(|index| {
            let command = ConfirmEnrolment {
                signed: SignedAccount::new(invitation.enrolled(), PASSWORD, seed),
                account_version: None,
                digest: row_code(1),
                address: address(unique).into(),
                code,
                version: 1,
                draft: row_code(1),
                step: TimeStep(1),
                now: NOW,
                audit: audit(),
            };
            if index % 2 == 0 { here.confirm_enrolment(command) } else { there.confirm_enrolment(command) }
        }))
        .await;
        let refused = |outcome: &&Result<(), _>| matches!(outcome, Err(StoreError::Refused(Refusal::Contended)));
        assert_eq!(confirmed.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        assert_eq!(confirmed.iter().filter(refused).count(), 15);
    }
}

/// Returns a change that requires the owner of `target` to enrol again with `code`, based on `version` of the row.
async fn re_enrolment(
    store: &PostgresStore,
    world: &World,
    (by, target): (&Principal, &SessionPrincipal),
    version: i64,
    code: Digest,
) -> Command<ChangeAccount> {
    let grant = grant(store, target).await;
    let seed = SeedId::from_bytes(*target.account.as_bytes());
    let before = SignedAccount { version, ..SignedAccount::new(grant.clone(), PASSWORD, seed) };
    let grant = AccountRights { state: AccountState::ReEnrolling, ..grant };
    let (invited_by, expires_at) = (None, NOW.plus_seconds(60));
    let invitation = Invitation { grant, invited_by, code, created_at: NOW, expires_at };
    let digest = row_code(1);
    let stored = StoredInvitation { invitation, digest, version: StoredInvitation::FIRST_VERSION };
    let change = AccountChange::ReEnrol { invitation: Box::new(stored) };
    let payload = ChangeAccount { version, after: before.without_secrets(), digest, change };
    let audit = world.audit(Actor::from(by), AuditAction::AccountReEnrolled, Subject::Account(target.account));
    Command { principal: by.clone(), now: NOW, audit, payload }
}

/// Returns an operator's change of an account, based on the first version of the row.
async fn by_operator(
    store: &PostgresStore,
    world: &World,
    target: &SessionPrincipal,
    change: AccountChange,
) -> Command<ChangeAccount> {
    let seed = SeedId::from_bytes(*target.account.as_bytes());
    let after = SignedAccount { version: 2, ..SignedAccount::new(grant(store, target).await, PASSWORD, seed) };
    let payload = ChangeAccount { version: 1, after, digest: row_code(1), change };
    let audit = world.audit(Actor::Operator, AuditAction::AccountUnlocked, Subject::Account(target.account));
    Command { principal: Principal::Operator, now: NOW, audit, payload }
}

/// Sets the counter to one attempt before the lockout, in the bucket of all unknown networks.
fn about_to_close(target: &SessionPrincipal) {
    let sql = "UPDATE attempt_classes SET attempts = {attempts} WHERE account_id = '{account}'";
    let attempts = (CLOSING_ATTEMPTS - 1).to_string();
    query(database(), &sql.replace("{attempts}", &attempts).replace("{account}", &target.account.to_string()));
}

/// A change of an account locks the account before its buckets. An attempt locks a bucket first, so it must not lock
/// the account afterwards: the two would deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locking_attempt_does_not_wait_for_account_lock() {
    let (here, _) = servers().await;
    let world = World::make(&here, number()).await;
    let number = number();
    let target = world.account_at(&here, number, Role::Viewer).await;
    about_to_close(&target);
    let mut holder = client(database()).await;
    let holding = holder.transaction().await.unwrap();
    let held =
        holding.query("SELECT id FROM accounts WHERE id = $1 FOR UPDATE", &[target.account.as_uuid()]).await.unwrap();
    assert_eq!(held.len(), 1);
    let network = Digest::from_bytes([9; 32]);
    let attempt = ReserveAttempt { address: address(number).into(), decoy: 7, network };
    let reserved = world.operate(&here, &Principal::Operator, attempt).await.unwrap();
    let Reservation::Account(reserved) = reserved else { panic!("it is free") };
    assert_eq!(reserved.attempts, CLOSING_ATTEMPTS);
    holding.commit().await.unwrap();
}

/// Attempts lock the shared bucket before that of their network. Changes of all buckets of an account use the same
/// order, however the rows are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn throttle_buckets_are_locked_in_one_order() {
    // A table scan without indexes returns rows in the order in which they were written.
    let address_of = Cluster::shared().create_database();
    let name = address_of.rsplit('/').next().unwrap().to_owned();
    for scan in ["indexscan", "bitmapscan"] {
        query(&address_of, &format!("ALTER DATABASE {name} SET enable_{scan} = off"));
    }
    let store = patient_store(&address_of).await;
    store.migrate(NOW, &mut |_| {}).await.unwrap();
    let world = World::make(&store, number()).await;
    for change in [AccountChange::Unlock, AccountChange::Delete] {
        let target = world.member(&store, Role::Viewer).await;
        let account = *target.account.as_uuid();
        query(
            &address_of,
            &format!("UPDATE attempt_classes SET attempts = 1 WHERE network = '' AND account_id = '{account}'"),
        );
        let mut login = client(&address_of).await;
        let observer = client(&address_of).await;
        let attempt = login.transaction().await.unwrap();
        let take = "SELECT 1 FROM attempt_classes WHERE account_id = $1 AND (network = '') = $2 FOR UPDATE NOWAIT";
        assert_eq!(attempt.query(take, &[&account, &true]).await.unwrap().len(), 1);
        let change = by_operator(&store, &world, &target, change).await;
        let changing = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.change_account(change).await }
        });
        wait_for_waiting(&observer, 1, || changing.is_finished()).await;
        let own =
            attempt.query(take, &[&account, &false]).await.expect("the change waits for the first of the classes");
        assert_eq!(own.len(), 1);
        attempt.commit().await.unwrap();
        changing.await.unwrap().unwrap();
    }
}

/// Attempts up to the lockout run concurrently with changes that lift lockouts, on two servers. All of them finish.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_and_account_changes_do_not_deadlock() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS {
        let world = &World::make(&here, number()).await;
        let number = number();
        let target = &world.account_at(&here, number, Role::Viewer).await;
        about_to_close(target);
        let known = Digest::from_bytes([3; 32]);
        let strange = Digest::from_bytes([9; 32]);
        let attempt = async |store: &Arc<PostgresStore>, network| {
            let attempt = ReserveAttempt { address: address(number).into(), decoy: 7, network };
            let reserved = world.operate(store, &Principal::Operator, attempt).await.unwrap();
            if let Reservation::Account(reserved) = reserved {
                let presented = VerifiedFactors::WrongPassword { recovery_code: None };
                let refused = world.refusal(reserved.signed, presented);
                let refused = FinishAttempt { attempts: reserved.attempts, ..refused };
                world.finish(store, refused).await.unwrap();
            }
        };
        let unlock = by_operator(&here, world, target, AccountChange::Unlock).await;
        let grant = by_operator(&here, world, target, AccountChange::Grant).await;
        let changed = join_all([
            async {
                attempt(&here, strange).await;
                false
            }
            .boxed(),
            async {
                attempt(&there, known).await;
                false
            }
            .boxed(),
            async { decided(here.change_account(unlock).await) }.boxed(),
            async { decided(there.change_account(grant).await) }.boxed(),
        ])
        .await;
        assert!(changed.into_iter().any(|changed| changed));
    }
}

/// Runs everything that locks rows of accounts and invitations concurrently: re-enrolments of other accounts and of
/// each other, role changes, drafts, confirmations, logins and the deletion of expired rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_re_enrolments_do_not_deadlock() {
    let (here, there) = servers().await;
    for round in 0..ROUNDS / 2 {
        let world = &World::make(&here, number()).await;
        let (one, two) = (&world.member(&here, Role::Admin).await, &world.member(&here, Role::Admin).await);
        let target = &world.member(&here, Role::Viewer).await;
        let (by_one, by_two) = (&Principal::Session(one.clone()), &Principal::Session(two.clone()));
        let code = address(world.next());
        let first = re_enrolment(&here, world, (by_one, target), 1, code).await;
        here.change_account(first.clone()).await.unwrap();
        let seed = SealedSeed { id: SeedId::from_bytes(bytes(world.next())), blob: Blob::from_bytes(vec![2; 66]) };
        let draft = |audit| WriteDraft {
            organization: world.organization,
            account: target.account,
            code,
            draft: EnrolmentDraft {
                password: SealedPassword { id: PASSWORD, blob: Blob::from_bytes(vec![2; 140]) },
                seed: seed.clone(),
                recovery_codes: vec![RECOVERY_CODE],
                digest: row_code(1),
            },
            now: NOW,
            audit,
        };
        let drafted = || world.audit(Actor::Unknown, AuditAction::EnrolmentDrafted, Subject::Vault);
        assert!(here.write_draft(draft(drafted())).await.unwrap());
        let waiting = &first.payload.after;

        let mut operations: Vec<BoxFuture<'_, bool>> = Vec::new();
        for server in [&here, &there] {
            for _ in 0..2 {
                let confirmation = ConfirmEnrolment {
                    signed: waiting.re_enrolled(PASSWORD, seed.id),
                    account_version: Some(waiting.version),
                    digest: row_code(1),
                    address: address(world.next()).into(),
                    code,
                    version: 1,
                    draft: row_code(1),
                    step: TimeStep(1),
                    now: NOW,
                    audit: world.audit(Actor::Unknown, AuditAction::AccountEnrolled, Subject::Vault),
                };
                operations.push(async move { decided(server.confirm_enrolment(confirmation).await) }.boxed());
                let again = draft(drafted());
                operations.push(async move { made(server.write_draft(again).await) }.boxed());
            }
            for (by, whom, version) in [
                (by_one, target, waiting.version),
                (&Principal::Operator, target, waiting.version),
                (by_one, two, 1),
                (by_two, one, 1),
            ] {
                let again = re_enrolment(&here, world, (by, whom), version, address(world.next())).await;
                let counts = whom.account == target.account;
                operations.push(async move { decided(server.change_account(again).await) && counts }.boxed());
            }
            let lowered = SignedAccount { version: waiting.version + 1, ..waiting.clone() };
            let lowering = ChangeAccount {
                version: waiting.version,
                after: lowered,
                digest: row_code(1),
                change: if round % 2 == 0 { AccountChange::Grant } else { AccountChange::Delete },
            };
            let audit =
                world.audit(Actor::from(two), AuditAction::AccountRoleChanged, Subject::Account(target.account));
            let lowering = Command { principal: by_two.clone(), now: NOW, audit, payload: lowering };
            operations.push(async move { decided(server.change_account(lowering).await) }.boxed());
            for whom in [one, two, target] {
                let session = SessionId::from_bytes(bytes(world.next()));
                let login = world.login(grant(&here, whom).await, session, PasscodeProof::Step(TimeStep(9)));
                let login = world.finish(server, login);
                operations.push(async move { login.await.is_err() }.boxed());
            }
            operations.push(async move { made(server.delete_expired(Expired::Invitations, NOW).await) }.boxed());
            operations.push(async move { made(server.find_invitation(code, NOW).await) }.boxed());
        }
        let changed = join_all(operations).await.into_iter().filter(|changed| *changed).count();
        assert_eq!(changed, 1, "one of the changes of one version is committed");
        let admins = [grant(&here, one).await, grant(&here, two).await];
        assert!(admins.iter().any(AccountRights::is_active_admin), "{admins:?}");
    }
}

/// Checks that the store did not fail. Returns `false`, because the change is not one of those that are counted.
fn made<T>(outcome: Result<T, StoreError>) -> bool {
    decided(outcome);
    false
}

/// Returns whether the operation succeeded. A refusal is also a valid outcome.
fn decided<T>(outcome: Result<T, StoreError>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(StoreError::Denied(_) | StoreError::Refused(_)) => false,
        Err(error) => panic!("{error:?}"),
    }
}
