//! The databases that every case runs on.

use vault_testkit::postgres::Cluster;

/// Where a vault keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
