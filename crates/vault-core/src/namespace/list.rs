//! Lists of namespaces.

use super::{NAMESPACE_COUNT_LIMIT, Namespace, NamespaceState};
use crate::entity::Index;
use crate::id::OrganizationId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::NamePosition;
use crate::principal::Scope;
use crate::time::Timestamp;
use std::collections::BTreeMap;

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
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

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
        let after = NamePosition { organization: *organization, name: from.to_owned() };
        let (index, of) = (Index::FrozenNamespace, Some(*organization));
        for frozen in unit.list::<NamespaceState>(index, of, Some(after), *limit).await? {
            let NamespaceState { namespace, frozen_at } = frozen.into_value();
            let unused = ListedNamespace { namespace: namespace.clone(), credentials: 0, frozen_at: None };
            listed.entry(namespace).or_insert(unused).frozen_at = frozen_at;
        }
        Ok(listed.into_values().take(*limit).collect())
    }
}
