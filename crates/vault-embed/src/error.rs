//! The error of this crate.

use std::io;
use std::path::{Path, PathBuf};
use vault_core::id::KeyId;
use vault_core::port::{SealError, StoreError};
use vault_crypto::{AnchorError, DatabaseKeyError, KeyringError, RootKeyError};
use vault_diesel::{ConnectError, CopyError, LockError, MigrateError, OpenError, TransferError};

/// Reason why a vault was not opened, created, backed up, restored or moved, or its root key not replaced. Nothing was
/// changed, unless the error states otherwise. An interrupted first run, backup, move or replacement may have left files
/// with which the next run continues.
///
/// Each message names the object, the expected and the actual state, and the next step. No message contains a secret,
/// or recommends an action that could destroy a vault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No vault exists.
    #[error("no vault found at {database}. Check the path or URL of the database")]
    NotFound {
        /// Database: an absolute path, or a URL without user, password and parameters.
        database: String,
    },
    /// A first run that creates the vault was interrupted.
    #[error("the vault at {database} is unfinished: its creation was interrupted. Run the same command again")]
    Unfinished {
        /// Database, as in [`Error::NotFound`].
        database: String,
    },
    /// A vault exists where one should be created.
    #[error("a vault already exists at {database}; nothing was changed")]
    Exists {
        /// Database, as in [`Error::NotFound`].
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
        /// Database, as in [`Error::NotFound`].
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
    /// The directory of the embedded database or of a backup does not exist.
    #[error("the directory {} does not exist. Check the path, or create the directory", .0.display())]
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
        /// Database, as in [`Error::NotFound`].
        database: String,
        /// Number of pending migrations.
        count: usize,
        /// Whether servers of the previous build may run during and after the migrations.
        rolling: bool,
    },
    /// The schema is newer than this build.
    #[error(
        "{place} has schema version {version}, which this version of OrgVault does not support. Use the newer version"
    )]
    NewerSchema {
        /// The database or backup.
        place: String,
        /// Unsupported version.
        version: String,
    },
    /// A build from before the first release created the schema.
    #[error(
        "{place} has schema version {version}, created by an unreleased build, which no release supports. {instead}"
    )]
    UnreleasedSchema {
        /// The database or backup.
        place: String,
        /// What to use instead.
        instead: &'static str,
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
        /// Database, as in [`Error::NotFound`].
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
        /// Database, as in [`Error::NotFound`].
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
        /// Database, as in [`Error::NotFound`].
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
        /// Database, as in [`Error::NotFound`].
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
        /// Database, as in [`Error::NotFound`].
        database: String,
        /// Number of the document in the anchor.
        anchored: i64,
        /// Number of the document in the database.
        found: i64,
    },
    /// The anchor is refused.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// An operation failed.
    #[error(transparent)]
    Operation(Box<vault_core::Error>),
    /// Keys could not be used.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The operation requires an embedded database.
    #[error("the vault is on PostgreSQL; only an embedded database can be {0}")]
    NotEmbedded(&'static str),
    /// A file with the name of the backup exists.
    #[error("{} exists already and is never overwritten. Choose another name", .0.display())]
    FileExists(PathBuf),
    /// Another process writes the same backup, or an unrelated file has the name of the unfinished one.
    #[error("another backup to {} is running, or {} is not an unfinished backup. Choose another name", .target.display(), .unfinished.display())]
    Taken {
        /// File of the backup.
        target: PathBuf,
        /// Unfinished file.
        unfinished: PathBuf,
    },
    /// The action was not recorded in the audit log, so it was not performed.
    #[error("the action was not recorded in the audit log")]
    Unrecorded(#[source] vault_core::Error),
    /// The database could not be copied, or the copy is damaged.
    #[error(transparent)]
    Copy(CopyError),
    /// The copy does not contain the rows that were read.
    #[error("the copy is incomplete: table {table} should have {expected} rows and has {found}")]
    Unfaithful {
        /// Name of the table.
        table: String,
        /// Number of rows that were read.
        expected: u64,
        /// Number of rows in the copy.
        found: u64,
    },
    /// The keys of a copy cannot be unwrapped with the root key.
    #[error("{} cannot be decrypted with the root key", .file.display())]
    CopyKeyring {
        /// The copy or backup.
        file: PathBuf,
        /// Underlying error.
        source: KeyringError,
    },
    /// A written archive on the disk differs from its data.
    #[error("the archive {} differs from the written data. Check the disk", .0.display())]
    Unfit(PathBuf),
    /// The file is not a usable backup.
    #[error("backup {} {reason}", .backup.display())]
    Archive {
        /// The file.
        backup: PathBuf,
        /// Reason and next step.
        reason: String,
    },
    /// The root key for a restore does not exist.
    #[error("root key {} not found. No backup contains it: restore it from your copy, or name its file", .0.display())]
    NoRootKey(PathBuf),
    /// The database in the backup is damaged.
    #[error("backup {} is damaged. Use another backup", .backup.display())]
    Damaged {
        /// File of the backup.
        backup: PathBuf,
        /// The finding.
        source: CopyError,
    },
    /// The backup belongs to another vault than the database in use or the anchor.
    #[error(
        "backup {} contains vault {found}, but {place} vault {present}. Restore to another data directory, or use a backup of \
         this vault", .backup.display()
    )]
    Foreign {
        /// File of the backup.
        backup: PathBuf,
        /// ID of the vault in the backup.
        found: String,
        /// The database or anchor in use, with a verb.
        place: String,
        /// ID of the vault in use.
        present: String,
    },
    /// The database in use cannot be opened, and no anchor shows that it is the vault of the backup.
    #[error(
        "database {} cannot be opened, and anchor {} does not identify it as the vault of backup {}: {reason}. If it is, move the \
         database's files out of the data directory, then restore without replacing", .database.display(), .anchor.display(),
        .backup.display()
    )]
    Unknown {
        /// File of the backup.
        backup: PathBuf,
        /// Database in use.
        database: PathBuf,
        /// Reason why it cannot be opened.
        reason: String,
        /// File of the anchor, which is missing or damaged.
        anchor: PathBuf,
    },
    /// The anchor contains a later state than the backup.
    #[error(
        "backup {} is older than the state in {}: the backup has {newest} audit checkpoints and lacks number {anchored}",
        .backup.display(), .anchor.display()
    )]
    OlderBackup {
        /// File of the backup.
        backup: PathBuf,
        /// File of the anchor.
        anchor: PathBuf,
        /// Number of the checkpoint in the anchor.
        anchored: i64,
        /// Number of the newest checkpoint in the backup.
        newest: i64,
    },
    /// The objects that must not be reactivated could not be revoked in the restored copy.
    #[error("the restore was not finished")]
    Unsettled(#[source] Box<vault_core::Error>),
    /// The target of a move is not PostgreSQL.
    #[error("the target must be a PostgreSQL database: postgres://…")]
    NotPostgres,
    /// The vault was not opened with the server lock, so another process may serve it concurrently.
    #[error("the vault was not opened as its only server")]
    NotTheServer,
    /// The rows could not be moved.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The rows were copied, but the vault cannot be opened in the target, or the file could not be marked as moved.
    /// The embedded database is unchanged, and still the vault.
    #[error("the rows were copied, but the move is not complete")]
    Incomplete(#[source] Box<Self>),
    /// Another process is replacing the root key, or exchanging or moving the database.
    #[error("the vault at {} is in use by {holder}. Wait until it has exited", .database.display())]
    Busy {
        /// The database file.
        database: PathBuf,
        /// Process that uses it.
        holder: String,
    },
    /// A replaced instance key is not destroyed yet.
    #[error(
        "the instance key is being replaced, and the old one is not destroyed yet. Run `orgvault key rotate --instance` until \
         it has finished, then replace the root key"
    )]
    InstanceKeyRetires,
    /// Another process has replaced the root key with a different one.
    #[error(
        "another process has replaced the root key by root key {0}; nothing was changed. Use that one as the old root key"
    )]
    Superseded(KeyId),
    /// The disk is full.
    #[error("no space left on device for {}", .0.display())]
    Full(PathBuf),
    /// The operating system refused to read a file.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The operating system refused to create or write a file.
    #[error("cannot write {}", .path.display())]
    Unwritable {
        /// Path of the file or directory.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The threads that hash passwords could not be started.
    #[error("cannot start the password hashing threads")]
    Hashing(#[source] io::Error),
    /// The runtime was shut down.
    #[error("the process is stopping")]
    Cancelled,
}

impl Error {
    /// Creates the error of a write to `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path.to_owned()),
            _ => Self::Unwritable { path: path.to_owned(), source },
        }
    }

    /// Creates the error of a restore that could not revoke objects.
    pub(crate) fn unsettled(error: impl Into<vault_core::Error>) -> Self {
        Self::Unsettled(Box::new(error.into()))
    }

    /// Returns whether the vault requires another root key.
    pub fn is_wrong_root_key(&self) -> bool {
        match self {
            Self::DatabaseKey(error) => error.is_wrong_root_key(),
            Self::Keyring(error) => matches!(error, KeyringError::WrongRoot { .. }),
            _ => false,
        }
    }
}

impl From<CopyError> for Error {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Full(path) => Self::Full(path),
            other => Self::Copy(other),
        }
    }
}

impl From<vault_core::Error> for Error {
    fn from(error: vault_core::Error) -> Self {
        match error {
            vault_core::Error::Store(error) => Self::Store(error),
            error => Self::Operation(Box::new(error)),
        }
    }
}
