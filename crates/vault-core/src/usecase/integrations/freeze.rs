//! Freezing and unfreezing of namespaces.

use super::Integrations;
use crate::audit::{Actor, AuditAction, AuditNote, RecordedRow, RowState, Subject};
use crate::command::Command;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::namespace::Namespace;
use crate::port::{Event, FreezeNamespace, Freezing};
use crate::principal::Principal;

impl Integrations {
    /// Freezes `namespace`. After this returns, no activation issues its credentials.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`] if the organization does not exist.
    pub async fn freeze(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
    ) -> Result<Freezing, Error> {
        self.set_frozen(principal, organization, namespace, true).await
    }

    /// Unfreezes `namespace`.
    ///
    /// # Errors
    /// [`Refusal::NoOrganization`] if the organization does not exist.
    pub async fn thaw(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
    ) -> Result<Freezing, Error> {
        self.set_frozen(principal, organization, namespace, false).await
    }

    async fn set_frozen(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        namespace: Namespace,
        frozen: bool,
    ) -> Result<Freezing, Error> {
        Self::permit(principal, organization)?;
        let now = self.environment.now();
        let (action, state) = match frozen {
            true => (AuditAction::NamespaceFrozen, RowState::Closed),
            false => (AuditAction::NamespaceThawed, RowState::Open),
        };
        let affected = Subject::Namespace.left(RecordedRow::Namespace, state);
        let note = AuditNote::of(namespace.clone());
        let audit = self.environment.record_on(now, organization, Actor::from(principal), action, affected, note);
        let payload = FreezeNamespace { organization, namespace, frozen };
        let command = Command { principal: principal.clone(), now, audit, payload };
        let recorded = Event::recorded(&command.audit);
        let freezing = self.store.freeze_namespace(command).await?.ok_or(Refusal::NoOrganization)?;
        self.environment.emit(recorded);
        Ok(freezing)
    }
}
