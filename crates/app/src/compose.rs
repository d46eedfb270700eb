//! The composition root: picks the adapters that the settings name and wires them to the ports.

use crate::ambient::{Metrics, SystemClock, SystemIds};
use crate::failure::Failure;
use crate::settings::{Database, Settings};
use secrecy::SecretString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::id::{InstanceId, KeyId};
use vault_core::port::{
    Clock, CreateInstance, Entropy, EventSink, IdGenerator, InformationOpener, KeyedDigester, Opener, PasscodeVerifier,
    PasswordHasher, Sealer, TokenIssuer,
};
use vault_core::sealed::InstanceRecord;
use vault_core::usecase::{Ambient, AuditTally, Operator};
use vault_crypto::{
    Argon2Parameters, DatabaseKey, DatabaseKeyFile, HashingPool, KeyWrapper, Keyring, OsEntropy, RootKeyFile,
};
use vault_diesel::{
    Migration, PostgresSettings, PostgresStore, SchemaState, ServerLock, SqliteKey, SqliteSettings, SqliteStore, Store,
    StorePorts,
};

/// Raised by a restore, so that older tokens die; there has been none.
const RESTORE_EPOCH: u64 = 0;

/// An open vault: every port a command may need. There is no opener of credentials among them.
#[derive(Clone)]
pub(crate) struct Vault {
    pub(crate) instance: InstanceId,
    pub(crate) root_key: KeyId,
    pub(crate) ambient: Ambient,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) store: StorePorts,
    pub(crate) sealer: Arc<dyn Sealer>,
    pub(crate) information_opener: Arc<dyn InformationOpener>,
    pub(crate) digester: Arc<dyn KeyedDigester>,
    pub(crate) hasher: Arc<dyn PasswordHasher>,
    pub(crate) passcodes: Arc<dyn PasscodeVerifier>,
    pub(crate) tokens: Arc<dyn TokenIssuer>,
    pub(crate) database_key: Option<Arc<DatabaseKey>>,
    adapter: Store,
}

impl Vault {
    /// What operators do.
    pub(crate) fn operator(&self) -> Operator {
        self.operator_with(Arc::new(AuditTally::new(self.ambient.clone(), self.store.audit.clone())))
    }

    /// What operators do, with the server's own tally.
    pub(crate) fn operator_with(&self, tally: Arc<AuditTally>) -> Operator {
        Operator::new(self.ambient.clone(), tally, self.store.operator.clone(), self.sealer.clone())
    }

    /// Waits until the database can be used no more by this process; for ever, if it never comes to that.
    pub(crate) async fn failed(&self) {
        self.adapter.failed().await;
    }

    /// Finishes what was begun and lets the database go.
    pub(crate) async fn close(&self) {
        self.adapter.close().await;
    }
}

/// An open vault, and what opens its credentials: for the activation listener and nothing else.
pub(crate) struct Whole {
    pub(crate) vault: Vault,
    pub(crate) opener: Arc<dyn Opener>,
}

/// Held while this process is the one server of the embedded file. PostgreSQL needs none.
pub(crate) struct Lock {
    _file: Option<ServerLock>,
}

/// Takes the server's lock, or says who has it.
pub(crate) fn lock(settings: &Settings, command: &str) -> Result<Lock, Failure> {
    let file = match &settings.database {
        Database::Sqlite(path) if path.parent().is_some_and(Path::is_dir) => Some(ServerLock::take(path, command)?),
        Database::Sqlite(_) => return Err(nothing_here(settings)),
        Database::Postgres(_) => None,
    };
    Ok(Lock { _file: file })
}

/// Makes the data directory if it is not there, closed to others.
pub(crate) fn make_data_dir(settings: &Settings) -> Result<(), Failure> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&settings.data_dir)
        .map_err(|error| Failure::new(format!("cannot make the directory {}: {error}", settings.data_dir.display())))
}

/// The mode of a data directory that is open to others.
pub(crate) fn open_mode(directory: &Path) -> Option<u32> {
    let mode = directory.metadata().ok()?.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Makes a new vault: root key (unless the settings name one that is there), schema and keys.
///
/// A first run that was interrupted is taken up where it ended. A vault that is there is refused.
pub(crate) async fn create(settings: &Settings) -> Result<Whole, Failure> {
    match find(settings).await? {
        Some(_) => Err(Failure::new(format!("there already is a vault at {}; it was not touched", settings.database))),
        None => make(settings).await,
    }
}

async fn make(settings: &Settings) -> Result<Whole, Failure> {
    make_data_dir(settings)?;
    let surroundings = Surroundings::new();
    let root = if exists(&settings.root_key_file)? {
        RootKeyFile::load(&settings.root_key_file, surroundings.entropy.clone())?
    } else {
        RootKeyFile::generate(&settings.root_key_file, surroundings.entropy.clone())?
    };
    let opened = open_store(settings, &root, &surroundings, true).await?;
    let now = surroundings.clock.now();
    opened.store.migrate(now, &mut |_| {}).await?;

    let id = InstanceId::from_uuid(surroundings.ids.random());
    let made = Keyring::create(&root, surroundings.entropy.clone(), id, now).await?;
    let ambient = surroundings.ambient(&made.keyring);
    let command = CreateInstance {
        instance: made.instance,
        keys: made.keys,
        audit: ambient.record(now, None, Actor::Operator, AuditAction::InstanceCreated, Subject::Instance),
    };
    if !opened.store.ports().keys.create_instance(command).await? {
        return Err(Failure::new(format!("there already is a vault at {}; it was not touched", settings.database)));
    }
    surroundings.whole(&root, &made.keyring, opened)
}

/// Opens the vault that must be there, for a command that opens no credential.
pub(crate) async fn open(settings: &Settings) -> Result<Vault, Failure> {
    Ok(open_whole(settings).await?.vault)
}

/// Opens the vault that must be there.
pub(crate) async fn open_whole(settings: &Settings) -> Result<Whole, Failure> {
    find(settings).await?.ok_or_else(|| nothing_here(settings))
}

/// Opens the vault, if there is one. The root key is proven before anything is written.
pub(crate) async fn find(settings: &Settings) -> Result<Option<Whole>, Failure> {
    if let Database::Sqlite(path) = &settings.database
        && !exists(path)?
    {
        return Ok(None);
    }
    // Without a root key there may be a first run to take up, but only where there is no database either.
    if matches!(settings.database, Database::Postgres(_)) && !exists(&settings.root_key_file)? {
        return without_root_key(settings).await;
    }
    let surroundings = Surroundings::new();
    let root = RootKeyFile::load(&settings.root_key_file, surroundings.entropy.clone())?;
    let opened = open_store(settings, &root, &surroundings, false).await?;
    match opened.store.schema_state().await? {
        SchemaState::Empty => return Ok(None),
        SchemaState::Current => {}
        SchemaState::Pending(count) => {
            return Err(Failure::new(format!(
                "the database lacks {count} migrations: back it up, then run orgvault migrate"
            )));
        }
        SchemaState::Newer(version) => return Err(newer(&version)),
    }
    let keys = opened.store.ports().keys;
    let Some(record) = keys.instance().await? else { return Ok(None) };
    let keyring = open_keyring(&root, &surroundings, &record, &opened).await?;
    Ok(Some(surroundings.whole(&root, &keyring, opened)?))
}

async fn open_keyring(
    root: &RootKeyFile,
    surroundings: &Surroundings,
    record: &InstanceRecord,
    opened: &Opened,
) -> Result<Keyring, Failure> {
    let keys = opened.store.ports().keys.instance_keys().await?;
    Ok(Keyring::open(root, surroundings.entropy.clone(), record, &keys).await?)
}

/// PostgreSQL without a root key file: a first run, or a vault whose key is missing.
async fn without_root_key(settings: &Settings) -> Result<Option<Whole>, Failure> {
    let Database::Postgres(url) = &settings.database else { return Ok(None) };
    let store = PostgresStore::connect(PostgresSettings::new(SecretString::from(url.as_str()))).await?;
    let store = Store::Postgres(store);
    if store.schema_state().await? == SchemaState::Empty || store.ports().keys.instance().await?.is_none() {
        return Ok(None);
    }
    Err(Failure::new(format!(
        "there is a vault at {}, but no root key at {}: put a copy of its root key there, readable by nobody else, or \
         name it with --root-key-file",
        settings.database,
        settings.root_key_file.display()
    )))
}

/// Applies pending migrations under the server's lock. `progress` is told the name of each, its number from 0
/// and how many there are.
pub(crate) async fn migrate(
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Vec<String>, Failure> {
    let _lock = lock(settings, command)?;
    if let Database::Sqlite(path) = &settings.database
        && !exists(path)?
    {
        return Err(nothing_here(settings));
    }
    let surroundings = Surroundings::new();
    let root = RootKeyFile::load(&settings.root_key_file, surroundings.entropy.clone())?;
    let opened = open_store(settings, &root, &surroundings, false).await?;
    let pending = match opened.store.schema_state().await? {
        SchemaState::Empty => return Err(nothing_here(settings)),
        SchemaState::Current => 0,
        SchemaState::Pending(pending) => pending,
        SchemaState::Newer(version) => return Err(newer(&version)),
    };
    // The root key is proven before anything is written.
    if let Some(record) = opened.store.ports().keys.instance().await? {
        open_keyring(&root, &surroundings, &record, &opened).await?;
    }
    let mut applied = Vec::new();
    let mut note = |migration: Migration| {
        progress(migration.version, applied.len(), pending);
        applied.push(migration.version.to_owned());
    };
    opened.store.migrate(surroundings.clock.now(), &mut note).await?;
    opened.store.close().await;
    Ok(applied)
}

fn newer(version: &str) -> Failure {
    Failure::new(format!(
        "the database has schema version {version}, which this program does not know: use the newer one"
    ))
}

fn nothing_here(settings: &Settings) -> Failure {
    Failure::new(format!(
        "there is no vault at {}: make one with orgvault init, or with orgvault quickstart",
        settings.database
    ))
}

fn exists(path: &Path) -> Result<bool, Failure> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::new(format!("{} cannot be looked at: {error}", path.display()))),
    }
}

/// What a process has before it opens a vault.
struct Surroundings {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    events: Arc<dyn EventSink>,
    entropy: Arc<dyn Entropy>,
}

/// A store, and the key of the file it lies in.
struct Opened {
    store: Store,
    database_key: Option<Arc<DatabaseKey>>,
}

async fn open_store(
    settings: &Settings,
    root: &RootKeyFile,
    surroundings: &Surroundings,
    create: bool,
) -> Result<Opened, Failure> {
    match &settings.database {
        Database::Sqlite(path) => {
            let path = absolute(path)?;
            let file = DatabaseKeyFile::beside(&path);
            let key = if create && !exists(&path)? && !exists(file.path())? {
                file.create(root, &*surroundings.entropy).await?
            } else {
                file.load(root).await?
            };
            let bytes = key.expose_bytes(); // handed to the database adapter
            let settings = SqliteSettings { create, ..SqliteSettings::new(path, SqliteKey::from_bytes(bytes)) };
            let store = tokio::task::spawn_blocking(move || SqliteStore::open(settings)).await??;
            Ok(Opened { store: Store::Sqlite(store), database_key: Some(Arc::new(key)) })
        }
        Database::Postgres(url) => {
            let store = PostgresStore::connect(PostgresSettings::new(SecretString::from(url.as_str()))).await?;
            Ok(Opened { store: Store::Postgres(store), database_key: None })
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("{} is no path: {error}", path.display())))
}

impl Surroundings {
    fn new() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds::new()),
            events: Arc::new(Metrics),
            entropy: Arc::new(OsEntropy),
        }
    }

    fn ambient(&self, keyring: &Keyring) -> Ambient {
        Ambient {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            events: self.events.clone(),
            audit: Arc::new(keyring.audit_sealer()),
        }
    }

    fn whole(&self, root: &RootKeyFile, keyring: &Keyring, opened: Opened) -> Result<Whole, Failure> {
        let ambient = self.ambient(keyring);
        let store = opened.store.ports();
        let digester: Arc<dyn KeyedDigester> = Arc::new(keyring.digester());
        let crypto = keyring.credentials(store.keys.clone());
        let hasher = keyring.password_hasher(HashingPool::new()?, Argon2Parameters::LEAST, Vec::new())?;
        let opener = Arc::new(crypto.opener);
        let vault = Vault {
            instance: keyring.instance(),
            root_key: root.id(),
            entropy: self.entropy.clone(),
            sealer: Arc::new(crypto.sealer),
            information_opener: Arc::new(crypto.list_opener),
            hasher: Arc::new(hasher),
            passcodes: Arc::new(keyring.passcodes(digester.clone())),
            tokens: Arc::new(keyring.token_issuer(RESTORE_EPOCH)?),
            database_key: opened.database_key,
            adapter: opened.store,
            ambient,
            store,
            digester,
        };
        Ok(Whole { vault, opener })
    }
}
