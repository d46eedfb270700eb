//! Tests of internals.

use super::connection::{Purpose, Source, open};
use super::settings::{SqliteKey, SqliteSettings};
use super::store::SqliteStore;
use crate::failure::Failure;
use crate::port::Database as _;
use crate::work::{Call, End};
use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::result::{DatabaseErrorKind, Error as SqlError};
use diesel::sql_types::Text;
use diesel::{RunQueryDsl as _, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::port::StoreError;
use zeroize::Zeroizing;

fn key() -> SqliteKey {
    SqliteKey::from_bytes(Zeroizing::new([9; 32]))
}

fn source(folder: &tempfile::TempDir) -> Source {
    Source {
        path: folder.path().join("db").to_str().unwrap().to_owned(),
        key: key(),
        page_cache: SqliteSettings::PAGE_CACHE,
    }
}

#[test]
fn sqlite_settings_are_durable() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = [
        ("journal_mode", "wal", "wal"),
        ("synchronous", "2", "2"),
        ("foreign_keys", "1", "1"),
        ("trusted_schema", "0", "0"),
        ("cell_size_check", "1", "1"),
        ("secure_delete", "1", "1"),
        ("mmap_size", "0", "0"),
        ("query_only", "0", "1"),
        ("busy_timeout", "0", "5000"),
        ("cipher_page_size", "4096", "4096"),
        ("cipher_use_hmac", "1", "1"),
        ("cipher_hmac_algorithm", "HMAC_SHA512", "HMAC_SHA512"),
        ("cipher_plaintext_header_size", "0", "0"),
    ];
    for purpose in [Purpose::Writing, Purpose::Reading] {
        let mut connection = open(&source(&folder), purpose).unwrap();
        for (name, for_writer, for_reader) in wanted {
            let found: String = sql::<Text>(&format!("PRAGMA {name}")).get_result(&mut connection).unwrap();
            assert_eq!(found, if purpose == Purpose::Writing { for_writer } else { for_reader }, "{name}");
        }
    }
}

#[test]
fn reader_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    open(&source(&folder), Purpose::Writing).unwrap().batch_execute("CREATE TABLE t (x TEXT)").unwrap();
    let mut reader = open(&source(&folder), Purpose::Reading).unwrap();
    assert!(reader.batch_execute("INSERT INTO t VALUES ('x')").is_err());
    assert!(reader.batch_execute("DROP TABLE t").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_transaction_does_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { create: true, ..SqliteSettings::new(folder.path().join("db"), key()) };
    let store = SqliteStore::open(settings).unwrap();
    store
        .change((), |connection, ()| {
            Box::pin(async {
                connection.batch_execute("CREATE TABLE t (x BIGINT PRIMARY KEY)").map_err(Failure::Sql)?;
                Ok(((), End::Commit))
            })
        })
        .await
        .unwrap();
    let decisions = (0..90_i64).map(|number| {
        let store = &store;
        async move {
            let result = store
                .change(number, |connection, number| {
                    Box::pin(async move {
                        connection.batch_execute(&format!("INSERT INTO t VALUES ({number})")).map_err(Failure::Sql)?;
                        assert!(number % 3 != 0, "on purpose");
                        Ok((*number, if number % 3 == 1 { End::Commit } else { End::RollBack }))
                    })
                })
                .await;
            (number, result)
        }
    });
    for (number, result) in futures_util::future::join_all(decisions).await {
        match result {
            Ok(answer) => assert!(answer == number && number % 3 != 0),
            Err(failure) => assert!(number % 3 == 0 && matches!(failure, StoreError::Fault(_)), "{failure:?}"),
        }
    }
    let count: String = store
        .look((), |connection, ()| {
            Box::pin(async {
                let count = sql::<Text>("SELECT count(*) || ':' || sum(x % 3) FROM t").get_result(connection)?;
                Ok((count, End::Unchanged))
            })
        })
        .await
        .unwrap();
    assert_eq!(count, "30:30");
}

/// A task that wrote nothing has nothing to undo, and the other tasks of the batch run only once.
#[tokio::test(flavor = "multi_thread")]
async fn refusal_without_writes_reruns_no_other_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { create: true, ..SqliteSettings::new(folder.path().join("db"), key()) };
    let store = SqliteStore::open(settings).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let decisions = (0..90_usize).map(|number| {
        store.change((number, Arc::clone(&runs)), |_, (number, runs)| {
            runs.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move { Ok(((), if number % 2 == 0 { End::Commit } else { End::Unchanged })) })
        })
    });
    let outcomes = futures_util::future::join_all(decisions).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(AtomicUsize::load(&runs, Ordering::Relaxed), 90);
}

/// Set in the child process whose disk fails.
const FAILING: &str = "ORGVAULT_TEST_FAILING_FILE";

/// The log is intact, but whether the file has its pages is unknown. SQLite would continue and overwrite the log.
#[tokio::test(flavor = "multi_thread")]
async fn failed_checkpoint_closes_store() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if std::env::var_os(FAILING).is_none() {
        // A child process that ignores SIGXFSZ, the signal for a file that exceeds the limit.
        let run = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::tests::failed_checkpoint_closes_store"])
            .env(FAILING, "1")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&run.stdout);
        return assert!(run.status.success() && message.contains("1 passed"), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let settings = SqliteSettings { create: true, ..SqliteSettings::new(folder.path().join("db"), key()) };
        SqliteStore::open(settings).unwrap()
    };
    let run = |store: Arc<SqliteStore>, statement: &'static str| async move {
        store
            .change(statement, |connection, statement| {
                Box::pin(async move {
                    connection.batch_execute(statement).map_err(Failure::Sql)?;
                    Ok(((), End::Commit))
                })
            })
            .await
    };
    let store = open();
    run(Arc::clone(&store), "CREATE TABLE t (x BLOB); INSERT INTO t VALUES (randomblob(6000000))").await.unwrap();
    run(Arc::clone(&store), "INSERT INTO t VALUES ('small')").await.unwrap();
    // The log needs no more space for this write, and the database file cannot grow.
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(7_000_000), maximum: limit.maximum }).unwrap();
    run(Arc::clone(&store), "INSERT INTO t VALUES (randomblob(5000000))").await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(10), store.failed()).await.unwrap();
    setrlimit(Resource::Fsize, limit).unwrap();
    assert!(run(Arc::clone(&store), "INSERT INTO t VALUES ('after')").await.is_err());
    store.close().await;
    let log = std::fs::metadata(folder.path().join("db-wal")).unwrap();
    assert!(log.len() > 5_000_000, "the log is kept");
    run(open(), "INSERT INTO t SELECT CASE count(*) WHEN 3 THEN 'whole' ELSE abs('-9223372036854775808') END FROM t")
        .await
        .unwrap();
}

fn malformed() -> Failure {
    let message = Box::new("database disk image is malformed".to_owned());
    Failure::Sql(SqlError::DatabaseError(DatabaseErrorKind::Unknown, message))
}

/// SQLCipher reports a lack of memory as damage. Real damage is found again on the second try.
#[tokio::test(flavor = "multi_thread")]
async fn apparent_damage_is_read_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { create: true, ..SqliteSettings::new(folder.path().join("db"), key()) };
    let store = SqliteStore::open(settings).unwrap();
    // How often it was read, and how many of these reads report damage.
    type Looks = Arc<(AtomicUsize, usize)>;
    let looks = |damaged| -> Looks { Arc::new((AtomicUsize::new(0), damaged)) };
    for (damaged, looked) in [(0, 1), (1, 2), (9, 2)] {
        let (reads, writes) = (looks(damaged), looks(damaged));
        let look: Call<SqliteConnection, Looks, ()> = |_, looks| {
            let looked = looks.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move { if looked < looks.1 { Err(malformed()) } else { Ok(((), End::Unchanged)) } })
        };
        let found = store.look(Arc::clone(&reads), look).await;
        let written = store.change(Arc::clone(&writes), look).await;
        for (answer, looks) in [(found, reads), (written, writes)] {
            assert_eq!(AtomicUsize::load(&looks.0, Ordering::Relaxed), looked);
            assert!(
                if damaged < 2 { answer.is_ok() } else { matches!(answer, Err(StoreError::Fault(_))) },
                "{answer:?}"
            );
        }
    }
}
