//! Vaults of earlier versions, with their rows. Each folder of `tests/upgrades` is one, as the binary of its time left it; none
//! is ever changed.

use crate::binary::Run;
use crate::database::{Database, new_postgres};
use crate::vault::Vault;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the files in a data directory that hold its keys.
pub const ROOT_KEY: &str = "root.key";
/// As above.
pub const DATABASE_KEY: &str = "orgvault.db.key";

/// A vault that is still as an earlier version left it.
pub struct Restored {
    /// As it was.
    pub vault: Vault,
    /// The address of its rows, if they are in PostgreSQL, for the owner of the tables.
    pub postgres: Option<String>,
}

impl Restored {
    /// The command that brings it up to date, as the owner of the tables.
    pub fn migrate(&self) -> Command {
        let mut command = self.vault.command(&["migrate"]);
        command.args(self.postgres.iter().flat_map(|url| ["--database-url", url]));
        command
    }

    /// The vault, up to date.
    #[track_caller]
    pub fn upgraded(mut self) -> Vault {
        Run::of(&mut self.migrate()).done();
        if let Some(url) = self.postgres {
            self.vault.use_postgres(url);
        }
        self.vault
    }
}

/// A vault as an earlier version left it.
pub struct Earlier {
    folder: PathBuf,
    /// What its owners know, and what it showed them.
    pub known: Value,
}

impl Earlier {
    /// Every one, the oldest first. Before the first release there is none.
    pub fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir(folders()) else { return Vec::new() };
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders.into_iter().map(Self::read).collect()
    }

    /// The one in `folder`.
    pub fn read(folder: PathBuf) -> Self {
        let known = fs::read(folder.join("vault.json")).unwrap();
        Self { known: serde_json::from_slice(&known).unwrap(), folder }
    }

    /// The vault, as it was, on `database`.
    pub fn restored(&self, database: Database) -> Restored {
        self.restored_in(&std::env::temp_dir(), database)
    }

    /// The same, in a directory of its own in `directory`.
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

    /// One of the things that are known of it.
    pub fn text(&self, member: &str) -> &str {
        self.known[member].as_str().unwrap()
    }
}

/// Where their folders are.
pub fn folders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upgrades")
}

/// The encrypted file at `path`, opened with a key in hexadecimal digits.
pub fn keyed(path: &Path, key: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA key = \"x'{key}'\"")).unwrap();
    connection
}

fn unpacked(file: &Path) -> String {
    Run::of(Command::new("gzip").args(["--decompress", "--stdout"]).arg(file)).done().stdout
}
