//! Distribution of the tables over the nodes of a PostgreSQL cluster with the extension Citus.
//!
//! All rows of an organization are on one node, so a transaction reaches one worker. Rows that are looked up before the
//! organization is known are distributed by a separate key. The few rows of the instance are on the coordinator, where
//! every node can reach them.

use super::settings::ConnectError;
use super::store::{Postgres, PostgresStore};
use crate::failure::Failure;
use crate::port::Database as _;
use crate::work::{End, Ended};
use diesel::sql_types::{Array, Bool, Nullable, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use std::collections::BTreeMap;
use vault_core::port::StoreError;

/// The oldest supported version of the extension: its first number.
const OLDEST_EXTENSION: u32 = 13;
/// The table with which all other tables of organizations are colocated.
const ORGANIZATIONS: &str = "organizations";

/// Location of a table in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableDistribution {
    /// Distributed by the organization in this column, colocated with the other rows of the organization.
    Organization(&'static str),
    /// Distributed by this separate column, colocated with another table if one is named.
    Key(&'static str, Option<&'static str>),
    /// On the coordinator.
    Coordinator,
}

use TableDistribution::{Coordinator, Key};

const OF: TableDistribution = TableDistribution::Organization("organization_id");

/// Location of each table. The others are colocated with the first one.
const PLACES: [(&str, TableDistribution); 28] = [
    (ORGANIZATIONS, TableDistribution::Organization("id")),
    ("hourly_counts", OF),
    ("erasures", OF),
    ("account_logins", OF),
    ("attempt_classes", OF),
    ("recovery_codes", OF),
    ("sessions", OF),
    ("account_notices", OF),
    ("credentials", OF),
    ("credential_secrets", OF),
    ("credential_labels", OF),
    ("credential_uses", OF),
    ("check_requests", OF),
    ("idempotency_keys", OF),
    ("entities", OF),
    ("lookups", OF),
    ("activations", OF),
    ("audit", OF),
    ("receiver_status", OF),
    ("event_deliveries", OF),
    ("global_lookups", Key("value", None)),
    ("known_networks", Key("network", None)),
    ("instance", Coordinator),
    ("check_rounds", Coordinator),
    ("audit_checkpoints", Coordinator),
    ("audit_delivery", Coordinator),
    ("event_position", Coordinator),
    ("schema_versions", Coordinator),
];

/// Distribution of the tables of a database that has the extension.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Nodes that store distributed rows, as `host:port`.
    pub workers: Vec<String>,
    /// Each table, its intended location, and whether it is there.
    pub tables: Vec<(&'static str, TableDistribution, bool)>,
    /// Number of transactions over several nodes that have waited for their second phase for more than two minutes, or
    /// `None` if the nodes cannot be queried.
    pub unfinished: Option<usize>,
}

impl Distribution {
    /// Returns whether no table is in its intended location.
    pub fn is_absent(&self) -> bool {
        self.tables.iter().all(|(_, _, is_placed)| !is_placed)
    }

    /// Returns the tables that are not in their intended location.
    pub fn misplaced(&self) -> Vec<&'static str> {
        self.tables.iter().filter(|(_, _, is_placed)| !is_placed).map(|(name, _, _)| *name).collect()
    }
}

/// Reason why the tables of a database cannot be distributed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// The database lacks the extension.
    #[error(
        "the database does not have the extension Citus, which distributes tables. Create it on every node, and add the workers \
         with citus_add_node"
    )]
    NoExtension,
    /// The database is an embedded database.
    #[error(
        "the tables of an embedded database cannot be distributed. Move the vault to PostgreSQL with `orgvault migrate-to`"
    )]
    Embedded,
    /// The extension is too old.
    #[error(
        "the database has version {0} of the extension Citus, and {OLDEST_EXTENSION}.0 or later is required. Upgrade it on every node, \
         then run `ALTER EXTENSION citus UPDATE`"
    )]
    TooOld(String),
    /// The server has not loaded the extension.
    #[error(
        "the database has the extension Citus, but its server has not loaded it. Add citus to shared_preload_libraries on every \
         node, and restart them"
    )]
    NotLoaded,
    /// The server is a worker.
    #[error("this server is a worker. Run the command with the coordinator's address")]
    NotCoordinator,
    /// The coordinator has no address in the cluster.
    #[error(
        "the coordinator is not among the nodes of the cluster, so workers could not reach its tables. Run \
         `SELECT citus_set_coordinator_host('HOST', PORT)` in the database"
    )]
    NoCoordinator,
    /// The cluster has no worker.
    #[error(
        "the cluster has no worker for distributed rows. Add the workers with `SELECT citus_add_node('HOST', PORT)`"
    )]
    NoWorker,
    /// Workers lack the metadata of the tables.
    #[error(
        "these nodes lack the metadata of the cluster, so they cannot locate rows: {}. Run \
         `SELECT start_metadata_sync_to_all_nodes()` at the coordinator", .0.join(", ")
    )]
    WithoutMetadata(Vec<String>),
    /// The database returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(QueryableByName)]
struct Extension {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Bool)]
    is_loaded: bool,
}

#[derive(QueryableByName)]
struct Node {
    #[diesel(sql_type = Text)]
    address: String,
    #[diesel(sql_type = Bool)]
    is_coordinator: bool,
    #[diesel(sql_type = Bool)]
    holds_rows: bool,
    #[diesel(sql_type = Bool)]
    has_metadata: bool,
}

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
    /// `column`, `every node` or `coordinator`, or `None` for a table that the extension does not manage.
    #[diesel(sql_type = Nullable<Text>)]
    place: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    by: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    colocated: Option<String>,
}

#[derive(QueryableByName)]
struct Flag {
    #[diesel(sql_type = Bool)]
    value: bool,
}

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Nullable<Text>)]
    value: Option<String>,
}

#[derive(QueryableByName)]
struct ForeignKey {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Text)]
    target: String,
    #[diesel(sql_type = Text)]
    definition: String,
}

// A setting that exists only if the extension is loaded. Configuration files do not name it, which would make it exist
// without the extension.
const EXTENSION: &str = "SELECT extversion AS version, current_setting('citus.explain_analyze_sort_method', true) IS NOT NULL AS is_loaded \
    FROM pg_extension WHERE extname = 'citus'";
const NODES: &str = "SELECT nodename || ':' || nodeport AS address, groupid = 0 AS is_coordinator, \
    shouldhaveshards AND isactive AS holds_rows, hasmetadata AND metadatasynced AS has_metadata \
    FROM pg_dist_node WHERE noderole = 'primary' ORDER BY nodeid";
const IS_COORDINATOR: &str = "SELECT groupid = 0 AS value FROM pg_dist_local_group";
const HAS_CITUS: &str = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AS value";
const IS_SPREAD: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('organizations')) AS value";
const IS_LOADED: &str = "SELECT current_setting('citus.explain_analyze_sort_method', true) IS NOT NULL AS value";
const IS_EMPTY: &str = "SELECT NOT EXISTS (SELECT 1 FROM instance) AS value";
const TABLES: &str = "SELECT relname::text AS name, CASE WHEN partmethod = 'h' THEN 'column' WHEN repmodel = 't' THEN 'every node' \
    WHEN partmethod = 'n' AND colocationid = 0 THEN 'coordinator' END AS place, \
    CASE WHEN partmethod = 'h' THEN column_to_column_name(logicalrelid, partkey) END AS by, colocationid::text AS colocated \
    FROM pg_class LEFT JOIN pg_dist_partition ON logicalrelid = pg_class.oid \
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname = ANY($1)";
const FOREIGN_KEYS: &str = "SELECT conname::text AS name, conrelid::regclass::text AS source, confrelid::regclass::text AS target, \
    pg_get_constraintdef(oid) AS definition FROM pg_constraint \
    WHERE contype = 'f' AND connamespace = current_schema()::regnamespace ORDER BY conname";
const UNFINISHED: &str = "SELECT result AS value FROM run_command_on_all_nodes($$SELECT count(*) FROM pg_prepared_xacts \
    WHERE database = current_database() AND gid LIKE 'citus%' AND prepared < now() - interval '2 minutes'$$)";
/// Creates and changes shards one after the other within the transaction, because foreign keys connect them.
const ONE_BY_ONE: &str = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'";

/// State of the extension.
#[derive(Debug)]
enum Found {
    Nothing,
    Unusable(DistributionError),
    Distribution(Distribution),
}

impl PostgresStore {
    /// Reads where the tables are. Returns `None` if the database lacks the extension.
    ///
    /// # Errors
    /// The extension cannot be used in its current state, or the database cannot be read.
    pub async fn spreading(&self) -> Result<Option<Distribution>, DistributionError> {
        self.find_spreading().await
    }

    /// Moves every table to its place, in one transaction. Returns the number of moved tables.
    ///
    /// # Errors
    /// The database lacks the extension, the extension cannot be used in its current state, or the database fails.
    pub async fn spread(&self) -> Result<usize, DistributionError> {
        self.spread_tables().await
    }
}

impl Postgres {
    async fn find_spreading(&self) -> Result<Option<Distribution>, DistributionError> {
        match self.look((), |connection, ()| Box::pin(async { unchanged(find(connection).await) })).await? {
            Found::Nothing => Ok(None),
            Found::Unusable(error) => Err(error),
            Found::Distribution(mut found) => {
                // A role may lack the right to query other nodes.
                let unfinished =
                    self.look((), |connection, ()| Box::pin(async { unchanged(unfinished(connection).await) })).await;
                found.unfinished = unfinished.ok().flatten();
                Ok(Some(found))
            }
        }
    }

    async fn flag(&self, sql: &'static str) -> Result<bool, StoreError> {
        let flag = self.look(sql, |connection, sql| {
            Box::pin(async move {
                let flag: Flag = sql_query(*sql).get_result(connection).await?;
                Ok((flag.value, End::Unchanged))
            })
        });
        flag.await
    }

    async fn spread_tables(&self) -> Result<usize, DistributionError> {
        let found = self.find_spreading().await?.ok_or(DistributionError::NoExtension)?;
        if found.misplaced().is_empty() {
            return Ok(0);
        }
        if !self.flag(IS_COORDINATOR).await? {
            return Err(DistributionError::NotCoordinator);
        }
        let moved = self.change((), |connection, ()| Box::pin(place(connection))).await?;
        self.record_distribution();
        Ok(moved)
    }

    /// Distributes tables after migrations: all tables of a new vault if the database has the extension, or new tables
    /// if the others are distributed.
    pub(super) async fn spread_new(&self) -> Result<(), DistributionError> {
        let Some(found) = self.find_spreading().await? else { return Ok(()) };
        if !found.is_absent() || self.flag(IS_EMPTY).await? {
            self.spread_tables().await?;
        }
        Ok(())
    }
}

/// Returns whether the tables are distributed. Called on a new connection.
pub(super) async fn is_distributed(connection: &mut AsyncPgConnection) -> Result<bool, ConnectError> {
    let unreachable = |error| ConnectError::Unreachable(Box::new(error));
    let known: Flag = sql_query(HAS_CITUS).get_result(connection).await.map_err(unreachable)?;
    if !known.value {
        return Ok(false);
    }
    let spread: Flag = sql_query(IS_SPREAD).get_result(connection).await.map_err(unreachable)?;
    let loaded: Flag = sql_query(IS_LOADED).get_result(connection).await.map_err(unreachable)?;
    // Without the extension, the server shows distributed tables as empty.
    if spread.value && !loaded.value { Err(ConnectError::NotLoaded) } else { Ok(spread.value) }
}

fn unchanged<T>(read: Result<T, Failure>) -> Ended<T> {
    Ok((read?, End::Unchanged))
}

/// Reads the locations of the tables, by name.
async fn tables(connection: &mut AsyncPgConnection) -> Result<BTreeMap<String, Table>, Failure> {
    let names: Vec<&str> = PLACES.iter().map(|(name, _)| *name).collect();
    let tables: Vec<Table> = sql_query(TABLES).bind::<Array<Text>, _>(names).load(connection).await?;
    Ok(tables.into_iter().map(|table| (table.name.clone(), table)).collect())
}

impl TableDistribution {
    /// Returns whether a table is in this location.
    fn is_of(self, table: Option<&Table>, tables: &BTreeMap<String, Table>) -> bool {
        let Some(Table { place: Some(found), by, colocated, .. }) = table else { return false };
        let colocated_with = |other: &str| tables.get(other).is_some_and(|other| other.colocated == *colocated);
        match self {
            Self::Organization(column) => {
                found == "column" && by.as_deref() == Some(column) && colocated_with(ORGANIZATIONS)
            }
            Key(column, other) => {
                found == "column" && by.as_deref() == Some(column) && other.is_none_or(colocated_with)
            }
            Coordinator => found == "coordinator",
        }
    }

    /// Returns the statement that moves a table to this location.
    fn statement(self, name: &str) -> String {
        let spread = |column: &str, colocated_with: &str| {
            format!("SELECT create_distributed_table('{name}', '{column}', colocate_with => '{colocated_with}')")
        };
        match self {
            Self::Organization(column) if name == ORGANIZATIONS => spread(column, "none"),
            Self::Organization(column) => spread(column, ORGANIZATIONS),
            Key(column, colocated_with) => spread(column, colocated_with.unwrap_or("none")),
            Coordinator => format!("SELECT citus_add_local_table_to_metadata('{name}')"),
        }
    }
}

async fn find(connection: &mut AsyncPgConnection) -> Result<Found, Failure> {
    let extension: Vec<Extension> = sql_query(EXTENSION).load(connection).await?;
    let Some(Extension { version, is_loaded }) = extension.into_iter().next() else { return Ok(Found::Nothing) };
    if !is_loaded {
        return Ok(Found::Unusable(DistributionError::NotLoaded));
    }
    let first = version.split(['.', '-']).next().and_then(|number| number.parse().ok());
    if first.is_none_or(|first: u32| first < OLDEST_EXTENSION) {
        return Ok(Found::Unusable(DistributionError::TooOld(version)));
    }
    let nodes: Vec<Node> = sql_query(NODES).load(connection).await?;
    let addresses =
        |is: &dyn Fn(&&Node) -> bool| nodes.iter().filter(is).map(|node| node.address.clone()).collect::<Vec<_>>();
    let (workers, unaware) =
        (addresses(&|node| node.holds_rows), addresses(&|node| !node.is_coordinator && !node.has_metadata));
    if !nodes.iter().any(|node| node.is_coordinator) {
        return Ok(Found::Unusable(DistributionError::NoCoordinator));
    }
    if workers.is_empty() {
        return Ok(Found::Unusable(DistributionError::NoWorker));
    }
    if !unaware.is_empty() {
        return Ok(Found::Unusable(DistributionError::WithoutMetadata(unaware)));
    }
    let known = tables(connection).await?;
    let tables = PLACES.map(|(name, place)| (name, place, place.is_of(known.get(name), &known))).to_vec();
    Ok(Found::Distribution(Distribution { workers, tables, unfinished: None }))
}

async fn unfinished(connection: &mut AsyncPgConnection) -> Result<Option<usize>, Failure> {
    let counts: Vec<Answer> = sql_query(UNFINISHED).load(connection).await?;
    Ok(counts.into_iter().map(|count| count.value?.parse::<usize>().ok()).sum())
}

async fn place(connection: &mut AsyncPgConnection) -> Ended<usize> {
    connection.batch_execute(ONE_BY_ONE).await?;
    let known = tables(connection).await?;
    let moved: Vec<_> = PLACES.iter().filter(|(name, place)| !place.is_of(known.get(*name), &known)).collect();
    let moves = |name: &str| moved.iter().any(|(other, _)| *other == name);
    let keys: Vec<ForeignKey> = sql_query(FOREIGN_KEYS).load(connection).await?;
    let keys: Vec<ForeignKey> = keys.into_iter().filter(|key| moves(&key.source) || moves(&key.target)).collect();
    // The extension cannot move a table while an undistributed table refers to it.
    for ForeignKey { name, source, .. } in &keys {
        connection.batch_execute(&format!("ALTER TABLE {source} DROP CONSTRAINT {name}")).await?;
    }
    for (name, place) in &moved {
        connection.batch_execute(&place.statement(name)).await?;
    }
    for ForeignKey { name, source, definition, .. } in &keys {
        connection.batch_execute(&format!("ALTER TABLE {source} ADD CONSTRAINT {name} {definition}")).await?;
    }
    Ok((moved.len(), End::Commit))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::migration::MIGRATIONS;
    use std::collections::BTreeSet;

    #[test]
    fn every_table_has_a_distribution() {
        let made = MIGRATIONS.iter().flat_map(|migration| migration.sql.lines());
        let made = made.filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next());
        let made: BTreeSet<&str> = made.chain(["schema_versions"]).collect();
        assert_eq!(PLACES.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), made);
    }

    #[test]
    fn every_key_includes_distribution_column() {
        let sql: String = MIGRATIONS.iter().map(|migration| migration.sql).collect();
        for (name, place) in PLACES {
            let (TableDistribution::Organization(column) | Key(column, _)) = place else { continue };
            let (_, table) = sql.split_once(&format!("CREATE TABLE {name} (\n")).unwrap();
            let (table, _) = table.split_once("\n)").unwrap();
            let keys: Vec<&str> =
                table.lines().filter(|line| line.contains("PRIMARY KEY") || line.contains("UNIQUE")).collect();
            assert!(!keys.is_empty(), "{name} has no key");
            for key in keys {
                let mut words = key.split(['(', ')', ',', ' ']);
                assert!(words.any(|word| word == column), "{name} is spread by {column}, which is not in: {key}");
            }
        }
        assert!(!sql.contains("CREATE UNIQUE INDEX"), "its columns must be looked at here, too");
    }
}
