//! What every operation needs from its surroundings.

use crate::audit::{Actor, AuditAction, AuditRecord, SealedAuditRecord, Subject};
use crate::id::{AuditId, OrganizationId};
use crate::port::{AuditSealer, Clock, Event, EventSink, IdGenerator};
use crate::time::Timestamp;
use std::sync::Arc;

/// Clock, ids, events and the audit's codes.
#[derive(Clone)]
pub struct Ambient {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Events.
    pub events: Arc<dyn EventSink>,
    /// Codes over audit records.
    pub audit: Arc<dyn AuditSealer>,
}

impl Ambient {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Counts or logs something.
    pub fn emit(&self, event: Event) {
        self.events.emit(event);
    }

    /// A sealed record of a single act.
    pub fn record(
        &self,
        at: Timestamp,
        organization: Option<OrganizationId>,
        actor: Actor,
        action: AuditAction,
        subject: Subject,
    ) -> SealedAuditRecord {
        let id = AuditId::from_uuid(self.ids.ordered(at));
        self.audit.seal(AuditRecord { id, at, organization, actor, action, subject, count: 1 })
    }
}
