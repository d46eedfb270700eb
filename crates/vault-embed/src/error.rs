//! Why a vault cannot be opened or made.

use std::io;
use std::path::PathBuf;
use vault_core::port::{SealError, StoreError};
use vault_crypto::{AnchorError, DatabaseKeyError, KeyringError, RootKeyError, WrapError};
use vault_diesel::{ConnectError, LockError, MigrateError, OpenError};

/// Why a vault cannot be opened or made. Nothing is changed then, except that an interrupted first run may have left files
/// that the next one takes up.
///
/// Each message names the object, what was expected and found, and what to do; none names a secret, and none advises what
/// could destroy a vault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningError {
    /// There is no vault.
    #[error("no vault found at {database}. Check the path or URL of the database")]
    NotFound {
        /// The database: an absolute path or a URL without user, password and parameters.
        database: String,
    },
    /// A first run that was to make the vault was interrupted.
    #[error(
        "the vault at {database} is unfinished: its first run was interrupted. Run the command that makes it again"
    )]
    Unfinished {
        /// The database.
        database: String,
    },
    /// A vault was to be made where one is.
    #[error("a vault already exists at {database}; nothing was changed")]
    Exists {
        /// The database.
        database: String,
    },
    /// There is a vault, but not its root key.
    #[error(
        "root key {} not found, but {vault} holds a vault. Restore the key from your copy, or name its file. A new key \
         cannot open this vault", .root_key.display()
    )]
    RootKeyMissing {
        /// The file that was to hold the root key.
        root_key: PathBuf,
        /// The directory or URL of the vault.
        vault: String,
    },
    /// There is a root key, but no vault, and no first run was interrupted.
    #[error(
        "root key {} exists, but no vault was found at {database}. If the key belongs to a vault, restore its database \
         or name the right one; a new vault needs a directory of its own", .root_key.display()
    )]
    KeyWithoutVault {
        /// The file of the root key.
        root_key: PathBuf,
        /// The database.
        database: String,
    },
    /// There are remains of an embedded database, but the file itself is missing or empty.
    #[error(
        "the database {} is {state}, but its key file or log exists, so it held a vault. Restore the database from a \
         backup; do not make a new vault here", .database.display()
    )]
    DatabaseLost {
        /// The database file.
        database: PathBuf,
        /// `missing` or `empty`.
        state: &'static str,
    },
    /// The database file is empty and nothing belongs to it.
    #[error("the file {} is empty, so it is not a vault. Choose another path for the database", .0.display())]
    NotADatabase(PathBuf),
    /// The directory of the embedded database is missing.
    #[error("the directory {} for the database does not exist. Check the path, or create the directory", .0.display())]
    NoDirectory(PathBuf),
    /// The vault was moved to another database.
    #[error(
        "the vault at {} was moved to {target}. Open it there. To go back to the file and lose what was changed since, \
         first remove {}", .database.display(), .mark.display()
    )]
    Moved {
        /// The database file.
        database: PathBuf,
        /// The database that it was moved to.
        target: String,
        /// The file that says so.
        mark: PathBuf,
    },
    /// The schema is older than this build.
    #[error("the database {database} lacks {count} migrations. Back it up, then apply them")]
    MigrationsPending {
        /// The database.
        database: String,
        /// How many are missing.
        count: usize,
        /// Whether servers of the build before may run while they are applied and afterwards.
        rolling: bool,
    },
    /// The schema is newer than this build.
    #[error(
        "the database {database} has schema version {version}, which this version of OrgVault does not know. Use the newer version"
    )]
    NewerSchema {
        /// The database.
        database: String,
        /// The unknown version.
        version: String,
    },
    /// A build from before the first release made the schema.
    #[error(
        "the database {database} has schema version {version}, made by a build from before OrgVault 0.1.0, which no release reads. \
         Create a new vault with another data directory or database"
    )]
    UnreleasedSchema {
        /// The database.
        database: String,
        /// Its version.
        version: String,
    },
    /// The root key is refused.
    #[error(transparent)]
    RootKey(#[from] RootKeyError),
    /// The database key file is invalid.
    #[error(transparent)]
    DatabaseKey(#[from] DatabaseKeyError),
    /// The vault's keys do not open under the root key.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// Another process serves the embedded database, or its lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The embedded database does not open.
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    /// PostgreSQL is not reached.
    #[error(transparent)]
    Postgres(#[from] ConnectError),
    /// Migrations were not applied.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no anchor, but the database has checkpoints of the audit, so there was one somewhere.
    #[error(
        "the anchor {} does not exist, but the database {database} holds audit checkpoint {newest}, so it cannot be told \
         whether it was set back to an earlier state. Restore the anchor, or adopt the database as it is if this is a new \
         replica", .anchor.display()
    )]
    AnchorMissing {
        /// The file that was to be the anchor.
        anchor: PathBuf,
        /// The database.
        database: String,
        /// Its newest checkpoint.
        newest: i64,
    },
    /// The anchor was away for so long that the entries it knows were removed, because their time was over.
    #[error(
        "the anchor {} knows audit checkpoint {anchored}, but entries up to checkpoint {start} of {database} were removed \
         since, because they are too old. So OrgVault cannot check whether the database was set back. Adopt it as it is if \
         this replica was away for that long", .anchor.display()
    )]
    AnchorOvertaken {
        /// The anchor.
        anchor: PathBuf,
        /// The database.
        database: String,
        /// Checkpoint that the anchor contains.
        anchored: i64,
        /// The checkpoint at which the audit starts.
        start: i64,
    },
    /// The database is older than the anchor.
    #[error(
        "the database {database} was set back to an earlier state: its newest audit checkpoint is {newest}, and the anchor \
         {} knows checkpoint {anchored}. Use the newest database", .anchor.display()
    )]
    OlderDatabase {
        /// The anchor.
        anchor: PathBuf,
        /// The database.
        database: String,
        /// Checkpoint that the anchor contains.
        anchored: i64,
        /// The newest checkpoint of the database; 0 if it has none.
        newest: i64,
    },
    /// The database went another way than the anchor knows.
    #[error(
        "the database {database} has another history than the anchor {} knows: its audit checkpoint {checkpoint} differs, \
         or it was restored. Use the database that this anchor was made with", .anchor.display()
    )]
    OtherHistory {
        /// The anchor.
        anchor: PathBuf,
        /// The database.
        database: String,
        /// Checkpoint that the anchor contains.
        checkpoint: i64,
    },
    /// The database holds an earlier set of keys than the anchor knows.
    #[error(
        "the database {database} is older than the anchor {}: it holds keyring document {found}, which does not follow \
         document {anchored}", .anchor.display()
    )]
    OlderKeyring {
        /// The anchor.
        anchor: PathBuf,
        /// The database.
        database: String,
        /// The document that the anchor knows.
        anchored: i64,
        /// The document of the database.
        found: i64,
    },
    /// The anchor is refused.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// The audit could not be asked.
    #[error(transparent)]
    Audit(Box<vault_core::Error>),
    /// Keys could not be used.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The operating system refused to look at a file.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The operating system refused to create a file or thread.
    #[error("cannot create {}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The threads that hash passwords could not be started.
    #[error("cannot start the password hashing threads")]
    Hashing(#[source] io::Error),
    /// The runtime ended while the database was opened.
    #[error("the runtime ended while the database was opened")]
    Cancelled,
}

impl OpeningError {
    /// Whether the place of the root key was unreachable; a retry may succeed.
    pub fn is_root_key_unavailable(&self) -> bool {
        match self {
            Self::DatabaseKey(error) => error.is_root_key_unavailable(),
            Self::Keyring(KeyringError::InstanceKey { cause, .. } | KeyringError::Wrap(cause)) => {
                matches!(cause, WrapError::Unavailable(_))
            }
            _ => false,
        }
    }

    /// Whether the vault needs another root key than the one given.
    pub fn is_wrong_root_key(&self) -> bool {
        match self {
            Self::DatabaseKey(error) => error.is_wrong_root_key(),
            Self::Keyring(error) => matches!(error, KeyringError::WrongRoot { .. }),
            _ => false,
        }
    }
}
