//! Replacement of the root key of a vault that is in use.
//!
//! The root key wraps two keys of an embedded database: the database key in a file, and the instance key in a row.
//! While both root keys wrap the key in the file, the row determines which one opens the vault. The vault can therefore
//! be opened with exactly one of them at any time, even after an interruption.

use crate::database::{Database, FileState, FoundFile, Kind};
use crate::error::Error;
use crate::opening::open;
use crate::restore::exchange::is_pending;
use crate::root_key::RootKey;
use crate::vault::OpenVault;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vault_core::id::KeyId;
use vault_core::port::{Clock as _, Entropy, StoreError};
use vault_crypto::{DatabaseKeyFile, LoadedRootKey, OsEntropy, SystemClock, rewrap_instance_key};
use vault_diesel::{LockError, ServerLock};

/// Name of the lock holder while a rotation locks an embedded database.
const COMMAND: &str = "key rotate --root";
/// Lock holders that exchange or move the database.
const EXCHANGES: [&str; 3] = ["restore", "end of a restore", "migrate"];
/// Minimum time between the replacement of an instance key and that of its root key, in milliseconds. Servers read the
/// instance keys once a second, and a server that has not loaded the new key could not unwrap it with another root key.
/// Clocks may differ by 2 s.
const LEARNT_AFTER: i64 = 5_000;
/// Maximum number of attempts if the row is changed concurrently.
const ATTEMPTS: usize = 16;

/// A root key replacement in progress. It can be dropped after any step and started again, because its progress is
/// stored in the vault.
#[must_use = "nothing is replaced before its steps are taken"]
pub struct RootRotation {
    vault: OpenVault,
    current: Arc<LoadedRootKey>,
    next: Arc<LoadedRootKey>,
    key_file: Option<DatabaseKeyFile>,
    stage: Option<RootStep>,
    state: RootState,
    _locks: Option<Locks>,
}

/// A step of the replacement of a root key. Each is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootStep {
    /// Additionally wraps the database key with the new root key. The vault can be opened with the old root key.
    WrapDatabaseKey,
    /// Wraps the instance key with the new root key. The vault can now be opened only with this one.
    MoveInstanceKey,
    /// Removes the database key's wrap with the old root key.
    DropOldWrap,
}

/// State of a replacement when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootState {
    /// Not started before.
    New,
    /// An earlier run was interrupted.
    Interrupted,
    /// Complete: the vault can be opened only with the new root key.
    Complete,
}

/// The new root key: loaded, or to be created after the old one has been verified.
enum Next {
    Loaded(Arc<LoadedRootKey>),
    Missing(RootKey),
}

impl RootRotation {
    /// Starts replacing the root key `current` of the vault at `database` with `next`, which is created after the
    /// verification of `current` if its file does not exist. Servers may be running. After an interrupted run,
    /// `current` may be either of the two.
    ///
    /// # Errors
    /// The vault can be opened with neither, a root key is refused, or another process is exchanging the database.
    pub async fn begin(current: RootKey, next: RootKey, database: Database) -> Result<Self, Error> {
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let alone = database.file().map(Alone::take).transpose()?;
        let next = match next.missing_file()? {
            Some(_) => Next::Missing(next),
            None => Next::Loaded(next.load(Arc::clone(&entropy))?),
        };
        let (vault, current) = open_with_either(current, &next, &database).await?;
        let alone = alone.map(|alone| alone.keep_out_exchanges(&database)).transpose();
        let started = async {
            let locks = alone?;
            let next = match next {
                Next::Loaded(next) => next,
                Next::Missing(next) => next.load_or_generate(entropy)?,
            };
            let key_file = database.file().map(DatabaseKeyFile::next_to);
            let wraps = key_file.as_ref().map(DatabaseKeyFile::root_keys).transpose()?.unwrap_or_default();
            let moved = current.id() == next.id();
            let (stage, state) = match (&key_file, moved) {
                (Some(_), true) if wraps.len() > 1 => (Some(RootStep::DropOldWrap), RootState::Interrupted),
                (_, true) => (None, RootState::Complete),
                (Some(_), false) if wraps.contains(&next.id()) => {
                    (Some(RootStep::WrapDatabaseKey), RootState::Interrupted)
                }
                (Some(_), false) => (Some(RootStep::WrapDatabaseKey), RootState::New),
                (None, false) => (Some(RootStep::MoveInstanceKey), RootState::New),
            };
            Ok((next, key_file, stage, state, locks))
        };
        match started.await {
            Ok((next, key_file, stage, state, locks)) => {
                Ok(Self { vault, current, next, key_file, stage, state, _locks: locks })
            }
            Err(error) => {
                vault.adapter.close().await;
                Err(error)
            }
        }
    }

    /// Returns the root key that opened the vault at the start.
    pub fn current(&self) -> KeyId {
        self.current.id()
    }

    /// Returns the new root key.
    pub fn next(&self) -> KeyId {
        self.next.id()
    }

    /// Returns the state of this replacement at the start.
    pub const fn state(&self) -> RootState {
        self.state
    }

    /// Executes the next step and returns it, or returns `None` if the root key is replaced.
    ///
    /// # Errors
    /// See [`Error`]. The step can be repeated, and the vault can be opened with the old or the new root key.
    pub async fn step(&mut self) -> Result<Option<RootStep>, Error> {
        let Some(step) = self.stage else { return Ok(None) };
        let (current, next) = (&*self.current, &*self.next);
        self.stage = match (step, &self.key_file) {
            (RootStep::WrapDatabaseKey, Some(file)) => {
                if file.root_keys()?.iter().any(|root| *root != current.id() && *root != next.id()) {
                    // An interrupted rotation to a third root key left this wrap. The instance key is still wrapped by
                    // `current`.
                    file.finish_root_rotation(current)?;
                }
                file.begin_root_rotation(current, next)?;
                Some(RootStep::MoveInstanceKey)
            }
            (RootStep::MoveInstanceKey, file) => {
                self.move_instance_key().await?;
                file.is_some().then_some(RootStep::DropOldWrap)
            }
            (RootStep::DropOldWrap, Some(file)) => {
                file.finish_root_rotation(next)?;
                None
            }
            (_, None) => None,
        };
        Ok(Some(step))
    }

    /// Closes the vault.
    ///
    /// # Errors
    /// The counts could not be recorded.
    pub async fn close(self) -> Result<(), vault_core::Error> {
        self.vault.close().await
    }

    async fn move_instance_key(&self) -> Result<(), Error> {
        let (store, next) = (&self.vault.ports.store.keys, self.next.id());
        for _ in 0..ATTEMPTS {
            let Some(record) = store.instance().await? else { break };
            if record.root_key == next {
                return Ok(()); // another process was faster
            }
            if record.root_key != self.current.id() {
                return Err(Error::Superseded(record.root_key));
            }
            let rewrapped = rewrap_instance_key(&record, &self.current, &self.next, Arc::new(OsEntropy))?;
            if rewrapped.retires {
                return Err(Error::InstanceKeyRetires);
            }
            if let Some(replaced_at) = rewrapped.replaced_at {
                let elapsed = SystemClock.now().as_millis().saturating_sub(replaced_at.as_millis());
                let left = u64::try_from(LEARNT_AFTER.saturating_sub(elapsed)).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(left.min(LEARNT_AFTER.unsigned_abs()))).await;
            }
            if self.vault.keys().replace_root(record, next, rewrapped.record.wrapped).await? {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable("other processes kept changing the instance key".into()).into())
    }
}

/// Opens the vault with the root key that wraps it, and returns that key.
async fn open_with_either(
    current: RootKey,
    next: &Next,
    database: &Database,
) -> Result<(OpenVault, Arc<LoadedRootKey>), Error> {
    let with = async |root: Arc<LoadedRootKey>| {
        let vault = open(RootKey::loaded(Arc::clone(&root)), database.clone()).without_maintenance().await?;
        Ok((vault, root))
    };
    match (current.missing_file()?.map(Path::to_owned), next) {
        // The old root key was removed after an earlier run.
        (Some(_), Next::Loaded(next)) => with(Arc::clone(next)).await,
        (Some(root_key), Next::Missing(_)) => Err(Error::RootKeyMissing { root_key, vault: database.to_string() }),
        (None, next) => {
            let current = current.load(Arc::new(OsEntropy))?;
            match (with(current).await, next) {
                (Err(refused), Next::Loaded(next)) if refused.is_wrong_root_key() => {
                    with(Arc::clone(next)).await.map_err(|_| refused)
                }
                (opened, _) => opened,
            }
        }
    }
}

/// Excludes other rotations of the same embedded database: the lock of the database key file, which only rotations use.
struct Alone {
    _lock: ServerLock,
}

/// Excludes other rotations, restores and moves of the same embedded database.
struct Locks {
    _alone: Alone,
    /// `None` while a server is running, which excludes them itself.
    _exchanges: Option<ServerLock>,
}

impl Alone {
    fn take(database: &Path) -> Result<Self, Error> {
        let key_file = DatabaseKeyFile::next_to(database);
        // Do not create a lock file where no vault exists.
        let found = FoundFile::at(database, key_file.path())?;
        if found.state == FileState::Missing && !found.leftovers && !is_pending(database)? {
            return Err(Error::NotFound { database: Database::sqlite(database).to_string() });
        }
        match ServerLock::take(key_file.path(), COMMAND) {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(LockError::Held { holder, .. }) => {
                Err(Error::Busy { database: database.to_owned(), holder: format!("another {holder}") })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn keep_out_exchanges(self, database: &Database) -> Result<Locks, Error> {
        let Kind::Sqlite(path) = &database.0 else { return Ok(Locks { _alone: self, _exchanges: None }) };
        match ServerLock::take(path, COMMAND) {
            Ok(lock) => Ok(Locks { _alone: self, _exchanges: Some(lock) }),
            Err(LockError::Held { database, holder }) if EXCHANGES.iter().any(|name| holder.starts_with(name)) => {
                Err(Error::Busy { database, holder })
            }
            Err(LockError::Held { .. }) => Ok(Locks { _alone: self, _exchanges: None }),
            Err(error) => Err(error.into()),
        }
    }
}
