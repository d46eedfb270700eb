//! Writing changes of credentials: versions are replaced, staged, promoted and destroyed.

use super::labels;
use super::row::credential_of;
use super::versions::version_of;
use crate::db::{Db, Reply, Tx};
use crate::failure::Failure;
use crate::new_row::{NewClaim, expiry_column};
use crate::schema::{credential_secrets, credential_versions, credentials, idempotency_keys};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::sql_types::{BigInt, Nullable};
use diesel::{
    AsChangeset, BoolExpressionMethods as _, ExpressionMethods as _, Insertable as _, IntoSql as _, JoinOnDsl as _,
    QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use futures_util::try_join;
use vault_core::credential::{ChangeEffects, NewVersion, Superseded, VersionEffect};
use vault_core::port::{StoredCredential, StoredMetadata};
use vault_core::time::Timestamp;

/// Versions are counted from 1.
const NO_VERSION: i64 = 0;

/// The descriptive columns of a credential, without its labels.
#[derive(AsChangeset)]
#[diesel(table_name = credentials, treat_none_as_null = true)]
struct Described<'a> {
    vend: &'a str,
    metadata: Option<&'a [u8]>,
    metadata_key_id: Option<IdBytes>,
    metadata_revision: Option<i64>,
}

impl<'a> From<&'a StoredMetadata> for Described<'a> {
    fn from(description: &'a StoredMetadata) -> Self {
        let metadata = description.metadata.as_ref();
        Self {
            vend: description.vend.as_str(),
            metadata: metadata.map(|metadata| metadata.blob.as_bytes()),
            metadata_key_id: metadata.map(|metadata| metadata.key.stored()),
            metadata_revision: metadata.map(|metadata| metadata.revision),
        }
    }
}

/// The previous version, as lists show it.
#[derive(AsChangeset)]
#[diesel(table_name = credentials, treat_none_as_null = true)]
struct Previous {
    previous_version: Option<i64>,
    previous_until: Option<i64>,
}

/// The columns of a version, wherever it is stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = credential_versions, check_for_backend(Db))]
struct Parts {
    created_at: i64,
    key_id: AnyId,
    information: Vec<u8>,
    data_key: Vec<u8>,
    data: Vec<u8>,
    checked_at: Option<i64>,
    check_since: Option<i64>,
    check_failed: Option<String>,
}

impl Parts {
    fn new(NewVersion { sealed, check, .. }: &NewVersion, now: Timestamp) -> Self {
        Self {
            created_at: now.as_millis(),
            key_id: sealed.key.stored().into(),
            information: sealed.information.as_bytes().to_vec(),
            data_key: sealed.data_key.as_bytes().to_vec(),
            data: sealed.data.as_bytes().to_vec(),
            checked_at: check.map(|check| check.at.as_millis()),
            check_since: check.map(|check| check.since.as_millis()),
            check_failed: check.and_then(|check| check.failed).map(|reason| reason.as_str().to_owned()),
        }
    }
}

/// Writes a change of a credential.
pub(crate) struct Writing<'a>(pub(crate) &'a ChangeEffects<'a>);

impl Writing<'_> {
    pub(crate) async fn write(&self, tx: &Tx<'_>) -> Result<(), Failure> {
        let ChangeEffects { change, before, at, revision, highest, staged, version, destroyed } = *self.0;
        let (organization, id) = (change.organization.stored(), change.id.stored());
        let current = match version {
            VersionEffect::Keep | VersionEffect::Stage(_) => None,
            VersionEffect::Replace(new, superseded) => Some((new.number, Parts::new(new, at), superseded)),
            VersionEffect::Promote(number, superseded) => {
                let parts = tx.one(version_of(organization, id, number).select(Parts::as_select())).await?;
                self.destroy(tx, [number]).await?;
                Some((number, parts, superseded))
            }
        };
        // A column that keeps its value is left out, so that its indexes are not written.
        let has_other_expiry = before.expires_at != change.expires_at;
        let changed = (
            credentials::revision.eq(revision),
            credentials::code.eq(change.code.as_bytes().as_slice()),
            credentials::highest_version.eq(highest),
            credentials::listed_versions.eq(change.listed.as_bytes()),
            credentials::staged_version.eq(staged),
            credentials::updated_at.eq(at.as_millis()),
            has_other_expiry.then(|| credentials::expires_at.eq(expiry_column(change.expires_at))),
            change.description.as_ref().map(Described::from),
        );
        let credential = diesel::update(credential_of(organization, id));
        match &current {
            Some((number, parts, superseded)) => {
                let made_current = (
                    credentials::previous_version.eq(Some(before.version)),
                    credentials::previous_until.eq(Some(superseded.destroy_at.as_millis())),
                    credentials::version.eq(*number),
                    credentials::version_created_at.eq(parts.created_at),
                    has_other_key(before, parts).then(|| credentials::key_id.eq(&parts.key_id)),
                    credentials::information.eq(parts.information.as_slice()),
                    credentials::checked_at.eq(parts.checked_at),
                    credentials::check_since.eq(parts.check_since),
                    credentials::check_failed.eq(parts.check_failed.as_deref()),
                );
                // Mostly one version is destroyed at most. Deleting it first makes room for the kept one next to it: in the other
                // order, SQLite splits a page and joins it again. The current version may be among the destroyed ones. It must
                // be kept before it can be deleted.
                let first = destroyed.iter().copied().find(|number| *number != before.version).unwrap_or(NO_VERSION);
                let secret = credential_secrets::table
                    .filter(credential_secrets::organization_id.eq(organization))
                    .filter(credential_secrets::id.eq(id));
                let secret = diesel::update(secret).set((
                    credential_secrets::data_key.eq(parts.data_key.as_slice()),
                    credential_secrets::data.eq(parts.data.as_slice()),
                ));
                let (_, kept, ..) = try_join!(
                    tx.execute(diesel::delete(version_of(organization, id, first))),
                    self.keep_current(tx, *superseded),
                    tx.execute(secret),
                    tx.execute(credential.set((changed, made_current))),
                )?;
                if kept == 0 {
                    return Err(Failure::damaged("credential_secrets", change.id.to_string(), "missing"));
                }
                self.destroy(tx, destroyed.iter().copied().filter(|number| *number != first)).await?;
                if destroyed.contains(&before.version) {
                    let previous = self.newest_previous(tx).await?;
                    tx.execute(diesel::update(credential_of(organization, id)).set(previous)).await?;
                }
            }
            None => {
                self.destroy(tx, destroyed.iter().copied()).await?;
                if let VersionEffect::Stage(new) = version {
                    self.stage(tx, new).await?;
                }
                let is_destroyed = before.previous.is_some_and(|previous| destroyed.contains(&previous.number));
                let previous = match is_destroyed {
                    true => Some(self.newest_previous(tx).await?),
                    false => None,
                };
                tx.execute(credential.set((changed, previous))).await?;
            }
        }
        if let Some(description) = &change.description {
            labels::replace(tx, change.organization, change.id, &description.labels).await?;
        }
        if let Some((new, idempotency)) = change.new_version().and_then(|new| Some((new, new.idempotency.as_ref()?))) {
            let claim = NewClaim::of(change.organization, (change.id, new.number), idempotency, at);
            tx.insert_later(idempotency_keys::table, claim).await?;
        }
        Ok(())
    }

    /// The columns of the previous version, after the one in them was destroyed.
    async fn newest_previous(&self, tx: &Tx<'_>) -> Result<Previous, Failure> {
        let change = self.0.change;
        let newest = credential_versions::table
            .filter(credential_versions::organization_id.eq(change.organization.stored()))
            .filter(credential_versions::id.eq(change.id.stored()))
            .filter(credential_versions::superseded_at.is_not_null())
            .order((credential_versions::superseded_at.desc(), credential_versions::version.desc()))
            .select((credential_versions::version, credential_versions::destroy_at));
        let newest = tx.first::<(i64, Option<i64>), _>(newest).await?;
        let previous_version = newest.map(|(number, _)| number);
        Ok(Previous { previous_version, previous_until: newest.and_then(|(_, until)| until) })
    }

    /// Keeps the current version as a previous one.
    fn keep_current<'t>(&self, tx: &'t Tx<'_>, superseded: Superseded) -> Reply<'t, usize> {
        let change = self.0.change;
        let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
        let of_both = of_both.and(credential_secrets::id.eq(credentials::id));
        let current = credentials::table
            .inner_join(credential_secrets::table.on(of_both))
            .filter(credentials::organization_id.eq(change.organization.stored()))
            .filter(credentials::id.eq(change.id.stored()))
            .select((
                credentials::organization_id,
                credentials::id,
                credentials::version,
                credentials::version_created_at,
                superseded.at.as_millis().into_sql::<Nullable<BigInt>>(),
                superseded.destroy_at.as_millis().into_sql::<Nullable<BigInt>>(),
                credentials::key_id,
                credentials::information,
                credential_secrets::data_key,
                credential_secrets::data,
                (credentials::checked_at, credentials::check_since, credentials::check_failed),
            ));
        tx.execute(current.insert_into(credential_versions::table).into_columns((
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
        )))
    }

    async fn stage(&self, tx: &Tx<'_>, new: &NewVersion) -> Result<(), Failure> {
        let (change, parts) = (self.0.change, Parts::new(new, self.0.at));
        let new = diesel::insert_into(credential_versions::table).values((
            credential_versions::organization_id.eq(change.organization.stored()),
            credential_versions::id.eq(change.id.stored()),
            credential_versions::version.eq(new.number),
            credential_versions::created_at.eq(parts.created_at),
            credential_versions::key_id.eq(&parts.key_id),
            credential_versions::information.eq(parts.information.as_slice()),
            credential_versions::data_key.eq(parts.data_key.as_slice()),
            credential_versions::data.eq(parts.data.as_slice()),
            credential_versions::checked_at.eq(parts.checked_at),
            credential_versions::check_since.eq(parts.check_since),
            credential_versions::check_failed.eq(parts.check_failed.as_deref()),
        ));
        tx.execute(new).await?;
        Ok(())
    }

    /// Destroys versions that are not current.
    async fn destroy(&self, tx: &Tx<'_>, numbers: impl IntoIterator<Item = i64>) -> Result<(), Failure> {
        let (organization, id) = (self.0.change.organization.stored(), self.0.change.id.stored());
        let versions = numbers.into_iter().map(|number| diesel::delete(version_of(organization, id, number)));
        tx.execute_each(versions).await?;
        Ok(())
    }
}

fn has_other_key(before: &StoredCredential, parts: &Parts) -> bool {
    AnyId::from(before.key.stored()) != parts.key_id
}
