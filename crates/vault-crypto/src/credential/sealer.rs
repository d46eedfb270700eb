//! Seals credentials.

use super::placed;
use crate::aead::AeadKey;
use crate::blob::NONCE;
use crate::context::Context;
use crate::entropy::{Drawn, random_key, random_key_id};
use crate::error::{no_entropy, not_sealed, unknown_key};
use crate::key::SymmetricKey;
use crate::organization_keys::OrganizationKeyring;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::{Fingerprint, Information, Metadata, SecretBytes};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{CredentialContext, SealError, Sealer};
use vault_core::sealed::{OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedCredential, SealedMetadata};
use vault_core::time::Timestamp;

/// Random bytes per sealed credential: a data key with its id, and three nonces.
const DRAWN: usize = 16 + SymmetricKey::LENGTH + 3 * NONCE;

/// Seals credentials and generates organization keys. It cannot open anything.
pub(super) struct CredentialSealer {
    keys: Arc<OrganizationKeyring>,
}

impl CredentialSealer {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }
}

#[async_trait]
impl Sealer for CredentialSealer {
    async fn fingerprint(&self, organization: OrganizationId, data: &SecretBytes) -> Result<Fingerprint, SealError> {
        let entry = self.keys.entry(organization).await?;
        let digest = entry.fingerprint().code([data.expose()]); // the bytes to fingerprint
        Ok(Fingerprint::from_digest(&digest))
    }

    async fn seal(
        &self,
        key: KeyId,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
        information: &Information,
    ) -> Result<SealedCredential, SealError> {
        let instance = self.keys.instance();
        let Some(key) = self.keys.key(context.organization, key).await? else {
            return Err(unknown_key(&Context::information(instance, context), key));
        };
        let entropy = &Drawn::<DRAWN>::from(self.keys.entropy()).map_err(no_entropy)?;

        let data_key_id = random_key_id(entropy).map_err(no_entropy)?;
        let data_key = random_key(entropy).map_err(no_entropy)?;
        // The data key seals only this message.
        let text = placed::join(data, namespace);
        let data = AeadKey::new(data_key_id, &data_key).seal(entropy, &Context::data(instance, context), &text);
        let wrapped = key.wrap.wrap(entropy, &Context::data_key(instance, context, data_key_id), &data_key);
        let information =
            key.information.seal(entropy, &Context::information(instance, context), information.as_json().as_bytes());
        Ok(SealedCredential {
            key: key.id(),
            data_key: wrapped.map_err(not_sealed)?,
            data: data.map_err(not_sealed)?,
            information: information.map_err(not_sealed)?,
        })
    }

    async fn seal_metadata(
        &self,
        key: KeyId,
        context: CredentialContext,
        metadata: &Metadata,
    ) -> Result<SealedMetadata, SealError> {
        let place = Context::metadata(self.keys.instance(), context);
        let Some(key) = self.keys.key(context.organization, key).await? else {
            return Err(unknown_key(&place, key));
        };
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        let blob = key.information.seal(entropy, &place, metadata.to_json().as_bytes()).map_err(not_sealed)?;
        Ok(SealedMetadata { key: key.id(), revision: context.version, blob })
    }

    fn new_organization_keys(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeys, SealError> {
        self.keys.new_keys(organization, now)
    }

    async fn verify_organization_keys(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
    ) -> Result<(), SealError> {
        self.keys.verify(organization, keys).await.map(drop)
    }

    async fn bind_organization_keys(
        &self,
        organization: OrganizationId,
        before: &OrganizationKeys,
        after: &OrganizationKeys,
    ) -> Result<ReboundKeys, SealError> {
        self.keys.bind(organization, before, after).await
    }

    async fn reload_keys(&self) -> Result<(), SealError> {
        self.keys.reload_keys().await
    }

    fn new_organization_key(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> Result<OrganizationKeyRecord, SealError> {
        self.keys.new_key(organization, now)
    }
}
