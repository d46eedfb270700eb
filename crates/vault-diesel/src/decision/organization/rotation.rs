//! Moving credentials between keys.
//!
//! A change of a credential moves sealed parts between its rows while it holds the row in `credentials`. So whoever moves
//! parts to another key holds that row too, and whether anything is left under a key is one statement: two could miss a
//! part that a change moves from the table of the second to that of the first.

use super::super::backend::{Connection, RunQuery, Store, execute_each, for_key_share, for_update, hold_rows};
use super::super::{Decided, Verdict, audit};
use crate::failure::Failure;
use crate::schema::{credential_secrets, credential_versions, credentials, organization_keys, organizations};
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, KeyDestruction, KeyRotation, MoveSealed, SealedContent, SealedCount,
    SealedPart, SealedRow, StoreError,
};
use vault_core::sealed::{Blob, KeyState, SealedCredential, SealedMetadata};

#[async_trait]
impl KeyRotation for Store {
    async fn find_sealed(&self, query: FindSealed) -> Result<Vec<SealedRow>, StoreError> {
        self.read(query, |connection, query| Box::pin(find(connection, query))).await
    }

    async fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Result<SealedCount, StoreError> {
        self.read((organization, key), |connection, (organization, key)| {
            Box::pin(count(connection, *organization, *key))
        })
        .await
    }

    async fn move_sealed(&self, command: MoveSealed) -> Result<Option<usize>, StoreError> {
        self.write(command, |connection, command| Box::pin(move_sealed(connection, command))).await
    }

    async fn destroy_organization_key(&self, command: DestroyOrganizationKey) -> Result<KeyDestruction, StoreError> {
        self.write(command, |connection, command| Box::pin(destroy(connection, command))).await
    }
}

/// Rows of `credentials` under a key.
macro_rules! current_under {
    ($organization:expr, $key:expr) => {
        credentials::table
            .filter(credentials::organization_id.eq($organization.stored()))
            .filter(credentials::key_id.eq($key.stored()))
    };
}

/// Rows of `credential_versions` under a key.
macro_rules! others_under {
    ($organization:expr, $key:expr) => {
        credential_versions::table
            .filter(credential_versions::organization_id.eq($organization.stored()))
            .filter(credential_versions::key_id.eq($key.stored()))
    };
}

/// Rows of `credentials` whose metadata is under a key.
macro_rules! described_under {
    ($organization:expr, $key:expr) => {
        credentials::table
            .filter(credentials::organization_id.eq($organization.stored()))
            .filter(credentials::metadata_key_id.eq($key.stored()))
    };
}

async fn find(connection: &mut Connection, query: &FindSealed) -> Result<Vec<SealedRow>, Failure> {
    match query.part {
        SealedPart::Current => find_current(connection, query).await,
        SealedPart::Other => find_others(connection, query).await,
        SealedPart::Metadata => find_metadata(connection, query).await,
    }
}

/// The id of the place after which to look; no id is before the nil one.
fn after(query: &FindSealed) -> CredentialId {
    query.after.map_or(CredentialId::from_bytes([0; 16]), |(credential, _)| credential)
}

fn bound(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

async fn find_current(connection: &mut Connection, query: &FindSealed) -> Result<Vec<SealedRow>, Failure> {
    type Row = (Column<CredentialId>, i64, Vec<u8>, Vec<u8>, Vec<u8>);
    let rows: Vec<Row> = current_under!(query.organization, query.key)
        .inner_join(
            credential_secrets::table.on(credential_secrets::organization_id
                .eq(credentials::organization_id)
                .and(credential_secrets::id.eq(credentials::id))),
        )
        .filter(credentials::id.gt(after(query).stored()))
        .order(credentials::id)
        .offset(bound(query.skip))
        .limit(bound(query.limit))
        .select((
            credentials::id,
            credentials::version,
            credentials::information,
            credential_secrets::data_key,
            credential_secrets::data,
        ))
        .load(connection)
        .await?;
    let decode = |(id, version, information, data_key, data): Row| {
        let credential = id.decode("credentials", &"unknown", "id")?;
        Ok(version_row(credential, version, query.key, (information, data_key, data)))
    };
    rows.into_iter().map(decode).collect()
}

async fn find_others(connection: &mut Connection, query: &FindSealed) -> Result<Vec<SealedRow>, Failure> {
    type Row = (Column<CredentialId>, i64, Vec<u8>, Vec<u8>, Vec<u8>);
    let (last, number) = (after(query).stored(), query.after.map_or(i64::MIN, |(_, number)| number));
    let rows: Vec<Row> = others_under!(query.organization, query.key)
        .filter(credential_versions::id.ge(last))
        .filter(credential_versions::id.gt(last).or(credential_versions::version.gt(number)))
        .order((credential_versions::id, credential_versions::version))
        .offset(bound(query.skip))
        .limit(bound(query.limit))
        .select((
            credential_versions::id,
            credential_versions::version,
            credential_versions::information,
            credential_versions::data_key,
            credential_versions::data,
        ))
        .load(connection)
        .await?;
    let decode = |(id, version, information, data_key, data): Row| {
        let credential = id.decode("credential_versions", &"unknown", "id")?;
        Ok(version_row(credential, version, query.key, (information, data_key, data)))
    };
    rows.into_iter().map(decode).collect()
}

fn version_row(
    credential: CredentialId,
    version: i64,
    key: KeyId,
    (information, data_key, data): (Vec<u8>, Vec<u8>, Vec<u8>),
) -> SealedRow {
    let sealed = SealedCredential {
        key,
        data_key: Blob::from_bytes(data_key),
        data: Blob::from_bytes(data),
        information: Blob::from_bytes(information),
    };
    SealedRow { credential, version, content: SealedContent::Version(sealed) }
}

async fn find_metadata(connection: &mut Connection, query: &FindSealed) -> Result<Vec<SealedRow>, Failure> {
    type Row = (Column<CredentialId>, Option<Vec<u8>>, Option<i64>);
    let rows: Vec<Row> = described_under!(query.organization, query.key)
        .filter(credentials::id.gt(after(query).stored()))
        .order(credentials::id)
        .offset(bound(query.skip))
        .limit(bound(query.limit))
        .select((credentials::id, credentials::metadata, credentials::metadata_revision))
        .load(connection)
        .await?;
    let decode = |(id, metadata, revision): Row| {
        let credential = id.decode("credentials", &"unknown", "id")?;
        let (Some(blob), Some(revision)) = (metadata, revision) else {
            return Err(Failure::damaged("credentials", credential.to_string(), "metadata"));
        };
        let sealed = SealedMetadata { key: query.key, revision, blob: Blob::from_bytes(blob) };
        Ok(SealedRow { credential, version: revision, content: SealedContent::Metadata(sealed) })
    };
    rows.into_iter().map(decode).collect()
}

async fn count(connection: &mut Connection, organization: OrganizationId, key: KeyId) -> Result<SealedCount, Failure> {
    let current: i64 = current_under!(organization, key).count().get_result(connection).await?;
    let other: i64 = others_under!(organization, key).count().get_result(connection).await?;
    let metadata: i64 = described_under!(organization, key).count().get_result(connection).await?;
    Ok(SealedCount { current, other, metadata })
}

async fn move_sealed(connection: &mut Connection, command: &MoveSealed) -> Decided<Option<usize>> {
    let MoveSealed { organization, to, rows, .. } = command;
    // The key must not be destroyed before what is moved to it stands. Uses of it may be taken meanwhile: moves follow each
    // other closely, and a save that waited for a moment without one could wait for long.
    let state: Option<Column<KeyState>> = for_key_share!(
        organization_keys::table
            .filter(organization_keys::organization_id.eq(organization.stored()))
            .filter(organization_keys::id.eq(to.stored()))
            .select(organization_keys::state)
    )
    .get_result(connection)
    .await
    .optional()?;
    let state = state.map(|state| state.decode("organization_keys", to, "state")).transpose()?;
    if state != Some(KeyState::Active) {
        return Ok(Verdict::Refused(None));
    }
    // By id, as all take them who take several.
    let ids: Vec<_> = rows.iter().map(|row| row.credential.stored()).collect();
    hold_rows!(
        credentials::table
            .filter(credentials::organization_id.eq(organization.stored()))
            .filter(credentials::id.eq_any(ids))
            .order(credentials::id)
            .select(credentials::id),
        connection
    )?;
    let moved = match command.part {
        SealedPart::Current => move_current(connection, command).await?,
        SealedPart::Other => move_others(connection, command).await?,
        SealedPart::Metadata => move_metadata(connection, command).await?,
    };
    Ok(Verdict::Recorded(Some(moved)))
}

/// The versions among the rows.
fn versions(command: &MoveSealed) -> impl Iterator<Item = (&SealedRow, &SealedCredential)> {
    command.rows.iter().filter_map(|row| match &row.content {
        SealedContent::Version(sealed) => Some((row, sealed)),
        SealedContent::Metadata(_) => None,
    })
}

async fn move_current(connection: &mut Connection, command: &MoveSealed) -> Result<usize, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let rows = versions(command).map(|(row, sealed)| {
        update(
            credentials::table
                .filter(credentials::organization_id.eq(organization))
                .filter(credentials::id.eq(row.credential.stored()))
                .filter(credentials::version.eq(row.version))
                .filter(credentials::key_id.eq(from)),
        )
        .set((credentials::key_id.eq(to), credentials::information.eq(sealed.information.as_bytes())))
    });
    let moved: Vec<usize> = execute_each!(connection, rows)?;
    let secrets = versions(command).zip(&moved).filter(|(_, moved)| **moved == 1).map(|((row, sealed), _)| {
        update(
            credential_secrets::table
                .filter(credential_secrets::organization_id.eq(organization))
                .filter(credential_secrets::id.eq(row.credential.stored())),
        )
        .set(credential_secrets::data_key.eq(sealed.data_key.as_bytes()))
    });
    let _: Vec<usize> = execute_each!(connection, secrets)?;
    Ok(moved.into_iter().sum())
}

async fn move_others(connection: &mut Connection, command: &MoveSealed) -> Result<usize, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let rows = versions(command).map(|(row, sealed)| {
        update(
            credential_versions::table
                .filter(credential_versions::organization_id.eq(organization))
                .filter(credential_versions::id.eq(row.credential.stored()))
                .filter(credential_versions::version.eq(row.version))
                .filter(credential_versions::key_id.eq(from)),
        )
        .set((
            credential_versions::key_id.eq(to),
            credential_versions::information.eq(sealed.information.as_bytes()),
            credential_versions::data_key.eq(sealed.data_key.as_bytes()),
        ))
    });
    let moved: Vec<usize> = execute_each!(connection, rows)?;
    Ok(moved.into_iter().sum())
}

async fn move_metadata(connection: &mut Connection, command: &MoveSealed) -> Result<usize, Failure> {
    let organization = command.organization.stored();
    let (from, to) = (command.from.stored(), command.to.stored());
    let metadata = command.rows.iter().filter_map(|row| match &row.content {
        SealedContent::Metadata(sealed) => Some((row, sealed)),
        SealedContent::Version(_) => None,
    });
    let rows = metadata.map(|(row, sealed)| {
        update(
            credentials::table
                .filter(credentials::organization_id.eq(organization))
                .filter(credentials::id.eq(row.credential.stored()))
                .filter(credentials::metadata_revision.eq(row.version))
                .filter(credentials::metadata_key_id.eq(from)),
        )
        .set((credentials::metadata_key_id.eq(to), credentials::metadata.eq(sealed.blob.as_bytes())))
    });
    let moved: Vec<usize> = execute_each!(connection, rows)?;
    Ok(moved.into_iter().sum())
}

async fn destroy(connection: &mut Connection, command: &DestroyOrganizationKey) -> Decided<KeyDestruction> {
    let (organization, key) = (command.organization, command.key);
    let rebound = update(
        organizations::table
            .filter(organizations::id.eq(organization.stored()))
            .filter(organizations::fingerprint_wrapped.eq(command.fingerprint.before.as_bytes())),
    )
    .set(organizations::fingerprint_wrapped.eq(command.fingerprint.after.as_bytes()))
    .execute(connection)
    .await?;
    if rebound == 0 {
        return Ok(Verdict::Refused(KeyDestruction::NotRetiring));
    }
    let row = || {
        organization_keys::table
            .filter(organization_keys::organization_id.eq(organization.stored()))
            .filter(organization_keys::id.eq(key.stored()))
    };
    let state: Option<Column<KeyState>> =
        for_update!(row().select(organization_keys::state)).get_result(connection).await.optional()?;
    let state = state.map(|state| state.decode("organization_keys", &key, "state")).transpose()?;
    if state != Some(KeyState::Retiring) {
        return Ok(Verdict::Refused(KeyDestruction::NotRetiring));
    }
    let (current, other, metadata): (bool, bool, bool) = diesel::select((
        exists(current_under!(organization, key)),
        exists(others_under!(organization, key)),
        exists(described_under!(organization, key)),
    ))
    .get_result(connection)
    .await?;
    if current || other || metadata {
        return Ok(Verdict::Refused(KeyDestruction::InUse));
    }
    diesel::delete(row()).execute(connection).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(KeyDestruction::Destroyed))
}
