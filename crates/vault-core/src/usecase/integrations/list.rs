//! List integrations and namespaces.

use super::Integrations;
use crate::cursor::{self, ListName, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::integration::StoredIntegration;
use crate::namespace::Namespace;
use crate::port::{FrozenNamespace, ListFrozen, ListIntegrations, ListNamespaces, ListedNamespace, NamePosition};
use crate::principal::{Denial, Principal, Scope};
use crate::role::Action;

/// A page of integrations.
#[derive(Clone, Debug, PartialEq)]
pub struct IntegrationPage {
    /// The integrations, by organization and name.
    pub integrations: Vec<StoredIntegration>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// A page of an organization's namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacePage {
    /// The namespaces, by name.
    pub namespaces: Vec<ListedNamespace>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Integrations {
    /// Reads a page of the integrations in `scope`, by organization and name. A previous token that no longer works is
    /// left out.
    ///
    /// # Errors
    /// [`Refusal::Cursor`]: the cursor was not made for this list.
    pub async fn list(&self, principal: &Principal, scope: Scope, page: PageRequest) -> Result<IntegrationPage, Error> {
        Self::permit_scope(principal, scope)?;
        let after = self.position(ListName::Integrations, scope, page.cursor.as_deref())?;
        let now = self.ambient.now();
        let limit = page.limit.saturating_add(1); // one more tells whether there is a next page
        let query = ListIntegrations { principal: principal.clone(), scope, after, limit, now };
        let mut rows = self.store.list_integrations(query).await?;
        let more = rows.len() > page.limit;
        rows.truncate(page.limit);
        let next = rows.last().filter(|_| more).map(|last| {
            let (organization, name) = (last.integration.organization, last.integration.name.uniqueness_key());
            self.cursor(ListName::Integrations, scope, &NamePosition { organization, name })
        });
        let shown = |row: StoredIntegration| StoredIntegration { integration: row.integration.shown(now), ..row };
        Ok(IntegrationPage { integrations: rows.into_iter().map(shown).collect(), next })
    }

    /// Reads a page of the organization's namespaces that have credentials or are frozen.
    ///
    /// # Errors
    /// [`Refusal::Cursor`]: the cursor was not made for this list.
    pub async fn list_namespaces(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        page: PageRequest,
    ) -> Result<NamespacePage, Error> {
        let scope = Scope::One(organization);
        Self::permit_scope(principal, scope)?;
        let after = self.position(ListName::Namespaces, scope, page.cursor.as_deref())?;
        let after = after.map(|position| Namespace::parse(&position.name, "")).transpose();
        let after = after.map_err(|_| Refusal::Cursor)?;
        let now = self.ambient.now();
        let limit = page.limit.saturating_add(1);
        let query = ListNamespaces { principal: principal.clone(), organization, after, limit, now };
        let mut namespaces = self.store.list_namespaces(query).await?;
        let more = namespaces.len() > page.limit;
        namespaces.truncate(page.limit);
        let next = namespaces.last().filter(|_| more).map(|last| {
            let name = last.namespace.as_str().to_owned();
            self.cursor(ListName::Namespaces, scope, &NamePosition { organization, name })
        });
        Ok(NamespacePage { namespaces, next })
    }

    /// The frozen namespaces in `scope`, by organization and namespace, at most `limit` after the position `after`.
    ///
    /// # Errors
    /// The principal may not ask for it.
    pub async fn list_frozen(
        &self,
        principal: &Principal,
        scope: Scope,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Result<Vec<FrozenNamespace>, Error> {
        Self::permit_scope(principal, scope)?;
        let query = ListFrozen { principal: principal.clone(), scope, after, limit, now: self.ambient.now() };
        Ok(self.store.list_frozen(query).await?)
    }

    fn permit_scope(principal: &Principal, scope: Scope) -> Result<(), Error> {
        principal.administers(Action::ManageIntegrations)?;
        if principal.may_see(scope) { Ok(()) } else { Err(Denial::InsufficientRole.into()) }
    }

    fn cursor(&self, list: ListName, scope: Scope, last: &NamePosition) -> String {
        let position = [last.organization.as_bytes().as_slice(), last.name.as_bytes()].concat();
        cursor::encode_position(&*self.digester, list, scope, &position)
    }

    fn position(&self, list: ListName, scope: Scope, text: Option<&str>) -> Result<Option<NamePosition>, Error> {
        let Some(text) = text else { return Ok(None) };
        let position = cursor::decode_position(&*self.digester, list, scope, text).map_err(|_| Refusal::Cursor)?;
        let (organization, name) = position.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| Refusal::Cursor)?;
        Ok(Some(NamePosition { organization: OrganizationId::from_bytes(*organization), name }))
    }
}
