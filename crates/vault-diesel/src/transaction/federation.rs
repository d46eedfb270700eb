//! Signing keys of federation tokens. There are few rows.

use super::audit::AuditRecorder;
use super::instance_key::require_active;
use super::{Read, Transaction};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::schema::{federation_keys, instance};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _};
use diesel::{
    ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _, delete, insert_into, update,
};
use vault_core::Refusal;
use vault_core::federation::{
    FederationIssuer, FederationKey, FederationKeyState, Jwk, PublicationFailure, StoredFederationKey,
};
use vault_core::id::KeyId;
use vault_core::port::{ChangeFederationKeys, RecordPublication, ReplaceKeyring};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "federation_keys";

#[derive(Queryable, Selectable)]
#[diesel(table_name = federation_keys, check_for_backend(Db))]
pub(crate) struct FederationKeyRow {
    id: Column<KeyId>,
    issuer: Column<FederationIssuer>,
    state: Column<FederationKeyState>,
    jwk: Column<Jwk>,
    private_key: Column<Blob>,
    created_at: i64,
    published_at: Option<i64>,
    active_at: Option<i64>,
    retired_at: Option<i64>,
    version: i64,
    #[diesel(select_expression = (federation_keys::mac, federation_keys::mac_key_id))]
    mac: CodeColumns,
    checked_at: Option<i64>,
    failure: Option<String>,
}

impl FederationKeyRow {
    pub(crate) fn decode(self) -> Result<StoredFederationKey, Failure> {
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        let time = |millis: Option<i64>| millis.map(Timestamp::from_millis);
        Ok(StoredFederationKey {
            key: FederationKey {
                id,
                issuer: self.issuer.decode(TABLE, &id, "issuer")?,
                state: self.state.decode(TABLE, &id, "state")?,
                jwk: self.jwk.decode(TABLE, &id, "jwk")?,
                created_at: Timestamp::from_millis(self.created_at),
                published_at: time(self.published_at),
                active_at: time(self.active_at),
                retired_at: time(self.retired_at),
                version: self.version,
            },
            private_key: self.private_key.decode(TABLE, &id, "private_key")?,
            mac: self.mac.decode(TABLE, &id, "mac")?,
            checked_at: time(self.checked_at),
            // An unknown finding is a failed check.
            failure: self
                .failure
                .map(|text| PublicationFailure::parse(&text).unwrap_or(PublicationFailure::Unreachable)),
        })
    }
}

/// All signing keys, ordered by ID. A damaged row is its ID.
pub(crate) struct ListFederationKeys;

impl Read for ListFederationKeys {
    type Outcome = Vec<Result<StoredFederationKey, String>>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Self::Outcome, Failure> {
        let all = federation_keys::table.order(federation_keys::id);
        let rows: Vec<(AnyId, FederationKeyRow)> =
            tx.load(all.select((federation_keys::id, FederationKeyRow::as_select()))).await?;
        Ok(rows.into_iter().map(|(id, row)| row.decode().map_err(|_| id.to_string())).collect())
    }
}

impl Transaction for ChangeFederationKeys {
    /// `false` if a row was changed in the meantime.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { added, changed, removed, keyring, audit: records } = self;
        // Lock the instance for the change first: a lock that is only shared could not be raised later.
        if let Some(ReplaceKeyring { current, next }) = keyring {
            let row = instance::table.filter(instance::keyring.eq(current.as_bytes()));
            if tx.execute(update(row).set(instance::keyring.eq(next.as_bytes()))).await? == 0 {
                return Err(Refusal::Contended.into());
            }
        }
        let sealed = added.iter().filter_map(|row| row.private_key.key());
        require_active(tx, added.iter().chain(changed).map(|row| row.mac.key).chain(sealed)).await?;
        for row in added {
            insert(tx, row).await?;
        }
        for row in changed {
            if !change(tx, row).await? {
                return Ok(false);
            }
        }
        for (id, version) in removed {
            let row = federation_keys::table.filter(federation_keys::id.eq(id.stored()));
            if tx.execute(delete(row.filter(federation_keys::version.eq(*version)))).await? == 0 {
                return Ok(false);
            }
        }
        audit.commit_without_entry(); // an update of the time of the first publication has none
        for record in records {
            audit.record(tx, record).await?;
        }
        Ok(true)
    }
}

async fn insert(tx: &Tx<'_>, row: &StoredFederationKey) -> Result<(), Failure> {
    let StoredFederationKey { key, private_key, mac, checked_at, failure } = row;
    let jwk = key.jwk.to_json();
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millis);
    tx.execute(insert_into(federation_keys::table).values((
        federation_keys::id.eq(key.id.stored()),
        federation_keys::issuer.eq(key.issuer.as_str()),
        federation_keys::state.eq(key.state.as_str()),
        federation_keys::jwk.eq(&jwk),
        federation_keys::private_key.eq(private_key.as_bytes()),
        federation_keys::created_at.eq(key.created_at.as_millis()),
        federation_keys::published_at.eq(millis(key.published_at)),
        federation_keys::active_at.eq(millis(key.active_at)),
        federation_keys::retired_at.eq(millis(key.retired_at)),
        federation_keys::version.eq(key.version),
        federation_keys::mac.eq(mac.code.as_bytes().as_slice()),
        federation_keys::mac_key_id.eq(mac.key.stored()),
        federation_keys::checked_at.eq(millis(*checked_at)),
        federation_keys::failure.eq(failure.map(PublicationFailure::as_str)),
    )))
    .await?;
    Ok(())
}

/// Changes a row, except for its private key, which a rotation of the instance key may have resealed. Returns `false` if the
/// row does not have the previous version.
async fn change(tx: &Tx<'_>, row: &StoredFederationKey) -> Result<bool, Failure> {
    let StoredFederationKey { key, mac, .. } = row;
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millis);
    let before = federation_keys::table
        .filter(federation_keys::id.eq(key.id.stored()))
        .filter(federation_keys::version.eq(key.version - 1));
    let change = update(before).set((
        federation_keys::state.eq(key.state.as_str()),
        federation_keys::published_at.eq(millis(key.published_at)),
        federation_keys::active_at.eq(millis(key.active_at)),
        federation_keys::retired_at.eq(millis(key.retired_at)),
        federation_keys::version.eq(key.version),
        federation_keys::mac.eq(mac.code.as_bytes().as_slice()),
        federation_keys::mac_key_id.eq(mac.key.stored()),
    ));
    Ok(tx.execute(change).await? == 1)
}

/// Findings of one publication check.
pub(crate) struct RecordPublications(pub(crate) Vec<RecordPublication>);

impl Transaction for RecordPublications {
    /// `false` if another check was recorded in the meantime.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        for RecordPublication { key, seen, checked_at, failure } in &self.0 {
            let row = federation_keys::table.filter(federation_keys::id.eq(key.stored()));
            let finding = (
                federation_keys::checked_at.eq(checked_at.as_millis()),
                federation_keys::failure.eq(failure.map(PublicationFailure::as_str)),
            );
            let changed = match seen {
                Some(seen) => {
                    tx.execute(update(row.filter(federation_keys::checked_at.eq(seen.as_millis()))).set(finding))
                        .await?
                }
                None => tx.execute(update(row.filter(federation_keys::checked_at.is_null())).set(finding)).await?,
            };
            if changed == 0 {
                return Ok(false);
            }
        }
        audit.commit_without_entry();
        Ok(true)
    }
}
