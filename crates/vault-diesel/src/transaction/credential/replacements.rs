//! Replacements that PostgreSQL writes together, with four statements and their entries for any number of replacements.

use super::apply::{Change, no_data};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::new_row::{NewEntry, expiry_column};
use crate::schema::audit;
use crate::stored::{Id, IdBytes, StoredId as _};
use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Nullable};
use futures_util::try_join;
use vault_core::credential::Superseded;
use vault_core::id::CredentialId;
use vault_core::port::NewVersion;

/// Replacements of different credentials of one organization whose rows are locked, column by column.
#[derive(Default)]
pub(super) struct Replacements<'a> {
    organization: Option<IdBytes>,
    ids: Vec<IdBytes>,
    versions: Vec<i64>,
    times: Vec<i64>,
    destroy_at: Vec<i64>,
    expires_at: Vec<i64>,
    listed: Vec<&'a [u8]>,
    codes: Vec<&'a [u8]>,
    keys: Vec<IdBytes>,
    information: Vec<&'a [u8]>,
    data_keys: Vec<&'a [u8]>,
    data: Vec<&'a [u8]>,
    /// Versions that are destroyed, and their credentials.
    destroyed: Vec<i64>,
    destroyed_of: Vec<IdBytes>,
    entries: Vec<NewEntry<'a>>,
    first: Option<CredentialId>,
}

impl<'a> Replacements<'a> {
    pub(super) fn push(&mut self, change: &Change<'a>, version: &'a NewVersion, superseded: Superseded) {
        let (payload, sealed) = (&change.command.payload, &version.sealed);
        self.organization = Some(payload.organization.stored());
        self.ids.push(payload.id.stored());
        self.versions.push(version.number);
        self.times.push(change.command.now.as_millis());
        self.destroy_at.push(superseded.destroy_at.as_millis());
        self.expires_at.push(expiry_column(payload.expires_at));
        self.listed.push(payload.listed.as_bytes());
        self.codes.push(payload.code.as_bytes().as_slice());
        self.keys.push(sealed.key.stored());
        self.information.push(sealed.information.as_bytes());
        self.data_keys.push(sealed.data_key.as_bytes());
        self.data.push(sealed.data.as_bytes());
        self.destroyed.extend(change.effects.destroyed);
        self.destroyed_of.extend(change.effects.destroyed.iter().map(|_| payload.id.stored()));
        self.entries.push(NewEntry::of(&change.command.audit));
        self.first.get_or_insert(payload.id);
    }

    /// Writes and records them.
    pub(super) async fn write(mut self, tx: &Tx<'_>) -> Result<(), Failure> {
        let Some(first) = self.first else { return Ok(()) };
        let entries = std::mem::take(&mut self.entries);
        // The current version may be among the destroyed ones, so it is kept first.
        let (kept, ..) = try_join!(
            tx.execute(Keep(&self)),
            tx.execute(Destroy(&self)),
            tx.execute(WriteData(&self)),
            tx.execute(MakeCurrent(&self)),
            tx.insert(audit::table, entries),
        )?;
        // One of them has no data. Writing each one separately reports which.
        if kept == self.ids.len() { Ok(()) } else { Err(no_data(first)) }
    }
}

/// A statement that is prepared once for any number of replacements: its text up to the columns of `new`, these
/// columns, and the rest of its text, which ends with the organization.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $start:literal, $($column:ident: $sql:ty),+; $end:literal;)+) => {$(
        $(#[$doc])*
        struct $name<'a>(&'a Replacements<'a>);

        impl QueryId for $name<'_> {
            type QueryId = $name<'static>;
            const HAS_STATIC_QUERY_ID: bool = true;
        }

        impl QueryFragment<Db> for $name<'_> {
            fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
                out.push_sql($start);
                let mut between = " unnest(";
                $(
                    out.push_sql(between);
                    out.push_bind_param::<Array<$sql>, _>(&self.0.$column)?;
                    between = ", ";
                )+
                let _ = between;
                out.push_sql($end);
                // Once for the whole statement, so that distributed tables are queried on one node.
                out.push_bind_param::<Nullable<Id>, _>(&self.0.organization)
            }
        }
    )+};
}

statements! {
    /// Keeps the versions that are current as previous ones.
    Keep:
        "INSERT INTO credential_versions (organization_id, id, version, created_at, superseded_at, destroy_at, key_id, \
         information, data_key, data, checked_at, check_since, check_failed) \
         SELECT credentials.organization_id, credentials.id, credentials.version, \
         credentials.version_created_at, new.at, new.destroy_at, credentials.key_id, \
         credentials.information, credential_secrets.data_key, credential_secrets.data, credentials.checked_at, \
         credentials.check_since, credentials.check_failed FROM",
        ids: Id, times: BigInt, destroy_at: BigInt;
        ") AS new (id, at, destroy_at) JOIN credentials ON credentials.id = new.id \
         JOIN credential_secrets ON credential_secrets.organization_id = credentials.organization_id \
         AND credential_secrets.id = credentials.id WHERE credentials.organization_id = ";
    /// Destroys versions that are not current.
    Destroy:
        "DELETE FROM credential_versions USING",
        destroyed_of: Id, destroyed: BigInt;
        ") AS gone (id, version) WHERE credential_versions.id = gone.id AND credential_versions.version = gone.version \
         AND credential_versions.organization_id = ";
    /// Writes the new data.
    WriteData:
        "UPDATE credential_secrets SET data_key = new.data_key, data = new.data FROM",
        ids: Id, data_keys: Binary, data: Binary;
        ") AS new (id, data_key, data) WHERE credential_secrets.id = new.id AND credential_secrets.organization_id = ";
    /// Makes the new versions current: not checked yet.
    MakeCurrent:
        "UPDATE credentials SET previous_version = credentials.version, previous_until = new.destroy_at, \
         version = new.version, highest_version = new.version, revision = credentials.revision + 1, \
         version_created_at = new.at, updated_at = new.at, expires_at = new.expires_at, \
         listed_versions = new.listed, code = new.code, key_id = new.key_id, information = new.information, \
         checked_at = NULL, check_since = NULL, check_failed = NULL FROM",
        ids: Id, versions: BigInt, times: BigInt, destroy_at: BigInt, expires_at: BigInt, listed: Binary, codes: Binary,
        keys: Id, information: Binary;
        ") AS new (id, version, at, destroy_at, expires_at, listed, code, key_id, information) \
         WHERE credentials.id = new.id AND credentials.organization_id = ";
}
