//! The user of a process. If root runs a command on another user's data directory, the process permanently switches to
//! that user before it starts a thread or reads a secret. The content of that directory can therefore not misuse root's
//! privileges.

mod account;
mod directory;

pub(crate) use account::{name_of, sudo};

use directory::Directory;
use rustix::process::{geteuid, getuid};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use vault_cli::failure::Failure;
use vault_cli::named_files::{Named, NamedFiles};

/// The user of this process, and the files that it opened before it switched.
pub(crate) struct RunAs {
    /// Data directory, without symbolic links if it exists.
    pub(crate) data_dir: PathBuf,
    /// Data directory as an absolute path, with symbolic links.
    given: PathBuf,
    /// Files that were opened before the switch.
    pub(crate) files: NamedFiles,
    became: Option<Became>,
}

/// The user that this process switched to, and that user's directory.
#[derive(Clone)]
pub(crate) struct Became {
    user: String,
    directory: PathBuf,
}

impl fmt::Display for Became {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "started by root, run as user {}, who owns {}", self.user, self.directory.display())
    }
}

impl RunAs {
    /// Switches to the owner of the vault's directory, if root runs this process.
    pub(crate) fn enter(named: &Named) -> Result<Self, Failure> {
        let given = absolute(&named.data_dir)?;
        let data_dir = Directory::open(&given)?;
        let path = if data_dir.exists() { data_dir.path().to_owned() } else { given.clone() };
        let (vault, database) = match &named.database {
            Some(database) => {
                let database = absolute(database)?;
                let name = database.file_name().unwrap_or_default().to_owned();
                (Some(Directory::open(database.parent().unwrap_or(Path::new("/")))?), name)
            }
            None => (None, OsStr::new("orgvault.db").to_owned()),
        };
        // The owner of the database's directory determines the user.
        let deciding = vault.as_ref().filter(|vault| vault.exists()).unwrap_or(&data_dir);
        if !geteuid().is_root() {
            deciding.check_access(&database)?;
            return Ok(Self { data_dir: path, given, files: NamedFiles::default(), became: None });
        }
        let (owner, group) = if deciding.exists() { deciding.owner()? } else { (0, 0) };
        for directory in [Some(&data_dir), vault.as_ref()].into_iter().flatten() {
            directory.validate(owner)?;
        }
        if owner == 0 {
            refuse_foreign_file(deciding, &database)?;
            return Ok(Self { data_dir: path, given, files: NamedFiles::default(), became: None });
        }
        let files = NamedFiles::open(named)?;
        let user = name_of(owner);
        account::become_user(owner, group)
            .map_err(|failure| Failure::new(format!("cannot become user {user}: {failure}. Nothing was done")))?;
        let became = Became { user, directory: deciding.path().to_owned() };
        for directory in [Some(&data_dir), vault.as_ref()].into_iter().flatten().filter(|directory| directory.exists())
        {
            if !directory.is_reached().is_ok_and(|reached| reached) {
                return Err(Failure::new(format!(
                    "user {} cannot reach {}: a directory on the way to it is closed to that user. Run the command where \
                     the service runs",
                    became.user,
                    directory.path().display()
                )));
            }
        }
        Ok(Self { data_dir: path, given, files, became: Some(became) })
    }

    /// Returns `data_dir`, or its path without symbolic links if it is the named data directory.
    pub(crate) fn resolved(&self, data_dir: PathBuf) -> PathBuf {
        if data_dir == self.given { self.data_dir.clone() } else { data_dir }
    }

    /// Returns the user that this process switched to, if it did.
    pub(crate) fn became(&self) -> Option<&Became> {
        self.became.as_ref()
    }

    /// Rejects another user's database from a settings file if this process runs as root.
    pub(crate) fn check_database(database: &Path) -> Result<(), Failure> {
        if !geteuid().is_root() {
            return Ok(());
        }
        let directory = Directory::open(database.parent().unwrap_or(Path::new("/")))?;
        if directory.exists() {
            let (owner, _) = directory.owner()?;
            if owner != 0 {
                return Err(belongs_to(directory.path(), owner));
            }
            directory.validate(0)?;
            refuse_foreign_file(&directory, database.file_name().unwrap_or_default())?;
        }
        Ok(())
    }
}

impl Directory {
    /// Fails with the user to run the command as, if this user has no access.
    fn check_access(&self, name: &OsStr) -> Result<(), Failure> {
        match self.owner_of(name) {
            Err(_) if self.owner()?.0 != getuid().as_raw() => Err(belongs_to(self.path(), self.owner()?.0)),
            _ => Ok(()),
        }
    }
}

fn refuse_foreign_file(directory: &Directory, name: &OsStr) -> Result<(), Failure> {
    match directory.owner_of(name)? {
        Some(owner) if owner != 0 => Err(belongs_to(&directory.path().join(name), owner)),
        _ => Ok(()),
    }
}

fn belongs_to(path: &Path, owner: u32) -> Failure {
    Failure::new(format!(
        "{} belongs to user {}, and you are {}. Run the command as that user: `{} orgvault …`",
        path.display(),
        name_of(owner),
        name_of(geteuid().as_raw()),
        sudo(owner)
    ))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} is not a usable path: {error}", path.display())))
}
