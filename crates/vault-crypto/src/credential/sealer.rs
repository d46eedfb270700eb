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
use vault_core::credential::{Card, Fingerprint, SecretBytes};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CredentialContext, SealError, Sealer};
use vault_core::sealed::{Blob, OrganizationKeyRecord, OrganizationKeys, ReboundKeys, SealedData};
use vault_core::time::Timestamp;

/// Random bytes per version: a data key with its id, and two nonces.
const DRAWN: usize = 16 + SymmetricKey::LENGTH + 2 * NONCE;

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
    ) -> Result<SealedData, SealError> {
        let instance = self.keys.instance();
        let place = Context::data(instance, context);
        let Some(key) = self.keys.key(context.organization, key).await? else { return Err(unknown_key(&place, key)) };
        let entropy = &Drawn::<DRAWN>::from(self.keys.entropy()).map_err(no_entropy)?;

        let data_key_id = random_key_id(entropy).map_err(no_entropy)?;
        let data_key = random_key(entropy).map_err(no_entropy)?;
        // The data key seals only this message.
        let text = placed::join(data, namespace);
        let data = AeadKey::new(data_key_id, &data_key).seal(entropy, &place, &text);
        let wrapped = key.wrap.wrap(entropy, &Context::data_key(instance, context, data_key_id), &data_key);
        Ok(SealedData { data_key: wrapped.map_err(not_sealed)?, data: data.map_err(not_sealed)? })
    }

    async fn seal_card(&self, key: KeyId, context: CardContext, card: &Card) -> Result<Blob, SealError> {
        let place = Context::card(self.keys.instance(), context);
        let Some(key) = self.keys.key(context.organization, key).await? else { return Err(unknown_key(&place, key)) };
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        key.card.seal(entropy, &place, &card.to_bytes()).map_err(not_sealed)
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
