//! How the embedded database is opened, and why it may not be.

use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The key of the database file. Never shown.
pub struct SqliteKey(Zeroizing<[u8; 32]>);

impl SqliteKey {
    /// The key with these bytes.
    pub fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// The statement that gives the key to a connection.
    pub(super) fn pragma(&self) -> Zeroizing<String> {
        self.quoted("PRAGMA key = ")
    }

    /// `before`, then the key as a statement has it, with room for a few characters more.
    pub(super) fn quoted(&self, before: &str) -> Zeroizing<String> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Of the final size at once: growing would leave copies behind.
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

/// How the embedded database is opened.
#[derive(Debug)]
pub struct SqliteSettings {
    /// Its file.
    pub path: PathBuf,
    /// The file's key.
    pub key: SqliteKey,
    /// Whether to make the file if it is not there.
    pub create: bool,
    /// How many connections read at once.
    pub readers: u32,
    /// How many decisions may wait for the writer.
    pub queue: usize,
    /// How many MiB of pages the writer keeps in memory, at least 1.
    pub page_cache: u32,
}

impl SqliteSettings {
    /// What the writer keeps of the file in memory unless told otherwise, in MiB.
    pub const PAGE_CACHE: u32 = 64;

    /// Settings for a file that is there: four readers, a queue of 4,096, a page cache of [`Self::PAGE_CACHE`].
    pub const fn new(path: PathBuf, key: SqliteKey) -> Self {
        Self { path, key, create: false, readers: 4, queue: 4_096, page_cache: Self::PAGE_CACHE }
    }
}

/// The embedded database cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("database {0} not found")]
    NotFound(PathBuf),
    /// The path is not absolute text that the database can be given.
    #[error("invalid database path {0}: expected an absolute path in UTF-8")]
    Path(PathBuf),
    /// The file lies where locks and shared memory do not work.
    #[error(
        "{path} is on a network file system ({kind}), where the embedded database can be corrupted. Use a local disk, or PostgreSQL"
    )]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The file system.
        kind: &'static str,
    },
    /// The key does not open the file, or the file is not a database of this kind.
    #[error("cannot decrypt {0}: the database key belongs to another database, or the file is damaged")]
    Key(PathBuf),
    /// The library that was linked lacks what this crate relies on.
    #[error("SQLite {0} is not supported; this build needs SQLCipher 4")]
    Library(String),
    /// A setting did not take.
    #[error("database setting {name} is {found}; expected {wanted}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What it is.
        found: String,
        /// What it must be.
        wanted: String,
    },
    /// The file cannot be reached.
    #[error("cannot access the database file")]
    Io(#[from] std::io::Error),
    /// The database refuses.
    #[error("cannot open the database")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}
