//! Moves credentials from one organization key to another.

use super::list_opener::open;
use crate::blob::{self, NONCE, OpenError};
use crate::context::Context;
use crate::entropy::Drawn;
use crate::error::{does_not_open, no_entropy, not_sealed, unknown_key};
use crate::organization_keys::{DerivedKeys, OrganizationKeyring};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{CardContext, CredentialContext, Rewrapper, SealError, SealedCredential};
use vault_core::sealed::{Blob, SealedData};

/// Rewraps data keys and reseals cards. It cannot open data.
pub(super) struct CredentialRewrapper {
    keys: Arc<OrganizationKeyring>,
}

impl CredentialRewrapper {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }

    /// Returns the key that sealed a blob at a place.
    async fn key_of(
        &self,
        organization: OrganizationId,
        place: &Context,
        sealed: &Blob,
    ) -> Result<Arc<DerivedKeys>, SealError> {
        let id = blob::sealing_key(sealed).ok_or_else(|| does_not_open(place, OpenError::Truncated))?;
        self.keys.key(organization, id).await?.ok_or_else(|| unknown_key(place, id))
    }

    async fn rewrap_one(
        &self,
        organization: OrganizationId,
        to: &DerivedKeys,
        before: SealedCredential,
    ) -> Result<SealedCredential, SealError> {
        let (instance, credential) = (self.keys.instance(), before.id);
        let place = Context::card(instance, CardContext { organization, credential, revision: before.revision });
        let from = self.key_of(organization, &place, &before.card).await?;
        let card = open(&place, &from, &before.card)?;
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        let sealed = to.card.seal(entropy, &place, &card.to_bytes()).map_err(not_sealed)?;
        let mut data = Vec::with_capacity(before.data.len());
        for (number, one) in before.data {
            // What the card does not list is past its retention, and no longer opened.
            let Some(version) = card.version(number) else { continue };
            let context = CredentialContext { organization, credential, version: number, id: version.id };
            data.push((number, self.rewrap_data(context, to, one).await?));
        }
        Ok(SealedCredential { card: sealed, data, ..before })
    }

    async fn rewrap_data(
        &self,
        context: CredentialContext,
        to: &DerivedKeys,
        SealedData { data_key, data }: SealedData,
    ) -> Result<SealedData, SealError> {
        let place = Context::data(self.keys.instance(), context);
        let id = blob::sealing_key(&data).ok_or_else(|| does_not_open(&place, OpenError::Truncated))?;
        let place = Context::data_key(self.keys.instance(), context, id);
        let from = self.key_of(context.organization, &place, &data_key).await?;
        let unwrapped = from.wrap.unwrap(&place, &data_key).map_err(|error| does_not_open(&place, error))?;
        let entropy = &Drawn::<NONCE>::from(self.keys.entropy()).map_err(no_entropy)?;
        Ok(SealedData { data_key: to.wrap.wrap(entropy, &place, &unwrapped).map_err(not_sealed)?, data })
    }
}

#[async_trait]
impl Rewrapper for CredentialRewrapper {
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        credentials: Vec<SealedCredential>,
    ) -> Result<Vec<Result<SealedCredential, SealError>>, SealError> {
        let Some(to) = self.keys.key(organization, to).await? else {
            let (table, column) = ("organization_keys", "id");
            return Err(SealError::UnknownKey { table, column, object: organization.to_string(), key: to });
        };
        let mut rewrapped = Vec::with_capacity(credentials.len());
        for credential in credentials {
            match self.rewrap_one(organization, &to, credential).await {
                Err(SealError::Store(error)) => return Err(error.into()),
                one => rewrapped.push(one),
            }
        }
        Ok(rewrapped)
    }
}
