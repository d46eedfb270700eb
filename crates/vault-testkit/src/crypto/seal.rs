//! Sealing without encryption.

use super::digest::digest;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType, Fingerprint, Information, Metadata, SecretBytes};
use vault_core::field::Invalid;
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    CredentialContext, IdGenerator, InformationOpener, KeyRepository, Opener, Rewrapper, SealError, SealedContent,
    SealedInformation, SealedRow, Sealer,
};
use vault_core::sealed::{
    Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedCredential, SealedMetadata,
};
use vault_core::time::Timestamp;

/// Writes the context of a blob, followed by the plaintext. As a real sealer, it unseals only in the same context and
/// seals only under stored keys.
pub struct PlainSealer {
    keys: Arc<dyn KeyRepository>,
    ids: Arc<dyn IdGenerator>,
}

impl PlainSealer {
    /// Creates a sealer that uses the keys of `keys` and creates new ones with IDs from `ids`.
    pub fn new(keys: Arc<dyn KeyRepository>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { keys, ids }
    }

    async fn keys(&self, organization: OrganizationId) -> Result<OrganizationKeys, SealError> {
        self.keys.organization_keys(organization).await?.ok_or(SealError::NoKeys)
    }

    /// Returns the IDs of the organization's keys.
    async fn known(&self, organization: OrganizationId) -> Result<Vec<KeyId>, SealError> {
        Ok(self.keys(organization).await?.keys.iter().map(|row| row.id).collect())
    }

    /// Returns the keys, or an empty list if the organization does not exist.
    async fn known_if_any(&self, organization: OrganizationId) -> Result<Vec<KeyId>, SealError> {
        match self.known(organization).await {
            Err(SealError::NoKeys) => Ok(Vec::new()),
            known => known,
        }
    }
}

#[async_trait]
impl Sealer for PlainSealer {
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError> {
        self.keys(organization).await?;
        // A digest, so that the fingerprint does not show the data.
        let digest = digest(0, "fingerprint", &[organization.as_bytes(), data.expose()]);
        Ok(Fingerprint::from_digest(digest.as_bytes()))
    }

    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
        information: &Information,
    ) -> Result<SealedCredential, SealError> {
        if !self.known(context.organization).await?.contains(&key) {
            return Err(Column::DataKey.unknown(context, key));
        }
        Ok(SealedCredential {
            key,
            data_key: Column::DataKey.write(context, key, &[]),
            // Stored in plaintext: this is the fake.
            data: Column::Data.write(context, DATA_KEY, &[namespace.as_str().as_bytes(), b":", data.expose()].concat()),
            information: Column::Information.write(context, key, information.as_json().as_bytes()),
        })
    }

    async fn seal_metadata(
        &self,
        key: KeyId,
        context: CredentialContext,
        metadata: &Metadata,
    ) -> Result<SealedMetadata, SealError> {
        if !self.known(context.organization).await?.contains(&key) {
            return Err(Column::Metadata.unknown(context, key));
        }
        let blob = Column::Metadata.write(context, key, metadata.to_json().as_bytes());
        Ok(SealedMetadata { key, revision: context.version, blob })
    }

    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError> {
        Ok(OrganizationKeys {
            fingerprint_key: KeyId::from_uuid(self.ids.random()),
            fingerprint_wrapped: Blob::from_bytes(b"not-a-key".to_vec()),
            keys: vec![self.new_organization_key(organization, now)?],
        })
    }

    async fn verify_organization_keys(&self, _: OrganizationId, _: &OrganizationKeys) -> Result<(), SealError> {
        Ok(())
    }

    async fn bind_organization_keys(
        &self,
        _: OrganizationId,
        before: &OrganizationKeys,
        _: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError> {
        Ok(ReboundKeys { before: before.fingerprint_wrapped.clone(), after: before.fingerprint_wrapped.clone() })
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        Ok(())
    }

    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        Ok(OrganizationKeyRecord {
            organization,
            id: KeyId::from_uuid(self.ids.random()),
            state: KeyState::Active,
            wrapped: Blob::from_bytes(b"not-a-key".to_vec()),
            uses: 0,
            created_at: now,
        })
    }
}

#[async_trait]
impl InformationOpener for PlainSealer {
    async fn open_information<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Information, SealError>>, SealError> {
        let known = self.known_if_any(organization).await?;
        Ok(rows
            .iter()
            .map(|row| open(&known, organization, Column::Information, row, Information::from_json))
            .collect())
    }

    async fn open_metadata<'a>(
        &self,
        organization: OrganizationId,
        rows: &[SealedInformation<'a>],
    ) -> Result<Vec<Result<Metadata, SealError>>, SealError> {
        let parse = |text: String| Metadata::from_json(&text);
        let known = self.known_if_any(organization).await?;
        Ok(rows.iter().map(|row| open(&known, organization, Column::Metadata, row, parse)).collect())
    }
}

fn open<T>(
    known: &[KeyId],
    organization: OrganizationId,
    column: Column,
    row: &SealedInformation<'_>,
    parse: impl Fn(String) -> Result<T, Invalid>,
) -> Result<T, SealError> {
    let context = CredentialContext { organization, ..row.context };
    if !known.contains(&row.key) {
        return Err(column.unknown(context, row.key));
    }
    let plain = column.read(context, row.key, row.blob)?;
    let text = String::from_utf8(plain).map_err(|_| damaged(column, context.credential))?;
    parse(text).map_err(|_| damaged(column, context.credential))
}

#[async_trait]
impl Rewrapper for PlainSealer {
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        rows: Vec<SealedRow>,
    ) -> Result<Vec<Result<SealedRow, SealError>>, SealError> {
        let known = self.known(organization).await?;
        let unknown = |row: &SealedRow| {
            let context = context_of(organization, row);
            Column::DataKey.unknown(context, row.key())
        };
        if !known.contains(&to) {
            let (table, column) = ("organization_keys", "id");
            return Err(SealError::UnknownKey { table, column, object: organization.to_string(), key: to });
        }
        let rewrap = |row: SealedRow| {
            if known.contains(&row.key()) { rewrap_one(organization, to, row) } else { Err(unknown(&row)) }
        };
        Ok(rows.into_iter().map(rewrap).collect())
    }
}

fn rewrap_one(organization: OrganizationId, to: KeyId, row: SealedRow) -> Result<SealedRow, SealError> {
    let context = context_of(organization, &row);
    let SealedRow { credential, version, id, content } = row;
    let again = |column: Column, from, blob| -> Result<Blob, SealError> {
        Ok(column.write(context, to, &column.read(context, from, blob)?))
    };
    let content = match content {
        SealedContent::Version(sealed) => SealedContent::Version(SealedCredential {
            key: to,
            data_key: again(Column::DataKey, sealed.key, &sealed.data_key)?,
            information: again(Column::Information, sealed.key, &sealed.information)?,
            data: sealed.data,
        }),
        SealedContent::Metadata(sealed) => SealedContent::Metadata(SealedMetadata {
            key: to,
            revision: sealed.revision,
            blob: again(Column::Metadata, sealed.key, &sealed.blob)?,
        }),
    };
    Ok(SealedRow { credential, version, id, content })
}

fn context_of(organization: OrganizationId, row: &SealedRow) -> CredentialContext {
    CredentialContext { organization, credential: row.credential, version: row.version, id: row.id }
}

#[async_trait]
impl Opener for PlainSealer {
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedCredential,
    ) -> Result<CredentialData, SealError> {
        if !self.known(context.organization).await?.contains(&sealed.key) {
            return Err(Column::DataKey.unknown(context, sealed.key));
        }
        Column::DataKey.read(context, sealed.key, &sealed.data_key)?;
        let plain = Column::Data.read(context, DATA_KEY, &sealed.data)?;
        let place = format!("{namespace}:");
        let json = plain.strip_prefix(place.as_bytes()).ok_or_else(|| damaged(Column::Data, context.credential))?;
        CredentialData::from_canonical_json(kind, json).map_err(|_| damaged(Column::Data, context.credential))
    }
}

/// Represents the data keys of all credentials: data is not sealed under an organization key.
const DATA_KEY: KeyId = KeyId::from_bytes([0; 16]);

#[derive(Clone, Copy)]
enum Column {
    DataKey,
    Data,
    Information,
    Metadata,
}

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::DataKey => "data_key",
            Self::Data => "data",
            Self::Information => "information",
            Self::Metadata => "metadata",
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::DataKey | Self::Data => "credential_secrets",
            Self::Information | Self::Metadata => "credentials",
        }
    }

    fn unknown(self, context: CredentialContext, key: KeyId) -> SealError {
        SealError::UnknownKey { table: self.table(), column: self.name(), object: context.credential.to_string(), key }
    }

    fn header(self, context: CredentialContext, key: KeyId) -> Vec<u8> {
        let CredentialContext { organization, credential, version, id } = context;
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        format!("not-sealed:{}:{organization}:{credential}:{version}:{id}:{key}:", self.name()).into_bytes()
    }

    fn write(self, context: CredentialContext, key: KeyId, plain: &[u8]) -> Blob {
        let mut bytes = self.header(context, key);
        bytes.extend_from_slice(plain);
        Blob::from_bytes(bytes)
    }

    fn read(self, context: CredentialContext, key: KeyId, blob: &Blob) -> Result<Vec<u8>, SealError> {
        let plain = blob.as_bytes().strip_prefix(self.header(context, key).as_slice());
        plain.map(<[u8]>::to_vec).ok_or_else(|| damaged(self, context.credential))
    }
}

fn damaged(column: Column, object: CredentialId) -> SealError {
    let reason = "not sealed by this deployment";
    SealError::Integrity { table: column.table(), column: column.name(), object: object.to_string(), reason }
}
