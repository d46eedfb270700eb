//! Versions of a credential: read, replaced, staged, promoted, destroyed.
//!
//! The current version is in `credentials` and `credential_secrets`, where saves, lists and activations find it. The
//! others are in `credential_versions`.

use super::super::backend::{Connection, RunQuery, pipeline};
use super::super::execute_pipelined;
use super::row::{self, of_credential};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::new_row::NewEntry;
use crate::schema::{credential_secrets, credential_versions, credentials};
use crate::stored::{AnyId, Column, StoredId as _};
use crate::transaction::credential::labels;
use crate::update::update;
use diesel::sql_types::{BigInt, Nullable};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, Insertable as _, IntoSql as _, JoinOnDsl as _, QueryDsl as _,
    Queryable, Selectable,
};
use vault_core::Command;
use vault_core::decision::{ChangeEffects, CredentialFacts, VersionEffect};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::ChangeCredential;
use vault_core::sealed::SealedCredential;
use vault_core::time::Timestamp;

/// Versions are counted from 1.
const NO_VERSION: i64 = 0;

/// Keeps the version that is current as a previous one, until `destroy_at`.
macro_rules! kept {
    ($place:expr, $superseded:expr) => {{
        let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
        let of_both = of_both.and(credential_secrets::id.eq(credentials::id));
        credentials::table
            .inner_join(credential_secrets::table.on(of_both))
            .filter(credentials::organization_id.eq($place.organization.stored()))
            .filter(credentials::id.eq($place.id.stored()))
            .select((
                credentials::organization_id,
                credentials::id,
                credentials::version,
                credentials::version_created_at,
                $superseded.at.as_millis().into_sql::<Nullable<BigInt>>(),
                $superseded.destroy_at.as_millis().into_sql::<Nullable<BigInt>>(),
                credentials::key_id,
                credentials::information,
                credential_secrets::data_key,
                credential_secrets::data,
                (credentials::checked_at, credentials::check_since, credentials::check_failed),
            ))
            .insert_into(credential_versions::table)
            .into_columns((
                credential_versions::organization_id,
                credential_versions::id,
                credential_versions::version,
                credential_versions::created_at,
                credential_versions::superseded_at,
                credential_versions::destroy_at,
                credential_versions::key_id,
                credential_versions::information,
                credential_versions::data_key,
                credential_versions::data,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            ))
    }};
}

/// One of the versions that are not current.
macro_rules! other {
    ($place:expr, $number:expr) => {
        of_credential!(credential_versions, $place.organization, $place.id)
            .filter(credential_versions::version.eq($number))
    };
}

/// Where a credential is.
#[derive(Clone, Copy)]
struct Place {
    organization: OrganizationId,
    id: CredentialId,
}

/// What the row says that a change relies on.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credentials)]
pub(crate) struct Current {
    version: i64,
    revision: i64,
    staged_version: Option<i64>,
    highest_version: i64,
    key_id: AnyId,
    expires_at: i64,
    metadata_key_id: Option<Column<KeyId>>,
}

impl Current {
    /// What the rule is told of it.
    pub(super) fn facts(&self, id: CredentialId) -> Result<CredentialFacts, Failure> {
        let metadata_key = self.metadata_key_id.clone();
        Ok(CredentialFacts {
            revision: self.revision,
            version: self.version,
            staged: self.staged_version,
            highest: self.highest_version,
            metadata_key: metadata_key.map(|key| key.decode("credentials", &id, "metadata_key_id")).transpose()?,
        })
    }
}

/// A change that is to be written.
pub(crate) struct Change<'a> {
    pub(crate) command: &'a Command<ChangeCredential>,
    pub(crate) effects: ChangeEffects<'a>,
    pub(crate) row: &'a Current,
}

/// The last check of a version, as its columns hold it.
type StoredCheck = (Option<i64>, Option<i64>, Option<String>);

/// A version's columns, wherever they are.
struct Parts {
    created_at: i64,
    key: AnyId,
    information: Vec<u8>,
    data_key: Vec<u8>,
    data: Vec<u8>,
    check: StoredCheck,
}

impl Parts {
    fn new(sealed: &SealedCredential, now: Timestamp) -> Self {
        Self {
            created_at: now.as_millis(),
            key: sealed.key.stored().into(),
            information: sealed.information.as_bytes().to_vec(),
            data_key: sealed.data_key.as_bytes().to_vec(),
            data: sealed.data.as_bytes().to_vec(),
            check: (None, None, None),
        }
    }
}

impl Change<'_> {
    /// Writes and records it.
    pub(crate) async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        let (act, now, row, effects) = (&self.command.act, self.command.now, self.row, &self.effects);
        let place = Place { organization: act.organization, id: act.id };
        let current = match effects.version {
            VersionEffect::Keep | VersionEffect::Stage(_) => None,
            VersionEffect::Replace(new, superseded) => Some((new.number, Parts::new(&new.sealed, now), superseded)),
            VersionEffect::Promote(number, superseded) => {
                Some((number, place.take(connection, number).await?, superseded))
            }
        };
        let expires_at = row::expiry_column(act.expires_at);
        // A column that keeps its value is left out: its indexes are then left as they are.
        let changed = (
            credentials::revision.eq(effects.revision),
            credentials::code.eq(act.code.as_bytes().as_slice()),
            credentials::highest_version.eq(effects.highest),
            credentials::staged_version.eq(effects.staged),
            credentials::updated_at.eq(now.as_millis()),
            (row.expires_at != expires_at).then(|| credentials::expires_at.eq(expires_at)),
            act.description.as_ref().map(|description| row::described!(description)),
        );
        let credential = of_credential!(credentials, place.organization, place.id);
        let record = diesel::insert_into(crate::schema::audit::table).values(NewEntry::of(&self.command.audit));
        match &current {
            Some((number, parts, superseded)) => {
                let secrets = update(of_credential!(credential_secrets, place.organization, place.id)).set((
                    credential_secrets::data_key.eq(parts.data_key.as_slice()),
                    credential_secrets::data.eq(parts.data.as_slice()),
                ));
                let (checked_at, check_since, check_failed) = &parts.check;
                let made_current = (
                    credentials::version.eq(*number),
                    credentials::version_created_at.eq(parts.created_at),
                    (row.key_id != parts.key).then(|| credentials::key_id.eq(&parts.key)),
                    credentials::information.eq(parts.information.as_slice()),
                    credentials::checked_at.eq(checked_at),
                    credentials::check_since.eq(check_since),
                    credentials::check_failed.eq(check_failed.as_deref()),
                );
                let credential = update(credential).set((changed, made_current));
                // Mostly one is destroyed at most. It makes room for what is kept, which lies beside it: the other order has SQLite split
                // a page and join it again. What was current may be among those destroyed; it must be kept before it can go.
                let destroyed = effects.destroyed;
                let first = destroyed.iter().copied().find(|number| *number != row.version).unwrap_or(NO_VERSION);
                let gone = diesel::delete(other!(place, first));
                let kept = kept!(place, superseded);
                let (_, kept, ..) = execute_pipelined!(connection, gone, kept, secrets, credential, record)?;
                if kept == 0 {
                    return Err(no_data(place.id));
                }
                let rest: Vec<i64> = destroyed.iter().copied().filter(|number| *number != first).collect();
                place.destroy(connection, &rest).await?;
            }
            None => {
                place.destroy(connection, effects.destroyed).await?;
                if let VersionEffect::Stage(new) = effects.version {
                    place.stage(connection, new.number, Parts::new(&new.sealed, now)).await?;
                }
                update(credential).set(changed).execute(connection).await?;
                record.execute(connection).await?;
            }
        }
        if let Some(description) = &act.description {
            labels::replace(&connection.tx(), place.organization, place.id, &description.labels).await?;
        }
        Ok(())
    }
}

/// A credential without its data.
pub(crate) fn no_data(id: CredentialId) -> Failure {
    Failure::damaged("credential_secrets", id.to_string(), "missing")
}

impl Place {
    async fn stage(self, connection: &mut Connection, number: i64, parts: Parts) -> Result<(), Failure> {
        diesel::insert_into(credential_versions::table)
            .values((
                credential_versions::organization_id.eq(self.organization.stored()),
                credential_versions::id.eq(self.id.stored()),
                credential_versions::version.eq(number),
                credential_versions::created_at.eq(parts.created_at),
                credential_versions::key_id.eq(parts.key),
                credential_versions::information.eq(parts.information),
                credential_versions::data_key.eq(parts.data_key),
                credential_versions::data.eq(parts.data),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Takes a version out of those that are not current.
    async fn take(self, connection: &mut Connection, number: i64) -> Result<Parts, Failure> {
        let (created_at, key, information, data_key, data, check) = other!(self, number)
            .select((
                credential_versions::created_at,
                credential_versions::key_id,
                credential_versions::information,
                credential_versions::data_key,
                credential_versions::data,
                (credential_versions::checked_at, credential_versions::check_since, credential_versions::check_failed),
            ))
            .get_result(connection)
            .await?;
        self.destroy(connection, &[number]).await?;
        Ok(Parts { created_at, key, information, data_key, data, check })
    }

    async fn destroy(self, connection: &mut Connection, numbers: &[i64]) -> Result<(), Failure> {
        for number in numbers {
            diesel::delete(other!(self, *number)).execute(connection).await?;
        }
        Ok(())
    }
}
