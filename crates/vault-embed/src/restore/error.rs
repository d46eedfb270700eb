//! Errors of a restore.

use crate::backup::{ArchiveError, BackupError};
use crate::error::OpeningError;
use std::io;
use std::path::PathBuf;
use vault_crypto::{AnchorError, DatabaseKeyError, KeyringError};
use vault_diesel::{CopyError, MigrateError};

/// Reason why a vault was not restored. The present files are unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The database is not an embedded one.
    #[error("the database is on PostgreSQL, and a backup of an embedded database cannot be restored to it")]
    NotEmbedded,
    /// A vault exists.
    #[error("a vault exists at {}", .0.display())]
    Exists(PathBuf),
    /// The root key does not exist.
    #[error("root key {} not found. No backup contains it: restore it from your copy, or name its file", .0.display())]
    RootKeyMissing(PathBuf),
    /// The file is not a usable backup.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The root key cannot unwrap the database key of the backup.
    #[error(transparent)]
    DatabaseKey(#[from] DatabaseKeyError),
    /// The root key cannot unwrap the keys in the backup.
    #[error("backup {}", .backup.display())]
    Keyring {
        /// File of the backup.
        backup: PathBuf,
        /// Underlying error.
        source: KeyringError,
    },
    /// A newer build created the backup.
    #[error(
        "backup {} has schema version {version}, which this version of OrgVault does not support. Use the newer version",
        .backup.display()
    )]
    NewerSchema {
        /// File of the backup.
        backup: PathBuf,
        /// Unsupported version.
        version: String,
    },
    /// A build from before the first release created the backup.
    #[error(
        "backup {} has schema version {version}, created by an unreleased build, which no release supports. Use another \
         backup", .backup.display()
    )]
    UnreleasedSchema {
        /// File of the backup.
        backup: PathBuf,
        /// Version of its schema.
        version: String,
    },
    /// The database in the backup is damaged.
    #[error("backup {} is damaged. Use another backup", .backup.display())]
    Damaged {
        /// File of the backup.
        backup: PathBuf,
        /// The finding.
        source: CopyError,
    },
    /// The backup belongs to another vault.
    #[error(
        "backup {} contains vault {found}, but {} contains vault {present}. Restore to another data directory, or use a backup of \
         this vault", .backup.display(), .database.display()
    )]
    Foreign {
        /// File of the backup.
        backup: PathBuf,
        /// ID of the vault in the backup.
        found: String,
        /// Database in use.
        database: PathBuf,
        /// ID of the vault in use.
        present: String,
    },
    /// The anchor belongs to another vault.
    #[error(
        "backup {} contains vault {found}, but anchor {} belongs to vault {present}. Restore to another data directory, or use a \
         backup of this vault", .backup.display(), .anchor.display()
    )]
    ForeignAnchor {
        /// File of the backup.
        backup: PathBuf,
        /// ID of the vault in the backup.
        found: String,
        /// File of the anchor.
        anchor: PathBuf,
        /// ID of the vault in the anchor.
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
    Older {
        /// File of the backup.
        backup: PathBuf,
        /// File of the anchor.
        anchor: PathBuf,
        /// Number of the checkpoint in the anchor.
        anchored: i64,
        /// Number of the newest checkpoint in the backup.
        newest: i64,
    },
    /// The anchor cannot be read.
    #[error(transparent)]
    Anchor(AnchorError),
    /// The disk is full.
    #[error("no space left on device for {}", .0.display())]
    Full(PathBuf),
    /// The database could not be copied.
    #[error(transparent)]
    Copy(CopyError),
    /// The copy does not contain the rows of the backup.
    #[error(transparent)]
    Unfaithful(BackupError),
    /// The restored database or the one in use cannot be opened.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// Pending migrations could not be applied to the restored database.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The objects that must not be reactivated could not be revoked.
    #[error("the restore was not finished")]
    Unsettled(#[source] vault_core::Error),
    /// The operating system refused the operation.
    #[error("cannot write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The runtime was shut down.
    #[error("the process is stopping")]
    Cancelled,
}

impl RestoreError {
    pub(super) fn io(path: &std::path::Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path.to_owned()),
            _ => Self::Io { path: path.to_owned(), source },
        }
    }
}

impl From<CopyError> for RestoreError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Full(path) => Self::Full(path),
            other => Self::Copy(other),
        }
    }
}

impl From<BackupError> for RestoreError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Cancelled => Self::Cancelled,
            other => Self::Unfaithful(other),
        }
    }
}
