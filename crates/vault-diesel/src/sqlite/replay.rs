//! Copies rights, revocations and receivers from a newer database of the same deployment into an earlier one that is
//! restored. Credentials are never copied.

use super::connection::{Purpose, open};
use super::copy::{CopyError, attach};
use super::settings::SqliteKey;
use super::store::SqliteStore;
use crate::stored::{AnyId, Id};
use diesel::connection::SimpleConnection as _;
use diesel::result::Error as SqlError;
use diesel::sql_types::{BigInt, Binary, Text};
use diesel::{QueryableByName, RunQueryDsl as _, SqliteConnection, sql_query};
use std::path::Path;
use vault_core::entity::{Index, Kind};
use vault_core::organization::{Organization, OrganizationState};

/// An account (by address), an integration or a namespace (by name), or a receiver (by ID) of an organization.
#[derive(Clone, Debug, PartialEq, Eq, QueryableByName)]
pub struct SinceNamed {
    /// The organization's name.
    #[diesel(sql_type = Text)]
    pub organization: String,
    /// The address or name.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// Its id.
    #[diesel(sql_type = Id, deserialize_as = AnyId)]
    pub id: String,
    /// The organization's id.
    #[diesel(sql_type = Id, deserialize_as = AnyId)]
    pub organization_id: String,
}

/// The state of an organization.
#[derive(Clone, Debug, PartialEq, Eq, QueryableByName)]
pub struct SinceState {
    /// Its id.
    #[diesel(sql_type = Id, deserialize_as = AnyId)]
    pub id: String,
    /// The name of the state.
    #[diesel(sql_type = Text)]
    pub state: String,
}

/// A credential.
#[derive(Clone, Debug, PartialEq, Eq, QueryableByName)]
pub struct SinceCredential {
    /// The organization's name.
    #[diesel(sql_type = Text)]
    pub organization: String,
    /// Its id.
    #[diesel(sql_type = Id, deserialize_as = AnyId)]
    pub id: String,
    /// Its type.
    #[diesel(sql_type = Text)]
    pub kind: String,
    /// Its namespace.
    #[diesel(sql_type = Text)]
    pub namespace: String,
}

/// Result of [`replay`]: the rows copied into the earlier database, and those in only one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Organizations in another state than in the newer database, which the caller must set. Those deleted since are to be
    /// disabled.
    pub organizations: Vec<SinceState>,
    /// Number of accounts replaced by their newer state.
    pub accounts: usize,
    /// Number of integrations replaced by their newer state.
    pub integrations: usize,
    /// Namespaces that are frozen in the newer database. The caller must freeze them.
    pub frozen: Vec<SinceNamed>,
    /// Namespaces that were thawed since. The caller must thaw them.
    pub thawed: Vec<SinceNamed>,
    /// Number of open invitations and enrolment codes.
    pub invitations: usize,
    /// Number of issuers of identity tokens copied from the newer database.
    pub issuers: usize,
    /// Number of receivers copied from the newer database.
    pub receivers: usize,
    /// Issuers of the earlier database that were removed since, or changed since if the keys differ. They are not
    /// restored.
    pub stale_issuers: Vec<String>,
    /// Receivers of the earlier database that were removed since, or changed since if the keys differ. For a receiver
    /// of the instance, the name of the organization is empty.
    pub stale_receivers: Vec<SinceNamed>,
    /// Accounts that were deleted since, or changed since if the keys differ. The caller must disable them.
    pub stale_accounts: Vec<SinceNamed>,
    /// Integrations that were deleted since, or changed since if the keys differ. The caller must disable them.
    pub stale_integrations: Vec<SinceNamed>,
    /// Organizations created since.
    pub new_organizations: Vec<String>,
    /// Accounts created since in organizations that both databases have.
    pub new_accounts: Vec<SinceNamed>,
    /// Integrations created since in organizations that both databases have.
    pub new_integrations: Vec<SinceNamed>,
    /// Credentials saved since. The earlier database does not have them.
    pub saved: Vec<SinceCredential>,
    /// Credentials changed since. The earlier database has their previous state.
    pub changed: Vec<SinceCredential>,
    /// Credentials deleted since. The earlier database still has them.
    pub deleted: Vec<SinceCredential>,
}

/// Copies accounts, integrations, invitations, issuers and receivers from the database file `newer` into `restored`. Both
/// belong to one deployment and have the same schema. `names` are those of the organizations of both, which are sealed.
/// Blocks the thread.
///
/// Rows are copied unchanged, so they open only if both databases have the `same_keys`. Otherwise stale issuers and
/// receivers are removed, and changed accounts and integrations are listed as stale. The copy is one transaction. `newer` is not changed, and no process may write to
/// it during the copy.
///
/// # Errors
/// One of the databases fails. Nothing is copied then.
pub fn replay(
    restored: &SqliteStore,
    newer: &Path,
    key: &SqliteKey,
    same_keys: bool,
    names: &[Organization],
) -> Result<Replayed, CopyError> {
    let mut connection = open(restored.source(), Purpose::Writing)?;
    let failed = |error: SqlError| CopyError::Database { path: newer.to_owned(), source: Box::new(error) };
    let text = newer.to_str().ok_or_else(|| super::settings::OpenError::Path(newer.to_owned()))?;
    attach(&mut connection, text, key, "newer").map_err(failed)?;
    connection.batch_execute("PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE").map_err(failed)?;
    connection.batch_execute("CREATE TEMP TABLE names (id BLOB PRIMARY KEY, name TEXT NOT NULL)").map_err(failed)?;
    for organization in names {
        let name = sql_query("INSERT OR REPLACE INTO temp.names VALUES (?, ?)")
            .bind::<Binary, _>(organization.id.as_bytes().as_slice())
            .bind::<Text, _>(organization.name.as_str());
        name.execute(&mut connection).map_err(failed)?;
    }
    let replayed = bring(&mut connection, same_keys).map_err(failed)?;
    connection.batch_execute("COMMIT; DETACH newer").map_err(failed)?;
    Ok(replayed)
}

/// Name of the organization of the row `n`, or `m`. Empty if its document does not open.
const NAME: &str = "COALESCE((SELECT name FROM temp.names WHERE id = n.organization_id), '')";
const NAME_OF_M: &str = "COALESCE((SELECT name FROM temp.names WHERE id = m.organization_id), '')";

/// Joins the rows `n` and `m` of one object in both databases.
const SAME: &str = "m.organization_id = n.organization_id AND m.id = n.id";

fn bring(connection: &mut SqliteConnection, same_keys: bool) -> Result<Replayed, SqlError> {
    let mut replayed = compare(connection, same_keys)?;
    let (disabled, index) = (OrganizationState::Disabled.as_str(), Index::OrganizationState.as_str());
    let state = format!(
        "COALESCE((SELECT n.value FROM newer.lookups n WHERE n.organization_id = m.organization_id AND n.name = m.name), \
         '{disabled}')"
    );
    replayed.organizations = sql_query(format!(
        "SELECT m.organization_id AS id, {state} AS state FROM main.lookups m \
         WHERE m.name = '{index}' AND m.value <> {state} ORDER BY m.organization_id"
    ))
    .load(connection)?;
    replayed.frozen = frozen(connection, "newer", "TRUE")?;
    replayed.thawed = frozen(
        connection,
        "main",
        "NOT EXISTS (SELECT 1 FROM newer.lookups m WHERE m.organization_id = n.organization_id \
        AND m.name = n.name AND m.value = n.value)",
    )?;
    if !same_keys {
        remove_stale(connection)?;
        return Ok(replayed);
    }
    adopt_operators(connection, &mut replayed)?;
    replayed.accounts = adopt(connection, Kind::Account)?;
    replayed.integrations = adopt(connection, Kind::Integration)?;
    let [account, secrets, draft] = [Kind::Account, Kind::AccountSecrets, Kind::EnrolmentDraft].map(Kind::as_str);
    let of_account = format!("n.kind = '{account}'");
    connection.batch_execute(&of_both("entities", "id", &of_account, &format!("k.kind = '{secrets}'")))?;
    // Copy failed attempts and used TOTP steps too: a guesser must not get fresh attempts.
    for table in ["account_logins", "attempt_classes"] {
        connection.batch_execute(&of_both(table, "account_id", &of_account, "TRUE"))?;
    }
    connection.batch_execute(&format!("DELETE FROM main.entities WHERE kind = '{draft}'"))?;
    replayed.invitations = adopt_invitations(connection)?;
    Ok(replayed)
}

/// Returns the statements that replace rows of `table` that belong to entities of both databases. `of` selects the entities `n`,
/// and `which` the rows `k`.
fn of_both(table: &str, column: &str, of: &str, which: &str) -> String {
    format!(
        "DELETE FROM main.{table} AS k WHERE {which} AND EXISTS (SELECT 1 FROM newer.entities n \
         WHERE n.organization_id = k.organization_id AND n.id = k.{column} AND {of} \
         AND EXISTS (SELECT 1 FROM main.entities m WHERE {SAME} AND m.kind = n.kind)); \
         INSERT INTO main.{table} SELECT k.* FROM newer.{table} k WHERE {which} AND EXISTS (SELECT 1 FROM main.entities n \
         WHERE n.organization_id = k.organization_id AND n.id = k.{column} AND {of});"
    )
}

/// Replaces entities of a kind, with the values that lead to them, by their newer state, if the versions differ. Returns their
/// number.
fn adopt(connection: &mut SqliteConnection, kind: Kind) -> Result<usize, SqlError> {
    let adopted = sql_query(format!(
        "INSERT OR REPLACE INTO main.entities SELECT n.* FROM newer.entities n JOIN main.entities m ON {SAME} \
         AND m.kind = n.kind WHERE n.version <> m.version AND n.kind = '{}'",
        kind.as_str()
    ))
    .execute(connection)?;
    let (of, names) = (format!("n.kind = '{}'", kind.as_str()), Index::names_of(kind).join("', '"));
    for table in ["lookups", "global_lookups"] {
        connection.batch_execute(&of_both(table, "id", &of, &format!("k.name IN ('{names}')")))?;
    }
    Ok(adopted)
}

/// Replaces invitations, with the values that lead to them, by those of the newer database. One that re-enrols an account,
/// which no address leads to, requires the account, and any other that there is none. Returns their number.
fn adopt_invitations(connection: &mut SqliteConnection) -> Result<usize, SqlError> {
    let [kind, account] = [Kind::Invitation, Kind::Account].map(Kind::as_str);
    let [address, code] = [Index::InvitedAddress, Index::EnrolmentCode].map(Index::as_str);
    let leading = format!("name IN ('{address}', '{code}')");
    connection.batch_execute(&format!(
        "DELETE FROM main.global_lookups WHERE {leading}; DELETE FROM main.entities WHERE kind = '{kind}'"
    ))?;
    let adopted = sql_query(format!(
        "INSERT INTO main.entities SELECT n.* FROM newer.entities n WHERE n.kind = '{kind}' \
         AND n.organization_id IN (SELECT id FROM main.organizations) \
         AND EXISTS (SELECT 1 FROM newer.global_lookups l WHERE l.name = '{address}' \
         AND l.organization_id = n.organization_id AND l.id = n.id) \
         <> EXISTS (SELECT 1 FROM main.entities m WHERE {SAME} AND m.kind = '{account}')"
    ))
    .execute(connection)?;
    connection.batch_execute(&format!(
        "INSERT INTO main.global_lookups SELECT n.* FROM newer.global_lookups n WHERE {leading} AND EXISTS \
         (SELECT 1 FROM main.entities m WHERE {SAME} AND m.kind = '{kind}')"
    ))?;
    Ok(adopted)
}

/// Returns the accounts or integrations in `there` that `missing` lacks, and those of both with another version if `changed`.
/// Only organizations that both databases have are included.
fn named(
    connection: &mut SqliteConnection,
    there: &str,
    missing: &str,
    index: Index,
    changed: bool,
) -> Result<Vec<SinceNamed>, SqlError> {
    let differ = if changed { "n.version <> m.version" } else { "FALSE" };
    let lookups = if index.is_global() { "global_lookups" } else { "lookups" };
    sql_query(format!(
        "SELECT {NAME} AS organization, l.value AS name, n.id AS id, n.organization_id AS organization_id \
         FROM {there}.{lookups} l JOIN {there}.entities n ON n.organization_id = l.organization_id AND n.id = l.id \
         LEFT JOIN {missing}.entities m ON {SAME} AND m.kind = n.kind \
         WHERE l.name = '{}' AND n.kind = '{}' AND n.organization_id IN (SELECT id FROM {missing}.organizations) \
         AND (m.id IS NULL OR {differ}) ORDER BY lower({NAME}), l.value",
        index.as_str(),
        index.kind().as_str()
    ))
    .load(connection)
}

/// Returns the frozen namespaces in `there` that meet a condition, of organizations that both databases have.
fn frozen(connection: &mut SqliteConnection, there: &str, which: &str) -> Result<Vec<SinceNamed>, SqlError> {
    let index = Index::FrozenNamespace.as_str();
    sql_query(format!(
        "SELECT {NAME} AS organization, n.value AS name, n.id AS id, n.organization_id AS organization_id \
         FROM {there}.lookups n WHERE n.name = '{index}' AND n.organization_id IN (SELECT id FROM main.organizations) \
         AND n.organization_id IN (SELECT id FROM newer.organizations) AND {which} ORDER BY lower({NAME}), n.value"
    ))
    .load(connection)
}

/// Returns the condition of issuers and receivers `m` that must not be restored: they were removed, or changed if the keys
/// differ. With the same keys, those of the newer database replace them.
fn stale(same_keys: bool) -> String {
    let unchanged = if same_keys { "" } else { " AND n.version = m.version" };
    format!(
        "NOT EXISTS (SELECT 1 FROM newer.entities n WHERE n.organization_id = m.organization_id AND n.kind = m.kind \
         AND n.id = m.id{unchanged})"
    )
}

/// Returns the condition of the rows of issuers and receivers in a table.
fn of_operators(table: &str) -> String {
    let [receiver, issuer, keys] = [Kind::Receiver, Kind::Issuer, Kind::IssuerKeys].map(Kind::as_str);
    let [active, name] = [Index::ActiveReceiver, Index::IssuerName].map(Index::as_str);
    match table {
        "entities" => format!("kind IN ('{receiver}', '{issuer}', '{keys}')"),
        "lookups" => format!("name IN ('{active}', '{name}')"),
        _ => "TRUE".to_owned(),
    }
}

/// Removes what belongs to issuers and receivers that do not exist.
fn remove_orphans(connection: &mut SqliteConnection) -> Result<(), SqlError> {
    let keys = Kind::IssuerKeys.as_str();
    for (table, id, which) in [
        ("event_deliveries", "receiver_id", of_operators("event_deliveries")),
        ("receiver_status", "receiver_id", of_operators("receiver_status")),
        ("lookups", "id", of_operators("lookups")),
        ("entities", "id", format!("kind = '{keys}'")),
    ] {
        connection.batch_execute(&format!(
            "DELETE FROM main.{table} WHERE {which} AND NOT EXISTS (SELECT 1 FROM main.entities m \
             WHERE m.organization_id = {table}.organization_id AND m.kind <> '{keys}' AND m.id = {table}.{id})"
        ))?;
    }
    Ok(())
}

/// Replaces issuers and receivers by those of the newer database.
fn adopt_operators(connection: &mut SqliteConnection, replayed: &mut Replayed) -> Result<(), SqlError> {
    for table in ["receiver_status", "lookups", "entities"] {
        let which = of_operators(table);
        connection.batch_execute(&format!(
            "DELETE FROM main.{table} WHERE {which}; INSERT INTO main.{table} SELECT n.* FROM newer.{table} n \
             WHERE {which} AND (n.organization_id = zeroblob(16) \
             OR n.organization_id IN (SELECT id FROM main.organizations))"
        ))?;
    }
    replayed.issuers = count(connection, Kind::Issuer)?;
    replayed.receivers = count(connection, Kind::Receiver)?;
    remove_orphans(connection)
}

fn count(connection: &mut SqliteConnection, kind: Kind) -> Result<usize, SqlError> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let counted = format!("SELECT COUNT(*) AS count FROM main.entities WHERE kind = '{}'", kind.as_str());
    let counted: Count = sql_query(counted).get_result(connection)?;
    Ok(usize::try_from(counted.count).unwrap_or_default())
}

/// Removes the issuers and receivers that the newer database does not have in this state. Its own rows cannot be
/// verified under the keys of the restored one.
fn remove_stale(connection: &mut SqliteConnection) -> Result<(), SqlError> {
    let ([receiver, issuer], stale) = ([Kind::Receiver, Kind::Issuer].map(Kind::as_str), stale(false));
    connection.batch_execute(&format!(
        "DELETE FROM main.entities AS m WHERE m.kind IN ('{receiver}', '{issuer}') AND {stale}"
    ))?;
    remove_orphans(connection)
}

fn compare(connection: &mut SqliteConnection, same_keys: bool) -> Result<Replayed, SqlError> {
    #[derive(QueryableByName)]
    struct Name {
        #[diesel(sql_type = Text)]
        name: String,
    }
    let new = "SELECT name FROM newer.organizations JOIN temp.names USING (id) \
               WHERE id NOT IN (SELECT id FROM main.organizations) ORDER BY lower(name)";
    let names: Vec<Name> = sql_query(new).load(connection)?;
    let stale = stale(same_keys);
    let stale_issuers: Vec<Name> = sql_query(format!(
        "SELECT l.value AS name FROM main.lookups l \
         JOIN main.entities m ON m.organization_id = l.organization_id AND m.id = l.id AND m.kind = '{}' \
         WHERE l.name = '{}' AND {stale} ORDER BY l.value",
        Kind::Issuer.as_str(),
        Index::IssuerName.as_str()
    ))
    .load(connection)?;
    // The address is sealed.
    let stale_receivers = sql_query(format!(
        "SELECT {NAME_OF_M} AS organization, '' AS name, m.id AS id, m.organization_id AS organization_id \
         FROM main.entities m WHERE m.kind = '{}' AND {stale} ORDER BY lower({NAME_OF_M}), m.id",
        Kind::Receiver.as_str()
    ));
    let mut stale_receivers: Vec<SinceNamed> = stale_receivers.load(connection)?;
    stale_receivers.iter_mut().for_each(|row| row.name.clone_from(&row.id));
    let (account, integration) = (Index::AccountAddress, Index::IntegrationName);
    Ok(Replayed {
        stale_issuers: stale_issuers.into_iter().map(|row| row.name).collect(),
        stale_receivers,
        new_organizations: names.into_iter().map(|row| row.name).collect(),
        new_accounts: named(connection, "newer", "main", account, false)?,
        new_integrations: named(connection, "newer", "main", integration, false)?,
        stale_accounts: named(connection, "main", "newer", account, !same_keys)?,
        stale_integrations: named(connection, "main", "newer", integration, !same_keys)?,
        saved: credentials(connection, "newer", "main", "FALSE")?,
        changed: credentials(connection, "newer", "main", "TRUE")?,
        deleted: credentials(connection, "main", "newer", "FALSE")?,
        ..Replayed::default()
    })
}

/// Returns the credentials in `there` that `missing` lacks or, if `differ` is `TRUE`, those that differ. Remains of
/// deleted organizations are excluded.
fn credentials(
    connection: &mut SqliteConnection,
    there: &str,
    missing: &str,
    differ: &str,
) -> Result<Vec<SinceCredential>, SqlError> {
    sql_query(format!(
        "SELECT {NAME} AS organization, n.id AS id, n.type AS kind, n.namespace AS namespace \
         FROM {there}.credentials n JOIN {there}.organizations o ON o.id = n.organization_id \
         LEFT JOIN {missing}.credentials m ON {SAME} \
         WHERE CASE WHEN {differ} THEN n.version <> m.version OR n.revision <> m.revision ELSE m.id IS NULL END \
         ORDER BY lower({NAME}), n.namespace, n.id"
    ))
    .load(connection)
}
