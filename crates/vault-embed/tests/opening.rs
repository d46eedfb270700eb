//! Opening and creating vaults on the embedded database. The files on the disk determine the result, and files that may
//! belong to another vault are not changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use vault_core::port::{Event, EventSink};
use vault_crypto::{DatabaseKeyFile, LoadedRootKey, OsEntropy, SecretFile};
use vault_diesel::{LockError, SqliteKey, SqliteSettings, SqliteStore};
use vault_embed::{Database, Error, OpenVault, Opening, RootKey, create, migrate_to, open, open_or_create};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn root_key(&self) -> RootKey {
        RootKey::file(self.path("root.key"))
    }

    fn database(&self) -> Database {
        Database::sqlite(self.path("vault.db"))
    }

    /// Returns all functions that open or create the vault, without maintenance.
    fn ways(&self) -> [Opening; 3] {
        [open, create, open_or_create].map(|way| way(self.root_key(), self.database()).without_maintenance())
    }

    async fn made(&self) -> OpenVault {
        create(self.root_key(), self.database()).without_maintenance().await.unwrap()
    }

    /// Returns names and contents of all files except the lock file, which contains the last process.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| !path.ends_with("vault.db.lock"));
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

/// Asserts that each function to open or create the vault fails with this error and changes no file.
async fn refused(place: &Place, is_reason: impl Fn(&Error) -> bool) {
    let before = place.files();
    for way in place.ways() {
        let error = way.await.unwrap_err();
        assert!(is_reason(&error), "{error:?}");
        let text = error.to_string();
        assert!(
            !["init", "chmod", "chown", "/dev/urandom", "remove", "delete"].iter().any(|word| text.contains(word)),
            "{text}"
        );
        assert_eq!(place.files(), before, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_vault_is_refused_naming_new_database() {
    let place = Place::new();
    close(place.made().await).await;
    let mark = place.path("vault.db.moved");
    for (content, named) in [
        ("postgres://db.example/vault\n", "moved to postgres://db.example/vault."),
        ("", "moved to another database."),
        ("postgres://x\x1b[2J/\n", "moved to another database."),
        ("anything", "moved to another database."),
    ] {
        fs::write(&mark, content).unwrap();
        let is_reason = |error: &Error| {
            matches!(error, Error::Moved { mark: found, .. } if *found == mark) && error.to_string().contains(named)
        };
        for way in place.ways() {
            let error = way.await.unwrap_err();
            assert!(is_reason(&error), "{error:?}");
        }
    }
    fs::remove_file(&mark).unwrap();
    close(open(place.root_key(), place.database()).without_maintenance().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_current_server_moves_embedded_vault() {
    let place = Place::new();
    close(place.made().await).await;
    let vault = open(place.root_key(), place.database()).without_maintenance().await.unwrap();
    let target = "postgres://127.0.0.1:1/vault".parse().unwrap();
    let error = migrate_to(&vault, place.root_key(), &target, false, &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::NotTheServer), "{error:?}");
    let error = migrate_to(&vault, place.root_key(), &place.database(), true, &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, Error::NotPostgres), "{error:?}");
    close(vault).await;
}

async fn close(vault: OpenVault) {
    vault.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn vault_is_created_once_and_reopened() {
    let place = Place::new();
    let made = open_or_create(place.root_key(), place.database()).await.unwrap();
    let instance = made.instance();
    made.operator().create_organization("Acme").await.unwrap();
    close(made).await;
    for name in ["root.key", "vault.db", "vault.db.key"] {
        assert_eq!(fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o7777, 0o600, "{name}");
    }
    assert!(!place.path("vault.db.first-run").exists());

    for way in [open, open_or_create] {
        let opened = way(place.root_key(), place.database()).await.unwrap();
        assert_eq!(opened.instance(), instance);
        assert_eq!(opened.operator().organizations().await.unwrap().len(), 1);
        assert!(opened.applied_migrations().is_empty());
        close(opened).await;
    }
    let before = place.files();
    let error = create(place.root_key(), place.database()).await.unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    assert_eq!(place.files().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_empty_directory_fails_and_creates_nothing() {
    let place = Place::new();
    let error = open(place.root_key(), place.database()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    assert!(error.to_string().contains(place.path("vault.db").to_str().unwrap()), "{error}");
    assert!(place.files().is_empty());
    let elsewhere = || Database::sqlite(place.path("missing/vault.db"));
    for way in [open(place.root_key(), elsewhere()), open(place.root_key(), elsewhere()).server("serve")] {
        let error = way.await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    }
    let error = create(place.root_key(), elsewhere()).await.unwrap_err();
    assert!(matches!(error, Error::NoDirectory(_)), "{error:?}");
    assert!(place.files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_root_key_is_not_recreated() {
    let place = Place::new();
    close(place.made().await).await;
    fs::remove_file(place.path("root.key")).unwrap();
    refused(&place, |error| matches!(error, Error::RootKeyMissing { .. })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_root_key_changes_nothing() {
    let place = Place::new();
    close(place.made().await).await;
    fs::remove_file(place.path("root.key")).unwrap();
    LoadedRootKey::generate(&place.path("root.key"), Arc::new(OsEntropy)).unwrap();
    refused(&place, |error| matches!(error, Error::DatabaseKey(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_database_is_not_recreated() {
    for empty in [false, true] {
        let place = Place::new();
        close(place.made().await).await;
        fs::remove_file(place.path("vault.db")).unwrap();
        if empty {
            fs::write(place.path("vault.db"), "").unwrap();
        }
        let lost = |error: &Error| matches!(error, Error::DatabaseLost { .. });
        refused(&place, lost).await;
        // The same if the root key is missing too.
        fs::remove_file(place.path("root.key")).unwrap();
        refused(&place, lost).await;
        // The same if only the write-ahead log remains.
        fs::remove_file(place.path("vault.db.key")).unwrap();
        fs::write(place.path("vault.db-wal"), "log").unwrap();
        refused(&place, lost).await;
    }
    let place = Place::new();
    fs::write(place.path("vault.db"), "").unwrap();
    refused(&place, |error| matches!(error, Error::NotADatabase(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_database_key_is_not_recreated() {
    let place = Place::new();
    close(place.made().await).await;
    fs::remove_file(place.path("vault.db.key")).unwrap();
    refused(&place, |error| matches!(error, Error::DatabaseKey(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leftover_root_key_creates_no_vault_unless_provisioned() {
    let place = Place::new();
    let path = place.path("root.key");
    let key = LoadedRootKey::generate(&path, Arc::new(OsEntropy)).unwrap();
    let before = place.files();
    for way in [create, open_or_create] {
        let error = way(place.root_key(), place.database()).await.unwrap_err();
        assert!(matches!(error, Error::KeyWithoutVault { .. }), "{error:?}");
    }
    assert_eq!(place.files(), before);

    let provisioned = create(RootKey::provisioned_file(&path), place.database()).without_maintenance().await.unwrap();
    close(provisioned).await;
    let others: [fn(&Path) -> RootKey; 2] = [
        |path| RootKey::opened(SecretFile::open(path).unwrap()),
        |path| RootKey::loaded(LoadedRootKey::load(path, Arc::new(OsEntropy)).unwrap()),
    ];
    for (number, root_key) in others.into_iter().enumerate() {
        let made = create(root_key(&path), Database::sqlite(place.path(&format!("{number}.db")))).without_maintenance();
        close(made.await.unwrap()).await;
    }
    assert_eq!(LoadedRootKey::load(&path, Arc::new(OsEntropy)).unwrap().id_of(), key.id_of());
}

trait IdOf {
    fn id_of(&self) -> String;
}

impl IdOf for LoadedRootKey {
    fn id_of(&self) -> String {
        format!("{self:?}")
    }
}

/// A first run that was interrupted at any point is continued by the next one, with the same keys.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_first_run_is_continued() {
    for steps in 0..=5 {
        let place = Place::new();
        let (root_path, database) = (place.path("root.key"), place.path("vault.db"));
        let key_file = DatabaseKeyFile::next_to(&database);
        let mut root = None;
        if steps >= 1 {
            fs::write(place.path("vault.db.first-run"), "").unwrap();
        }
        if steps >= 2 {
            root = Some(LoadedRootKey::generate(&root_path, Arc::new(OsEntropy)).unwrap());
        }
        if steps >= 3 {
            key_file.create(root.as_ref().unwrap(), &OsEntropy).unwrap();
        }
        if steps == 4 {
            fs::write(&database, "").unwrap();
        }
        if steps == 5 {
            let key = key_file.load(root.as_ref().unwrap()).unwrap().expose_bytes();
            let settings = SqliteSettings { create: true, ..SqliteSettings::new(database, SqliteKey::from_bytes(key)) };
            let store = SqliteStore::open(settings).unwrap();
            store.migrate(vault_core::time::Timestamp::from_millis(1), &mut |_| {}).await.unwrap();
            store.close().await;
        }
        let left: Vec<_> = ["root.key", "vault.db.key"].map(|name| fs::read(place.path(name)).ok()).into();
        if steps > 0 {
            let error = open(place.root_key(), place.database()).without_maintenance().await.unwrap_err();
            assert!(!matches!(error, Error::Exists { .. }), "{steps}: {error:?}");
        }
        close(create(place.root_key(), place.database()).without_maintenance().await.unwrap()).await;
        for (name, left) in ["root.key", "vault.db.key"].iter().zip(left) {
            assert!(
                left.is_none_or(|left| left == fs::read(place.path(name)).unwrap()),
                "{steps}: {name} was replaced"
            );
        }
        assert!(!place.path("vault.db.first-run").exists(), "{steps}");
        close(open(place.root_key(), place.database()).without_maintenance().await.unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vault_is_locked_until_closed_and_dropped() {
    let place = Place::new();
    let server = open_or_create(place.root_key(), place.database()).server("serve").await.unwrap();
    let other = open(place.root_key(), place.database()).server("migrate").await.unwrap_err();
    let Error::Lock(LockError::Held { holder, .. }) = other else { panic!("{other:?}") };
    assert_eq!(holder, format!("serve (process {})", std::process::id()));
    // A process that does not serve can open the vault while the server runs.
    close(open(place.root_key(), place.database()).without_maintenance().await.unwrap()).await;
    close(server).await;
    close(open(place.root_key(), place.database()).server("migrate").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opener_parts_and_events_are_available_to_embedder() {
    struct Counting(Arc<AtomicUsize>);
    impl EventSink for Counting {
        fn emit(&self, event: Event) {
            if event == Event::PasswordEvaluated {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    let (place, count) = (Place::new(), Arc::new(AtomicUsize::new(0)));
    let opening = open_or_create(place.root_key(), place.database()).events(Counting(Arc::clone(&count)));
    let (vault, opener) = opening.without_maintenance().with_opener().await.unwrap();
    drop(opener);
    vault.ports().environment.emit(Event::PasswordEvaluated);
    assert_eq!(count.load(Ordering::Relaxed), 1);
    close(vault).await;
}
