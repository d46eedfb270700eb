//! The one migration history of both databases, in SQLite's spelling. Migrations are only ever added.

use crate::postgres::SpreadError;
use vault_core::port::StoreError;

/// One step of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number and name; versions sort in the order they are applied.
    pub version: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal),* $(,)?) => {
        /// Every migration, oldest first.
        pub const MIGRATIONS: &[Migration] = &[$(Migration {
            version: $version,
            sql: include_str!(concat!("../migrations/", $version, "/up.sql")),
        }),*];
    };
}

migrations!["0001_orgvault"];

/// The newest migration after which servers of the build before must not run. Each later one only adds: tables, indexes, and
/// columns that may be left out.
const LAST_THAT_STOPS: &str = "0001_orgvault";

impl Migration {
    /// Whether servers of the build before may run while it is applied and afterwards, on PostgreSQL.
    pub fn is_rolling(&self) -> bool {
        self.version > LAST_THAT_STOPS
    }
}

/// Whether servers of the build before may run while the last `pending` migrations are applied and afterwards, on PostgreSQL.
pub fn are_rolling(pending: usize) -> bool {
    MIGRATIONS.iter().rev().take(pending).all(Migration::is_rolling)
}

/// Makes the table of what was applied.
pub(crate) const CREATE_VERSIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_versions \
    (version TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)";

/// How a database's schema stands to this build's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is none yet.
    Empty,
    /// A build from before the first release made it, with this version: no release reads it.
    Unreleased(String),
    /// So many migrations are missing.
    Pending(usize),
    /// It is this build's.
    Current,
    /// It has a version that this build does not know: a newer build made it.
    Newer(String),
}

/// The schema could not be brought up to date.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A newer build made the schema.
    #[error(
        "the database has schema version {0}, which this version of OrgVault does not support. Use the newer version"
    )]
    Newer(String),
    /// A build from before the first release made the schema.
    #[error(
        "the database has schema version {0}, created by an unreleased build, which no release supports. Create a new vault"
    )]
    Unreleased(String),
    /// The tables cannot be spread over the nodes of the database.
    #[error(transparent)]
    Spread(#[from] SpreadError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compares what was applied with the history.
pub(crate) fn compare(applied: &[String]) -> SchemaState {
    let known = |version: &&String| MIGRATIONS.iter().any(|migration| migration.version == version.as_str());
    if let Some(unknown) = applied.iter().find(|version| !known(version)) {
        // Every release has the first migration; what came before the releases had others.
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

/// What was not applied yet, oldest first.
pub(crate) fn pending(applied: &[String]) -> Vec<Migration> {
    let missing = |migration: &&Migration| !applied.iter().any(|version| version == migration.version);
    MIGRATIONS.iter().filter(missing).copied().collect()
}

/// What precedes a statement for PostgreSQL alone, and makes it a comment elsewhere.
const POSTGRES_ALONE: &str = "-- PostgreSQL: ";

/// A migration in PostgreSQL's spelling: three words differ, and some statements are for it alone. `TEXT` compares by bytes, as
/// SQLite's does.
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
    fn compares_what_was_applied_with_the_history() {
        let all: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(compare(&[]), SchemaState::Empty);
        assert_eq!(compare(&applied(&all)), SchemaState::Current);
        let newer = [all.as_slice(), &["9999_later"]].concat();
        assert_eq!(compare(&applied(&newer)), SchemaState::Newer("9999_later".to_owned()));
        for unreleased in
            [&["0001_foundation"][..], &["0001_foundation", "0002_accounts", "0018_filters"], &["0001_vault"]]
        {
            assert_eq!(compare(&applied(unreleased)), SchemaState::Unreleased(unreleased[0].to_owned()));
        }
    }

    /// What servers of the build before can do without knowing it.
    fn only_adds(statement: &str) -> bool {
        let added = statement.strip_prefix("ALTER TABLE ").and_then(|rest| rest.split_once(" ADD COLUMN "));
        statement.starts_with("CREATE TABLE ")
            || statement.starts_with("CREATE INDEX ")
            || added.is_some_and(|(_, column)| !column.contains("NOT NULL") || column.contains(" DEFAULT "))
            || statement.starts_with("ALTER TABLE ") && statement.contains(" SET (n_distinct = ")
    }

    #[test]
    fn migrations_beside_running_servers_only_add() {
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
