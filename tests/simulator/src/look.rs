//! Reads the content of a database, through the store's ports and directly.

use crate::ledger::Held;
use crate::world::{ORGANIZATION, list, operate};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;
use vault_core::credential::OpenedCredential;
use vault_core::organization::{Organization, ReadOrganization};
use vault_core::port::Opener as _;
use vault_core::sealed::{Blob, SealedData};
use vault_diesel::SqliteStore;
use vault_testkit::clock::SequentialIds;
use vault_testkit::crypto::PlainSealer;

/// The key of every database.
pub(crate) const KEY: [u8; 32] = [0xa5; 32];

type Violation = Box<dyn std::error::Error>;

/// Opens a connection without the store.
pub(crate) fn bare(path: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    let key: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    connection.execute_batch(&format!("PRAGMA busy_timeout = 5000; PRAGMA key = \"x'{key}'\""))?;
    Ok(connection)
}

/// Returns the whole content, or an error if any of it is damaged. If `moved` is `true`, the log must have been
/// checkpointed into the file.
pub(crate) async fn all(store: &Arc<SqliteStore>, path: &str, moved: bool) -> Result<Held, Violation> {
    let owner = operate(store, 0, ReadOrganization(ORGANIZATION)).await?.ok_or("no organization")?;
    let listed = list(store).await?;
    let path = path.to_owned();
    // Use another thread: closing the last connection writes, and may be blocked until the power is cut.
    let held =
        tokio::task::spawn_blocking(move || look(&owner, listed, &path, moved).map_err(|error| error.to_string()))
            .await?;
    Ok(held?)
}

fn look(owner: &Organization, listed: Vec<OpenedCredential>, path: &str, moved: bool) -> Result<Held, Violation> {
    let connection = bare(path)?;
    let log = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (log, in_file) = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], log)?;
    if moved && log != in_file {
        return Err(format!("of {log} pages of the log, {in_file} are in the file").into());
    }
    let checks = [("cipher_integrity_check", None), ("integrity_check", Some("ok")), ("foreign_key_check", None)];
    // The first check reads only the file, where a page may be torn as long as the log has it.
    for (check, sound) in checks.into_iter().skip(usize::from(log != in_file)) {
        let mut statement = connection.prepare(&format!("PRAGMA {check}"))?;
        let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if !found.iter().map(String::as_str).eq(sound) {
            return Err(format!("{check}: {found:?}").into());
        }
    }
    let mut versions: BTreeMap<Uuid, Vec<(i64, SealedData)>> = BTreeMap::new();
    let mut statement =
        connection.prepare("SELECT id, version, data_key, data FROM credential_secrets ORDER BY id, version")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let data = SealedData { data_key: Blob::from_bytes(row.get(2)?), data: Blob::from_bytes(row.get(3)?) };
        versions.entry(row.get(0)?).or_default().push((row.get(1)?, data));
    }
    let (mut held, count) = (Held::default(), i64::try_from(listed.len())?);
    let opener = PlainSealer::new(Arc::new(SequentialIds::default()));
    for OpenedCredential { row, card } in listed {
        let card = card?;
        let sealed = versions.remove(row.id.as_uuid()).unwrap_or_default();
        let mut secrets = Vec::with_capacity(sealed.len());
        for (number, data) in &sealed {
            let version = card.version(*number).ok_or("a version that the card does not list")?;
            let context = row.data_context(owner.id, version);
            secrets.push(opener.open(&owner.keys, context, &card.namespace, card.kind, data)?.to_canonical_json());
        }
        if card.versions().count() != secrets.len() {
            return Err("the card lists a version that is not stored".into());
        }
        held.credentials.insert(row.id.to_string(), (row.revision, secrets));
    }
    let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if !versions.is_empty() {
        return Err("there are versions of credentials that do not exist".into());
    }
    let labels = one("SELECT count(*) FROM credential_labels")?;
    if labels != count {
        return Err(format!("{labels} labels of {count} credentials").into());
    }
    let count = "SELECT credentials FROM organizations WHERE id = ?1";
    let count: Result<i64, _> = connection.query_row(count, [ORGANIZATION.as_uuid()], |row| row.get(0));
    held.count = count.or_else(|error| match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(0),
        error => Err(error),
    })?;
    let mut statement = connection.prepare("SELECT id FROM audit")?;
    held.audit = statement.query_map([], |row| Ok(row.get::<_, Uuid>(0)?.to_string()))?.collect::<Result<_, _>>()?;
    Ok(held)
}
