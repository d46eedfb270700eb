//! Restores an embedded vault from a backup.

pub(crate) mod exchange;

use crate::backup::archive::Opened;
use crate::backup::{BackupProgress, BackupStep, same_rows, watched};
use crate::database::{Database, FileState, FoundFile, Kind, exists, with_suffix};
use crate::error::Error;
use crate::migration::refuse_moved;
use crate::opening::open;
use crate::root_key::RootKey;
use crate::vault::OpenVault;
use std::fs::{DirBuilder, remove_dir, remove_file};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::federation::Jwk;
use vault_core::id::{InstanceId, KeyId};
use vault_core::integration::IntegrationState;
use vault_core::maintenance::Settled;
use vault_core::organization::OrganizationState;
use vault_core::port::Clock as _;
use vault_core::principal::Principal;
use vault_core::usecase::integrations::{IntegrationEdit, IntegrationRef};
use vault_core::usecase::{AccountCommand, AccountRef};
use vault_crypto::{Anchor, AnchorErrorKind, DatabaseKey, DatabaseKeyFile, Keyring, LoadedRootKey, OsEntropy};
use vault_diesel::{
    CopyError, Replayed, SchemaState, ServerLock, SqliteKey, Store, TableRows, check_file, copy_file, replay,
};

/// Result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// Database file, encrypted with a new key.
    pub database: PathBuf,
    /// ID of the vault.
    pub instance: InstanceId,
    /// Start time of the backup, as the backup contains it.
    pub created_at: String,
    /// Numbers of rows in the backup, by table.
    pub rows: Vec<TableRows>,
    /// Migrations that were applied because an older build created the backup.
    pub migrations: Vec<String>,
    /// Numbers of objects that were revoked, as after every restore.
    pub settled: Settled,
    /// Key IDs of signing keys of federation tokens that were retired, because the replaced database does not publish them.
    pub retired_keys: Vec<String>,
    /// The database that was in use.
    pub present: Present,
    /// New location of the files of the database that was in use.
    pub replaced: Option<PathBuf>,
}

/// The database that was in use before a restore.
#[derive(Debug)]
pub enum Present {
    /// No database existed.
    None,
    /// The database was read. Its rights and revocations were applied, and its other additions are reported.
    Read(Box<Replayed>),
    /// The database could not be read, for this reason. Nothing of it was applied.
    Unread(String),
}

/// Restores the embedded vault `database` from the file `backup`, with a new database key.
///
/// Afterwards, the anchor in the file `anchor` refers to the restored database. A backup that is older than the anchor
/// is refused unless `replace` is set.
///
/// The vault must not be served during the restore. Present files are refused unless `replace` is set.
/// They are then moved into a directory next to the database, and never deleted. Access tokens, sessions, recovery
/// codes, activations and passcodes from before the restore are no longer valid. If the present database can be opened,
/// its state of disabled organizations, accounts, integrations, frozen namespaces and invitations is applied. Accounts
/// and integrations that were deleted there are restored as disabled.
///
/// If the process is killed, either the old or the new state remains: the next process that opens the vault completes a
/// restore that was decided.
///
/// # Errors
/// See [`Error`]. Nothing was changed.
pub async fn restore(
    backup: &Path,
    root_key: RootKey,
    database: &Database,
    anchor: &Path,
    replace: bool,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<Restored, Error> {
    let Kind::Sqlite(path) = &database.0 else { return Err(Error::NotEmbedded("restored")) };
    refuse_moved(path)?;
    let backup = std::path::absolute(backup).map_err(|error| Error::io(backup, error))?;
    let archive = Opened::read(&backup)?;
    if let Some(missing) = root_key.missing_file()? {
        return Err(Error::NoRootKey(missing.to_owned()));
    }
    let root = root_key.load(Arc::new(OsEntropy))?;
    let key = DatabaseKeyFile::at(&backup).load_from(&archive.key, &root)?;

    let directory = path.parent().unwrap_or(Path::new("/"));
    let made = !exists(directory)?;
    if made {
        let create = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        create.map_err(|error| Error::io(directory, error))?;
    }
    let run = Run { path, archive, root, key, anchor, replace };
    let restored = run.locked(progress).await;
    if made && restored.is_err() {
        let _ = remove_file(with_suffix(path, ".lock")); // no other process can have used it
        let _ = remove_dir(directory);
    }
    restored
}

struct Run<'a> {
    path: &'a Path,
    archive: Opened,
    root: Arc<LoadedRootKey>,
    /// Key of the database in the backup.
    key: DatabaseKey,
    anchor: &'a Path,
    replace: bool,
}

impl Run<'_> {
    async fn locked(&self, progress: &mut (dyn FnMut(BackupProgress) + Send)) -> Result<Restored, Error> {
        let _lock = ServerLock::take(self.path, "restore")?;
        if exchange::is_pending(self.path)? {
            exchange::finish(self.path, crate::SystemClock.now())?;
        }
        let found = FoundFile::at(self.path, DatabaseKeyFile::next_to(self.path).path())?;
        if (found.state != FileState::Missing || found.leftovers) && !self.replace {
            return Err(Error::Exists { database: self.path.display().to_string() });
        }
        let staging = exchange::staging(self.path);
        exchange::discard_undecided(self.path)?; // of a restore that was killed
        DirBuilder::new().mode(0o700).create(&staging).map_err(|error| Error::io(&staging, error))?;
        let staged = self.stage(&staging, found.state, progress).await;
        let mut restored = match staged {
            Ok(staged) => staged,
            Err(error) => {
                let _ = exchange::discard_undecided(self.path); // the error is more informative
                return Err(error);
            }
        };
        exchange::decide(self.path)?;
        restored.replaced = exchange::finish(self.path, crate::SystemClock.now())?;
        Ok(restored)
    }

    /// Creates the restored database, its key and its anchor in `staging`.
    async fn stage(
        &self,
        staging: &Path,
        present: FileState,
        progress: &mut (dyn FnMut(BackupProgress) + Send),
    ) -> Result<Restored, Error> {
        let unpacked = staging.join("unpacked.db");
        self.extract(&unpacked, progress)?;
        let damaged = |source| Error::Damaged { backup: self.archive.path.clone(), source };

        progress(BackupProgress { step: BackupStep::Checking, bytes: None });
        let (file, key) = (unpacked.clone(), SqliteKey::from_bytes(self.key.expose_bytes())); // handed to the database
        let content = tokio::task::spawn_blocking(move || check_file(&file, key)).await;
        let content = content.map_err(|_| Error::Cancelled)?.map_err(damaged)?;
        let place = || format!("backup {}", self.archive.path.display());
        match content.schema {
            SchemaState::Newer(version) => return Err(Error::NewerSchema { place: place(), version }),
            SchemaState::Unreleased(version) => {
                return Err(Error::UnreleasedSchema { place: place(), version, instead: "Use another backup" });
            }
            SchemaState::Empty | SchemaState::Pending(_) | SchemaState::Current => {}
        }
        let no_instance = || CopyError::Damaged { path: unpacked.clone(), finding: "it has no vault".into() };
        let instance = content.instance.ok_or_else(|| damaged(no_instance()))?;
        let proven = Keyring::open(&self.root, Arc::new(OsEntropy), &instance);
        proven.map_err(|source| Error::CopyKeyring { file: self.archive.path.clone(), source })?;

        let database = staging.join(self.path.file_name().unwrap_or_default());
        let new_key = DatabaseKeyFile::next_to(&database).create(&self.root, &OsEntropy)?;
        let (from, to) = (unpacked.clone(), database.clone());
        let (old, new) = (self.key.expose_bytes(), new_key.expose_bytes()); // handed to the database
        let copying = move || copy_file(&from, SqliteKey::from_bytes(old), &to, &SqliteKey::from_bytes(new));
        let rows = watched(copying, &database, self.archive.size, BackupStep::Copying, progress).await??;
        same_rows(&content.rows, &rows)?;
        remove_file(&unpacked).map_err(|error| Error::io(&unpacked, error))?;

        progress(BackupProgress { step: BackupStep::Replaying, bytes: None });
        let staged = Database::sqlite(&database);
        let vault = open(self.root(), staged).without_maintenance().migrate(|_, _, _| {}).await?;
        let settled = async {
            // Do this first, because it distinguishes a vault with another ID from an older one. It changes only the
            // unpacked copy.
            let settled = self.settle(&vault, present, instance.instance_key).await?;
            let unread = match (&settled.0, present) {
                (Present::Unread(reason), FileState::Present) => Some(&**reason),
                _ => None,
            };
            self.refuse_by_anchor(&vault, unread).await?;
            let epoch = vault.restore_epoch().await.map_err(Error::unsettled)?;
            let checkpoint = vault.operator().newest_checkpoint().await.map_err(Error::unsettled)?;
            Ok::<_, Error>((settled, Anchor { epoch, checkpoint, keyring: vault.anchors.keyring() }))
        };
        let settled = settled.await;
        let closed = vault.close().await;
        let ((present, settled, retired_keys), anchor) = settled?;
        closed.map_err(Error::unsettled)?;
        let anchored = vault.anchors.at(exchange::new_anchor(self.anchor));
        // Create the link first, because the cleanup of an undecided restore finds the new anchor through it.
        exchange::stage_anchor(staging, self.anchor).map_err(|error| Error::io(staging, error))?;
        anchored.store(anchor)?;
        Ok(Restored {
            database: self.path.to_owned(),
            instance: vault.instance(),
            created_at: self.archive.description.created_at.clone(),
            rows,
            migrations: vault.applied_migrations().iter().map(|step| step.version.to_owned()).collect(),
            settled,
            retired_keys,
            present,
            replaced: None,
        })
    }

    /// Refuses a backup of another vault than that of the anchor. Also refuses a backup over a database that cannot be
    /// opened (for the reason `unread`) and may belong to another vault. Unless accepted, also refuses a backup that is
    /// older than the anchor.
    async fn refuse_by_anchor(&self, vault: &OpenVault, unread: Option<&str>) -> Result<(), Error> {
        let known = vault.read_anchor(self.anchor);
        // The MAC of the anchor may use a key that the backup does not have yet, or no longer has.
        let is_ours = match &known {
            Ok(known) => known.is_some(),
            Err(error) => matches!(error.error_kind(), AnchorErrorKind::Changed | AnchorErrorKind::NewerKeyring { .. }),
        };
        if let Err(error) = &known
            && let AnchorErrorKind::OtherInstance(present) = error.error_kind()
        {
            let (found, present) = (vault.instance().to_string(), present.to_string());
            let (backup, place) = (self.archive.path.clone(), format!("anchor {} belongs to", self.anchor.display()));
            return Err(Error::Foreign { backup, found, place, present });
        }
        if let Some(reason) = unread.filter(|_| !is_ours) {
            let (backup, database) = (self.archive.path.clone(), self.path.to_owned());
            return Err(Error::Unknown { backup, database, reason: reason.to_owned(), anchor: self.anchor.to_owned() });
        }
        if self.replace {
            return Ok(());
        }
        let operator = vault.operator();
        let anchored = match known {
            Ok(None) => return Ok(()),
            Ok(Some(known)) => {
                if operator.has_checkpoint(known.checkpoint).await.map_err(Error::unsettled)? {
                    return Ok(());
                }
                known.checkpoint.number
            }
            Err(error) => match *error.error_kind() {
                AnchorErrorKind::NewerKeyring { checkpoint, .. } => checkpoint,
                _ => return Err(error.into()),
            },
        };
        let newest = operator.newest_checkpoint().await.map_err(Error::unsettled)?.number;
        let (backup, anchor) = (self.archive.path.clone(), self.anchor.to_owned());
        Err(Error::OlderBackup { backup, anchor, anchored, newest })
    }

    fn extract(&self, to: &Path, progress: &mut (dyn FnMut(BackupProgress) + Send)) -> Result<(), Error> {
        let total = self.archive.size;
        let mut tell = |done| progress(BackupProgress { step: BackupStep::Unpacking, bytes: Some((done, total)) });
        self.archive.extract(to, &mut tell)
    }

    /// Applies the state of the database in use to the restored vault, and revokes what must not be reactivated.
    async fn settle(
        &self,
        vault: &OpenVault,
        present: FileState,
        instance_key: KeyId,
    ) -> Result<(Present, Settled, Vec<String>), Error> {
        let present = match present {
            FileState::Missing => Newer::None,
            FileState::Empty => Newer::Unread(format!("{} is empty", self.path.display())),
            FileState::Present => self.replay(vault, instance_key).await?,
        };
        let (present, epoch, invitations_are_known, published) = match present {
            Newer::None => (Present::None, 0, false, Vec::new()),
            Newer::Unread(reason) => (Present::Unread(reason), 0, false, Vec::new()),
            Newer::Read { replayed, epoch, same_keys, published } => {
                withdraw(vault, &replayed).await.map_err(Error::unsettled)?;
                vault.inspector(None).record_states().await.map_err(Error::unsettled)?;
                (Present::Read(replayed), epoch, same_keys, published)
            }
        };
        // A signing key may have leaked and been removed since the backup.
        let retired = vault.federation().retire_others(&published).await.map_err(Error::unsettled)?;
        let settled = vault.operator().finish_restore(epoch, !invitations_are_known).await;
        Ok((present, settled.map_err(Error::unsettled)?, retired))
    }

    /// Reads the database in use, if it can be opened.
    async fn replay(&self, vault: &OpenVault, instance_key: KeyId) -> Result<Newer, Error> {
        let reason = |error: &dyn std::error::Error| {
            let causes = std::iter::successors(Some(error), |error| error.source());
            Newer::Unread(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
        };
        let newer = match open(self.root(), Database::sqlite(self.path)).without_maintenance().await {
            Ok(newer) => newer,
            Err(error) => return Ok(reason(&error)),
        };
        let read = async {
            let record = newer.ports().store.keys.instance().await?;
            let published = newer.federation().published_keys().await?;
            let mut organizations = vault.operator().organizations().await?;
            organizations.extend(newer.operator().organizations().await?);
            Ok::<_, vault_core::Error>((record, published, organizations))
        };
        let (instance, read, key) = (newer.instance(), read.await, newer.database_key.clone());
        let closed = newer.close().await; // before it is read below, so that its log is in the file
        if instance != vault.instance() {
            return Err(Error::Foreign {
                backup: self.archive.path.clone(),
                found: vault.instance().to_string(),
                place: format!("{} contains", self.path.display()),
                present: instance.to_string(),
            });
        }
        let (record, published, organizations) = match closed.and(read) {
            Ok(read) => read,
            Err(error) => return Ok(reason(&error)),
        };
        let epoch = record.as_ref().map_or(0, |record| record.restore_epoch);
        let same_keys = record.is_some_and(|record| record.instance_key == instance_key);
        let (Store::Sqlite(store), Some(key)) = (vault.adapter.clone(), key) else {
            return Err(Error::NotEmbedded("restored"));
        };
        let path = self.path.to_owned();
        let bringing = move || {
            let key = SqliteKey::from_bytes(key.expose_bytes());
            replay(&store, &path, &key, same_keys, &organizations)
        };
        match tokio::task::spawn_blocking(bringing).await.map_err(|_| Error::Cancelled)? {
            Ok(replayed) => Ok(Newer::Read { replayed: Box::new(replayed), epoch, same_keys, published }),
            Err(error @ CopyError::Full(_)) => Err(error.into()),
            Err(error) => Ok(reason(&error)),
        }
    }

    fn root(&self) -> RootKey {
        RootKey::loaded(Arc::clone(&self.root))
    }
}

/// The database in use, as found.
enum Newer {
    None,
    Unread(String),
    Read { replayed: Box<Replayed>, epoch: u64, same_keys: bool, published: Vec<Jwk> },
}

/// Disables accounts and integrations whose old rights must not be restored, and sets the states of organizations and
/// namespaces as they were.
async fn withdraw(vault: &OpenVault, replayed: &Replayed) -> Result<(), vault_core::Error> {
    for since in &replayed.organizations {
        if let (Ok(organization), Some(state)) = (since.id.parse(), OrganizationState::parse(&since.state)) {
            let set = vault.operator().set_organization_state(organization, state).await;
            unless_powerless(set.map(drop))?;
        }
    }
    for stale in &replayed.stale_accounts {
        if let (Ok(organization), Ok(account)) = (stale.organization_id.parse(), stale.id.parse()) {
            let account = AccountRef::Id(organization, account);
            let disabled = vault.accounts().change(&Principal::Operator, account, AccountCommand::Disable).await;
            unless_powerless(disabled.map(|_| ()))?;
        }
    }
    for stale in &replayed.stale_integrations {
        if let (Ok(organization), Ok(integration)) = (stale.organization_id.parse(), stale.id.parse()) {
            let edit = IntegrationEdit { state: Some(IntegrationState::Disabled), ..IntegrationEdit::default() };
            let integration = IntegrationRef::Id(integration);
            let disabled = vault.integrations().change(&Principal::Operator, organization, &integration, edit).await;
            unless_powerless(disabled.map(|_| ()))?;
        }
    }
    let namespaces = vault.integrations();
    for (changed, frozen) in [(&replayed.frozen, true), (&replayed.thawed, false)] {
        for since in changed {
            if let (Ok(organization), Ok(namespace)) = (since.organization_id.parse(), since.name.parse()) {
                let set = match frozen {
                    true => namespaces.freeze(&Principal::Operator, organization, namespace).await,
                    false => namespaces.thaw(&Principal::Operator, organization, namespace).await,
                };
                unless_powerless(set.map(drop))?;
            }
        }
    }
    Ok(())
}

/// A row whose MAC does not verify grants nothing anyway.
fn unless_powerless(disabled: Result<(), vault_core::Error>) -> Result<(), vault_core::Error> {
    match disabled {
        Err(vault_core::Error::Refused(Refusal::Damaged { .. } | Refusal::NotFound | Refusal::NoOrganization)) => {
            Ok(())
        }
        other => other,
    }
}
