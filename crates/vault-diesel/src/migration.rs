//! The migration history of both databases, in the SQL dialect of SQLite. Existing migrations are never changed.

use crate::postgres::DistributionError;
use vault_core::port::StoreError;

/// A migration of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Number and name. Versions sort in the order in which they are applied.
    pub version: &'static str,
    /// The statements.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal),* $(,)?) => {
        /// All migrations, oldest first.
        pub const MIGRATIONS: &[Migration] = &[$(Migration {
            version: $version,
            sql: include_str!(concat!("../migrations/", $version, "/up.sql")),
        }),*];
    };
}

migrations!["0001_documents"];

/// The newest migration that servers of the previous build cannot run with. Each later one only adds tables, indexes
/// and optional columns.
const LAST_THAT_STOPS: &str = "0001_documents";

impl Migration {
    /// Returns whether servers of the previous build may run during the migration and afterwards, on PostgreSQL.
    pub fn is_rolling(&self) -> bool {
        self.version > LAST_THAT_STOPS
    }
}

/// Returns whether servers of the previous build may run during the last `pending` migrations and afterwards, on
/// PostgreSQL.
pub fn are_rolling(pending: usize) -> bool {
    MIGRATIONS.iter().rev().take(pending).all(Migration::is_rolling)
}

/// Creates the table of applied migrations.
pub(crate) const CREATE_VERSIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_versions \
    (version TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)";

/// Schema of a database compared with that of this build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// The database has no schema.
    Empty,
    /// The schema has this version, created by an unreleased build. No release supports it.
    Unreleased(String),
    /// This number of migrations is missing.
    Pending(usize),
    /// The schema is that of this build.
    Current,
    /// The schema has this version, which only a newer build supports.
    Newer(String),
}

/// Error of migrating a schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A newer build created the schema.
    #[error(
        "the database has schema version {0}, which this version of OrgVault does not support. Use the newer version"
    )]
    Newer(String),
    /// An unreleased build created the schema.
    #[error(
        "the database has schema version {0}, created by an unreleased build, which no release supports. Create a new vault"
    )]
    Unreleased(String),
    /// The tables cannot be distributed.
    #[error(transparent)]
    Spread(#[from] DistributionError),
    /// The database returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compares the applied migrations with the history.
pub(crate) fn compare(applied: &[String]) -> SchemaState {
    let known = |version: &&String| MIGRATIONS.iter().any(|migration| migration.version == version.as_str());
    if let Some(unknown) = applied.iter().find(|version| !known(version)) {
        // Every release has the first migration. Builds before the first release had others.
        let first = |version: &String| MIGRATIONS.first().is_some_and(|first| first.version == version.as_str());
        return match applied.iter().any(first) {
            true => SchemaState::Newer(unknown.clone()),
            false => SchemaState::Unreleased(unknown.clone()),
        };
    }
    match pending(applied).len() {
        0 => SchemaState::Current,
        _ if applied.is_empty() => SchemaState::Empty,
        missing => SchemaState::Pending(missing),
    }
}

/// Returns the migrations that are not applied yet, oldest first.
pub(crate) fn pending(applied: &[String]) -> Vec<Migration> {
    let missing = |migration: &&Migration| !applied.iter().any(|version| version == migration.version);
    MIGRATIONS.iter().filter(missing).copied().collect()
}

/// Prefix of a statement for PostgreSQL only. In SQLite it makes the statement a comment.
const POSTGRES_ALONE: &str = "-- PostgreSQL: ";

/// Translates a migration to PostgreSQL: replaces a few keywords and includes the statements for PostgreSQL only.
/// `TEXT` is compared by bytes, as in SQLite.
pub(crate) fn in_postgres_spelling(sql: &str) -> String {
    let respelt = sql.replace(" TEXT", " TEXT COLLATE \"C\"").replace(" BLOB", " BYTEA").replace(" WITHOUT ROWID", "");
    respelt.replace("zeroblob(16)", "'00000000-0000-0000-0000-000000000000'").replace(POSTGRES_ALONE, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(versions: &[&str]) -> Vec<String> {
        versions.iter().map(|&version| version.to_owned()).collect()
    }

    #[test]
    fn compares_applied_migrations_with_history() {
        let all: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(compare(&[]), SchemaState::Empty);
        assert_eq!(compare(&applied(&all)), SchemaState::Current);
        let newer = [all.as_slice(), &["9999_later"]].concat();
        assert_eq!(compare(&applied(&newer)), SchemaState::Newer("9999_later".to_owned()));
        for unreleased in [
            &["0001_foundation"][..],
            &["0001_foundation", "0002_accounts", "0018_filters"],
            &["0001_vault"],
            &["0001_orgvault"],
        ] {
            assert_eq!(compare(&applied(unreleased)), SchemaState::Unreleased(unreleased[0].to_owned()));
        }
    }

    /// Returns whether servers of the previous build can run without knowing the change.
    fn only_adds(statement: &str) -> bool {
        let added = statement.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split_once(" ADD COLUMN "));
        statement.starts_with("CREATE TABLE ")
            || statement.starts_with("CREATE INDEX ")
            || added.is_some_and(|(_, column)| !column.contains("NOT NULL") || column.contains(" DEFAULT "))
            || statement.starts_with("ALTER TABLE ") && statement.contains(" SET (n_distinct = ")
    }

    #[test]
    fn rolling_migrations_only_add() {
        let rolling: Vec<&Migration> = MIGRATIONS.iter().filter(|migration| migration.is_rolling()).collect();
        assert!(rolling.len() < MIGRATIONS.len(), "the first one makes the tables");
        for Migration { version, sql } in rolling {
            let sql = in_postgres_spelling(sql);
            let plain: String =
                sql.lines().filter(|line| !line.starts_with("--")).map(|line| format!("{line} ")).collect();
            for statement in plain.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
                assert!(only_adds(statement), "{version} is not for running servers: {statement}");
            }
        }
        assert!(!only_adds("ALTER TABLE audit ADD COLUMN x TEXT NOT NULL") && !only_adds("UPDATE audit SET x = 1"));
        assert!(are_rolling(0) && !are_rolling(MIGRATIONS.len()));
    }

    #[test]
    fn versions_are_in_order() {
        assert!(MIGRATIONS.is_sorted_by(|a, b| a.version < b.version));
    }

    #[test]
    fn respells_types_and_table_options() {
        let sql = "CREATE TABLE t (\n    id UUID NOT NULL PRIMARY KEY,\n    t TEXT,\n    x BLOB\n) WITHOUT ROWID;";
        let spelt = "CREATE TABLE t (\n    id UUID NOT NULL PRIMARY KEY,\n    t TEXT COLLATE \"C\",\n    x BYTEA\n);";
        assert_eq!(in_postgres_spelling(sql), spelt);
        assert_eq!(in_postgres_spelling("-- Why.\n-- PostgreSQL: ANALYZE t;"), "-- Why.\nANALYZE t;");
    }
}
