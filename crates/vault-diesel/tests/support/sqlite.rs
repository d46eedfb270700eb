//! Databases for the lifetime of a test.

use super::{NOW, build};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use vault_diesel::{SqliteKey, SqliteSettings, SqliteStore};
use zeroize::Zeroizing;

pub(crate) const KEY: [u8; 32] = [0xa5; 32];

/// A folder for one database.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("orgvault.db")
    }

    pub(crate) fn settings(&self) -> SqliteSettings {
        let key = SqliteKey::from_bytes(Zeroizing::new(KEY));
        SqliteSettings { create: true, ..SqliteSettings::new(self.path(), key) }
    }

    pub(crate) fn open(&self) -> Arc<SqliteStore> {
        SqliteStore::open(self.settings()).unwrap()
    }

    /// Opens a store with the schema, on a copy of a file that the first test of this build creates.
    pub(crate) async fn migrated(&self) -> Arc<SqliteStore> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let template = directory.join(format!("schema-{}.db", build()));
        if !template.exists() {
            let new = Self(TempDir::new_in(directory).unwrap());
            let store = new.open();
            store.migrate(NOW, &mut |_| {}).await.unwrap();
            drop(store);
            // Moves the rest of the write-ahead log into the file.
            let busy: i64 = new.bare().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
            assert_eq!(busy, 0, "the template is in use");
            fs::rename(new.path(), &template).unwrap();
        }
        fs::copy(template, self.path()).unwrap();
        self.open()
    }

    /// Opens a connection that bypasses the store.
    pub(crate) fn bare(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let hex = KEY.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        connection.execute_batch(&format!("PRAGMA busy_timeout = 5000; PRAGMA key = \"x'{hex}'\"")).unwrap();
        connection
    }
}
