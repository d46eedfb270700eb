//! Seals credentials, and opens and moves what is not data.

use super::placed;
use crate::aead::AeadKey;
use crate::blob::{self, NONCE, OpenError};
use crate::context::Context;
use crate::entropy::{Drawn, random_key, random_key_id};
use crate::error::{damaged, does_not_open, no_entropy, not_sealed};
use crate::key::SymmetricKey;
use crate::organization_keys::{DerivedKeys, OrganizationKeyring, Unwrapped};
use std::sync::Arc;
use vault_core::credential::{Card, Fingerprint, SecretBytes};
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CredentialContext, SealError, SealedCredential, Sealer};
use vault_core::sealed::{Blob, OrganizationKeys, SealedData, WrappedKey};
use vault_core::time::Timestamp;

/// Random bytes per version: a data key with its id, and two nonces.
const DRAWN: usize = 16 + SymmetricKey::LENGTH + 2 * NONCE;

/// Seals credentials, and opens their cards. It cannot open data.
pub(super) struct CredentialSealer {
    keys: Arc<OrganizationKeyring>,
}

impl CredentialSealer {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }

    /// Returns the key that sealed a blob at a place.
    fn key_of(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        place: &Context,
        sealed: &Blob,
    ) -> Result<Arc<Unwrapped<DerivedKeys>>, SealError> {
        let id = blob::sealing_key(sealed).ok_or_else(|| does_not_open(place, OpenError::Truncated))?;
        self.keys.key_of(organization, keys, place, id)
    }

    fn rewrap_data(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        to: &DerivedKeys,
        SealedData { data_key, data }: &SealedData,
    ) -> Result<SealedData, SealError> {
        let place = Context::data(self.keys.instance(), context);
        let id = blob::sealing_key(data).ok_or_else(|| does_not_open(&place, OpenError::Truncated))?;
        let place = Context::data_key(self.keys.instance(), context, id);
        let from = self.key_of(context.organization, keys, &place, data_key)?;
        let unwrapped = from.wrap.unwrap(&place, data_key).map_err(|error| does_not_open(&place, error))?;
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        let data_key = to.wrap.wrap(entropy, &place, &unwrapped).map_err(not_sealed)?;
        Ok(SealedData { data_key, data: data.clone() })
    }
}

impl Sealer for CredentialSealer {
    fn fingerprint(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        data: &SecretBytes,
    ) -> Result<Fingerprint, SealError> {
        // The bytes to fingerprint.
        let digest = self.keys.fingerprint(organization, &keys.fingerprint, data.expose())?;
        Ok(Fingerprint::from_digest(&digest))
    }

    fn seal(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError> {
        let instance = self.keys.instance();
        let key = self.keys.sealing(context.organization, &keys.active)?;
        let entropy = &Drawn::<DRAWN>::from(self.keys.entropy()).map_err(no_entropy)?;

        let data_key_id = random_key_id(entropy).map_err(no_entropy)?;
        let data_key = random_key(entropy).map_err(no_entropy)?;
        // The data key seals only this message.
        let text = placed::join(data, namespace);
        let data = AeadKey::new(data_key_id, &data_key).seal(entropy, &Context::data(instance, context), &text);
        let wrapped = key.wrap.wrap(entropy, &Context::data_key(instance, context, data_key_id), &data_key);
        Ok(SealedData { data_key: wrapped.map_err(not_sealed)?, data: data.map_err(not_sealed)? })
    }

    fn seal_card(&self, keys: &OrganizationKeys, context: CardContext, card: &Card) -> Result<Blob, SealError> {
        let key = self.keys.sealing(context.organization, &keys.active)?;
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        let place = Context::card(self.keys.instance(), context);
        key.card.seal(entropy, &place, &card.to_bytes()).map_err(not_sealed)
    }

    fn open_card(&self, keys: &OrganizationKeys, context: CardContext, sealed: &Blob) -> Result<Card, SealError> {
        let place = Context::card(self.keys.instance(), context);
        let key = self.key_of(context.organization, keys, &place, sealed)?;
        let document = key.card.open(&place, sealed).map_err(|error| does_not_open(&place, error))?;
        Card::from_bytes(&document).map_err(|_| damaged(&place, "sealed for another purpose"))
    }

    fn rewrap(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        before: &SealedCredential,
    ) -> Result<SealedCredential, SealError> {
        let (credential, to) = (before.id, self.keys.sealing(organization, &keys.active)?);
        let place = CardContext { organization, credential, revision: before.revision };
        let card = self.open_card(keys, place, &before.card)?;
        let mut data = Vec::with_capacity(before.data.len());
        for (number, one) in &before.data {
            // What the card does not list is past its retention, and no longer opened.
            let Some(version) = card.version(*number) else { continue };
            let context = CredentialContext { organization, credential, version: *number, id: version.id };
            data.push((*number, self.rewrap_data(keys, context, &to, one)?));
        }
        let (key, revision) = (keys.active.id, before.revision);
        Ok(SealedCredential { id: credential, key, revision, card: self.seal_card(keys, place, &card)?, data })
    }

    fn new_keys(&self, organization: OrganizationId, now: Timestamp) -> Result<OrganizationKeys, SealError> {
        self.keys.new_keys(organization, now)
    }

    fn new_key(&self, organization: OrganizationId, now: Timestamp) -> Result<WrappedKey, SealError> {
        self.keys.new_key(organization, now)
    }
}
