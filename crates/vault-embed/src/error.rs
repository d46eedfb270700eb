//! Errors of opening and creating a vault.

use std::io;
use std::path::PathBuf;
use vault_core::port::{SealError, StoreError};
use vault_crypto::{AnchorError, DatabaseKeyError, KeyringError, RootKeyError};
use vault_diesel::{ConnectError, LockError, MigrateError, OpenError};

/// Error of opening or creating a vault. Nothing was changed, except that an interrupted first run may have left files
/// with which the next run continues.
///
/// Each message names the object, the expected and the actual state, and the next step. No message contains a secret,
/// or recommends an action that could destroy a vault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningError {
    /// No vault exists.
    #[error("no vault found at {database}. Check the path or URL of the database")]
    NotFound {
        /// Database: an absolute path, or a URL without user, password and parameters.
        database: String,
    },
    /// A first run that creates the vault was interrupted.
    #[error("the vault at {database} is unfinished: its creation was interrupted. Run the same command again")]
    Unfinished {
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
    },
    /// A vault exists where one should be created.
    #[error("a vault already exists at {database}; nothing was changed")]
    Exists {
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
    },
    /// A vault exists, but not its root key.
    #[error(
        "root key {} not found, but {vault} contains a vault. Restore the key from your copy, or name its file. A new key \
         cannot decrypt this vault", .root_key.display()
    )]
    RootKeyMissing {
        /// Expected file of the root key.
        root_key: PathBuf,
        /// Directory or URL of the vault.
        vault: String,
    },
    /// A root key exists, but no vault and no mark of an interrupted first run.
    #[error(
        "root key {} exists, but no vault was found at {database}. If the key belongs to a vault, restore its database \
         or name the right one; a new vault needs a separate directory", .root_key.display()
    )]
    KeyWithoutVault {
        /// File of the root key.
        root_key: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
    },
    /// Remains of an embedded database exist, but the file itself is missing or empty.
    #[error(
        "the database {} is {state}, but its key file or log exists, so it contained a vault. Restore the database from a \
         backup; do not create a new vault here", .database.display()
    )]
    DatabaseLost {
        /// Database file.
        database: PathBuf,
        /// `missing` or `empty`.
        state: &'static str,
    },
    /// The database file is empty, and no other file belongs to it.
    #[error("the file {} is empty, so it is not a vault. Choose another path for the database", .0.display())]
    NotADatabase(PathBuf),
    /// The directory of the embedded database does not exist.
    #[error("the directory {} for the database does not exist. Check the path, or create the directory", .0.display())]
    NoDirectory(PathBuf),
    /// The vault was moved to another database.
    #[error(
        "the vault at {} was moved to {target}. Open it there. To return to the file and lose all later changes, \
         first remove {}", .database.display(), .mark.display()
    )]
    Moved {
        /// Database file.
        database: PathBuf,
        /// Database to which it was moved.
        target: String,
        /// File that records the move.
        mark: PathBuf,
    },
    /// The schema is older than this build.
    #[error("the database {database} lacks {count} migrations. Back it up, then apply them")]
    MigrationsPending {
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Number of pending migrations.
        count: usize,
        /// Whether servers of the previous build may run during and after the migrations.
        rolling: bool,
    },
    /// The schema is newer than this build.
    #[error(
        "the database {database} has schema version {version}, which this version of OrgVault does not support. Use the newer version"
    )]
    NewerSchema {
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Unsupported version.
        version: String,
    },
    /// A build from before the first release created the schema.
    #[error(
        "the database {database} has schema version {version}, created by an unreleased build, which no release supports. \
         Create a new vault with another data directory or database"
    )]
    UnreleasedSchema {
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Version of the schema.
        version: String,
    },
    /// The root key is invalid.
    #[error(transparent)]
    RootKey(#[from] RootKeyError),
    /// The database key file is invalid.
    #[error(transparent)]
    DatabaseKey(#[from] DatabaseKeyError),
    /// The vault's keys cannot be unwrapped with the root key.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// Another process serves the embedded database, or its lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The embedded database cannot be opened.
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    /// PostgreSQL cannot be reached.
    #[error(transparent)]
    Postgres(#[from] ConnectError),
    /// Migrations could not be applied.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The anchor is missing, although the database has audit checkpoints and therefore had an anchor.
    #[error(
        "the anchor {} does not exist, but the database {database} contains audit checkpoint {newest}, so it is unknown \
         whether it was rolled back to an earlier state. Restore the anchor, or adopt the current database if this is a \
         new replica", .anchor.display()
    )]
    AnchorMissing {
        /// Expected file of the anchor.
        anchor: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Number of its newest checkpoint.
        newest: i64,
    },
    /// The anchor was unused for so long that its entries were deleted at the end of their retention.
    #[error(
        "the anchor {} contains audit checkpoint {anchored}, but entries up to checkpoint {start} of {database} were removed \
         since, because they are too old. So OrgVault cannot check whether the database was rolled back. Adopt it if this \
         replica was stopped for that long", .anchor.display()
    )]
    AnchorOvertaken {
        /// File of the anchor.
        anchor: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Checkpoint that the anchor contains.
        anchored: i64,
        /// Checkpoint at which the audit log starts.
        start: i64,
    },
    /// The database is older than the anchor.
    #[error(
        "the database {database} was rolled back to an earlier state: its newest audit checkpoint is {newest}, but the \
         anchor {} contains checkpoint {anchored}. Use the newest database", .anchor.display()
    )]
    OlderDatabase {
        /// File of the anchor.
        anchor: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Checkpoint that the anchor contains.
        anchored: i64,
        /// Number of the newest checkpoint of the database, or 0 if it has none.
        newest: i64,
    },
    /// The history of the database differs from that of the anchor.
    #[error(
        "the database {database} has another history than the anchor {}: its audit checkpoint {checkpoint} differs, \
         or it was restored. Use the database that belongs to this anchor", .anchor.display()
    )]
    OtherHistory {
        /// File of the anchor.
        anchor: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Checkpoint that the anchor contains.
        checkpoint: i64,
    },
    /// The database contains an earlier keyring than the anchor.
    #[error(
        "the database {database} is older than the anchor {}: it contains keyring document {found}, which does not follow \
         document {anchored}", .anchor.display()
    )]
    OlderKeyring {
        /// File of the anchor.
        anchor: PathBuf,
        /// Database, as in [`OpeningError::NotFound`].
        database: String,
        /// Number of the document in the anchor.
        anchored: i64,
        /// Number of the document in the database.
        found: i64,
    },
    /// The anchor is refused.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// The audit log could not be read.
    #[error(transparent)]
    Audit(Box<vault_core::Error>),
    /// Keys could not be used.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The operating system refused to read a file.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The operating system refused to create a file or thread.
    #[error("cannot create {}", .path.display())]
    Unwritable {
        /// Path of the file or directory.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The threads that hash passwords could not be started.
    #[error("cannot start the password hashing threads")]
    Hashing(#[source] io::Error),
    /// The runtime was shut down while the database was opened.
    #[error("the runtime stopped while the database was opened")]
    Cancelled,
}

impl OpeningError {
    /// Returns whether the vault requires another root key.
    pub fn is_wrong_root_key(&self) -> bool {
        match self {
            Self::DatabaseKey(error) => error.is_wrong_root_key(),
            Self::Keyring(error) => matches!(error, KeyringError::WrongRoot { .. }),
            _ => false,
        }
    }
}
