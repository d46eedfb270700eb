//! Why a vault was not restored.

use crate::backup::{ArchiveError, BackupError};
use crate::error::OpeningError;
use std::io;
use std::path::PathBuf;
use vault_crypto::{AnchorError, DatabaseKeyError, KeyringError};
use vault_diesel::{CopyError, MigrateError};

/// Why a vault was not restored. What was there is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The database is not an embedded one.
    #[error("the database is on PostgreSQL, which a backup of an embedded database is not restored to")]
    NotEmbedded,
    /// There is a vault.
    #[error("a vault exists at {}", .0.display())]
    Exists(PathBuf),
    /// The root key is not there.
    #[error("root key {} not found. No backup contains it: restore it from your copy, or name its file", .0.display())]
    RootKeyMissing(PathBuf),
    /// The file is not a backup that can be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The root key does not open the backup.
    #[error(transparent)]
    DatabaseKey(#[from] DatabaseKeyError),
    /// The keys in the backup do not open under the root key.
    #[error("backup {}", .backup.display())]
    Keyring {
        /// The backup.
        backup: PathBuf,
        /// Violation.
        source: KeyringError,
    },
    /// A newer build made the backup.
    #[error(
        "backup {} has schema version {version}, which this version of OrgVault does not know. Use the newer version",
        .backup.display()
    )]
    NewerSchema {
        /// The backup.
        backup: PathBuf,
        /// The unknown version.
        version: String,
    },
    /// A build from before the first release made the backup.
    #[error(
        "backup {} has schema version {version}, made by a build from before OrgVault 0.1.0, which no release reads. Use another \
         backup", .backup.display()
    )]
    UnreleasedSchema {
        /// The backup.
        backup: PathBuf,
        /// Its version.
        version: String,
    },
    /// The database in the backup is damaged.
    #[error("backup {} is damaged. Use another backup", .backup.display())]
    Damaged {
        /// The backup.
        backup: PathBuf,
        /// What was found.
        source: CopyError,
    },
    /// The backup is another vault's.
    #[error(
        "backup {} holds vault {found}, but {} holds vault {present}. Restore to another data directory, or use a backup of \
         this vault", .backup.display(), .database.display()
    )]
    Foreign {
        /// The backup.
        backup: PathBuf,
        /// The vault in it.
        found: String,
        /// The database in use.
        database: PathBuf,
        /// The vault in that.
        present: String,
    },
    /// The anchor is another vault's.
    #[error(
        "backup {} holds vault {found}, but anchor {} belongs to vault {present}. Restore to another data directory, or use a \
         backup of this vault", .backup.display(), .anchor.display()
    )]
    ForeignAnchor {
        /// The backup.
        backup: PathBuf,
        /// The vault in it.
        found: String,
        /// The anchor.
        anchor: PathBuf,
        /// The vault that it knows.
        present: String,
    },
    /// The database in use does not open, and no anchor says that it is the vault of the backup.
    #[error(
        "database {} does not open, and anchor {} does not say that it is the vault of backup {}: {reason}. If it is, move the \
         database's files out of the data directory, then restore without replacing", .database.display(), .anchor.display(),
        .backup.display()
    )]
    Unknown {
        /// The backup.
        backup: PathBuf,
        /// The database in use.
        database: PathBuf,
        /// Why it does not open.
        reason: String,
        /// The anchor, which is missing or damaged.
        anchor: PathBuf,
    },
    /// The anchor knows a later state than that of the backup.
    #[error(
        "backup {} is older than what {} knows of the vault: the backup has {newest} audit checkpoints and lacks number {anchored}",
        .backup.display(), .anchor.display()
    )]
    Older {
        /// The backup.
        backup: PathBuf,
        /// The anchor.
        anchor: PathBuf,
        /// The number of the checkpoint that the anchor knows.
        anchored: i64,
        /// The number of the newest checkpoint of the backup.
        newest: i64,
    },
    /// The anchor cannot be read.
    #[error(transparent)]
    Anchor(AnchorError),
    /// There is no space.
    #[error("no space left on device for {}", .0.display())]
    Full(PathBuf),
    /// The database was not copied.
    #[error(transparent)]
    Copy(CopyError),
    /// The copy does not hold the rows of the backup.
    #[error(transparent)]
    Unfaithful(BackupError),
    /// The restored database or the one in use does not open.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// Pending migrations were not applied to the restored database.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// What must not come back was not ended.
    #[error("the restored database was not settled")]
    Unsettled(#[source] vault_core::Error),
    /// The operating system refused.
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
