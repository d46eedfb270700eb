//! New rows, as decisions insert them: one at a time, or on PostgreSQL many with one statement.

use crate::stored::{Id, IdBytes, StoredId as _};
use diesel::backend::Backend;
use diesel::expression::ValidGrouping;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text};
use diesel::{AppearsOnTable, Column as _, Expression, Insertable, QueryResult, SelectableExpression};
use vault_core::audit::{AuditNote, SealedAuditRecord};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{Idempotency, SaveCredential};
use vault_core::time::Timestamp;

macro_rules! new_rows {
    ($(
        $(#[$doc:meta])*
        $row:ident<$a:lifetime>, $many:ident of $table:ident {
            $($column:ident: $rust:ty as $sql:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Insertable)]
        #[diesel(table_name = crate::schema::$table, treat_none_as_default_value = false)]
        pub(crate) struct $row<$a> {
            $(pub(crate) $column: $rust,)*
        }

        /// Many of them, of one organization, in one statement, which is prepared once, however many they are. Each column is an
        /// array. The organization is read from its row, so that a PostgreSQL that is spread over machines has the statement carried
        /// out where that row lies, and commits it in one phase.
        pub(crate) struct $many<$a> {
            $($column: Vec<$rust>,)*
        }

        impl<$a> FromIterator<$row<$a>> for $many<$a> {
            fn from_iter<Rows: IntoIterator<Item = $row<$a>>>(rows: Rows) -> Self {
                let mut many = Self { $($column: Vec::new(),)* };
                for row in rows {
                    $(many.$column.push(row.$column);)*
                }
                many
            }
        }

        impl<$a> QueryId for $many<$a> {
            type QueryId = $many<'static>;
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl<$a> QueryFragment<Pg> for $many<$a> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
                use crate::schema::$table as columns;
                out.push_sql(concat!("INSERT INTO ", stringify!($table), " (organization_id"));
                $(
                    if columns::$column::NAME != columns::organization_id::NAME {
                        out.push_sql(", ");
                        out.push_identifier(columns::$column::NAME)?;
                    }
                )*
                out.push_sql(") SELECT organizations.id");
                $(
                    if columns::$column::NAME != columns::organization_id::NAME {
                        out.push_sql(", new.");
                        out.push_identifier(columns::$column::NAME)?;
                    }
                )*
                out.push_sql(" FROM organizations, unnest");
                let mut before = "(";
                $(
                    if columns::$column::NAME != columns::organization_id::NAME {
                        out.push_sql(before);
                        out.push_bind_param::<Array<$sql>, _>(&self.$column)?;
                        before = ", ";
                    }
                )*
                out.push_sql(") AS new ");
                before = "(";
                $(
                    if columns::$column::NAME != columns::organization_id::NAME {
                        out.push_sql(before);
                        out.push_identifier(columns::$column::NAME)?;
                        before = ", ";
                    }
                )*
                let _ = before;
                out.push_sql(") WHERE organizations.id = ");
                // There is one: no statement inserts nothing.
                match self.organization_id.first() {
                    Some(organization) => out.push_bind_param::<Id, _>(organization),
                    None => Err(diesel::result::Error::NotFound),
                }
            }
        }
    )*};
}

new_rows! {
    /// A credential.
    NewCredential<'a>, NewCredentials of credentials {
        organization_id: IdBytes as Id,
        id: IdBytes as Id,
        kind: &'a str as Text,
        namespace: &'a str as Text,
        version: i64 as BigInt,
        created_at: i64 as BigInt,
        updated_at: i64 as BigInt,
        version_created_at: i64 as BigInt,
        key_id: IdBytes as Id,
        information: &'a [u8] as Binary,
        revision: i64 as BigInt,
        highest_version: i64 as BigInt,
        expires_at: i64 as BigInt,
        vend: &'a str as Text,
        code: &'a [u8] as Binary,
        metadata: Option<&'a [u8]> as Nullable<Binary>,
        metadata_key_id: Option<IdBytes> as Nullable<Id>,
        metadata_revision: Option<i64> as Nullable<BigInt>,
    }

    /// The sealed data of a credential.
    NewSecret<'a>, NewSecrets of credential_secrets {
        organization_id: IdBytes as Id,
        id: IdBytes as Id,
        data_key: &'a [u8] as Binary,
        data: &'a [u8] as Binary,
    }

    /// A label of a credential.
    NewLabel<'a>, NewLabels of credential_labels {
        organization_id: IdBytes as Id,
        label: &'a [u8] as Binary,
        id: IdBytes as Id,
    }

    /// An idempotency key, taken.
    NewClaim<'a>, NewClaims of idempotency_keys {
        organization_id: IdBytes as Id,
        account_id: IdBytes as Id,
        key: &'a str as Text,
        body: &'a [u8] as Binary,
        credential_id: IdBytes as Id,
        version: i64 as BigInt,
        created_at: i64 as BigInt,
    }

    /// An entry of the audit trail.
    NewEntry<'a>, NewEntries of audit {
        id: IdBytes as Id,
        at: i64 as BigInt,
        organization_id: IdBytes as Id,
        actor: &'a str as Text,
        account_id: Option<IdBytes> as Nullable<Id>,
        session_id: Option<IdBytes> as Nullable<Id>,
        action: &'a str as Text,
        subject: String as Text,
        count: i64 as BigInt,
        key_id: IdBytes as Id,
        code: &'a [u8] as Binary,
        integration_id: Option<IdBytes> as Nullable<Id>,
        namespace: Option<&'a str> as Nullable<Text>,
        purpose: Option<&'a str> as Nullable<Text>,
        network: Option<String> as Nullable<Text>,
        request_id: Option<String> as Nullable<Text>,
        credentials: Option<String> as Nullable<Text>,
        changed_rows: Option<String> as Nullable<Text>,
        changes: Option<String> as Nullable<Text>,
    }
}

/// In the column of the organization: the row is the instance's own. No organization has the nil id.
pub(crate) const OF_INSTANCE: OrganizationId = OrganizationId::from_bytes([0; 16]);

/// In the column of the expiry: it does not expire, as far as is known.
pub(crate) const NEVER: i64 = i64::MAX;

/// [`NEVER`] in the text of a statement, as it stands in the condition of an index: a plan that is made before values
/// are known finds the index by it.
#[derive(Clone, Copy, Debug, QueryId, ValidGrouping)]
pub(crate) struct Never;

impl Expression for Never {
    type SqlType = BigInt;
}

impl<Source> AppearsOnTable<Source> for Never {}
impl<Source> SelectableExpression<Source> for Never {}

impl<DB: Backend> QueryFragment<DB> for Never {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql(&NEVER.to_string());
        Ok(())
    }
}

/// An expiry as its column holds it.
pub(crate) fn expiry_column(expires_at: Option<Timestamp>) -> i64 {
    expires_at.map_or(NEVER, Timestamp::as_millis)
}

impl<'a> NewCredential<'a> {
    pub(crate) fn of(save: &'a SaveCredential, now: Timestamp) -> Self {
        let metadata = save.description.metadata.as_ref();
        Self {
            organization_id: save.organization.stored(),
            id: save.id.stored(),
            kind: save.kind.as_str(),
            namespace: save.namespace.as_str(),
            version: save.version,
            created_at: now.as_millis(),
            updated_at: now.as_millis(),
            version_created_at: now.as_millis(),
            key_id: save.sealed.key.stored(),
            information: save.sealed.information.as_bytes(),
            revision: 1,
            highest_version: save.version,
            expires_at: expiry_column(save.expires_at),
            vend: save.description.vend.as_str(),
            code: save.code.as_bytes().as_slice(),
            metadata: metadata.map(|metadata| metadata.blob.as_bytes()),
            metadata_key_id: metadata.map(|metadata| metadata.key.stored()),
            metadata_revision: metadata.map(|metadata| metadata.revision),
        }
    }
}

impl<'a> NewSecret<'a> {
    pub(crate) fn of(save: &'a SaveCredential) -> Self {
        Self {
            organization_id: save.organization.stored(),
            id: save.id.stored(),
            data_key: save.sealed.data_key.as_bytes(),
            data: save.sealed.data.as_bytes(),
        }
    }
}

impl<'a> NewLabel<'a> {
    pub(crate) fn of(organization: OrganizationId, id: CredentialId, label: &'a Digest) -> Self {
        Self { organization_id: organization.stored(), label: label.as_bytes().as_slice(), id: id.stored() }
    }
}

impl<'a> NewClaim<'a> {
    /// The claim of a request that makes this version of this credential.
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
    pub(crate) fn of(SealedAuditRecord { record, key, code }: &'a SealedAuditRecord) -> Self {
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
            code: code.as_bytes().as_slice(),
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
