//! Opens the vault of the settings like any embedding service. Errors name flags and commands.

use crate::events::ServerEvents;
use crate::owner;
use crate::root_key;
use crate::settings::Settings;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_cli::failure::Failure;
use vault_core::port::Opener;
use vault_crypto::{DatabaseKeyFile, KeyringError, RootKeyErrorKind, SecretFileErrorKind};
use vault_diesel::{LockError, ServerLock};
use vault_embed::{Error, OpenVault, Opening};

/// Opens an existing vault for a short command that decrypts no credentials.
pub(crate) async fn open(settings: &Settings) -> Result<OpenVault, Failure> {
    let database = settings.database.clone();
    let opening = vault_embed::open(root_key::load(settings).await?, database).without_maintenance();
    opening.await.map_err(|error| failure(settings, error))
}

/// Opens an existing vault for a short command that verifies credentials by decrypting them.
pub(crate) async fn open_with_opener(settings: &Settings) -> Result<(OpenVault, Arc<dyn Opener>), Failure> {
    let database = settings.database.clone();
    let opening = vault_embed::open(root_key::load(settings).await?, database).without_maintenance().with_opener();
    opening.await.map_err(|error| failure(settings, error))
}

/// Prepares the creation of a vault, which must not exist yet.
pub(crate) async fn create(settings: &Settings) -> Result<Opening, Failure> {
    Ok(vault_embed::create(root_key::load(settings).await?, settings.database.clone()).without_maintenance())
}

/// Prepares to open an existing vault for a server.
pub(crate) async fn serve(settings: &Settings, command: &str, events: &ServerEvents) -> Result<Opening, Failure> {
    let opening = vault_embed::open(root_key::load(settings).await?, settings.database.clone());
    Ok(opening.events(events.clone()).server(command))
}

/// Prepares to open a vault for a server, or to create it.
pub(crate) async fn serve_or_create(
    settings: &Settings,
    command: &str,
    events: &ServerEvents,
) -> Result<Opening, Failure> {
    let opening = vault_embed::open_or_create(root_key::load(settings).await?, settings.database.clone());
    Ok(opening.events(events.clone()).server(command))
}

/// Returns the path of the anchor, which records the newest checkpoint outside the database.
pub(crate) fn anchor(settings: &Settings) -> PathBuf {
    settings.data_dir.join("orgvault.anchor")
}

/// Returns the failure that another server has locked the vault, or `None`.
pub(crate) fn already_served(settings: &Settings) -> Option<Failure> {
    let path = settings.database.file()?;
    let held = ServerLock::take(path, "quickstart").err()?;
    matches!(held, LockError::Held { .. }).then(|| failure(settings, held.into()))
}

/// Creates the data directory, accessible only by this process's user, if it does not exist. A new vault is not created
/// among the files of another program.
pub(crate) fn make_data_dir(settings: &Settings) -> Result<(), Failure> {
    let shown = settings.data_dir.display();
    let failed = |error| Failure::new(format!("cannot create the directory {shown}: {error}"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.data_dir).map_err(failed)?;
    if anchor(settings).exists() || settings.database.file().is_some_and(Path::exists) {
        return Ok(()); // the vault exists. Only the anchor shows that of a vault on PostgreSQL
    }
    for entry in std::fs::read_dir(&settings.data_dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        let is_ours = ["orgvault.", "root.key"].iter().any(|prefix| name.starts_with(prefix))
            || ["activation.sock", "quickstart.token", "lost+found"].contains(&&*name);
        if !is_ours {
            return Err(Failure::new(format!(
                "the directory {shown} contains {name}, which is not a file of a vault. Choose a new or empty directory with \
                 --data-dir, or move the file"
            )));
        }
    }
    Ok(())
}

/// Returns the mode of the data directory if other users can enter or read it.
pub(crate) fn open_mode(directory: &Path) -> Option<u32> {
    let mode = directory.metadata().ok()?.mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Returns whether the database key is wrapped under two root keys, because a replacement is incomplete.
fn is_root_key_being_replaced(settings: &Settings) -> bool {
    let key_file = settings.database.file().map(DatabaseKeyFile::next_to);
    key_file.and_then(|file| file.root_keys().ok()).is_some_and(|roots| roots.len() > 1)
}

/// Next step after an intentional rollback of the database. Opening it unchanged would revive sessions and used
/// passcodes.
const AFTER_RECOVERY: &str = "If you recovered the database on purpose, stop all servers and run `orgvault restore \
                              --after-external`, which revokes restored sessions and codes, and updates the anchor";

/// Describes why the vault cannot be opened, with the flags and commands to use.
pub(crate) fn failure(settings: &Settings, error: Error) -> Failure {
    let message = match &error {
        Error::NotFound { database } => {
            let place = settings.database.file().map_or_else(|| database.clone(), |path| path.display().to_string());
            format!(
                "no vault found at {place}. If yours is elsewhere, pass --data-dir or --database-url. If there is none yet, \
                 create one with `orgvault init` or `orgvault quickstart`"
            )
        }
        Error::Unfinished { database } => format!(
            "the vault at {database} is unfinished: its first run was interrupted. Run `orgvault init` or \
             `orgvault quickstart` again"
        ),
        Error::RootKeyMissing { root_key, vault } => format!(
            "root key {} not found, but {vault} contains a vault. Restore the key from your copy or pass --root-key. A \
             new key cannot decrypt this vault",
            root_key.display()
        ),
        Error::KeyWithoutVault { root_key, database } => format!(
            "root key {} exists, but no vault was found at {database}. If the key belongs to a vault, restore its \
             database or pass --database-url. For a new vault, pass another --data-dir",
            root_key.display()
        ),
        Error::Moved { database, target, mark } => format!(
            "the vault at {} was moved to {target}. Set --database-url to that database. To return to the file and lose \
             all later changes, first remove {}",
            database.display(),
            mark.display()
        ),
        Error::MigrationsPending { database, count, rolling } => {
            let servers = match rolling {
                true => "Servers of the previous version may continue to run",
                false => "Stop all servers of earlier versions first",
            };
            format!(
                "the database {database} lacks {count} migrations. Back it up, then run `orgvault migrate`. {servers}"
            )
        }
        Error::AnchorMissing { anchor, database, newest } => format!(
            "{} does not exist, but {database} contains audit checkpoint {newest}, so OrgVault cannot check whether the database \
             was rolled back to an earlier state. For a new replica, run `orgvault serve --adopt-anchor`. {AFTER_RECOVERY}. \
             Otherwise restore the file, or find out who removed it",
            anchor.display()
        ),
        Error::OlderDatabase { .. } | Error::OtherHistory { .. } | Error::OlderKeyring { .. } => {
            format!("{error}. {AFTER_RECOVERY}")
        }
        Error::AnchorOvertaken { .. } => format!("{error}, with `orgvault serve --adopt-anchor`"),
        Error::Anchor(_) => {
            format!(
                "{error}. Restore it, or run `orgvault serve --adopt-anchor` to accept the database in its current state"
            )
        }
        Error::RootKey(flawed) => match flawed.error_kind() {
            RootKeyErrorKind::File(SecretFileErrorKind::Owner { owner, user }) => {
                owner::belongs_to(&format!("root key {}", flawed.path().display()), *owner, *user)
            }
            _ => return error.into(),
        },
        Error::Keyring(KeyringError::WrongRoot { .. }) if is_root_key_being_replaced(settings) => format!(
            "{error}. A replacement of the root key was interrupted: run `orgvault key rotate --root` again, which completes it"
        ),
        error if error.is_wrong_root_key() => format!("{error}: set --root-key to its location"),
        Error::Lock(LockError::Held { database, holder }) => format!(
            "the vault at {} is in use by another process: {holder}. Stop that process first. Commands such as \
             `orgvault account list` work while it runs",
            database.display()
        ),
        _ => return error.into(),
    };
    Failure::new(message)
}
