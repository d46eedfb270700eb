//! Moves credentials from one organization key to another.

use crate::blob::{self, NONCE, OpenError};
use crate::context::Context;
use crate::entropy::Drawn;
use crate::error::{does_not_open, no_entropy, not_sealed, unknown_key};
use crate::organization_keys::{DerivedKeys, OrganizationKeyring};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::port::{CredentialContext, Rewrapper, SealError, SealedContent, SealedRow};
use vault_core::sealed::{SealedCredential, SealedMetadata};

/// Random bytes per row: two nonces.
const DRAWN: usize = 2 * NONCE;

/// Rewraps data keys and reseals information and metadata. It cannot open data.
pub(super) struct CredentialRewrapper {
    keys: Arc<OrganizationKeyring>,
}

impl CredentialRewrapper {
    pub(super) fn new(keys: Arc<OrganizationKeyring>) -> Self {
        Self { keys }
    }

    fn rewrap_one(
        &self,
        context: CredentialContext,
        from: &DerivedKeys,
        to: &DerivedKeys,
        content: SealedContent,
    ) -> Result<SealedContent, SealError> {
        let instance = self.keys.instance();
        let entropy = &Drawn::<DRAWN>::from(self.keys.entropy()).map_err(no_entropy)?;
        match content {
            SealedContent::Version(sealed) => {
                let place = Context::data(instance, context);
                let data_key_id =
                    blob::sealing_key(&sealed.data).ok_or_else(|| does_not_open(&place, OpenError::Truncated))?;
                let place = Context::data_key(instance, context, data_key_id);
                let data_key =
                    from.wrap.unwrap(&place, &sealed.data_key).map_err(|error| does_not_open(&place, error))?;
                let data_key = to.wrap.wrap(entropy, &place, &data_key).map_err(not_sealed)?;
                let place = Context::information(instance, context);
                let text =
                    from.information.open(&place, &sealed.information).map_err(|error| does_not_open(&place, error))?;
                let information = to.information.seal(entropy, &place, &text).map_err(not_sealed)?;
                Ok(SealedContent::Version(SealedCredential { key: to.id(), data_key, data: sealed.data, information }))
            }
            SealedContent::Metadata(sealed) => {
                let place = Context::metadata(instance, context);
                let text = from.information.open(&place, &sealed.blob).map_err(|error| does_not_open(&place, error))?;
                let blob = to.information.seal(entropy, &place, &text).map_err(not_sealed)?;
                Ok(SealedContent::Metadata(SealedMetadata { key: to.id(), revision: sealed.revision, blob }))
            }
        }
    }
}

#[async_trait]
impl Rewrapper for CredentialRewrapper {
    async fn rewrap(
        &self,
        organization: OrganizationId,
        to: KeyId,
        rows: Vec<SealedRow>,
    ) -> Result<Vec<Result<SealedRow, SealError>>, SealError> {
        let Some(to) = self.keys.key(organization, to).await? else {
            let (table, column) = ("organization_keys", "id");
            return Err(SealError::UnknownKey { table, column, object: organization.to_string(), key: to });
        };
        let mut rewrapped = Vec::with_capacity(rows.len());
        let mut current: Option<Arc<DerivedKeys>> = None;
        for row in rows {
            let SealedRow { credential, version, id, .. } = row;
            let context = CredentialContext { organization, credential, version, id };
            // Consecutive rows mostly name the same key.
            let from = match current.take_if(|key| key.id() == row.key()) {
                Some(key) => key,
                None => match self.keys.key(organization, row.key()).await? {
                    Some(key) => key,
                    None => {
                        let place = Context::information(self.keys.instance(), context);
                        rewrapped.push(Err(unknown_key(&place, row.key())));
                        continue;
                    }
                },
            };
            let content = self.rewrap_one(context, &from, &to, row.content);
            rewrapped.push(content.map(|content| SealedRow { credential, version, id, content }));
            current = Some(from);
        }
        Ok(rewrapped)
    }
}
