//! Settings of the embedded database, and errors of opening it.

use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Key of the database file. `Debug` does not show it.
pub struct SqliteKey(Zeroizing<[u8; 32]>);

impl SqliteKey {
    /// Creates the key from its bytes.
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// Returns the statement that sets the key of a connection.
    pub(super) fn pragma(&self) -> Zeroizing<String> {
        self.quoted("PRAGMA key = ")
    }

    /// Returns `before` followed by the quoted key, with capacity for a few more characters.
    pub(super) fn quoted(&self, before: &str) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Allocate the final size: growing would leave copies of the key in freed memory.
        let mut sql = Zeroizing::new(String::with_capacity(before.len() + 80));
        sql.push_str(before);
        sql.push_str("\"x'");
        for byte in self.0.iter() {
            sql.push(char::from(DIGITS[usize::from(byte >> 4)]));
            sql.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        sql.push_str("'\"");
        sql
    }
}

impl fmt::Debug for SqliteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteKey(…)")
    }
}

/// Settings of the embedded database.
#[derive(Debug)]
pub struct SqliteSettings {
    /// Path of the file.
    pub path: PathBuf,
    /// Key of the file.
    pub key: SqliteKey,
    /// Whether to create the file if it does not exist.
    pub create: bool,
    /// Maximum number of concurrent reads.
    pub readers: u32,
    /// Maximum number of transactions queued for the writer.
    pub queue: usize,
    /// Page cache of the writer in MiB, at least 1.
    pub page_cache: u32,
}

impl SqliteSettings {
    /// Default page cache of the writer, in MiB.
    pub const PAGE_CACHE: u32 = 64;

    /// Returns settings for an existing file: four readers, a queue of 4,096 and a page cache of [`Self::PAGE_CACHE`].
    pub const fn new(path: PathBuf, key: SqliteKey) -> Self {
        Self { path, key, create: false, readers: 4, queue: 4_096, page_cache: Self::PAGE_CACHE }
    }
}

/// Error of opening the embedded database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file does not exist.
    #[error("database {0} not found")]
    NotFound(PathBuf),
    /// The path is not an absolute path in UTF-8.
    #[error("invalid database path {0}: expected an absolute path in UTF-8")]
    Path(PathBuf),
    /// The file is on a file system where locks and shared memory do not work.
    #[error(
        "{path} is on a network file system ({kind}), where the embedded database can be corrupted. Use a local disk, or PostgreSQL"
    )]
    NetworkFileSystem {
        /// Path of the file.
        path: PathBuf,
        /// Name of the file system.
        kind: &'static str,
    },
    /// The key does not decrypt the file, or the file is not an encrypted database.
    #[error("cannot decrypt {0}: the database key belongs to another database, or the file is damaged")]
    Key(PathBuf),
    /// The linked SQLite is too old or lacks SQLCipher.
    #[error("SQLite {0} is not supported; this build needs SQLCipher 4")]
    Library(String),
    /// A setting does not have the value that was set.
    #[error("database setting {name} is {found}; expected {wanted}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Value that was read back.
        found: String,
        /// Expected value.
        wanted: String,
    },
    /// The file cannot be accessed.
    #[error("cannot access the database file")]
    Io(#[from] std::io::Error),
    /// SQLite returned an error.
    #[error("cannot open the database")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}
