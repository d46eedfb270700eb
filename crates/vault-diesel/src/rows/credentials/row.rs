//! A credential's row, without its data.

use crate::db::Db;
use crate::failure::Failure;
use crate::new_row::NEVER;
use crate::schema::credentials;
use crate::stored::{Column, IdBytes};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable, Selectable};
use vault_core::activation::VendRule;
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialType, LastCheck};
use vault_core::id::CredentialId;
use vault_core::namespace::Namespace;
use vault_core::port::StoredCredential;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "credentials";

/// The time of the last check, the time of the first check with the same result, and why it failed.
pub(crate) type CheckColumns = (Option<i64>, Option<i64>, Option<Column<CheckReason>>);

/// A row, as lists and responses need it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credentials, check_for_backend(Db))]
pub(crate) struct CredentialRow {
    id: Column<CredentialId>,
    kind: Column<CredentialType>,
    namespace: Column<Namespace>,
    version: i64,
    vend: Column<VendRule>,
    expires_at: i64,
    revision: i64,
    card: Vec<u8>,
    created_at: i64,
    updated_at: i64,
    checked_at: Option<i64>,
    check_since: Option<i64>,
    check_failed: Option<Column<CheckReason>>,
    last_activated_at: Option<i64>,
}

#[auto_type(no_type_alias)]
pub(crate) fn credential_of(organization: IdBytes, id: IdBytes) -> _ {
    credentials::table.filter(credentials::organization_id.eq(organization)).filter(credentials::id.eq(id))
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

impl CredentialRow {
    pub(crate) fn decode(self) -> Result<StoredCredential, Failure> {
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        Ok(StoredCredential {
            id,
            kind: self.kind.decode(TABLE, &id, "type")?,
            namespace: self.namespace.decode(TABLE, &id, "namespace")?,
            version: self.version,
            vend: self.vend.decode(TABLE, &id, "vend")?,
            expires_at: Some(self.expires_at).filter(|millis| *millis != NEVER).map(Timestamp::from_millis),
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: self.revision,
            card: Blob::from_bytes(self.card),
            check: check((self.checked_at, self.check_since, self.check_failed), TABLE, id)?,
            last_activated_at: self.last_activated_at.map(Timestamp::from_millis),
        })
    }
}
