//! Lists of namespaces.

use super::{NAMESPACE_COUNT_LIMIT, Namespace, NamespaceState};
use crate::entity::Index;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::NamePosition;
use crate::principal::Scope;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Lists a page of frozen namespaces, ordered by organization and namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFrozen {
    /// Organizations of the namespaces.
    pub scope: Scope,
    /// Position after which the page starts.
    pub after: Option<NamePosition>,
    /// Maximum number of results.
    pub limit: usize,
}

/// Frozen namespace: no integration can activate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenNamespace {
    /// Organization of the namespace.
    pub organization: OrganizationId,
    /// Frozen namespace, unique in its organization.
    pub namespace: Namespace,
    /// Time at which the namespace was frozen.
    pub frozen_at: Timestamp,
}

impl Operation for ListFrozen {
    type Outcome = Vec<FrozenNamespace>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        self.scope.one()
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<FrozenNamespace>, Failure> {
        unit.authorize_for(self.scope).await?;
        frozen(unit, self.organization(), self.after.clone(), self.limit).await
    }
}

async fn frozen(
    unit: &Unit<'_>,
    of: Option<OrganizationId>,
    after: Option<NamePosition>,
    limit: usize,
) -> Result<Vec<FrozenNamespace>, Failure> {
    let states = unit.list::<NamespaceState>(Index::FrozenNamespace, of, after, limit).await?;
    let frozen = states.into_iter().filter_map(|state| {
        let organization = state.key().organization;
        let NamespaceState { namespace, frozen_at } = state.into_value();
        Some(FrozenNamespace { organization, namespace, frozen_at: frozen_at? })
    });
    Ok(frozen.collect())
}

async fn one(
    unit: &Unit<'_>,
    organization: OrganizationId,
    namespace: &Namespace,
) -> Result<Option<ListedNamespace>, Failure> {
    let most = usize::try_from(NAMESPACE_COUNT_LIMIT).unwrap_or(usize::MAX);
    let credentials = unit.rows().count_in(organization, namespace, most).await?;
    let state = unit.find_by::<NamespaceState>(organization, &NamespaceState::lookup(namespace)).await?;
    let frozen_at = state.and_then(|state| state.into_value().frozen_at);
    let listed = ListedNamespace { namespace: namespace.clone(), credentials, frozen_at };
    Ok(Some(listed).filter(|listed| listed.credentials > 0 || listed.frozen_at.is_some()))
}

/// Lists a page of the namespaces that have credentials or are frozen, ordered by namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListNamespaces {
    /// Organization of the namespaces.
    pub organization: OrganizationId,
    /// Namespace after which the page starts.
    pub after: Option<Namespace>,
    /// Maximum number of results.
    pub limit: usize,
    /// Filter: only this namespace.
    pub only: Option<Namespace>,
}

/// Namespace that has credentials or is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNamespace {
    /// Namespace, unique in its organization.
    pub namespace: Namespace,
    /// Number of credentials in the namespace, counted up to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// Time at which the namespace was frozen, if it is frozen.
    pub frozen_at: Option<Timestamp>,
}

impl Operation for ListNamespaces {
    type Outcome = Vec<ListedNamespace>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<ListedNamespace>, Failure> {
        let Self { organization, after, limit, only } = self;
        unit.authorize_for(Scope::One(*organization)).await?;
        if let Some(namespace) = only {
            return Ok(one(unit, *organization, namespace).await?.into_iter().collect());
        }
        let from = after.as_ref().map_or("", Namespace::as_str);
        let most = usize::try_from(NAMESPACE_COUNT_LIMIT).unwrap_or(usize::MAX);
        let mut listed = BTreeMap::new();
        let mut last = from.to_owned();
        // One search of the index for each namespace, however many credentials it has.
        while listed.len() < *limit {
            let Some(namespace) = unit.rows().namespace_after(*organization, &last).await? else { break };
            let credentials = unit.rows().count_in(*organization, &namespace, most).await?;
            namespace.as_str().clone_into(&mut last);
            listed.insert(namespace.clone(), ListedNamespace { namespace, credentials, frozen_at: None });
        }
        let position = NamePosition { organization: *organization, name: from.to_owned() };
        for FrozenNamespace { namespace, frozen_at, .. } in
            frozen(unit, Some(*organization), Some(position), *limit).await?
        {
            let unused = ListedNamespace { namespace: namespace.clone(), credentials: 0, frozen_at: None };
            listed.entry(namespace).or_insert(unused).frozen_at = Some(frozen_at);
        }
        Ok(listed.into_values().take(*limit).collect())
    }
}
