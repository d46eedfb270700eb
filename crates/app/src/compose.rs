//! The vault that the settings name: opened as any embedding service would, with messages that name flags and commands.

use crate::events::ServerEvents;
use crate::failure::Failure;
use crate::run_as::{name_of, sudo};
use crate::settings::{RootKeyPlace, Settings};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::port::Opener;
use vault_crypto::{
    DatabaseKeyFile, KeyringError, OsEntropy, RootKeyError, RootKeyFlaw, SecretFile, SecretFileFlaw, ServiceRootKey,
};
use vault_diesel::{LockError, ServerLock};
use vault_embed::{OpenVault, Opening, OpeningError, RootKey};
use vault_http::CurrentRequest;
use vault_pkcs11::{Pin, TokenKey};
use vault_storage::{KmsKey, ReadCredentials};

/// The longest PIN, with a line end, in bytes.
const LONGEST_PIN: usize = 256;
/// The longest file of credentials for AWS, in bytes.
const LONGEST_CREDENTIALS: usize = 64 * 1024;

/// Opens the vault that must exist, for a command that opens no credential and ends.
pub(crate) async fn open(settings: &Settings) -> Result<OpenVault, Failure> {
    let database = settings.database.clone();
    let opening = vault_embed::open(root_key(settings)?, database).without_maintenance();
    opening.await.map_err(|error| failure(settings, error))
}

/// The same, for a command that opens credentials to see that they do.
pub(crate) async fn open_with_opener(settings: &Settings) -> Result<(OpenVault, Arc<dyn Opener>), Failure> {
    let database = settings.database.clone();
    let opening = vault_embed::open(root_key(settings)?, database).without_maintenance().with_opener();
    opening.await.map_err(|error| failure(settings, error))
}

/// How the vault is made that must not exist.
pub(crate) fn create(settings: &Settings) -> Result<Opening, Failure> {
    Ok(vault_embed::create(root_key(settings)?, settings.database.clone()).without_maintenance())
}

/// How a server opens the vault that must exist.
pub(crate) fn serve(settings: &Settings, command: &str, events: &ServerEvents) -> Result<Opening, Failure> {
    let opening = vault_embed::open(root_key(settings)?, settings.database.clone());
    Ok(opening
        .events(events.clone())
        .request_context(CurrentRequest)
        .server(command)
        .page_cache(settings.server.page_cache))
}

/// How a server opens the vault, or makes it.
pub(crate) fn serve_or_create(settings: &Settings, command: &str, events: &ServerEvents) -> Result<Opening, Failure> {
    let opening = vault_embed::open_or_create(root_key(settings)?, settings.database.clone());
    Ok(opening
        .events(events.clone())
        .request_context(CurrentRequest)
        .server(command)
        .page_cache(settings.server.page_cache))
}

/// The file in which a server keeps what it knows of the database from before.
pub(crate) fn anchor(settings: &Settings) -> PathBuf {
    settings.data_dir.join("orgvault.anchor")
}

/// The root key that the settings name.
pub(crate) fn root_key(settings: &Settings) -> Result<RootKey, Failure> {
    match &settings.root_key {
        // A key of the operator's own choice may be older than the vault. The one in the data directory was made with it.
        RootKeyPlace::File(path)
            if *path == settings.data_dir.join("root.key") && settings.files.opened_secret(path)?.is_none() =>
        {
            Ok(RootKey::file(path))
        }
        place => other_root_key(settings, place),
    }
}

/// The root key at `place`, which may be older than the vault, or take the place of its root key. A missing file is made
/// with the vault.
pub(crate) fn other_root_key(settings: &Settings, place: &RootKeyPlace) -> Result<RootKey, Failure> {
    match place {
        RootKeyPlace::File(path) => match settings.files.opened_secret(path)? {
            // Root's key for a vault whose user this process has become.
            Some(file) => Ok(RootKey::opened(file)),
            None => Ok(RootKey::provisioned_file(path)),
        },
        RootKeyPlace::Credential { path, .. } => {
            let file = match settings.files.opened_secret(path)? {
                Some(file) => Ok(file),
                None => SecretFile::open(path),
            };
            let file = file.map_err(|error| failure(settings, OpeningError::RootKey(RootKeyError::from(error))))?;
            Ok(RootKey::opened(file))
        }
        RootKeyPlace::Token(uri) => {
            let key = TokenKey::new((**uri).clone(), pin(settings, uri.pin())?, Arc::new(OsEntropy));
            Ok(RootKey::service(Arc::new(ServiceRootKey::new(Arc::new(key)))))
        }
        RootKeyPlace::Kms(uri) => {
            let read = secret(settings, uri.credentials(), LONGEST_CREDENTIALS)?;
            let key = KmsKey::new((**uri).clone(), read, settings.server.storage_ca_file.clone())?;
            Ok(RootKey::service(Arc::new(ServiceRootKey::new(Arc::new(key)))))
        }
    }
}

/// What reads the PIN in `path` when it is needed.
fn pin(settings: &Settings, path: &Path) -> Result<Pin, Failure> {
    let read = secret(settings, path, LONGEST_PIN)?;
    Ok(Arc::new(move || {
        let mut pin = read()?;
        while pin.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            pin.pop();
        }
        Ok(pin)
    }))
}

/// What reads the secret in `path`, of at most `limit` bytes, when it is needed.
fn secret(settings: &Settings, path: &Path, limit: usize) -> Result<ReadCredentials, Failure> {
    let (opened, path) = (settings.files.opened_secret(path)?, path.to_owned());
    Ok(Arc::new(move || {
        let read = match &opened {
            Some(file) => file.read(limit),
            None => SecretFile::open(&path).and_then(|file| file.read(limit)),
        };
        Ok(read?)
    }))
}

/// Why a server cannot start: another one has the vault. Nothing if none has.
pub(crate) fn already_served(settings: &Settings) -> Option<Failure> {
    let path = settings.database.file()?;
    let held = ServerLock::take(path, "quickstart").err()?;
    matches!(held, LockError::Held { .. }).then(|| failure(settings, held.into()))
}

/// Makes the data directory if it does not exist, for this process's user alone.
pub(crate) fn make_data_dir(settings: &Settings) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.data_dir);
    made.map_err(|error| Failure::new(format!("cannot create the directory {}: {error}", settings.data_dir.display())))
}

/// The mode of a data directory that other users may enter or read.
pub(crate) fn open_mode(directory: &Path) -> Option<u32> {
    let mode = directory.metadata().ok()?.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Whether the embedded database's key is wrapped under two root keys.
fn is_root_key_being_replaced(settings: &Settings) -> bool {
    let key_file = settings.database.file().map(DatabaseKeyFile::beside);
    key_file.and_then(|file| file.root_keys().ok()).is_some_and(|roots| roots.len() > 1)
}

/// What to do if the database was set back on purpose. Anything else would bring back sessions and used passcodes.
const AFTER_RECOVERY: &str = "If you recovered the database on purpose, stop all servers and run `orgvault restore \
                              --after-external`, which ends what must not come back and updates the anchor";

/// Why the vault does not open, in the words of the command line.
pub(crate) fn failure(settings: &Settings, error: OpeningError) -> Failure {
    let message = match &error {
        OpeningError::NotFound { database } => {
            let place = settings.database.file().map_or_else(|| database.clone(), |path| path.display().to_string());
            format!(
                "no vault found at {place}. If yours is elsewhere, pass --data-dir or --database-url. If there is none yet, \
                 make one with `orgvault init` or `orgvault quickstart`"
            )
        }
        OpeningError::Unfinished { database } => format!(
            "the vault at {database} is unfinished: its first run was interrupted. Run `orgvault init` or \
             `orgvault quickstart` again"
        ),
        OpeningError::RootKeyMissing { root_key, vault } => format!(
            "root key {} not found, but {vault} holds a vault. Restore the key from your copy or pass --root-key-file. A \
             new key cannot open this vault",
            root_key.display()
        ),
        OpeningError::KeyWithoutVault { root_key, database } => format!(
            "root key {} exists, but no vault was found at {database}. If the key belongs to a vault, restore its \
             database or pass --database-url. For a new vault, pass another --data-dir",
            root_key.display()
        ),
        OpeningError::Moved { database, target, mark } => format!(
            "the vault at {} was moved to {target}. Set --database-url to that database. To go back to the file and lose \
             what was changed since, first remove {}",
            database.display(),
            mark.display()
        ),
        OpeningError::MigrationsPending { database, count, rolling } => {
            let servers = match rolling {
                true => "Servers of the previous version may keep running meanwhile",
                false => "Stop all servers of earlier versions first",
            };
            format!(
                "the database {database} lacks {count} migrations. Back it up, then run `orgvault migrate`. {servers}"
            )
        }
        OpeningError::AnchorMissing { anchor, database, newest } => format!(
            "{} does not exist, but {database} holds audit checkpoint {newest}, so OrgVault cannot check whether the database \
             was set back to an earlier state. For a new replica, run `orgvault serve --adopt-anchor`. {AFTER_RECOVERY}. \
             Otherwise restore the file, or find out who removed it",
            anchor.display()
        ),
        OpeningError::OlderDatabase { .. } | OpeningError::OtherHistory { .. } | OpeningError::OlderKeyring { .. } => {
            format!("{error}. {AFTER_RECOVERY}")
        }
        OpeningError::AnchorOvertaken { .. } => format!("{error}, with `orgvault serve --adopt-anchor`"),
        OpeningError::Anchor(_) => {
            format!("{error}. Restore it, or run `orgvault serve --adopt-anchor` to accept the database as it is")
        }
        OpeningError::RootKey(flawed) => match flawed.flaw() {
            RootKeyFlaw::File(SecretFileFlaw::Owner { owner, user }) => format!(
                "root key {} belongs to user {} and you are {}. Run the command as that user: `{} orgvault …`",
                flawed.path().display(),
                name_of(*owner),
                name_of(*user),
                sudo(*owner)
            ),
            _ => return error.into(),
        },
        OpeningError::Keyring(KeyringError::WrongRoot { .. }) if is_root_key_being_replaced(settings) => format!(
            "{error}. A replacement of the root key was interrupted: run `orgvault key rotate --root` again, which completes it"
        ),
        OpeningError::Lock(LockError::Held { database, holder }) => format!(
            "the vault at {} is in use by another process: {holder}. Stop that process first. Commands such as \
             `orgvault account list` work while it runs",
            database.display()
        ),
        _ => return error.into(),
    };
    Failure::new(message)
}
