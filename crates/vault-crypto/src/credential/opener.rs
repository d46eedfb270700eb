//! Opens a credential's data.

use super::placed;
use crate::aead::AeadKey;
use crate::blob::{self, OpenError};
use crate::context::Context;
use crate::error::{damaged, does_not_open};
use crate::organization_keys::OrganizationKeyring;
use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::namespace::Namespace;
use vault_core::port::{CredentialContext, Opener, SealError};
use vault_core::sealed::{OrganizationKeys, SealedData};

/// Opens data of credentials. Only for the activation process.
pub(super) struct CredentialOpener {
    keys: Arc<OrganizationKeyring>,
}

impl CredentialOpener {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }
}

impl Opener for CredentialOpener {
    fn open(
        &self,
        keys: &OrganizationKeys,
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
        let key = self.keys.key_of(context.organization, keys, &key_context, id)?;
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
