//! Opens and creates vaults, in the only safe order.

use crate::anchor::{AnchorSetting, Anchored};
use crate::database::{Database, FileState, FoundFile, Kind, exists};
use crate::environment::LoggedEvents;
use crate::error::Error;
use crate::first_run::FirstRun;
use crate::maintenance::Maintenance;
use crate::migration::refuse_moved;
use crate::restore::exchange;
use crate::root_key::RootKey;
use crate::vault::{OpenVault, Ports};
use std::future::{Future, IntoFuture};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, Origin, Subject};
use vault_core::id::InstanceId;
use vault_core::operation::Operations;
use vault_core::port::{Clock, CreateInstance, Entropy, EventSink, IdGenerator, KeyedDigester, Opener};
use vault_core::sealed::InstanceRecord;
use vault_core::usecase::{AccountPorts, Accounts, AuditTally, Environment};
use vault_crypto::{
    Argon2Parameters, DatabaseKey, DatabaseKeyFile, HashingPool, Keyring, LoadedRootKey, OsEntropy, SystemClock,
    SystemIds,
};
use vault_diesel::{
    Migration, PostgresSettings, PostgresStore, SchemaState, ServerLock, SqliteKey, SqliteSettings, SqliteStore, Store,
    are_rolling,
};

/// Callback before each migration, with its number from 0 and the number of migrations.
type Progress = Box<dyn FnMut(&Migration, usize, usize) + Send>;

/// Opens the vault at `database`, which must exist.
pub fn open(root_key: RootKey, database: Database) -> Opening {
    Opening::new(root_key, database, Mode::Open)
}

/// Creates a new vault at `database`: root key, schema and keys. An interrupted first run is continued. If anything of
/// another vault is found, nothing is changed.
pub fn create(root_key: RootKey, database: Database) -> Opening {
    Opening::new(root_key, database, Mode::Create)
}

/// Opens the vault at `database`, or creates it like [`create`].
pub fn open_or_create(root_key: RootKey, database: Database) -> Opening {
    Opening::new(root_key, database, Mode::OpenOrCreate)
}

/// Options for opening a vault. Await it on a multi-threaded Tokio runtime to get an [`OpenVault`]. Do not drop it
/// while a vault is being created. If that happens, the next run continues.
#[must_use = "nothing is opened until it is awaited"]
pub struct Opening {
    root_key: RootKey,
    database: Database,
    mode: Mode,
    events: Arc<dyn EventSink>,
    server: Option<String>,
    progress: Option<Progress>,
    maintenance: bool,
    anchor: Option<AnchorSetting>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Create,
    OpenOrCreate,
}

impl Opening {
    fn new(root_key: RootKey, database: Database, mode: Mode) -> Self {
        Self {
            root_key,
            database,
            mode,
            events: Arc::new(LoggedEvents),
            server: None,
            progress: None,
            maintenance: true,
            anchor: None,
        }
    }

    /// Sends events to `sink` instead of [`LoggedEvents`].
    pub fn events(self, sink: impl EventSink + 'static) -> Self {
        Self { events: Arc::new(sink), ..self }
    }

    /// Acquires the server lock of an embedded database until the vault is closed and dropped. Errors of other
    /// processes name `command` as its holder. On PostgreSQL, any number of servers may run.
    pub fn server(self, command: &str) -> Self {
        Self { server: Some(command.to_owned()), ..self }
    }

    /// Applies pending migrations of an existing vault after its root key was verified. Without this, they are an
    /// error. Calls `progress` before each, with its number from 0 and the number of migrations.
    pub fn migrate(self, progress: impl FnMut(&Migration, usize, usize) + Send + 'static) -> Self {
        Self { progress: Some(Box::new(progress)), ..self }
    }

    /// Refuses a database that was rolled back: one without the audit checkpoint in the anchor in the file `path`. The
    /// file is created for a vault without checkpoints, and updated at most every second. Its directory must exist. If
    /// the file is missing or belongs to another vault, a database with checkpoints is refused, unless `adopt` is set.
    pub fn anchor(self, path: impl Into<PathBuf>, adopt: bool) -> Self {
        Self { anchor: Some(AnchorSetting { path: path.into(), adopt }), ..self }
    }

    /// Disables the background maintenance, for short-lived processes.
    pub fn without_maintenance(self) -> Self {
        Self { maintenance: false, ..self }
    }

    /// Opens it and also returns, separately, the opener that decrypts credential data. Only the part of a program that
    /// serves activations should get it.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn with_opener(self) -> Result<(OpenVault, Arc<dyn Opener>), Error> {
        self.run().await
    }
}

impl IntoFuture for Opening {
    type Output = Result<OpenVault, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { Ok(self.run().await?.0) })
    }
}

/// A store, with the key of its database file.
struct OpenStore {
    store: Store,
    database_key: Option<Arc<DatabaseKey>>,
}

/// Clock, IDs, events and randomness.
struct Platform {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    events: Arc<dyn EventSink>,
    entropy: Arc<dyn Entropy>,
}

/// The root key: loaded, or to be loaded after it is determined whether a vault exists.
enum Root {
    Loaded(Arc<LoadedRootKey>),
    Pending(RootKey),
}

impl Opening {
    async fn run(self) -> Result<(OpenVault, Arc<dyn Opener>), Error> {
        let Self { root_key, database, mode, events, server, progress, maintenance, anchor } = self;
        let platform = Platform {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds::default()),
            events,
            entropy: Arc::new(OsEntropy),
        };
        let first_run = FirstRun::of(&root_key, &database);
        let run = Run { platform, database: &database, first_run, creates: mode != Mode::Open };

        let (opened, root, lock) = match &database.0 {
            Kind::Sqlite(path) => {
                refuse_moved(path)?;
                let mut lock = None;
                if let Some(command) = &server {
                    lock = Some(run.lock(path, command)?);
                }
                if exchange::is_pending(path)? {
                    // Exclude other processes from putting it in place concurrently.
                    let _held = if lock.is_none() { Some(run.lock(path, "end of a restore")?) } else { None };
                    if exchange::is_pending(path)? {
                        exchange::finish(path, run.platform.clock.now())?;
                    }
                }
                if lock.is_some() {
                    exchange::discard_undecided(path)?;
                }
                let (opened, root) = run.open_file(path, root_key, &mut lock).await?;
                (opened, root, lock)
            }
            Kind::Postgres(url) => {
                let store = PostgresStore::connect(PostgresSettings::new(url.clone())).await?;
                (OpenStore { store: Store::Postgres(store), database_key: None }, Root::Pending(root_key), None)
            }
        };
        // Without a server, the lock is not needed after the vault exists.
        let keep_lock = server.is_some();

        let schema = opened.store.schema_state().await?;
        match schema {
            SchemaState::Newer(version) => {
                return Err(Error::NewerSchema { place: format!("the database {database}"), version });
            }
            SchemaState::Unreleased(version) => {
                return Err(Error::UnreleasedSchema {
                    place: format!("the database {database}"),
                    version,
                    instead: "Create a new vault with another data directory or database",
                });
            }
            SchemaState::Empty | SchemaState::Pending(_) | SchemaState::Current => {}
        }
        let instance = match schema {
            SchemaState::Empty => None,
            _ => opened.store.ports().keys.instance().await?,
        };
        let epoch = instance.as_ref().map_or(0, |instance| instance.restore_epoch);
        let (root, keyring, applied) = match instance {
            Some(_) if mode == Mode::Create => return Err(Error::Exists { database: database.to_string() }),
            Some(record) => run.open_existing(&opened, root, record, &schema, progress).await?,
            None => run.create(&opened, root, &schema).await?,
        };
        run.first_run.end();
        keyring.renewing(Arc::clone(&root), opened.store.ports().keys);

        let pool = HashingPool::new().map_err(Error::Hashing)?;
        let (ports, opener) = run.platform.ports(&keyring, &opened.store, &pool, epoch)?;
        let tally = Arc::new(AuditTally::new(ports.environment.clone(), ports.operations.clone()));
        let mut vault = OpenVault {
            instance: keyring.instance(),
            root_key: root.id(),
            accounts: accounts(keyring.instance(), &ports, &tally),
            ports,
            tally,
            database_key: opened.database_key,
            applied: applied.into(),
            adapter: opened.store,
            pool,
            anchors: keyring.anchors(),
            anchored: None,
            maintenance: None,
            file: database.file().map(Arc::from),
            lock: lock.filter(|_| keep_lock).map(Arc::new),
        };
        if let Some(AnchorSetting { path, adopt }) = anchor {
            let file = vault.anchors.at(path);
            let database = database.to_string();
            let anchored = Anchored::open(file, adopt, epoch, &vault.operator(), &database).await;
            match anchored {
                Ok(anchored) => vault.anchored = Some(Arc::new(anchored)),
                Err(error) => {
                    vault.adapter.close().await;
                    return Err(error);
                }
            }
        }
        if maintenance {
            vault.maintenance = Some(Arc::new(Maintenance::start(&vault)));
        }
        Ok((vault, opener))
    }
}

fn accounts(instance: InstanceId, ports: &Ports, tally: &Arc<AuditTally>) -> Accounts {
    let ports = AccountPorts {
        environment: ports.environment.clone(),
        tally: Arc::clone(tally),
        operations: ports.operations.clone(),
        hasher: ports.hasher.clone(),
        passcodes: ports.passcodes.clone(),
        tokens: ports.tokens.clone(),
        digester: ports.operations.ports.digester.clone(),
        entropy: ports.entropy.clone(),
    };
    Accounts::new(instance, ports)
}

/// State shared by all steps of one opening.
struct Run<'a> {
    platform: Platform,
    database: &'a Database,
    first_run: FirstRun,
    creates: bool,
}

type Proven = (Arc<LoadedRootKey>, Keyring, Vec<Migration>);

impl Run<'_> {
    /// Acquires the lock of an embedded database, whose directory must exist.
    fn lock(&self, database: &Path, command: &str) -> Result<ServerLock, Error> {
        let directory = database.parent().unwrap_or(Path::new("/"));
        match directory.metadata() {
            Ok(found) if found.is_dir() => Ok(ServerLock::take(database, command)?),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::Unreadable { path: directory.to_owned(), source })
            }
            _ if self.creates => Err(Error::NoDirectory(directory.to_owned())),
            _ => Err(self.not_found()),
        }
    }

    /// Opens an embedded database, or creates it if nothing of a vault is found.
    async fn open_file(
        &self,
        path: &Path,
        root_key: RootKey,
        lock: &mut Option<ServerLock>,
    ) -> Result<(OpenStore, Root), Error> {
        let key_file = DatabaseKeyFile::next_to(path);
        let mut found = FoundFile::at(path, key_file.path())?;
        if self.creates && found.state != FileState::Present && lock.is_none() {
            *lock = Some(self.lock(path, "first run")?);
            found = FoundFile::at(path, key_file.path())?;
        }
        let entropy = &self.platform.entropy;
        if found.state == FileState::Present {
            let root = self.load(root_key)?;
            let key = key_file.load(&root)?;
            return Ok((open_sqlite(path, key, false).await?, Root::Loaded(root)));
        }
        let interrupted = self.creates && self.first_run.was_interrupted()?;
        match found.state {
            _ if interrupted => {}
            FileState::Missing if found.leftovers => return Err(lost(path, "missing")),
            _ if found.leftovers => return Err(lost(path, "empty")),
            FileState::Missing if !self.creates => return Err(self.not_found()),
            FileState::Missing => self.refuse_lone_key(&root_key)?,
            _ => return Err(Error::NotADatabase(path.to_owned())),
        }
        self.first_run.begin()?;
        let root = root_key.load_or_generate(Arc::clone(entropy))?;
        let key = match exists(key_file.path())? {
            true => key_file.load(&root)?,
            false => key_file.create(&root, &**entropy)?,
        };
        Ok((open_sqlite(path, key, true).await?, Root::Loaded(root)))
    }

    /// Verifies the root key of an existing vault, then applies migrations if requested.
    async fn open_existing(
        &self,
        opened: &OpenStore,
        root: Root,
        mut record: InstanceRecord,
        schema: &SchemaState,
        progress: Option<Progress>,
    ) -> Result<Proven, Error> {
        let root = match root {
            Root::Loaded(root) => root,
            Root::Pending(root_key) => self.load(root_key)?,
        };
        let pending = if let SchemaState::Pending(count) = schema { *count } else { 0 };
        if pending > 0 && progress.is_none() {
            let rolling = self.database.file().is_none() && are_rolling(pending);
            return Err(Error::MigrationsPending { database: self.database.to_string(), count: pending, rolling });
        }
        let store = opened.store.ports().keys;
        let keyring = loop {
            match Keyring::open(&root, Arc::clone(&self.platform.entropy), &record) {
                Ok(keyring) => break keyring,
                // The instance key may have been replaced since.
                Err(error) => match store.instance().await? {
                    Some(newer) if newer.instance_key != record.instance_key => record = newer,
                    _ => return Err(error.into()),
                },
            }
        };
        let mut applied = Vec::new();
        if let Some(mut progress) = progress.filter(|_| pending > 0) {
            let mut note = |migration: Migration| {
                progress(&migration, applied.len(), pending);
                applied.push(migration);
            };
            opened.store.migrate(self.platform.clock.now(), &mut note).await?;
        }
        Ok((root, keyring, applied))
    }

    /// Creates schema and keys in a store without an instance.
    async fn create(&self, opened: &OpenStore, root: Root, schema: &SchemaState) -> Result<Proven, Error> {
        let (platform, empty) = (&self.platform, *schema == SchemaState::Empty);
        if !self.creates {
            let database = self.database.to_string();
            return Err(match root {
                Root::Pending(_) if empty => Error::NotFound { database },
                _ => Error::Unfinished { database },
            });
        }
        let root = match root {
            Root::Loaded(root) => root,
            Root::Pending(root_key) => {
                if empty && !self.first_run.was_interrupted()? {
                    self.refuse_lone_key(&root_key)?;
                }
                self.first_run.begin()?;
                root_key.load_or_generate(Arc::clone(&platform.entropy))?
            }
        };
        let now = platform.clock.now();
        opened.store.migrate(now, &mut |_| {}).await?;
        let id = InstanceId::from_uuid(platform.ids.random());
        let made = Keyring::create(&root, Arc::clone(&platform.entropy), id, now)?;
        let environment = platform.environment(&made.keyring);
        let command = CreateInstance {
            instance: made.instance,
            audit: environment.record(now, None, Actor::Operator, AuditAction::InstanceCreated, Subject::Instance),
        };
        match opened.store.ports().keys.create_instance(command).await? {
            true => Ok((root, made.keyring, Vec::new())),
            // Another process was faster.
            false => Err(Error::Exists { database: self.database.to_string() }),
        }
    }

    /// Returns the root key of an existing vault.
    fn load(&self, root_key: RootKey) -> Result<Arc<LoadedRootKey>, Error> {
        match root_key.missing_file()? {
            Some(missing) => Err(Error::RootKeyMissing {
                root_key: missing.to_owned(),
                vault: match self.database.file().and_then(Path::parent) {
                    Some(directory) => directory.display().to_string(),
                    None => self.database.to_string(),
                },
            }),
            None => root_key.load(Arc::clone(&self.platform.entropy)),
        }
    }

    /// Refuses a key without its vault.
    fn refuse_lone_key(&self, root_key: &RootKey) -> Result<(), Error> {
        match root_key.own_file() {
            Some(path) if exists(path)? => {
                Err(Error::KeyWithoutVault { root_key: path.to_owned(), database: self.database.to_string() })
            }
            _ => Ok(()),
        }
    }

    fn not_found(&self) -> Error {
        Error::NotFound { database: self.database.to_string() }
    }
}

fn lost(database: &Path, state: &'static str) -> Error {
    Error::DatabaseLost { database: database.to_owned(), state }
}

/// Opens the file.
async fn open_sqlite(path: &Path, key: DatabaseKey, create: bool) -> Result<OpenStore, Error> {
    let bytes = key.expose_bytes(); // handed to the database adapter
    let settings = SqliteSettings { create, ..SqliteSettings::new(path.to_owned(), SqliteKey::from_bytes(bytes)) };
    let store = tokio::task::spawn_blocking(move || SqliteStore::open(settings)).await;
    let store = store.map_err(|_| Error::Cancelled)??;
    Ok(OpenStore { store: Store::Sqlite(store), database_key: Some(Arc::new(key)) })
}

impl Platform {
    fn environment(&self, keyring: &Keyring) -> Environment {
        Environment {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            events: self.events.clone(),
            audit: Arc::new(keyring.audit_sealer()),
            awaited: Arc::default(),
            origin: Origin::default(),
        }
    }

    /// Returns the ports of an opened vault and, separately, the opener that decrypts credential data.
    fn ports(
        &self,
        keyring: &Keyring,
        store: &Store,
        pool: &Arc<HashingPool>,
        epoch: u64,
    ) -> Result<(Ports, Arc<dyn Opener>), Error> {
        store.report_to(self.events.clone());
        let (environment, store) = (self.environment(keyring), store.ports());
        let digester: Arc<dyn KeyedDigester> = Arc::new(keyring.digester(environment.clock.clone()));
        let (crypto, documents) = (keyring.credentials(), Arc::new(keyring.entity_sealer()));
        let ports = Ports {
            entropy: self.entropy.clone(),
            operations: Operations::new(store.rows.clone(), documents, crypto.sealer, digester),
            instance_rewrapper: Arc::new(keyring.instance_rewrapper()),
            hasher: Arc::new(keyring.password_hasher(pool.clone(), Argon2Parameters::LEAST, Vec::new())?),
            passcodes: Arc::new(keyring.passcodes()),
            tokens: Arc::new(keyring.token_issuer(epoch)),
            environment,
            store,
        };
        Ok((ports, crypto.opener))
    }
}
