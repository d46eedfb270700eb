//! Rotation of organization keys: moves credentials from one key to another, and destroys keys that no row names.
//!
//! A change of a credential moves sealed parts between its rows under the lock of its organization. A transaction that moves
//! parts to another key takes the same lock. One statement reads which rows name a key: two could miss a part that a change
//! moves from the table of the second to that of the first.

use super::super::audit::AuditRecorder;
use super::super::credential::count;
use super::super::{Read, Transaction};
use super::keys::{key_of, rebind};
use crate::db::{KeyShare, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credential_versions, credentials, organization_keys};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::{auto_type, exists};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    delete, select, update,
};
use vault_core::credential::VersionList;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, KeyDestruction, MoveSealed, SealedContent, SealedCount, SealedPart, SealedRow,
};
use vault_core::sealed::{Blob, KeyState, SealedCredential, SealedMetadata};

/// Credentials whose current version a key seals.
#[auto_type(no_type_alias)]
fn current_under(organization: IdBytes, key: IdBytes) -> _ {
    credentials::table.filter(credentials::organization_id.eq(organization)).filter(credentials::key_id.eq(key))
}

/// Versions that are not current and that a key seals.
#[auto_type(no_type_alias)]
fn others_under(organization: IdBytes, key: IdBytes) -> _ {
    credential_versions::table
        .filter(credential_versions::organization_id.eq(organization))
        .filter(credential_versions::key_id.eq(key))
}

/// Credentials whose metadata a key seals.
#[auto_type(no_type_alias)]
fn described_under(organization: IdBytes, key: IdBytes) -> _ {
    credentials::table
        .filter(credentials::organization_id.eq(organization))
        .filter(credentials::metadata_key_id.eq(key))
}

impl Read for FindSealed {
    type Outcome = Vec<SealedRow>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<SealedRow>, Failure> {
        let (organization, key) = (self.organization.stored(), self.key.stored());
        // No id is before the nil id.
        let (id, number) = self.after.unwrap_or((CredentialId::from_bytes([0; 16]), i64::MIN));
        let id = id.stored();
        let bound = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let (skip, limit) = (bound(self.skip), bound(self.limit));
        match self.part {
            SealedPart::Current => {
                let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
                let rows = current_under(organization, key)
                    .inner_join(credential_secrets::table.on(of_both.and(credential_secrets::id.eq(credentials::id))))
                    .filter(credentials::id.gt(id))
                    .order(credentials::id)
                    .offset(skip)
                    .limit(limit)
                    .select((
                        credentials::id,
                        credentials::version,
                        credentials::listed_versions.nullable(),
                        credentials::information,
                        credential_secrets::data_key,
                        credential_secrets::data,
                    ));
                let decode = |row| version_row("credentials", self.key, row);
                tx.load(rows).await?.into_iter().map(decode).collect()
            }
            SealedPart::Other => {
                let following = credential_versions::id.gt(id).or(credential_versions::version.gt(number));
                let of_both = credentials::organization_id.eq(credential_versions::organization_id);
                let rows = others_under(organization, key)
                    .left_join(credentials::table.on(of_both.and(credentials::id.eq(credential_versions::id))))
                    .filter(credential_versions::id.ge(id))
                    .filter(following)
                    .order((credential_versions::id, credential_versions::version))
                    .offset(skip)
                    .limit(limit)
                    .select((
                        credential_versions::id,
                        credential_versions::version,
                        credentials::listed_versions.nullable(),
                        credential_versions::information,
                        credential_versions::data_key,
                        credential_versions::data,
                    ));
                let decode = |row| version_row("credential_versions", self.key, row);
                tx.load(rows).await?.into_iter().map(decode).collect()
            }
            SealedPart::Metadata => {
                let rows = described_under(organization, key)
                    .filter(credentials::id.gt(id))
                    .order(credentials::id)
                    .offset(skip)
                    .limit(limit)
                    .select((credentials::id, credentials::metadata, credentials::metadata_revision));
                type Row = (Column<CredentialId>, Option<Vec<u8>>, Option<i64>);
                let decode = |(id, metadata, revision): Row| {
                    let credential = id.decode("credentials", &"unknown", "id")?;
                    let damaged = || Failure::damaged("credentials", credential.to_string(), "metadata");
                    let (blob, revision) = metadata.zip(revision).ok_or_else(damaged)?;
                    let sealed = SealedMetadata { key: self.key, revision, blob: Blob::from_bytes(blob) };
                    Ok(SealedRow { credential, version: revision, id: None, content: SealedContent::Metadata(sealed) })
                };
                tx.load(rows).await?.into_iter().map(decode).collect()
            }
        }
    }
}

/// Id, version, list of versions, information, data key and data.
type VersionColumns = (Column<CredentialId>, i64, Option<Vec<u8>>, Vec<u8>, Vec<u8>, Vec<u8>);

fn version_row(
    table: &'static str,
    key: KeyId,
    (id, version, listed, information, data_key, data): VersionColumns,
) -> Result<SealedRow, Failure> {
    let sealed = SealedCredential {
        key,
        data_key: Blob::from_bytes(data_key),
        data: Blob::from_bytes(data),
        information: Blob::from_bytes(information),
    };
    let credential = id.decode(table, &"unknown", "id")?;
    let id = listed.and_then(|listed| VersionList::from_bytes(listed).id(version));
    Ok(SealedRow { credential, version, id, content: SealedContent::Version(sealed) })
}

/// The numbers of parts that a key seals.
pub(crate) struct CountSealed {
    pub(crate) organization: OrganizationId,
    pub(crate) key: KeyId,
}

impl Read for CountSealed {
    type Outcome = SealedCount;

    async fn read(&self, tx: &Tx<'_>) -> Result<SealedCount, Failure> {
        let (organization, key) = (self.organization.stored(), self.key.stored());
        Ok(SealedCount {
            current: tx.one(current_under(organization, key).count()).await?,
            other: tx.one(others_under(organization, key).count()).await?,
            metadata: tx.one(described_under(organization, key).count()).await?,
        })
    }
}

impl Transaction for MoveSealed {
    /// The number of parts. `None` if the new key is not active.
    type Outcome = Option<usize>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<usize>, Failure> {
        let organization = self.organization.stored();
        // Operations lock it first too, and then rows in any order.
        count::lock(tx, self.organization).await?;
        // The key must not be destroyed before this transaction ends. Its uses may be reserved in the meantime: moves follow
        // each other closely, and a save that had to wait for a pause between them could wait for long.
        let state = key_of(organization, self.to.stored()).select(organization_keys::state);
        let state: Option<Column<KeyState>> = tx.first(locked(state, KeyShare)).await?;
        let state = state.map(|state| state.decode("organization_keys", &self.to, "state")).transpose()?;
        if state != Some(KeyState::Active) {
            return Ok(None);
        }
        audit.commit_without_entry();
        let moved = match self.part {
            SealedPart::Current => move_current(tx, self).await?,
            SealedPart::Other => move_others(tx, self).await?,
            SealedPart::Metadata => move_metadata(tx, self).await?,
        };
        Ok(Some(moved.into_iter().sum()))
    }
}

/// The versions among the rows.
fn versions(command: &MoveSealed) -> impl Iterator<Item = (&SealedRow, &SealedCredential)> {
    command.rows.iter().filter_map(|row| match &row.content {
        SealedContent::Version(sealed) => Some((row, sealed)),
        SealedContent::Metadata(_) => None,
    })
}

async fn move_current(tx: &Tx<'_>, command: &MoveSealed) -> Result<Vec<usize>, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let rows = versions(command).map(|(row, sealed)| {
        let row = current_under(organization, from)
            .filter(credentials::id.eq(row.credential.stored()))
            .filter(credentials::version.eq(row.version));
        update(row).set((credentials::key_id.eq(to), credentials::information.eq(sealed.information.as_bytes())))
    });
    let moved = tx.execute_each(rows).await?;
    let secrets = versions(command).zip(&moved).filter(|(_, moved)| **moved == 1).map(|((row, sealed), _)| {
        let row = credential_secrets::table
            .filter(credential_secrets::organization_id.eq(organization))
            .filter(credential_secrets::id.eq(row.credential.stored()));
        update(row).set(credential_secrets::data_key.eq(sealed.data_key.as_bytes()))
    });
    tx.execute_each(secrets).await?;
    Ok(moved)
}

async fn move_others(tx: &Tx<'_>, command: &MoveSealed) -> Result<Vec<usize>, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let rows = versions(command).map(|(row, sealed)| {
        let row = others_under(organization, from)
            .filter(credential_versions::id.eq(row.credential.stored()))
            .filter(credential_versions::version.eq(row.version));
        update(row).set((
            credential_versions::key_id.eq(to),
            credential_versions::information.eq(sealed.information.as_bytes()),
            credential_versions::data_key.eq(sealed.data_key.as_bytes()),
        ))
    });
    Ok(tx.execute_each(rows).await?)
}

async fn move_metadata(tx: &Tx<'_>, command: &MoveSealed) -> Result<Vec<usize>, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let metadata = command.rows.iter().filter_map(|row| match &row.content {
        SealedContent::Metadata(sealed) => Some((row, sealed)),
        SealedContent::Version(_) => None,
    });
    let rows = metadata.map(|(row, sealed)| {
        let row = described_under(organization, from)
            .filter(credentials::id.eq(row.credential.stored()))
            .filter(credentials::metadata_revision.eq(row.version));
        update(row).set((credentials::metadata_key_id.eq(to), credentials::metadata.eq(sealed.blob.as_bytes())))
    });
    Ok(tx.execute_each(rows).await?)
}

impl Transaction for DestroyOrganizationKey {
    type Outcome = KeyDestruction;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<KeyDestruction, Failure> {
        if !rebind(tx, self.organization, &self.fingerprint).await? {
            return Ok(KeyDestruction::NotRetiring);
        }
        let (organization, key) = (self.organization.stored(), self.key.stored());
        let row = key_of(organization, key);
        let state: Option<Column<KeyState>> = tx.first(locked(row.select(organization_keys::state), Update)).await?;
        let state = state.map(|state| state.decode("organization_keys", &self.key, "state")).transpose()?;
        if state != Some(KeyState::Retiring) {
            return Ok(KeyDestruction::NotRetiring);
        }
        let named = (
            exists(current_under(organization, key)),
            exists(others_under(organization, key)),
            exists(described_under(organization, key)),
        );
        let (current, other, metadata): (bool, bool, bool) = tx.one(select(named)).await?;
        if current || other || metadata {
            return Ok(KeyDestruction::InUse);
        }
        tx.execute(delete(row)).await?;
        audit.record(tx, &self.audit).await?;
        Ok(KeyDestruction::Destroyed)
    }
}
