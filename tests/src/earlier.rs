//! Vaults of earlier versions, with their rows. Each folder of `tests/upgrades` contains one that a binary of that
//! version wrote. They are never changed.

use crate::binary::Run;
use crate::database::{Database, new_postgres};
use crate::vault::Vault;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// File name of the root key in a data directory.
pub const ROOT_KEY: &str = "root.key";
/// File name of the database key in a data directory.
pub const DATABASE_KEY: &str = "orgvault.db.key";

/// A vault in the state in which an earlier version left it.
pub struct Restored {
    /// The vault.
    pub vault: Vault,
    /// URL of its PostgreSQL database for the owner of the tables.
    pub postgres: Option<String>,
}

impl Restored {
    /// Returns the command that migrates the vault, with the rights of the tables' owner.
    pub fn migrate(&self) -> Command {
        let mut command = self.vault.command(&["migrate"]);
        command.args(self.postgres.iter().flat_map(|url| ["--database-url", url]));
        command
    }

    /// Migrates the vault.
    #[track_caller]
    pub fn upgraded(mut self) -> Vault {
        Run::of(&mut self.migrate()).done();
        if let Some(url) = self.postgres {
            self.vault.use_postgres(url);
        }
        self.vault
    }
}

/// A stored vault of an earlier version.
pub struct Earlier {
    folder: PathBuf,
    /// Facts about the vault that its users know.
    pub known: Value,
}

impl Earlier {
    /// Returns all stored vaults, oldest first. There are none before the first release.
    pub fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir(folders()) else { return Vec::new() };
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders.into_iter().map(Self::read).collect()
    }

    /// Reads the stored vault in `folder`.
    pub fn read(folder: PathBuf) -> Self {
        let known = fs::read(folder.join("vault.json")).unwrap();
        Self { known: serde_json::from_slice(&known).unwrap(), folder }
    }

    /// Restores the vault on `database`.
    pub fn restored(&self, database: Database) -> Restored {
        self.restored_in(&std::env::temp_dir(), database)
    }

    /// Restores the vault on `database`, with its files below `directory`.
    pub fn restored_in(&self, directory: &Path, database: Database) -> Restored {
        let vault = Vault::absent_in(directory, None);
        let mut postgres = None;
        let data = vault.data_dir();
        fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
        let private = |name: &str, content: &[u8]| {
            fs::write(data.join(name), content).unwrap();
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        };
        private(ROOT_KEY, &hex::decode(self.text("root_key")).unwrap());
        match database {
            Database::Sqlite => {
                private(DATABASE_KEY, &hex::decode(self.text("database_key_file")).unwrap());
                private("orgvault.db", b"");
                let sql = unpacked(&self.folder.join("sqlite.sql.gz"));
                keyed(&data.join("orgvault.db"), self.text("database_key")).execute_batch(&sql).unwrap();
            }
            Database::Postgres => {
                let url = new_postgres();
                let mut psql = Command::new("psql");
                psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", "--dbname", &url]);
                let file = vault.scratch("earlier.sql");
                fs::write(&file, unpacked(&self.folder.join("postgres.sql.gz"))).unwrap();
                Run::of(psql.arg("--file").arg(file)).done();
                postgres = Some(url);
            }
        }
        Restored { vault, postgres }
    }

    /// Returns a text of `known`.
    pub fn text(&self, member: &str) -> &str {
        self.known[member].as_str().unwrap()
    }
}

/// Returns the directory of the stored vaults.
pub fn folders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upgrades")
}

/// Opens the encrypted file at `path` with a hexadecimal key.
pub fn keyed(path: &Path, key: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA key = \"x'{key}'\"")).unwrap();
    connection
}

fn unpacked(file: &Path) -> String {
    Run::of(Command::new("gzip").args(["--decompress", "--stdout"]).arg(file)).done().stdout
}
