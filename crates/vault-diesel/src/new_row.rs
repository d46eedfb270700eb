//! New rows that several transactions insert, and special values of columns.

use crate::db::Db;
use crate::schema::{audit, credential_labels, credential_secrets, credentials, idempotency_keys};
use crate::stored::{IdBytes, StoredId as _};
use diesel::expression::ValidGrouping;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::BigInt;
use diesel::{AppearsOnTable, Expression, Insertable, QueryResult, SelectableExpression};
use vault_core::audit::{AuditNote, SealedAuditRecord};
use vault_core::check::CheckReason;
use vault_core::credential::{NewCredentialRow, NewVersion};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::Idempotency;
use vault_core::time::Timestamp;

/// A credential.
#[derive(Insertable)]
#[diesel(table_name = credentials, treat_none_as_default_value = false)]
pub(crate) struct NewCredential<'a> {
    organization_id: IdBytes,
    id: IdBytes,
    kind: &'a str,
    namespace: &'a str,
    version: i64,
    vend: &'a str,
    expires_at: i64,
    revision: i64,
    card: &'a [u8],
    key_id: IdBytes,
    created_at: i64,
    updated_at: i64,
    checked_at: Option<i64>,
    check_since: Option<i64>,
    check_failed: Option<&'static str>,
}

/// The sealed data of a version that is current or staged.
#[derive(Insertable)]
#[diesel(table_name = credential_secrets, treat_none_as_default_value = false)]
pub(crate) struct NewSecret<'a> {
    organization_id: IdBytes,
    id: IdBytes,
    version: i64,
    data_key: &'a [u8],
    data: &'a [u8],
    checked_at: Option<i64>,
    check_since: Option<i64>,
    check_failed: Option<&'static str>,
}

/// A label of a credential.
#[derive(Insertable)]
#[diesel(table_name = credential_labels, treat_none_as_default_value = false)]
pub(crate) struct NewLabel<'a> {
    organization_id: IdBytes,
    label: &'a [u8],
    id: IdBytes,
}

/// An idempotency key in use.
#[derive(Insertable)]
#[diesel(table_name = idempotency_keys, treat_none_as_default_value = false)]
pub(crate) struct NewClaim<'a> {
    organization_id: IdBytes,
    account_id: IdBytes,
    key: &'a str,
    body: &'a [u8],
    credential_id: IdBytes,
    version: i64,
    created_at: i64,
}

/// An entry of the audit log.
#[derive(Insertable)]
#[diesel(table_name = audit, treat_none_as_default_value = false)]
pub(crate) struct NewEntry<'a> {
    id: IdBytes,
    at: i64,
    organization_id: IdBytes,
    actor: &'a str,
    account_id: Option<IdBytes>,
    session_id: Option<IdBytes>,
    action: &'a str,
    subject: String,
    count: i64,
    key_id: IdBytes,
    code: &'a [u8],
    integration_id: Option<IdBytes>,
    namespace: Option<&'a str>,
    purpose: Option<&'a str>,
    network: Option<String>,
    request_id: Option<String>,
    credentials: Option<String>,
    changed_rows: Option<String>,
    changes: Option<String>,
}

/// Organization column of rows that belong to the instance. No organization has the nil ID.
pub(crate) const OF_INSTANCE: OrganizationId = OrganizationId::from_bytes([0; 16]);

/// Expiry column of rows that do not expire or whose expiry is unknown.
pub(crate) const NEVER: i64 = i64::MAX;

/// [`NEVER`] as a literal in a statement. It matches the condition of a partial index, so a generic plan can use the
/// index.
#[derive(Clone, Copy, Debug, QueryId, ValidGrouping)]
pub(crate) struct Never;

impl Expression for Never {
    type SqlType = BigInt;
}

impl<Source> AppearsOnTable<Source> for Never {}
impl<Source> SelectableExpression<Source> for Never {}

impl QueryFragment<Db> for Never {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        pass.push_sql(&NEVER.to_string());
        Ok(())
    }
}

/// Returns an expiry as its column stores it.
pub(crate) fn expiry_column(expires_at: Option<Timestamp>) -> i64 {
    expires_at.map_or(NEVER, Timestamp::as_millis)
}

impl<'a> NewCredential<'a> {
    pub(crate) fn of(save: &'a NewCredentialRow) -> Self {
        let (check, now) = (save.version.check, save.at);
        Self {
            organization_id: save.organization.stored(),
            id: save.id.stored(),
            kind: save.kind.as_str(),
            namespace: save.namespace.as_str(),
            version: save.version.number,
            vend: save.vend.as_str(),
            expires_at: expiry_column(save.expires_at),
            revision: 1,
            card: save.card.as_bytes(),
            key_id: save.key.stored(),
            created_at: now.as_millis(),
            updated_at: now.as_millis(),
            checked_at: check.map(|check| check.at.as_millis()),
            check_since: check.map(|check| check.since.as_millis()),
            check_failed: check.and_then(|check| check.failed).map(CheckReason::as_str),
        }
    }
}

impl<'a> NewSecret<'a> {
    pub(crate) fn of(organization: OrganizationId, id: CredentialId, version: &'a NewVersion) -> Self {
        let NewVersion { number, data, check, .. } = version;
        Self {
            organization_id: organization.stored(),
            id: id.stored(),
            version: *number,
            data_key: data.data_key.as_bytes(),
            data: data.data.as_bytes(),
            checked_at: check.map(|check| check.at.as_millis()),
            check_since: check.map(|check| check.since.as_millis()),
            check_failed: check.and_then(|check| check.failed).map(CheckReason::as_str),
        }
    }
}

impl<'a> NewLabel<'a> {
    pub(crate) fn of(organization: OrganizationId, id: CredentialId, label: &'a Digest) -> Self {
        Self { organization_id: organization.stored(), label: label.as_bytes().as_slice(), id: id.stored() }
    }
}

impl<'a> NewClaim<'a> {
    /// Returns the idempotency claim of a request that creates this version of this credential.
    pub(crate) fn of(
        organization: OrganizationId,
        (credential, version): (CredentialId, i64),
        idempotency: &'a Idempotency,
        now: Timestamp,
    ) -> Self {
        Self {
            organization_id: organization.stored(),
            account_id: idempotency.account.stored(),
            key: idempotency.key.as_str(),
            body: idempotency.body.current().as_bytes().as_slice(),
            credential_id: credential.stored(),
            version,
            created_at: now.as_millis(),
        }
    }
}

impl<'a> NewEntry<'a> {
    pub(crate) fn of(SealedAuditRecord { record, key, mac }: &'a SealedAuditRecord) -> Self {
        let note = record.note.as_ref();
        Self {
            id: record.id.stored(),
            at: record.at.as_millis(),
            organization_id: record.organization.unwrap_or(OF_INSTANCE).stored(),
            actor: record.actor.kind(),
            account_id: record.actor.account().map(|id| id.stored()),
            session_id: record.actor.session().map(|id| id.stored()),
            action: record.action.as_str(),
            subject: record.subject.text(),
            count: record.count,
            key_id: key.stored(),
            code: mac.as_bytes().as_slice(),
            integration_id: record.actor.integration().map(|id| id.stored()),
            namespace: note.map(|note| note.namespace.as_str()),
            purpose: note.and_then(|note| note.purpose.as_ref()).map(|said| said.as_str()),
            network: record.network_text(),
            request_id: record.origin.request_text(),
            credentials: note.and_then(AuditNote::credentials_text),
            changed_rows: record.rows_text(),
            changes: record.changes_text(),
        }
    }
}
