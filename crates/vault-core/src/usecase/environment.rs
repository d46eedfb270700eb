//! What every operation needs from its surroundings.

use crate::audit::{Actor, Affected, AuditAction, AuditNote, AuditRecord, SealedAuditRecord};
use crate::command::Command;
use crate::id::{AuditId, OrganizationId};
use crate::port::{AuditSealer, Clock, Event, EventSink, IdGenerator, RequestContext, SealError};
use crate::principal::Principal;
use crate::time::Timestamp;
use std::sync::Arc;

/// How often a decision is made at least, because others change the same rows.
const FEWEST_ATTEMPTS: usize = 16;
/// How often it is made at most.
const MOST_ATTEMPTS: usize = 256;
/// How long it is made anew, in milliseconds.
const ATTEMPTS_MILLIS: i64 = 2_000;

/// Clock, ids, events and the audit's codes.
#[derive(Clone)]
pub struct Environment {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Events.
    pub events: Arc<dyn EventSink>,
    /// Codes over audit records.
    pub audit: Arc<dyn AuditSealer>,
    /// The request that is being carried out, for audit records.
    pub request_context: Arc<dyn RequestContext>,
}

impl Environment {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Attempts at a decision that another one may come between: as many as fit into two seconds, so that fifty callers
    /// who change one row at one instant all have their turn.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = usize> + Send + use<> {
        let (clock, began) = (Arc::clone(&self.clock), self.now());
        let in_time = move |made: &usize| *made < FEWEST_ATTEMPTS || clock.now().millis_since(began) < ATTEMPTS_MILLIS;
        (0..MOST_ATTEMPTS).take_while(in_time)
    }

    /// Counts or logs something.
    pub fn emit(&self, event: Event) {
        self.events.emit(event);
    }

    /// Counts and logs that a stored row does not open.
    pub fn report(&self, error: &SealError) {
        if let SealError::Integrity { table, object, .. } | SealError::UnknownKey { table, object, .. } = error {
            self.emit(Event::IntegrityFailure { table, id: object.clone() });
        }
    }

    /// A sealed record of a single act.
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

    /// The envelope of `act`, recorded as `action` on what it affects.
    pub fn command<A>(
        &self,
        principal: &Principal,
        organization: Option<OrganizationId>,
        action: AuditAction,
        affected: impl Into<Affected>,
        act: A,
    ) -> Command<A> {
        let now = self.now();
        let audit = self.record(now, organization, Actor::from(principal), action, affected);
        Command { principal: principal.clone(), now, audit, act }
    }

    /// A sealed record of a single act that concerns a namespace of `organization`.
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
        let (Affected { subject, rows, changes, .. }, origin) = (affected, self.request_context.current());
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
