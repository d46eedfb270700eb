//! Behaviour of the embedded store beyond the contract of the ports.

use crate::support;

use futures_util::future::join_all;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::sqlite::{KEY, Scratch};
use support::world::World;
use vault_core::credential::SaveCredential;
use vault_core::maintenance::CheckStore;
use vault_core::organization::ReadOrganization;
use vault_core::port::StoreError;
use vault_core::principal::Principal;
use vault_core::{Error, Refusal};
use vault_diesel::{LockError, OpenError, ServerLock, SqliteKey, SqliteSettings, SqliteStore};
use zeroize::Zeroizing;

async fn setting() -> (Scratch, Arc<SqliteStore>, Arc<World>) {
    let scratch = Scratch::new();
    let store = scratch.migrated().await;
    let world = Arc::new(World::make(&store, 1).await);
    (scratch, store, world)
}

#[tokio::test]
async fn files_are_encrypted_and_private() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let (scratch, store, world) = setting().await;
    world.saved(&store).await.unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(scratch.path().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        let bytes = fs::read(&path).unwrap();
        // The index of the log contains only page numbers and checksums.
        for known in ["SQLite format 3", "World 1", "owner-1@example.com", "team-", "CREATE TABLE", "active"] {
            let found = bytes.windows(known.len()).any(|window| window == known.as_bytes());
            assert!(!found, "{known} in {path:?}");
        }
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["orgvault.db", "orgvault.db-shm", "orgvault.db-wal"]);
}

#[test]
fn sqlite_is_compiled_without_shared_locks() {
    let memory = rusqlite::Connection::open_in_memory().unwrap();
    let mut statement = memory.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let has_option = |option: &str| options.iter().any(|message| message == option);
    assert!(has_option("THREADSAFE=2") && has_option("DEFAULT_MEMSTATUS=0"), "see .cargo/config.toml: {options:?}");
    assert!(!has_option("ENABLE_MEMORY_MANAGEMENT"), "see .cargo/config.toml: {options:?}");
}

#[tokio::test]
async fn only_its_key_opens_a_database() {
    let (scratch, store, _) = setting().await;
    store.close().await;
    let before = fs::read(scratch.path()).unwrap();
    let key = SqliteKey::from_bytes(Zeroizing::new([0x5a; 32]));
    let refusal = SqliteStore::open(SqliteSettings::new(scratch.path(), key)).unwrap_err();
    assert!(matches!(refusal, OpenError::Key(_)), "{refusal:?}");
    assert_eq!(fs::read(scratch.path()).unwrap(), before);
    assert!(!format!("{:?}", scratch.settings()).contains(&format!("{}", KEY[0])));
}

#[test]
fn database_is_created_only_on_request() {
    let scratch = Scratch::new();
    let refusal = SqliteStore::open(SqliteSettings { create: false, ..scratch.settings() }).unwrap_err();
    assert!(matches!(refusal, OpenError::NotFound(_)), "{refusal:?}");
    assert!(!scratch.path().exists());
}

#[test]
fn database_is_locked_by_one_named_server() {
    let scratch = Scratch::new();
    let lock = ServerLock::take(&scratch.path(), "serve").unwrap();
    let Err(LockError::Held { holder, .. }) = ServerLock::take(&scratch.path(), "migrate") else {
        panic!("taken twice")
    };
    assert_eq!(holder, format!("serve (process {})", std::process::id()));
    drop(lock);
    ServerLock::take(&scratch.path(), "migrate").unwrap();
}

#[tokio::test]
async fn acknowledged_writes_exist_after_reopening() {
    let (scratch, store, world) = setting().await;
    for _ in 0..10 {
        world.saved(&store).await.unwrap();
    }
    store.close().await;
    let refusal = world.saved(&store).await.unwrap_err();
    assert!(matches!(refusal, Error::Store(StoreError::Unavailable(_))));
    drop(store);
    let store = scratch.open();
    assert_eq!(world.listed(&store, world.list(100)).await.unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_a_batch_succeed_separately() {
    let (scratch, store, world) = setting().await;
    let saves = (0..300_usize).map(|number| {
        let limit = if number % 3 == 0 { 0 } else { 1_000 };
        let save = world.by_account(&store, SaveCredential { limit, ..world.save() });
        tokio::spawn(async move { (number, save.await) })
    });
    for save in saves.collect::<Vec<_>>() {
        let (number, outcome) = save.await.unwrap();
        let limited = matches!(outcome, Err(Error::Refused(Refusal::LimitReached { limit: 0, .. })));
        assert!(if number % 3 == 0 { limited } else { outcome.is_ok() }, "{number}");
    }
    let count = |sql: &str| scratch.bare().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM credentials"), 200);
    assert_eq!(count("SELECT count(*) FROM credential_secrets"), 200);
    assert_eq!(count("SELECT credentials FROM organizations"), 200);
    assert_eq!(count("SELECT count(*) FROM audit WHERE action = 'credential.saved'"), 200);
}

#[tokio::test]
async fn full_queue_refuses_immediately() {
    let scratch = Scratch::new();
    scratch.migrated().await.close().await;
    let store = SqliteStore::open(SqliteSettings { queue: 4, ..scratch.settings() }).unwrap();
    let world = World::make(&store, 1).await;
    let holder = scratch.bare();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let saves = join_all((0..64).map(|_| world.saved(&store)));
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        holder.execute_batch("ROLLBACK").unwrap();
    };
    let (outcomes, ()) = tokio::join!(saves, release);
    let (saved, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert!((4..=8).contains(&saved.len()), "{}", saved.len());
    assert!(refused.iter().all(|refusal| matches!(refusal, Err(Error::Store(StoreError::Unavailable(_))))));
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_database_causes_refusal_without_effect() {
    let (scratch, store, world) = setting().await;
    let holder = scratch.bare();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let refusal = world.saved(&store).await.unwrap_err();
    assert!(matches!(refusal, Error::Store(StoreError::Unavailable(_))));
    assert!(started.elapsed() >= Duration::from_millis(4_900), "it was waited for");
    // Readers never wait for a writer.
    assert!(world.listed(&store, world.list(10)).await.unwrap().is_empty());
    holder.execute_batch("ROLLBACK").unwrap();
    world.saved(&store).await.unwrap();
    assert_eq!(world.listed(&store, world.list(10)).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_gets_write_lock_next_to_busy_server() {
    let (scratch, store, world) = setting().await;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load: Vec<_> = (0..64)
        .map(|_| {
            let (store, world, stop) = (Arc::clone(&store), Arc::clone(&world), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    world.saved(&store).await.unwrap();
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    for number in 0..5 {
        let concurrent = scratch.open();
        World::make(&concurrent, 10 + number).await; // panics if a transaction times out
        concurrent.close().await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn damaged_page_affects_only_its_rows() {
    let (scratch, store, world) = setting().await;
    for _ in 0..200 {
        world.saved(&store).await.unwrap();
    }
    store.close().await;
    drop(store);
    let page: i64 = scratch
        .bare()
        .query_row("SELECT max(pageno) FROM dbstat WHERE name = 'credentials' AND pagetype = 'leaf'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let mut bytes = fs::read(scratch.path()).unwrap();
    let middle = usize::try_from(page).unwrap() * 4096 - 2048;
    bytes[middle] ^= 1;
    fs::write(scratch.path(), bytes).unwrap();
    let store = scratch.open();
    for _ in 0..3 {
        let failure = world.listed(&store, world.list(200)).await.unwrap_err();
        assert!(matches!(failure, Error::Store(StoreError::Fault(_))), "{failure:?}");
        let read = ReadOrganization(world.organization);
        assert!(world.operate(&store, &Principal::Operator, read).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn store_check_reports_failure() {
    let (_scratch, store, world) = setting().await;
    assert_eq!(world.operate(&store, &Principal::Operator, CheckStore).await.unwrap(), None);
    store.close().await;
    assert!(world.operate(&store, &Principal::Operator, CheckStore).await.is_err());
}

/// Set in the child process whose disk fails.
const FAILING: &str = "ORGVAULT_TEST_FAILING_DISK";

#[tokio::test(flavor = "multi_thread")]
async fn failed_commit_closes_store() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(FAILING).is_none() {
        // A child process that ignores SIGXFSZ, the signal for a file that exceeds the limit.
        let run = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::failed_commit_closes_store"])
            .env(FAILING, "1")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&run.stdout);
        return assert!(run.status.success() && message.contains("1 passed"), "{message}");
    }
    let (scratch, store, world) = setting().await;
    let log = fs::metadata(scratch.path().with_extension("db-wal")).unwrap().len();
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(log), maximum: limit.maximum }).unwrap();
    let refusal = world.saved(&store).await.unwrap_err();
    assert!(matches!(refusal, Error::Store(StoreError::Unavailable(_))), "{refusal:?}");
    tokio::time::timeout(Duration::from_secs(10), store.failed()).await.unwrap();
    // The disk works again, but its content is unknown.
    setrlimit(Resource::Fsize, limit).unwrap();
    assert!(world.saved(&store).await.is_err());
    assert!(world.listed(&store, world.list(10)).await.is_err());
    assert!(world.operate(&store, &Principal::Operator, CheckStore).await.is_err());
    store.close().await;
    drop(store);
    let store = scratch.open();
    world.saved(&store).await.unwrap();
    assert_eq!(world.listed(&store, world.list(10)).await.unwrap().len(), 1);
}
