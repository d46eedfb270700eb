//! A credential's row, without its data.

use super::super::authorize::{self, load_authorized, load_facts, unheld};
use super::super::backend::{Connection, RunQuery, load_page, pipeline};
use crate::failure::Failure;
use crate::stored::{Column, StoredId as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::activation::VendRule;
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialType, LastCheck};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{Find, StoredCredential};
use vault_core::sealed::{Blob, SealedMetadata};
use vault_core::time::Timestamp;

const TABLE: &str = "credentials";

/// When, since when, and why it failed.
pub(crate) type CheckColumns = (Option<i64>, Option<i64>, Option<Column<CheckReason>>);
/// What the code over a row covers and is not read anyway: the rule, the staged version, the revision, that of the metadata; and
/// the code.
pub(crate) type StateColumns = (Column<VendRule>, Option<i64>, i64, Option<i64>, Column<Digest>);

pub(super) type CredentialRow = (
    (
        Column<CredentialId>,
        Column<CredentialType>,
        Column<Namespace>,
        i64,
        i64,
        i64,
        i64,
        Option<i64>,
        Column<KeyId>,
        Vec<u8>,
    ),
    i64,
    (Column<VendRule>, Column<Digest>),
    (Option<Vec<u8>>, Option<Column<KeyId>>, Option<i64>),
    CheckColumns,
    Option<i64>,
);

macro_rules! columns {
    () => {{
        use crate::schema::credentials as column;
        (
            (
                column::id,
                column::kind,
                column::namespace,
                column::version,
                column::created_at,
                column::updated_at,
                column::revision,
                column::staged_version,
                column::key_id,
                column::information,
            ),
            column::expires_at,
            (column::vend, column::code),
            (column::metadata, column::metadata_key_id, column::metadata_revision),
            (column::checked_at, column::check_since, column::check_failed),
            column::last_activated_at,
        )
    }};
}

/// The rows of a table that belong to one credential.
macro_rules! of_credential {
    ($table:ident, $organization:expr, $id:expr) => {{
        use crate::schema::$table as rows;
        use crate::stored::StoredId as _;
        rows::table.filter(rows::organization_id.eq($organization.stored())).filter(rows::id.eq($id.stored()))
    }};
}

/// The values of what is said of a credential, but for its labels.
macro_rules! described {
    ($description:expr) => {{
        use crate::schema::credentials as column;
        let metadata = $description.metadata.as_ref();
        (
            column::vend.eq($description.vend.as_str()),
            column::metadata.eq(metadata.map(|metadata| metadata.blob.as_bytes())),
            column::metadata_key_id.eq(metadata.map(|metadata| metadata.key.stored())),
            column::metadata_revision.eq(metadata.map(|metadata| metadata.revision)),
        )
    }};
}

/// The columns of [`StateColumns`].
macro_rules! state_columns {
    () => {{
        use crate::schema::credentials as column;
        (column::vend, column::staged_version, column::revision, column::metadata_revision, column::code)
    }};
}

pub(super) use {columns, described};
pub(crate) use {of_credential, state_columns};

pub(super) use crate::new_row::{NEVER, Never, expiry_column};

fn expiry(column: i64) -> Option<Timestamp> {
    Some(column).filter(|millis| *millis != NEVER).map(Timestamp::from_millis)
}

pub(crate) fn check(
    (at, since, failed): CheckColumns,
    table: &'static str,
    id: CredentialId,
) -> Result<Option<LastCheck>, Failure> {
    let failed = failed.map(|reason| reason.decode(table, &id, "check_failed")).transpose()?;
    let moment = Timestamp::from_millis;
    Ok(at.zip(since).map(|(at, since)| LastCheck { at: moment(at), since: moment(since), failed }))
}

pub(super) fn decode(row: CredentialRow) -> Result<StoredCredential, Failure> {
    let (first, expires_at, (vend, code), metadata, check_columns, last_activated_at) = row;
    let (id, kind, namespace, version, created_at, updated_at, revision, staged, key, information) = first;
    let id = id.decode(TABLE, &"unknown", "id")?;
    let metadata = match metadata {
        (Some(blob), Some(key), Some(revision)) => Some(SealedMetadata {
            key: key.decode(TABLE, &id, "metadata_key_id")?,
            revision,
            blob: Blob::from_bytes(blob),
        }),
        (None, None, None) => None,
        _ => return Err(Failure::damaged(TABLE, id.to_string(), "metadata")),
    };
    Ok(StoredCredential {
        id,
        kind: kind.decode(TABLE, &id, "type")?,
        namespace: namespace.decode(TABLE, &id, "namespace")?,
        version,
        created_at: Timestamp::from_millis(created_at),
        updated_at: Timestamp::from_millis(updated_at),
        revision,
        staged,
        expires_at: expiry(expires_at),
        vend: vend.decode(TABLE, &id, "vend")?,
        code: code.decode(TABLE, &id, "code")?,
        metadata,
        check: check(check_columns, TABLE, id)?,
        last_activated_at: last_activated_at.map(Timestamp::from_millis),
        key: key.decode(TABLE, &id, "key_id")?,
        information: Blob::from_bytes(information),
    })
}

pub(super) async fn show(
    connection: &mut Connection,
    query: &Find<CredentialId>,
) -> Result<Option<StoredCredential>, Failure> {
    let row = of_credential!(credentials, query.of, query.key).select(columns!());
    let rows: Vec<CredentialRow> = load_authorized!(row, connection, 1_usize, &query.principal, query.now);
    rows.into_iter().next().map(decode).transpose()
}

pub(super) async fn read(
    connection: &mut Connection,
    organization: OrganizationId,
    id: CredentialId,
) -> Result<Option<StoredCredential>, Failure> {
    let row: Option<CredentialRow> =
        of_credential!(credentials, organization, id).select(columns!()).get_result(connection).await.optional()?;
    row.map(decode).transpose()
}
