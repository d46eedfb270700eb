//! Sealing that seals nothing.

use super::digest::digest;
use crate::clock::lock;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use vault_core::credential::{CredentialData, CredentialType, Fingerprint, Information, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    CredentialContext, IdGenerator, InformationOpener, KeyRepository, Opener, SealError, SealedInformation, Sealer,
};
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, SealedCredential};
use vault_core::time::Timestamp;

/// Writes what a blob is bound to and the plaintext behind it. Opens only where it was sealed for, as a real
/// one does, and remembers each organization's active key until it is told to forget it.
pub struct PlainSealer {
    keys: Arc<dyn KeyRepository>,
    ids: Arc<dyn IdGenerator>,
    use_limit: Option<u64>,
    remembered: Mutex<HashMap<OrganizationId, KeyId>>,
    uses: Mutex<HashMap<KeyId, u64>>,
}

impl PlainSealer {
    /// Seals under the keys of `keys`, makes new ones with ids of `ids`.
    pub fn new(keys: Arc<dyn KeyRepository>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { keys, ids, use_limit: None, remembered: Mutex::default(), uses: Mutex::default() }
    }

    /// Each key is [`SealError::Exhausted`] after `limit` credentials.
    #[must_use]
    pub fn with_use_limit(mut self, limit: u64) -> Self {
        self.use_limit = Some(limit);
        self
    }

    async fn active_key(&self, organization: OrganizationId) -> Result<KeyId, SealError> {
        let remembered = lock(&self.remembered).get(&organization).copied();
        if let Some(key) = remembered {
            return Ok(key);
        }
        let keys = self.keys.organization_keys(organization).await?.ok_or(SealError::NoKeys)?;
        let active = keys.keys.iter().find(|key| key.state == KeyState::Active).ok_or(SealError::NoKeys)?.id;
        lock(&self.remembered).insert(organization, active);
        Ok(active)
    }

    fn use_key(&self, key: KeyId) -> Result<(), SealError> {
        let mut uses = lock(&self.uses);
        let used = uses.entry(key).or_default();
        if self.use_limit.is_some_and(|limit| *used >= limit) {
            return Err(SealError::Exhausted(key));
        }
        *used += 1;
        Ok(())
    }
}

#[async_trait]
impl Sealer for PlainSealer {
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError> {
        self.active_key(organization).await?;
        // Digested, not shown.
        let digest = digest(0, "fingerprint", &[organization.as_bytes(), data.expose()]);
        Ok(Fingerprint::from_digest(digest.as_bytes()))
    }

    async fn seal(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
        information: &Information,
    ) -> Result<SealedCredential, SealError> {
        let key = self.active_key(context.organization).await?;
        self.use_key(key)?;
        Ok(SealedCredential {
            key,
            data_key: Column::DataKey.write(context, key, &[]),
            // Stored as it is: this is the fake.
            data: Column::Data.write(context, key, &[namespace.as_str().as_bytes(), b":", data.expose()].concat()),
            information: Column::Information.write(context, key, information.as_json().as_bytes()),
        })
    }

    fn forget(&self, organization: OrganizationId) {
        lock(&self.remembered).remove(&organization);
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
    ) -> Result<Vec<Information>, SealError> {
        let open = |row: &SealedInformation<'_>| {
            let context = CredentialContext { organization, ..row.context };
            let plain = Column::Information.read(context, row.key, row.blob)?;
            let text = String::from_utf8(plain).map_err(|_| damaged(Column::Information, context.credential))?;
            Information::from_json(text).map_err(|_| damaged(Column::Information, context.credential))
        };
        rows.iter().map(open).collect()
    }
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
        Column::DataKey.read(context, sealed.key, &sealed.data_key)?;
        let plain = Column::Data.read(context, sealed.key, &sealed.data)?;
        let place = format!("{namespace}:");
        let json = plain.strip_prefix(place.as_bytes()).ok_or_else(|| damaged(Column::Data, context.credential))?;
        CredentialData::from_canonical_json(kind, json).map_err(|_| damaged(Column::Data, context.credential))
    }
}

#[derive(Clone, Copy)]
enum Column {
    DataKey,
    Data,
    Information,
}

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::DataKey => "data_key",
            Self::Data => "data",
            Self::Information => "information",
        }
    }

    fn header(self, context: CredentialContext, key: KeyId) -> Vec<u8> {
        let CredentialContext { organization, credential, version } = context;
        format!("not-sealed:{}:{organization}:{credential}:{version}:{key}:", self.name()).into_bytes()
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
    let table = match column {
        Column::DataKey | Column::Data => "credential_secrets",
        Column::Information => "credentials",
    };
    let reason = "not what was sealed here";
    SealError::Integrity { table, column: column.name(), object: object.to_string(), reason }
}
