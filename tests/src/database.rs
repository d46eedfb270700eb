//! The databases on which tests run.

use crate::binary::Run;
use crate::sql::Sql;
use std::path::Path;
use std::process::Command;
use vault_testkit::postgres::Cluster;

/// The database of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Database {
    /// The embedded, encrypted database file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

impl Database {
    /// Returns the name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Creates two tests for each function that takes a [`Database`]: `name::sqlite` and `name::postgres`.
#[macro_export]
macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[test]
            fn sqlite() {
                super::$name($crate::Database::Sqlite);
            }

            #[test]
            fn postgres() {
                super::$name($crate::Database::Postgres);
            }
        }
    )*};
}

/// Returns the URL of a new, empty database on the tests' shared server.
pub fn new_postgres() -> String {
    Cluster::shared().create_database()
}

/// The service's role, which exists on every server of the tests.
pub const SERVICE: &str = "orgvault_service";

/// Grants the rights of the documentation to the service's role. Returns the database's URL for this role.
#[track_caller]
pub fn grant(owner: &str) -> String {
    // Other tests may create the role concurrently.
    Sql::at(owner).run(&format!(
        "DO $$ BEGIN CREATE ROLE {SERVICE} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
    ));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/postgresql-grants.sql");
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", &format!("--set=role={SERVICE}"), "--dbname", owner]);
    Run::of(psql.arg("--file").arg(file)).done();
    owner.replace("://postgres@", &format!("://{SERVICE}@"))
}
