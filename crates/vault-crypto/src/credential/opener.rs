//! Opens a credential's data.

use super::list_opener::ListOpener;
use super::placed;
use crate::aead::AeadKey;
use crate::blob::{self, OpenError};
use crate::context::Context;
use crate::error::{damaged, does_not_open, unknown_key};
use crate::organization_keys::OrganizationKeyring;
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::credential::{Card, CredentialData, CredentialType};
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CardOpener, CredentialContext, Opener, SealError};
use vault_core::sealed::{Blob, SealedData};

/// Opens cards and data of credentials. Only for the activation process.
pub(super) struct CredentialOpener {
    keys: Arc<OrganizationKeyring>,
    cards: ListOpener,
}

impl CredentialOpener {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { cards: ListOpener::new(Arc::clone(&keys)), keys }
    }
}

#[async_trait]
impl CardOpener for CredentialOpener {
    async fn open_cards<'a>(
        &self,
        organization: OrganizationId,
        cards: &[(CardContext, &'a Blob)],
    ) -> Result<Vec<Result<Card, SealError>>, SealError> {
        self.cards.open_cards(organization, cards).await
    }
}

#[async_trait]
impl Opener for CredentialOpener {
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError> {
        let instance = self.keys.instance();
        let data_context = Context::data(instance, context);
        let data_key_id =
            blob::sealing_key(&sealed.data).ok_or_else(|| does_not_open(&data_context, OpenError::Truncated))?;
        let key_context = Context::data_key(instance, context, data_key_id);
        let id =
            blob::sealing_key(&sealed.data_key).ok_or_else(|| does_not_open(&key_context, OpenError::Truncated))?;
        let Some(key) = self.keys.key(context.organization, id).await? else {
            return Err(unknown_key(&key_context, id));
        };
        let data_key =
            key.wrap.unwrap(&key_context, &sealed.data_key).map_err(|error| does_not_open(&key_context, error))?;
        let data = AeadKey::new(data_key_id, &data_key)
            .open(&data_context, &sealed.data)
            .map_err(|error| does_not_open(&data_context, error))?;
        let data = placed::split(&data, namespace).map_err(|reason| damaged(&data_context, reason))?;
        CredentialData::from_canonical_json(kind, data)
            .map_err(|_| damaged(&data_context, "not data of the type that its row names"))
    }
}
