//! An open vault.

use crate::anchor::Anchored;
use crate::error::Error;
use crate::maintenance::{Maintenance, seal};
use std::fmt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, RecordEntry, Subject};
use vault_core::id::{InstanceId, KeyId};
use vault_core::operation::Operations;
use vault_core::port::{Entropy, InstanceRewrapper, PasscodeVerifier, PasswordHasher, StoreError, TokenIssuer};
use vault_core::principal::Principal;
use vault_core::usecase::{Accounts, AuditTally, Environment};
use vault_crypto::{Anchor, AnchorError, Anchors, DatabaseKey, DatabaseKeyError, DatabaseKeyFile, HashingPool};
use vault_diesel::{
    CopyError, Distribution, DistributionError, Migration, ServerLock, SqliteKey, Store, StoreLoad, StorePorts,
    check_pages,
};

/// Maximum duration of sealing audit entries when a vault is closed, in milliseconds.
const SEAL_LAST: i64 = 2_000;

/// An open vault. Clones share it. It contains nothing that decrypts credential data.
///
/// Call [`OpenVault::close`] before the process exits: a connection of the embedded database that is closed by the exit
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
    /// Embedded database file.
    pub(crate) file: Option<Arc<Path>>,
    // Released with the last clone.
    pub(crate) lock: Option<Arc<ServerLock>>,
}

/// Reason why the process can no longer use an open vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VaultFailure {
    /// A write of the embedded database to the disk failed.
    Disk,
    /// The database no longer contains the audit checkpoint in the anchor: it was rolled back or replaced.
    RolledBack,
}

/// Load of an open vault at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Load of its store.
    pub store: StoreLoad,
    /// Number of occupied slots in the queue of the password hash.
    pub slots_used: usize,
    /// Number of these slots.
    pub hash_slots: usize,
}

/// Ports of an open vault. None of them decrypts credential data.
#[derive(Clone)]
#[non_exhaustive]
pub struct Ports {
    /// Clock, IDs, events and MACs of audit entries.
    pub environment: Environment,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The store.
    pub store: StorePorts,
    /// Runs operations on the store. Contains the ports that seal documents and credentials and compute keyed digests.
    pub operations: Operations,
    /// Creates instance keys.
    pub instance_rewrapper: Arc<dyn InstanceRewrapper>,
    /// Hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Generates and verifies passcodes and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Issues access tokens.
    pub tokens: Arc<dyn TokenIssuer>,
}

impl OpenVault {
    /// Returns the ID of the instance.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Returns its load.
    pub fn load(&self) -> Load {
        let (slots_used, hash_slots) = self.pool.hash_slots();
        Load { store: self.adapter.load(), slots_used, hash_slots }
    }

    /// Returns the ID of the root key, which is derived from the key.
    pub fn root_key(&self) -> KeyId {
        self.root_key
    }

    /// Returns its ports, for operations that this crate does not provide.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Returns the key of the embedded database file, or `None` on PostgreSQL.
    pub fn database_key(&self) -> Option<&DatabaseKey> {
        self.database_key.as_deref()
    }

    /// Returns the root keys that wrap the key of the embedded database file: two while the root key is being replaced,
    /// none on PostgreSQL.
    ///
    /// # Errors
    /// The database key file is missing or damaged.
    pub fn database_root_keys(&self) -> Result<Vec<KeyId>, DatabaseKeyError> {
        match &self.file {
            Some(file) => DatabaseKeyFile::next_to(file).root_keys(),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the distribution of the tables on PostgreSQL with Citus, or `None` if the database does not support
    /// distribution.
    ///
    /// # Errors
    /// The database's extension cannot be used, or the database cannot be read.
    pub async fn spreading(&self) -> Result<Option<Distribution>, DistributionError> {
        self.adapter.spreading().await
    }

    /// Distributes the tables over the nodes of the database in one transaction, and returns the number of moved
    /// tables.
    ///
    /// # Errors
    /// The tables cannot be distributed, or the database fails.
    pub async fn spread(&self) -> Result<usize, DistributionError> {
        self.adapter.spread().await
    }

    /// Returns the migrations that were applied when it was opened.
    pub fn applied_migrations(&self) -> &[Migration] {
        &self.applied
    }

    /// Waits until the database becomes unusable for this process, which should then exit with an error. May be
    /// cancelled.
    pub async fn failed(&self) -> VaultFailure {
        let rolled_back = async {
            match &self.anchored {
                Some(anchored) => anchored.rolled_back().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.adapter.failed() => VaultFailure::Disk,
            () = rolled_back => VaultFailure::RolledBack,
        }
    }

    /// Overwrites the anchor in the file `path` with the current state of this database, after a restore.
    ///
    /// # Errors
    /// The store failed, or the file cannot be written.
    pub async fn re_anchor(&self, path: &Path) -> Result<(), Error> {
        let epoch = self.restore_epoch().await?;
        let checkpoint = self.operator().newest_checkpoint().await?;
        if let Some(directory) = path.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|source| Error::Unwritable { path: directory.to_owned(), source })?;
        }
        Ok(self.anchors.at(path).store(Anchor { epoch, checkpoint, keyring: self.anchors.keyring() })?)
    }

    /// Returns the restore epoch of the database.
    ///
    /// # Errors
    /// The store failed.
    pub async fn restore_epoch(&self) -> Result<u64, StoreError> {
        Ok(self.ports.store.keys.instance().await?.map_or(0, |instance| instance.restore_epoch))
    }

    /// Checks the pages of the embedded database file while it is in use, and returns descriptions of damage. Returns
    /// `None` on PostgreSQL, which checks its own.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub async fn check_pages(&self) -> Result<Option<Vec<String>>, CopyError> {
        let (Some(file), Some(key)) = (self.file.clone(), &self.database_key) else { return Ok(None) };
        let key = SqliteKey::from_bytes(key.expose_bytes()); // handed to the database
        let checking = tokio::task::spawn_blocking(move || check_pages(&file, key)).await;
        checking.unwrap_or_else(|_| Ok(Vec::new())).map(Some) // the runtime ends
    }

    /// Returns the content of the anchor in the file `path`, or `None` if the file does not exist.
    ///
    /// # Errors
    /// The file is damaged, belongs to another vault, or cannot be read.
    pub fn read_anchor(&self, path: &Path) -> Result<Option<Anchor>, AnchorError> {
        self.anchors.at(path).load()
    }

    /// Stops the maintenance, records counts and uses of sessions, seals the audit log if there was a maintenance,
    /// finishes pending work and closes the database. This also closes all clones, and closing again has no effect.
    /// Should not be cancelled, because counts may be lost.
    ///
    /// # Errors
    /// The counts could not be recorded. The database is closed anyway.
    pub async fn close(&self) -> Result<(), vault_core::Error> {
        if let Some(maintenance) = &self.maintenance {
            maintenance.end().await;
        }
        let recorded = self.tally.flush(true).await;
        if let Err(error) = self.operator().record_counts(true).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the last uses of keys were not recorded");
        }
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

impl OpenVault {
    /// Records an action of the operator on the whole instance, before it is executed outside of the store.
    pub(crate) async fn record(&self, action: AuditAction) -> Result<(), vault_core::Error> {
        let environment = &self.ports.environment;
        let entry = environment.record(environment.now(), None, Actor::Operator, action, Subject::Instance);
        self.ports.operations.run(environment, &Principal::Operator, RecordEntry(entry)).await
    }
}

impl fmt::Debug for OpenVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenVault({})", self.instance)
    }
}
