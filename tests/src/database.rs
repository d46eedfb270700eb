//! The databases that every case runs on.

use crate::binary::Run;
use crate::sql::Sql;
use std::path::Path;
use std::process::Command;
use vault_testkit::postgres::Cluster;

/// Where a vault keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Database {
    /// The embedded, encrypted file.
    Sqlite,
    /// A server.
    Postgres,
}

/// Makes of every named function, which takes a [`Database`], two tests: `name::sqlite` and `name::postgres`.
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

/// The address of a new, empty database on the server that the tests share.
pub fn new_postgres() -> String {
    Cluster::shared().create_database()
}

/// A role of every server of tests.
pub const SERVICE: &str = "orgvault_service";

/// Gives a role the rights that the documentation gives to the service's, and no others. The address of the database as
/// this role.
#[track_caller]
pub fn grant(owner: &str) -> String {
    // Other tests may make it at this moment.
    Sql::at(owner).run(&format!(
        "DO $$ BEGIN CREATE ROLE {SERVICE} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
    ));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/postgresql-grants.sql");
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", &format!("--set=role={SERVICE}"), "--dbname", owner]);
    Run::of(psql.arg("--file").arg(file)).done();
    owner.replace("://postgres@", &format!("://{SERVICE}@"))
}
