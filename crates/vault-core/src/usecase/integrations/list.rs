//! Lists of integrations and namespaces.

use super::Integrations;
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::integration::{ListIntegrations, StoredIntegration};
use crate::namespace::{ListNamespaces, ListedNamespace, Namespace};
use crate::port::NamePosition;
use crate::principal::{Denial, Principal, Scope};
use crate::role::Action;

impl Integrations {
    /// Reads a page of the integrations in `scope`, ordered by organization and name. Invalid previous tokens are
    /// omitted.
    ///
    /// # Errors
    /// [`Refusal::Cursor`] if the cursor does not belong to this list.
    pub async fn list(
        &self,
        principal: &Principal,
        scope: Scope,
        page: PageRequest,
    ) -> Result<Page<StoredIntegration>, Error> {
        Self::permit_scope(principal, Action::ManageIntegrations, scope)?;
        let after = self.position(ListName::Integrations, scope, page.cursor.as_deref()).await?;
        let operation = ListIntegrations { scope, after, limit: page.rows() };
        let listed = self.operations.run(&self.environment, principal, operation).await?;
        let Page { items, next } = Page::of(listed, &page, |last| {
            let name = last.integration.name.uniqueness_key();
            self.cursor(ListName::Integrations, scope, last.organization, &name)
        });
        let now = self.environment.now();
        Ok(Page { items: items.into_iter().map(|row| row.shown(now)).collect(), next })
    }

    /// Reads a page of the organization's namespaces that have credentials or are frozen. Every role may read it.
    ///
    /// # Errors
    /// [`Refusal::Cursor`] if the cursor does not belong to this list.
    pub async fn list_namespaces(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        only: Option<Namespace>,
        page: PageRequest,
    ) -> Result<Page<ListedNamespace>, Error> {
        let scope = Scope::One(organization);
        Self::permit_scope(principal, Action::List, scope)?;
        let after = self.position(ListName::Namespaces, scope, page.cursor.as_deref()).await?;
        let after = after.map(|position| Namespace::parse(&position.name, "")).transpose();
        let after = after.map_err(|_| Refusal::Cursor)?;
        let operation = ListNamespaces { organization, after, limit: page.rows(), only };
        let listed = self.operations.run(&self.environment, principal, operation).await?;
        Ok(Page::of(listed, &page, |last| {
            self.cursor(ListName::Namespaces, scope, organization, last.namespace.as_str())
        }))
    }

    pub(super) fn permit_scope(principal: &Principal, action: Action, scope: Scope) -> Result<(), Error> {
        principal.administers(action)?;
        if principal.may_see(scope) { Ok(()) } else { Err(Denial::InsufficientRole.into()) }
    }

    fn cursor(&self, list: ListName, scope: Scope, organization: OrganizationId, name: &str) -> String {
        let position = [organization.as_bytes().as_slice(), name.as_bytes()].concat();
        cursor::encode_position(&*self.digester, list, scope, &position)
    }

    async fn position(&self, list: ListName, scope: Scope, text: Option<&str>) -> Result<Option<NamePosition>, Error> {
        let Some(text) = text else { return Ok(None) };
        let position = cursor::decode_position(&*self.digester, list, scope, text).await?;
        let (organization, name) = position.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| Refusal::Cursor)?;
        Ok(Some(NamePosition { organization: OrganizationId::from_bytes(*organization), name }))
    }
}
