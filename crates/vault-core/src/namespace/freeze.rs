//! Freezing and thawing a namespace.

use super::{Namespace, NamespaceState};
use crate::audit::AuditAction;
use crate::entity::{Entity as _, Kind, Opened};
use crate::error::Refusal;
use crate::id::OrganizationId;
use crate::integration::Integration;
use crate::operation::{Access, Failure, Operation, Unit};
use futures_util::try_join;
use uuid::Uuid;

/// Largest number to which the credentials of a namespace are counted.
pub const NAMESPACE_COUNT_LIMIT: i64 = 1_000;

/// Freezes or thaws a namespace, which may be empty. Activations that are decided afterwards use the new state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFrozen {
    /// Organization of the namespace.
    pub organization: OrganizationId,
    /// Namespace to change, compared exactly.
    pub namespace: Namespace,
    /// Whether the namespace is frozen after the change.
    pub frozen: bool,
    /// ID of the state of a namespace that was never frozen.
    pub id: Uuid,
}

/// Result of freezing or thawing a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freezing {
    /// Whether the state changed. If it did not, nothing was written or recorded.
    pub changed: bool,
    /// Number of credentials in the namespace, counted up to [`NAMESPACE_COUNT_LIMIT`].
    pub credentials: i64,
    /// Number of integrations that may activate the namespace while it is not frozen, without disabled and expired ones.
    pub integrations: i64,
}

impl Operation for SetFrozen {
    type Outcome = Freezing;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Freezing, Failure> {
        unit.authorize().await?;
        let (organization, namespace, rows) = (self.organization, &self.namespace, unit.rows());
        let exists = unit.principal().reaches(organization) && unit.organization(organization).await?.is_some();
        if !exists {
            return Err(Refusal::NoOrganization.into());
        }
        let lookup = NamespaceState::lookup(namespace);
        let most = usize::try_from(NAMESPACE_COUNT_LIMIT).unwrap_or(usize::MAX);
        let (integrations, credentials, before) = try_join!(
            // None of them activates until the transaction ends.
            async { Ok(rows.lock_entities(organization, Kind::Integration).await?) },
            async { Ok(rows.count_in(organization, namespace, most).await?) },
            unit.find_by::<NamespaceState>(organization, &lookup),
        )?;
        // An integration that does not open activates nothing, and does not prevent a freeze.
        let opened = integrations.iter().filter_map(|row| Opened::<Integration>::open(unit.sealer(), row).ok());
        let integrations = opened.filter(|one| one.may_activate(namespace, unit.now())).count();
        let integrations = i64::try_from(integrations).unwrap_or(i64::MAX);
        let is_frozen = before.as_ref().is_some_and(|before| before.frozen_at.is_some());
        if is_frozen == self.frozen {
            return Ok(Freezing { changed: false, credentials, integrations });
        }
        let after = NamespaceState { namespace: namespace.clone(), frozen_at: self.frozen.then(|| unit.now()) };
        match &before {
            Some(before) => unit.replace(before, &after).await?,
            None => unit.insert(organization, self.id, &after).await?,
        }
        let action = if self.frozen { AuditAction::NamespaceFrozen } else { AuditAction::NamespaceThawed };
        unit.record(Some(organization), action, after.subject(self.id)).await?;
        Ok(Freezing { changed: true, credentials, integrations })
    }
}
