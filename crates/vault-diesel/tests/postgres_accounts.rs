//! Accounts on PostgreSQL, where transactions of several servers lock the same rows. None may end in a deadlock. The
//! database of these tests does not detect deadlocks, so each one would time out.

use crate::support;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join, join_all};
use std::sync::{Arc, LazyLock};
use support::NOW;
use support::postgres::{client, patient_store, query, store, wait_for_waiting};
use support::world::{RECOVERY_CODE, World, address, bytes, digest, secrets};
use vault_core::account::{
    AccountChange, AccountKey, AccountRights, AccountState, ChangeAccount, FindAccount, FoundAccount,
};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SessionId};
use vault_core::invitation::{
    ConfirmEnrolment, CreateInvitation, EnrolmentDraft, FindInvitation, Invitation, WriteDraft,
};
use vault_core::lockout::CLOSING_ATTEMPTS;
use vault_core::login::{AttemptOutcome, FinishAttempt, Reservation, ReserveAttempt, VerifiedFactors};
use vault_core::maintenance::{DeleteExpired, Expired};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::principal::{Denial, Principal, Scope, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::EndSession;
use vault_core::{Error, Refusal};
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

async fn grant(store: &Arc<PostgresStore>, world: &World, account: &SessionPrincipal) -> AccountRights {
    let find = FindAccount { scope: Scope::All, key: AccountKey::Id(account.organization, account.account) };
    match world.operate(store, &Principal::Operator, find).await.unwrap() {
        Some(FoundAccount::Account(account)) => account.grant,
        other => panic!("{other:?}"),
    }
}

fn change_of(target: &SessionPrincipal, change: AccountChange) -> ChangeAccount {
    ChangeAccount { organization: target.organization, account: target.account, change }
}

/// `admin` makes `target` a viewer.
async fn lower(
    store: &Arc<PostgresStore>,
    world: &World,
    admin: &SessionPrincipal,
    target: &SessionPrincipal,
) -> Result<(), Error> {
    let change = change_of(target, AccountChange::Role(Role::Viewer));
    world.operate(store, &admin.clone().into(), change).await.map(drop)
}

/// Returns the error of the one that failed, and checks that the other succeeded.
fn one_failed(outcomes: (Result<(), Error>, Result<(), Error>)) -> Error {
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
        assert!(matches!(one_failed(outcomes), Error::Denied(Denial::AccountChanged)));
        let admins = [grant(&here, &world, &one).await, grant(&here, &world, &two).await];
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
        assert!(matches!(one_failed(outcomes), Error::Refused(Refusal::LastAdmin)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_end_each_other_leave_one() {
    let (here, there) = servers().await;
    for _ in 0..ROUNDS {
        let world = World::make(&here, number()).await;
        let one = world.member(&here, Role::Editor).await;
        let two = SessionPrincipal { session: SessionId::from_bytes(bytes(world.next())), ..one.clone() };
        let login = world.login(grant(&here, &world, &one).await, two.session, PasscodeProof::Step(TimeStep(2)));
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
        let grant = grant(&here, &world, &member).await;
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
        let code = digest(unique);
        let expires_at = NOW.plus_seconds(60);
        let invitation = Invitation { grant, invited_by: None, code, created_at: NOW, expires_at };
        let invite = CreateInvitation(invitation.clone());
        world.operate(&here, &Principal::Operator, invite).await.unwrap().unwrap();
        let (organization, account) = (world.organization, invitation.grant.account);
        let draft = EnrolmentDraft { secrets: secrets(account), recovery_codes: vec![RECOVERY_CODE] };
        let write = WriteDraft { organization, account, code, draft };
        assert!(world.operate(&here, &Principal::Operator, write).await.unwrap());
        let confirmed = join_all((0..16).map(|index| {
            let (secrets, step) = (secrets(account).id, TimeStep(1));
            let command = ConfirmEnrolment { organization, account, re_enrols: false, code, secrets, step };
            world.running(if index % 2 == 0 { &here } else { &there }, Principal::Operator, command)
        }))
        .await;
        let refused = |outcome: &&Result<(), _>| matches!(outcome, Err(Error::Refused(Refusal::InvalidEnrolment)));
        assert_eq!(confirmed.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        assert_eq!(confirmed.iter().filter(refused).count(), 15);
    }
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
    let held = holding
        .query("SELECT id FROM entities WHERE kind = 'account' AND id = $1 FOR UPDATE", &[target.account.as_uuid()])
        .await
        .unwrap();
    assert_eq!(held.len(), 1);
    let network = Digest::from_bytes([9; 32]);
    let attempt = ReserveAttempt { address: address(number), network };
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
        let change = change_of(&target, change);
        let changing = tokio::spawn(world.running(&store, Principal::Operator, change));
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
            let attempt = ReserveAttempt { address: address(number), network };
            let reserved = world.operate(store, &Principal::Operator, attempt).await.unwrap();
            if let Reservation::Account(reserved) = reserved {
                let presented = VerifiedFactors::WrongPassword { recovery_code: None };
                let refused = world.refusal(Some(reserved.account), presented);
                let refused = FinishAttempt { attempts: reserved.attempts, ..refused };
                world.finish(store, refused).await.unwrap();
            }
        };
        let unlock = change_of(target, AccountChange::Unlock);
        let grant = change_of(target, AccountChange::Role(Role::Editor));
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
            async { decided(world.operate(&here, &Principal::Operator, unlock).await) }.boxed(),
            async { decided(world.operate(&there, &Principal::Operator, grant).await) }.boxed(),
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
        let code = digest(world.next());
        world.operate(&here, by_one, change_of(target, AccountChange::ReEnrol(code))).await.unwrap();
        let (organization, account) = (world.organization, target.account);
        let drafted = || EnrolmentDraft { secrets: secrets(account), recovery_codes: vec![RECOVERY_CODE] };
        let draft = || WriteDraft { organization, account, code, draft: drafted() };
        assert!(world.operate(&here, &Principal::Operator, draft()).await.unwrap());

        let mut operations: Vec<BoxFuture<'_, ()>> = Vec::new();
        for server in [&here, &there] {
            for _ in 0..2 {
                let (secrets, step) = (secrets(account).id, TimeStep(1));
                let confirmation = ConfirmEnrolment { organization, account, re_enrols: true, code, secrets, step };
                let confirmation = world.running(server, Principal::Operator, confirmation);
                operations.push(async move { made(confirmation.await) }.boxed());
                let again = world.running(server, Principal::Operator, draft());
                operations.push(async move { made(again.await) }.boxed());
            }
            for (by, whom) in [(by_one, target), (&Principal::Operator, target), (by_one, two), (by_two, one)] {
                let again = change_of(whom, AccountChange::ReEnrol(digest(world.next())));
                let again = world.running(server, by.clone(), again);
                operations.push(async move { made(again.await) }.boxed());
            }
            let change = if round % 2 == 0 { AccountChange::Role(Role::Editor) } else { AccountChange::Delete };
            let change = world.running(server, by_two.clone(), change_of(target, change));
            operations.push(async move { made(change.await) }.boxed());
            for whom in [one, two, target] {
                let session = SessionId::from_bytes(bytes(world.next()));
                let login = world.login(grant(&here, world, whom).await, session, PasscodeProof::Step(TimeStep(9)));
                let login = world.finish(server, login);
                operations.push(async move { made(login.await) }.boxed());
            }
            let expire = world.running(server, Principal::Operator, DeleteExpired(Expired::Invitations));
            operations.push(async move { made(expire.await) }.boxed());
            let found = world.running(server, Principal::Operator, FindInvitation(code));
            operations.push(async move { made(found.await) }.boxed());
        }
        join_all(operations).await;
        let admins = [grant(&here, world, one).await, grant(&here, world, two).await];
        assert!(admins.iter().any(AccountRights::is_active_admin), "{admins:?}");
    }
}

/// Checks that the store did not fail.
fn made<T>(outcome: Result<T, Error>) {
    decided(outcome);
}

/// Returns whether the operation succeeded. A refusal is also a valid outcome.
fn decided<T>(outcome: Result<T, Error>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Error::Denied(_) | Error::Refused(_)) => false,
        Err(error) => panic!("{error:?}"),
    }
}
