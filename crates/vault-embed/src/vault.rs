//! A vault that is open.

use crate::anchor::Anchored;
use crate::error::OpeningError;
use crate::maintenance::{Maintenance, seal};
use std::fmt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use vault_core::id::{InstanceId, KeyId};
use vault_core::port::{
    Entropy, InformationOpener, InstanceRewrapper, KeyedDigester, PasscodeVerifier, PasswordHasher, ReceiverOpener,
    ReceiverSealer, Rewrapper, Sealer, StoreError, TokenIssuer,
};
use vault_core::usecase::{Accounts, AuditTally, Environment};
use vault_crypto::{Anchor, AnchorError, Anchors, DatabaseKey, DatabaseKeyError, DatabaseKeyFile, HashingPool};
use vault_diesel::{
    CopyError, Migration, ServerLock, SpreadError, Spreading, SqliteKey, Store, StoreLoad, StorePorts, check_pages,
};

/// How long entries are sealed when a vault is closed, in milliseconds.
const SEAL_LAST: i64 = 2_000;

/// An open vault. A clone is the same vault. Nothing in it opens the data of credentials.
///
/// [`OpenVault::close`] it before the process ends: a connection of the embedded database that is closed by the exit
/// itself may crash.
#[derive(Clone)]
pub struct OpenVault {
    pub(crate) instance: InstanceId,
    pub(crate) root_key: KeyId,
    pub(crate) ports: Ports,
    pub(crate) tally: Arc<AuditTally>,
    pub(crate) accounts: Accounts,
    pub(crate) database_key: Option<Arc<DatabaseKey>>,
    pub(crate) applied: Arc<[Migration]>,
    pub(crate) adapter: Store,
    pub(crate) pool: Arc<HashingPool>,
    pub(crate) anchors: Anchors,
    pub(crate) anchored: Option<Arc<Anchored>>,
    pub(crate) maintenance: Option<Arc<Maintenance>>,
    /// The embedded database file.
    pub(crate) file: Option<Arc<Path>>,
    // Given back with the last clone.
    pub(crate) lock: Option<Arc<ServerLock>>,
}

/// Why an open vault can no longer be used by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VaultFailure {
    /// The disk failed a write of the embedded database.
    Disk,
    /// The database no longer holds the audit checkpoint that the anchor knows: it was set back or replaced.
    SetBack,
}

/// How busy an open vault is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its store.
    pub store: StoreLoad,
    /// Seats in the queue of the password hash that are taken.
    pub seats_taken: usize,
    /// How many of these seats there are.
    pub seats: usize,
}

/// The ports of an open vault. None of them opens the data of credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct Ports {
    /// Clock, ids, events and the audit's codes.
    pub environment: Environment,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The store.
    pub store: StorePorts,
    /// Seals credentials.
    pub sealer: Arc<dyn Sealer>,
    /// Opens what a list shows.
    pub information_opener: Arc<dyn InformationOpener>,
    /// Moves credentials from one organization key to another.
    pub rewrapper: Arc<dyn Rewrapper>,
    /// Creates instance keys, and rewraps and reseals rows with them.
    pub instance_rewrapper: Arc<dyn InstanceRewrapper>,
    /// Seals what is secret of receivers.
    pub receiver_sealer: Arc<dyn ReceiverSealer>,
    /// Opens what is secret of receivers, and signs with it.
    pub(crate) receiver_opener: Arc<dyn ReceiverOpener>,
    /// Keyed digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Passcodes and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Access tokens.
    pub tokens: Arc<dyn TokenIssuer>,
}

impl OpenVault {
    /// The id of the deployment.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// How busy it is.
    pub fn load(&self) -> Load {
        let (seats_taken, seats) = self.pool.seats();
        Load { store: self.adapter.load(), seats_taken, seats }
    }

    /// The id of the root key, which follows from the key.
    pub fn root_key(&self) -> KeyId {
        self.root_key
    }

    /// Its ports, for what this crate does not make of them.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The key of the embedded database file; none on PostgreSQL.
    pub fn database_key(&self) -> Option<&DatabaseKey> {
        self.database_key.as_deref()
    }

    /// The root keys under which the key of the embedded database file is wrapped: two while the root key is replaced, none on
    /// PostgreSQL.
    ///
    /// # Errors
    /// The database key file is missing or damaged.
    pub fn database_root_keys(&self) -> Result<Vec<KeyId>, DatabaseKeyError> {
        match &self.file {
            Some(file) => DatabaseKeyFile::beside(file).root_keys(),
            None => Ok(Vec::new()),
        }
    }

    /// How the tables lie on a PostgreSQL that is spread over machines. `None`: it is not, and cannot be.
    ///
    /// # Errors
    /// The database's extension cannot be used as it is, or the database cannot be read.
    pub async fn spreading(&self) -> Result<Option<Spreading>, SpreadError> {
        self.adapter.spreading().await
    }

    /// Spreads the tables over the nodes of the database, in one transaction. How many were moved.
    ///
    /// # Errors
    /// The database cannot be spread, or fails.
    pub async fn spread(&self) -> Result<usize, SpreadError> {
        self.adapter.spread().await
    }

    /// The migrations that were applied when it was opened.
    pub fn applied_migrations(&self) -> &[Migration] {
        &self.applied
    }

    /// Completes when the database has become unusable for this process. The process should then exit with an error. May be
    /// cancelled.
    pub async fn failed(&self) -> VaultFailure {
        let set_back = async {
            match &self.anchored {
                Some(anchored) => anchored.set_back().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.adapter.failed() => VaultFailure::Disk,
            () = set_back => VaultFailure::SetBack,
        }
    }

    /// Has the anchor in the file `path` know this database as it is now, whatever it knew: after a restore.
    ///
    /// # Errors
    /// The store failed, or the file cannot be written.
    pub async fn anchor_anew(&self, path: &Path) -> Result<(), OpeningError> {
        let epoch = self.ports.store.operator.restore_epoch().await?;
        let checkpoint =
            self.operator().newest_checkpoint().await.map_err(|error| OpeningError::Audit(Box::new(error)))?;
        if let Some(directory) = path.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|source| OpeningError::Unwritable { path: directory.to_owned(), source })?;
        }
        Ok(self.anchors.at(path).store(Anchor { epoch, checkpoint, keyring: self.anchors.keyring() })?)
    }

    /// How often the database was restored, as it says itself.
    ///
    /// # Errors
    /// The store failed.
    pub async fn restore_epoch(&self) -> Result<u64, StoreError> {
        self.ports.store.operator.restore_epoch().await
    }

    /// What is wrong with pages of the embedded database file, in words, while it is used. `None`: PostgreSQL looks after its
    /// own.
    ///
    /// # Errors
    /// The file does not open.
    pub async fn check_pages(&self) -> Result<Option<Vec<String>>, CopyError> {
        let (Some(file), Some(key)) = (self.file.clone(), &self.database_key) else { return Ok(None) };
        let key = SqliteKey::from_bytes(key.expose_bytes()); // handed to the database
        let checking = tokio::task::spawn_blocking(move || check_pages(&file, key)).await;
        checking.unwrap_or_else(|_| Ok(Vec::new())).map(Some) // the runtime ends
    }

    /// What the anchor in the file `path` knows. `None`: there is no such file.
    ///
    /// # Errors
    /// The file is damaged, belongs to another vault, or cannot be read.
    pub fn read_anchor(&self, path: &Path) -> Result<Option<Anchor>, AnchorError> {
        self.anchors.at(path).load()
    }

    /// Ends the maintenance, records what was counted, seals the audit if there was an maintenance, records when sessions were used, finishes what was begun and closes the database. Every clone is closed
    /// with it; to close again does nothing. Should not be cancelled: what was counted may then be lost.
    ///
    /// # Errors
    /// What was counted could not be recorded; the database is closed all the same.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(maintenance) = &self.maintenance {
            maintenance.end().await;
        }
        let recorded = self.tally.flush(true).await;
        if self.maintenance.is_some() {
            seal(&self.operator(), self.anchored.as_deref(), SEAL_LAST).await;
        }
        if let Err(error) = self.accounts.write_session_uses().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the last uses of sessions were not written");
        }
        self.adapter.close().await;
        recorded
    }
}

impl fmt::Debug for OpenVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenVault({})", self.instance)
    }
}
