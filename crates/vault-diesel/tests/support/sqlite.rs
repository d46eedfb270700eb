//! Databases for the lifetime of a test.

use super::NOW;
use std::fmt::Write as _;
use std::path::PathBuf;
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

    pub(crate) async fn migrated(&self) -> Arc<SqliteStore> {
        let store = self.open();
        store.migrate(NOW, &mut |_| {}).await.unwrap();
        store
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
