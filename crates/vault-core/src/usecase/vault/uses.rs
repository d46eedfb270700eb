//! Where a credential is used, and by whom.

use super::Vault;
use crate::audit::AuditAction;
use crate::credential::{CredentialUse, Holder, ListHolders, ListUses, UsePosition};
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::integration::{IntegrationName, IntegrationNames};
use crate::principal::{Principal, Scope};
use crate::role::Action;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

impl Vault {
    /// Reads a page of the activations that issued the credential, newest first: the active ones, and those that
    /// expired within [`USE_SECONDS`](crate::credential::USE_SECONDS).
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a credential of another organization. [`Refusal::Cursor`] if the cursor does not
    /// belong to this list.
    pub async fn uses(
        &self,
        principal: &Principal,
        id: CredentialId,
        page: PageRequest,
    ) -> Result<Page<CredentialUse>, Error> {
        let organization = principal.member(Action::Save)?;
        let (digester, scope) = (&*self.digester, Scope::One(organization));
        let decode = |bytes: Vec<u8>| {
            let (of, position) = bytes.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
            let (at, activation) = position.split_first_chunk::<8>().ok_or(Refusal::Cursor)?;
            if CredentialId::from_bytes(*of) != id {
                return Err(Refusal::Cursor); // a cursor of another credential
            }
            let activation = ActivationId::from_bytes(activation.try_into().map_err(|_| Refusal::Cursor)?);
            Ok(UsePosition { at: Timestamp::from_millis(i64::from_be_bytes(*at)), activation })
        };
        let after = match page.cursor.as_deref() {
            Some(text) => Some(decode(cursor::decode_position(digester, ListName::Uses, scope, text).await?)?),
            None => None,
        };
        let listed = ListUses { organization, id, after, limit: page.rows() };
        let uses = self.operations.run(&self.environment, principal, listed).await?;
        let mut page = Page::of(uses, &page, |last| {
            let at = last.at.as_millis().to_be_bytes();
            let position = [id.as_bytes().as_slice(), &at, last.activation.as_bytes()].concat();
            cursor::encode_position(digester, ListName::Uses, scope, &position)
        });
        let names = self.names(principal, organization, page.items.iter().map(|one| one.integration)).await?;
        for one in &mut page.items {
            one.name = names.get(&one.integration).cloned();
        }
        self.count(principal, organization, AuditAction::CredentialShown);
        Ok(page)
    }

    /// Returns the current version of a credential, its holders, and the names of those integrations that exist. The result
    /// depends on the number of integrations and versions, and not on the number of activations.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a credential of another organization.
    pub async fn holders(&self, principal: &Principal, id: CredentialId) -> Result<(i64, Vec<Holder>, Names), Error> {
        let organization = principal.member(Action::Save)?;
        let listed = ListHolders(organization, id);
        let (version, holders) = self.operations.run(&self.environment, principal, listed).await?;
        let names = self.names(principal, organization, holders.iter().map(|one| one.integration)).await?;
        self.count(principal, organization, AuditAction::CredentialShown);
        Ok((version, holders, names))
    }

    async fn names(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        of: impl Iterator<Item = IntegrationId>,
    ) -> Result<Names, Error> {
        let integrations = of.collect::<BTreeSet<_>>().into_iter().collect();
        let names = IntegrationNames { organization, integrations };
        self.operations.run(&self.environment, principal, names).await
    }
}

/// Names of integrations.
type Names = BTreeMap<IntegrationId, IntegrationName>;
