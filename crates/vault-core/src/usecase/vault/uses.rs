//! List where a credential is used.

use super::Vault;
use crate::audit::AuditAction;
use crate::cursor::{self, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId};
use crate::port::{CredentialUse, List, UsePosition};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

impl Vault {
    /// Reads a page of the activations that handed the credential out within
    /// [`USE_SECONDS`](crate::port::USE_SECONDS), newest first.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for another organization's credential; [`Refusal::Cursor`].
    pub async fn uses(
        &self,
        principal: &Principal,
        id: CredentialId,
        page: PageRequest,
    ) -> Result<Page<CredentialUse>, Error> {
        let organization = principal.member(Action::Save)?;
        let digester = &*self.digester;
        let decode = |text: &str| {
            let bytes = cursor::decode_use(digester, organization, id, text)?;
            let (at, activation) = bytes.split_at(8);
            let millis = i64::from_be_bytes(at.try_into().map_err(|_| Refusal::Cursor)?);
            let activation = ActivationId::from_bytes(activation.try_into().map_err(|_| Refusal::Cursor)?);
            Ok::<_, Refusal>(UsePosition { at: Timestamp::from_millis(millis), activation })
        };
        let after = page.cursor.as_deref().map(decode).transpose()?;
        let now = self.ambient.now();
        let query = List { principal: principal.clone(), of: (organization, id), after, limit: page.rows(), now };
        let uses = self.store.list_uses(query).await?.ok_or(Refusal::NotFound)?;
        let page = Page::of(uses, &page, |last| {
            let mut position = [0; 24];
            position[..8].copy_from_slice(&last.at.as_millis().to_be_bytes());
            position[8..].copy_from_slice(last.activation.as_bytes());
            cursor::encode_use(digester, organization, id, &position)
        });
        self.count(principal, organization, now, AuditAction::CredentialShown);
        Ok(page)
    }
}
