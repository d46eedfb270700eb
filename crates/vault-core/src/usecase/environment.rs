//! Environment that all operations require.

use crate::audit::{Actor, Affected, AuditAction, AuditNote, AuditRecord, AwaitedEntries, Origin, SealedAuditRecord};
use crate::id::{AuditId, OrganizationId};
use crate::port::{AuditSealer, Clock, Event, EventSink, IdGenerator, SealError};
use crate::time::Timestamp;
use std::sync::Arc;

/// Clock, IDs, events and MACs of audit entries.
#[derive(Clone)]
pub struct Environment {
    /// Port for the time.
    pub clock: Arc<dyn Clock>,
    /// Port that generates IDs.
    pub ids: Arc<dyn IdGenerator>,
    /// Port that receives events.
    pub events: Arc<dyn EventSink>,
    /// Port that computes the MACs of audit entries.
    pub audit: Arc<dyn AuditSealer>,
    /// Entries that this process recorded and that await their checkpoint.
    pub awaited: Arc<AwaitedEntries>,
    /// Origin of the request that the operations belong to, for audit entries.
    pub origin: Origin,
}

impl Environment {
    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Emits an event. An entry that was recorded must then be part of a checkpoint. Logins have their own events.
    pub fn emit(&self, event: Event) {
        if let Event::Recorded(record) = &event {
            self.awaited.add([record.id]);
            if record.action.is_login() {
                return;
            }
        }
        self.events.emit(event);
    }

    /// Emits the event that a stored row cannot be decrypted.
    pub fn report(&self, error: &SealError) {
        error.event().into_iter().for_each(|event| self.emit(event));
    }

    /// Creates the sealed audit entry of a single action.
    pub fn record(
        &self,
        at: Timestamp,
        organization: Option<OrganizationId>,
        actor: Actor,
        action: AuditAction,
        affected: impl Into<Affected>,
    ) -> SealedAuditRecord {
        let mut affected = affected.into();
        let note = affected.namespace.take().map(AuditNote::of);
        self.seal(at, organization, actor, action, affected, note)
    }

    /// Creates the sealed audit entry of a single action on a namespace of `organization`.
    pub fn record_on(
        &self,
        at: Timestamp,
        organization: OrganizationId,
        actor: Actor,
        action: AuditAction,
        affected: impl Into<Affected>,
        note: AuditNote,
    ) -> SealedAuditRecord {
        self.seal(at, Some(organization), actor, action, affected.into(), Some(note))
    }

    fn seal(
        &self,
        at: Timestamp,
        organization: Option<OrganizationId>,
        actor: Actor,
        action: AuditAction,
        affected: Affected,
        note: Option<AuditNote>,
    ) -> SealedAuditRecord {
        let id = AuditId::from_uuid(self.ids.ordered(at));
        let (Affected { subject, rows, changes, .. }, origin) = (affected, self.origin);
        let count = 1;
        self.audit.seal(AuditRecord {
            id,
            at,
            organization,
            actor,
            action,
            subject,
            count,
            note,
            origin,
            rows,
            changes,
        })
    }
}
