//! Commands that share a transaction on PostgreSQL.

use crate::support;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use secrecy::SecretString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::activators::activated;
use support::postgres::{client, database, patient_store, query, store, wait_for_waiting};
use support::world::{World, new_data};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use vault_core::credential::{ChangedVersion, CredentialEdit, CredentialType, SaveCredential};
use vault_core::digest::Digest;
use vault_core::id::CredentialId;
use vault_core::integration::CreateIntegration;
use vault_core::port::{Idempotency, StoreError};
use vault_core::principal::{Denial, Principal};
use vault_core::{Error, Refusal};
use vault_diesel::{PostgresSettings, PostgresStore};
use vault_testkit::postgres::Cluster;

/// Returns a number for a world that no other test uses.
fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(7_000_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

type Answers<T> = Vec<BoxFuture<'static, Result<T, Error>>>;

/// A separate database, so that only this test makes connections wait in it.
struct Scene {
    address: String,
    store: Arc<PostgresStore>,
    world: World,
    blocker: tokio_postgres::Client,
    observer: tokio_postgres::Client,
}

impl Scene {
    async fn new() -> Self {
        let address = Cluster::shared().create_database();
        Self::at(&address, patient_store(&address).await).await
    }

    async fn at(address: &str, store: Arc<PostgresStore>) -> Self {
        patient_store(address).await.migrate(support::NOW, &mut |_| {}).await.unwrap();
        let world = World::make(&store, number()).await;
        let (blocker, observer) = (client(address).await, client(address).await);
        Self { address: address.to_owned(), store, world, blocker, observer }
    }

    fn save(&self, save: SaveCredential) -> BoxFuture<'static, Result<CredentialId, Error>> {
        self.world.by_account(&self.store, save).boxed()
    }

    fn saves(&self, count: usize) -> Answers<CredentialId> {
        (0..count).map(|_| self.save(self.world.save())).collect()
    }

    /// Saves `count` credentials that differ in their ID only, one after the other.
    async fn saved(&self, count: usize) -> Vec<CredentialId> {
        let mut saved = Vec::with_capacity(count);
        for _ in 0..count {
            let save = SaveCredential { namespace: activated(), new: new_data(0), ..self.world.save() };
            saved.push(self.save(save).await.unwrap());
        }
        saved
    }

    fn replace(&self, id: CredentialId, revision: i64) -> BoxFuture<'static, Result<ChangedVersion, Error>> {
        self.world.by_account(&self.store, self.world.replace(id, revision)).boxed()
    }

    /// Blocks the first command at the row of the organization, inside its transaction, and queues the others. Then lets all
    /// continue.
    async fn hold_up<T>(
        &self,
        mut waiting: Answers<T>,
        then: impl AsyncFnOnce(&mut Answers<T>),
    ) -> Vec<Result<T, Error>> {
        let of = self.world.organization;
        let sql = format!("BEGIN; SELECT 1 FROM organizations WHERE id = '{of}' FOR UPDATE");
        self.blocker.batch_execute(&sql).await.unwrap();
        // Polling a command queues it.
        assert!((&mut waiting[0]).now_or_never().is_none());
        wait_for_waiting(&self.observer, 1, || false).await;
        for one in &mut waiting[1..] {
            assert!(one.now_or_never().is_none());
        }
        then(&mut waiting).await;
        self.blocker.batch_execute("COMMIT").await.unwrap();
        join_all(waiting).await
    }

    fn count(&self, what: &str) -> String {
        let sql = format!("SELECT {what} FROM credentials WHERE organization_id = '{}'", self.world.organization);
        query(&self.address, &sql)
    }

    fn counted(&self) -> String {
        let sql = format!("SELECT credentials FROM organizations WHERE id = '{}'", self.world.organization);
        query(&self.address, &sql)
    }

    fn audited(&self, action: &str) -> String {
        let of = self.world.organization;
        query(
            &self.address,
            &format!("SELECT count(*) FROM audit WHERE organization_id = '{of}' AND action = '{action}'"),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_writes_share_a_transaction() {
    let scene = Scene::new().await;
    assert!(scene.hold_up(scene.saves(100), async |_| {}).await.iter().all(Result::is_ok));
    // The first was the only one when it started. Then 64 and the rest follow.
    let transactions = "count(*) || ' in ' || count(DISTINCT xmin::text)";
    assert_eq!((scene.count(transactions), scene.counted()), ("100 in 3".to_owned(), "100".to_owned()));
    assert_eq!(scene.audited("credential.saved"), "100");
}

/// One that is refused after it wrote is rolled back, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn queued_operations_share_a_transaction() {
    let scene = Scene::new().await;
    let mut creations: Vec<_> = (0..20).map(|_| scene.world.new_integration()).collect();
    let run = |creations: Vec<CreateIntegration>| {
        let run = |create| scene.world.running(&scene.store, Principal::Operator, create).boxed();
        creations.into_iter().map(run).collect()
    };
    let created = scene.hold_up(run(creations.clone()), async |_| {}).await;
    assert!(created.iter().all(Result::is_ok));
    let rows = |what: &str| {
        let of = scene.world.organization;
        let sql = format!("SELECT {what} FROM entities WHERE organization_id = '{of}' AND kind = 'integration'");
        query(&scene.address, &sql)
    };
    // The first was the only one when it started.
    assert_eq!(rows("count(*) || ' in ' || count(DISTINCT xmin::text)"), "20 in 2");

    for create in &mut creations {
        *create = CreateIntegration { integration: create.integration.clone(), ..scene.world.new_integration() };
    }
    creations.splice(10..11, [scene.world.new_integration()]);
    let outcomes = scene.hold_up(run(creations), async |_| {}).await;
    let created = outcomes.into_iter().flatten().count();
    assert_eq!(
        (created, rows("count(*)"), scene.audited("integration.created")),
        (1, "21".to_owned(), "21".to_owned())
    );
}

/// There is one connection. While the first organization uses it, the others wait, and then share a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn queued_organizations_share_a_transaction() {
    let address = Cluster::shared().create_database();
    let settings = PostgresSettings::new(SecretString::from(address.as_str()));
    let settings = PostgresSettings { connections: 1, longest_wait: Duration::from_secs(120), ..settings };
    let scene = Scene::at(&address, PostgresStore::connect(settings).await.unwrap()).await;
    let others = [World::make(&scene.store, number()).await, World::make(&scene.store, number()).await];
    let mut saves = scene.saves(1);
    saves.extend((0..10).map(|number| scene.save(others[number % 2].save())));
    let saved = scene.hold_up(saves, async |_| {}).await;
    assert!(saved.into_iter().all(|saved| saved.is_ok()));
    let of = scene.world.organization;
    let sql = "SELECT count(*) || ' of ' || count(DISTINCT organization_id) || ' in ' || count(DISTINCT xmin::text)";
    let sql = format!("{sql} FROM credentials WHERE organization_id <> '{of}'");
    assert_eq!(query(&scene.address, &sql), "10 of 2 in 1");
    assert_eq!(scene.counted(), "1");
}

/// Each replacement succeeds or fails separately, and reads what the previous ones have written.
#[tokio::test(flavor = "multi_thread")]
async fn queued_replacements_share_a_transaction() {
    let scene = Scene::new().await;
    let saved = scene.saved(20).await;
    let nonexistent = CredentialId::from_bytes([0; 16]);
    let (first, last) = (saved[0], saved[19]);
    // In an order other than that of the IDs, by which the rows are locked.
    let mut replacements: Answers<_> = saved.iter().rev().map(|id| scene.replace(*id, 1)).collect();
    replacements.push(scene.replace(first, 1)); // replaced before
    replacements.push(scene.replace(first, 2));
    replacements.push(scene.replace(nonexistent, 1));
    let mut outcomes = scene.hold_up(replacements, async |_| {}).await;
    let rest = outcomes.split_off(20);
    assert!(outcomes.iter().all(|replaced| matches!(replaced, Ok(ChangedVersion { version: 2, revision: Some(2) }))));
    let third = ChangedVersion { version: 3, revision: Some(3) };
    assert!(
        matches!(
            rest.as_slice(),
            [Err(Error::Refused(Refusal::Changed)), Ok(again), Err(Error::Refused(Refusal::NotFound))] if *again == third
        ),
        "{rest:?}"
    );
    // The first was the only one when it started.
    assert_eq!(scene.count("sum(version) || ' in ' || count(DISTINCT xmin::text)"), "41 in 2");
    assert_eq!(scene.audited("credential.replaced"), "21");
    let of = scene.world.organization;
    let kept = format!(
        "SELECT count(*), max(version) FROM credential_secrets WHERE organization_id = '{of}' AND destroy_at IS NOT NULL"
    );
    assert_eq!(query(&scene.address, &kept), "21|2");
    assert_eq!(scene.replace(last, 2).await.unwrap(), third);
}

/// The first of the waiting replacements runs in its own transaction. The others share one.
#[tokio::test(flavor = "multi_thread")]
async fn replacement_writes_the_same_in_any_batch() {
    let scene = Scene::new().await;
    let saved = scene.saved(5).await;
    let rows = |table: &str| {
        let of = scene.world.organization;
        // Cards and data contain the ID as text.
        let row = "replace((to_jsonb(one) - 'id')::text, encode(convert_to(id::text, 'UTF8'), 'hex'), '')";
        let differing = format!("count(*) || ' rows, ' || count(DISTINCT {row}) || ' contents'");
        query(&scene.address, &format!("SELECT {differing} FROM {table} one WHERE organization_id = '{of}'"))
    };
    for revision in 1..=3 {
        query(&scene.address, "UPDATE credentials SET checked_at = 5, check_since = 4, check_failed = 'unknown-key'");
        let replacements: Answers<_> = saved
            .iter()
            .map(|id| {
                let now = scene.world.now().plus_seconds(revision);
                let expires_at = (revision < 3).then(|| now.plus_seconds(60));
                let mut replace = scene.world.replace(*id, revision);
                replace.edit = CredentialEdit::Replace { kind: CredentialType::DirectLink, expires_at };
                replace.new = Some(new_data(revision.unsigned_abs()));
                // The last one keeps the previous version.
                replace.limits.versions = if revision == 3 { 2 } else { 5 };
                scene.world.running_at(now, &scene.store, scene.world.principal(), replace).boxed()
            })
            .collect();
        let replaced = scene.hold_up(replacements, async |_| {}).await;
        assert!(replaced.iter().all(Result::is_ok));
        assert_eq!(scene.count("count(DISTINCT xmin::text)"), "2");
        assert_eq!(rows("credentials"), "5 rows, 1 contents", "after {revision}");
        // Each version has different content.
        let kept = if revision == 3 { 2 } else { revision + 1 };
        assert_eq!(rows("credential_secrets"), format!("{} rows, {kept} contents", 5 * kept));
    }
    assert_eq!(scene.count("DISTINCT version || ' ' || COALESCE(check_failed, 'not checked')"), "4 not checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_caller_withdraws_queued_save() {
    let scene = Scene::new().await;
    let answered = scene
        .hold_up(scene.saves(20), async |waiting| {
            // The first is running, and completes even if its caller is dropped.
            drop(waiting.remove(0));
            waiting.truncate(9);
        })
        .await;
    assert!(answered.into_iter().all(|saved| saved.is_ok()));
    assert_eq!((scene.count("count(*)"), scene.counted()), ("10".to_owned(), "10".to_owned()));
    // No command remains in the queue, and the organization can continue.
    scene.world.saved(&scene.store).await.unwrap();
    assert_eq!(scene.counted(), "11");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_save_rolls_back_no_other() {
    let scene = Scene::new().await;
    let mut saves = scene.saves(20);
    let one = scene.world.save();
    saves.push(scene.save(SaveCredential { id: one.id, ..scene.world.save() }));
    saves.push(scene.save(one));
    let outcomes = scene.hold_up(saves, async |_| {}).await;
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_err()).collect();
    assert!(matches!(failed.as_slice(), [Err(Error::Store(StoreError::Fault(_)))]), "{failed:?}");
    assert_eq!((scene.count("count(*)"), scene.counted()), ("21".to_owned(), "21".to_owned()));
    assert_eq!(scene.audited("credential.saved"), "21");
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_queued_behind_the_end_of_their_session_are_refused() {
    let scene = Scene::new().await;
    let outcomes = scene
        .hold_up(scene.saves(10), async |_| {
            // A logout waits for the lock, too.
            let (sql, of) = ("DELETE FROM sessions WHERE organization_id = ", scene.world.organization);
            query(&scene.address, &format!("{sql}'{of}'"));
        })
        .await;
    // The session ended before the saves were authorized, so none may be committed.
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Denied(Denial::SessionEnded))), "{outcome:?}");
    }
    assert_eq!((scene.count("count(*)"), scene.counted()), ("0".to_owned(), "0".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_transaction_is_retried() {
    let scene = Scene::new().await;
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let outcomes = scene.hold_up(scene.saves(30), async |_| assert_eq!(query(&scene.address, cut), "1")).await;
    assert!(outcomes.into_iter().all(|saved| saved.is_ok()));
    assert_eq!((scene.count("count(*)"), scene.counted()), ("30".to_owned(), "30".to_owned()));
}

/// A proxy to the server that can drop the response to a COMMIT.
struct Wire {
    /// Address of the database through the proxy.
    address: String,
    /// Directory of the socket on which it listens.
    _directory: tempfile::TempDir,
    /// Whether responses to COMMIT are dropped.
    loses: Arc<AtomicBool>,
}

impl Wire {
    /// Starts a proxy to the database at `address`, whose host is the directory of a socket.
    fn to(address: &str) -> Self {
        const SOCKET: &str = ".s.PGSQL.5432";
        let (user_and_host, database) = address.rsplit_once('/').unwrap();
        let (user, host) = user_and_host.rsplit_once('@').unwrap();
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let loses = Arc::new(AtomicBool::new(false));
        let (server, losing) = (PathBuf::from(decoded(host)).join(SOCKET), Arc::clone(&loses));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&server).await.unwrap();
                tokio::spawn(pass_on(client, server, Arc::clone(&losing)));
            }
        });
        let here = directory.path().to_str().unwrap().replace('/', "%2F");
        Self { address: format!("{user}@{here}/{database}"), _directory: directory, loses }
    }
}

/// Decodes the path in the host of an address.
fn decoded(host: &str) -> String {
    [("%2F", "/"), ("%2E", "."), ("%2D", "-"), ("%5F", "_")]
        .iter()
        .fold(host.to_owned(), |path, (code, character)| path.replace(code, character))
}

/// The statement as it is sent. Every BEGIN names READ COMMITTED.
const COMMIT: &[u8] = b"COMMIT\0";

/// Forwards everything. After a COMMIT, waits for the response of the server, and disconnects the client instead of
/// forwarding it.
async fn pass_on(client: UnixStream, server: UnixStream, loses: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let lost = Arc::new(AtomicBool::new(false));
    let back = {
        let lost = Arc::clone(&lost);
        async move {
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                if lost.load(Ordering::SeqCst) || to_client.write_all(&bytes[..count]).await.is_err() {
                    return;
                }
            }
        }
    };
    let forth = async move {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            if loses.load(Ordering::SeqCst) && bytes[..count].windows(COMMIT.len()).any(|text| text == COMMIT) {
                lost.store(true, Ordering::SeqCst);
            }
            if to_server.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    // If either side disconnects, both end.
    tokio::select! {
        () = back => {}
        () = forth => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_with_indeterminate_commit_are_neither_acknowledged_nor_retried() {
    let address = Cluster::shared().create_database();
    let wire = Wire::to(&address);
    let scene = Scene::at(&address, patient_store(&wire.address).await).await;
    let request = |number: usize| {
        let (account, body) = (scene.world.account, Digest::from_bytes([7; 32]));
        let mut save = scene.world.save();
        save.new.idempotency = Some(Idempotency { account, key: format!("key {number}"), body: body.into() });
        save
    };
    let saves: Vec<_> = (0..20).map(request).collect();
    let ids: Vec<_> = saves.iter().map(|save| save.id).collect();
    let saves = saves.into_iter().map(|save| scene.save(save)).collect();
    let outcomes = scene.hold_up(saves, async |_| wire.loses.store(true, Ordering::SeqCst)).await;
    wire.loses.store(false, Ordering::SeqCst);
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Store(StoreError::Unavailable(_)))), "{outcome:?}");
    }
    // Each is committed once. A request with the same idempotency key gets the earlier result.
    assert_eq!((scene.count("count(*)"), scene.counted()), ("20".to_owned(), "20".to_owned()));
    for (number, answered) in join_all((0..20).map(|number| scene.save(request(number)))).await.into_iter().enumerate()
    {
        assert_eq!(answered.unwrap(), ids[number]);
    }
    assert_eq!((scene.count("count(*)"), scene.counted()), ("20".to_owned(), "20".to_owned()));
    assert_eq!(scene.audited("credential.saved"), "20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_share_limit_while_batching_saves() {
    let replicas = [store(database()).await, store(database()).await, store(database()).await];
    let world = World::make(&replicas[0], number()).await;
    let saves = (0..150_usize)
        .map(|number| world.by_account(&replicas[number % 3], SaveCredential { limit: 70, ..world.save() }));
    let outcomes = join_all(saves).await;
    let refused =
        |outcome: &&Result<CredentialId, Error>| matches!(outcome, Err(Error::Refused(Refusal::LimitReached { .. })));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 70);
    assert_eq!(outcomes.iter().filter(refused).count(), 80);
    let sql = format!("SELECT credentials FROM organizations WHERE id = '{}'", world.organization);
    assert_eq!(query(database(), &sql), "70");
}
