//! Delivery of audit entries to a sink.

use super::Operator;
use crate::audit::{
    Actor, AppendEntries, AuditAction, DeliveryBreach, DeliveryLease, DeliveryPosition, FindEntries, ReadCheckpoints,
    ReadDelivery, RecordDelivered, Subject,
};
use crate::error::Error;
use crate::port::{AuditSink, Event};
use uuid::Uuid;

/// Duration of the delivery lease, in seconds. If a sink takes longer for one checkpoint, it may get entries twice.
const LEASE_SECONDS: i64 = DeliveryLease::LONGEST_SECONDS / 2;

/// Result of one round of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveredAudit {
    /// Number of delivered entries.
    pub entries: usize,
    /// Number of the last delivered checkpoint.
    pub checkpoint: i64,
    /// Number of pending checkpoints.
    pub waiting: i64,
}

/// Progress of the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// Number of pending checkpoints.
    pub waiting: i64,
    /// Change of the delivery state from outside the service, if any.
    pub breach: Option<DeliveryBreach>,
}

/// Entries could not be delivered, and are still pending.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The sink did not accept the entries of a checkpoint.
    #[error("the entries of audit checkpoint {checkpoint} were not accepted")]
    Sink {
        /// Number of the checkpoint.
        checkpoint: i64,
        /// Reason.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Operator {
    /// Delivers the entries of checkpoints that `sink` has not accepted yet, in order and at least once, until none
    /// remain or `millis` milliseconds have passed. Only one process delivers at a time. Returns `None` if it is not
    /// `holder`.
    ///
    /// # Errors
    /// The store or the sink failed. Earlier deliveries are recorded.
    pub async fn deliver_audit(
        &self,
        sink: &dyn AuditSink,
        holder: Uuid,
        millis: i64,
    ) -> Result<Option<DeliveredAudit>, DeliveryError> {
        let (began, mut entries) = (self.environment.now(), 0);
        loop {
            let Some(checkpoint) = self.begin_delivery(holder).await? else { return Ok(None) };
            let newest = self.newest_checkpoint().await?.number;
            let waiting = newest.saturating_sub(checkpoint).max(0);
            if waiting == 0 || (entries > 0 && self.environment.now().millis_since(began) >= millis) {
                return Ok(Some(DeliveredAudit { entries, checkpoint, waiting }));
            }
            let next = self.run(ReadCheckpoints::From(checkpoint + 1)).await?.pop();
            let Some(next) = next else { return Ok(Some(DeliveredAudit { entries, checkpoint, waiting: 0 })) };
            // Missing and damaged checkpoints are reported by `verify_audit`.
            let ids = next.sealed.map(|sealed| sealed.checkpoint.entries).unwrap_or_default();
            let found = self.run(FindEntries(ids)).await?;
            if !found.is_empty() {
                let delivered = sink.deliver(&found).await;
                delivered.map_err(|cause| DeliveryError::Sink { checkpoint: next.number, cause })?;
                entries += found.len();
            }
            if !self.note_delivered(holder, checkpoint, next.number).await? {
                return Ok(None);
            }
        }
    }

    /// Acquires the delivery lease for half a minute, unless another process has it. Returns the last delivered
    /// checkpoint, initially 0, so that an attacker cannot silence a sink by deleting the delivery state. If the
    /// position was changed outside the service, reports and records that and restarts delivery.
    ///
    /// # Errors
    /// The store failed.
    pub async fn begin_delivery(&self, holder: Uuid) -> Result<Option<i64>, Error> {
        let now = self.environment.now();
        let Some(position) = self.acquire_delivery_lease(holder, LEASE_SECONDS).await? else { return Ok(None) };
        if self.breach_of(&position).await?.is_none() {
            return Ok(Some(position.checkpoint));
        }
        let (table, id) = ("audit_delivery", position.checkpoint.to_string());
        self.environment.emit(Event::IntegrityFailure { table, id });
        // Append this first, so that it is reported again if the position is not reset.
        let action = AuditAction::AuditDeliveryReset;
        let record = self.environment.record(now, None, Actor::System, action, Subject::Audit);
        let id = record.record.id;
        self.run(AppendEntries(vec![record])).await?;
        self.environment.awaited.add([id]);
        Ok(self.note_delivered(holder, position.checkpoint, 0).await?.then_some(0))
    }

    /// Releases the delivery lease, so that another process can acquire it before it expires.
    ///
    /// # Errors
    /// The store failed. The lease expires automatically.
    pub async fn end_delivery(&self, holder: Uuid) -> Result<(), Error> {
        self.acquire_delivery_lease(holder, 0).await?;
        Ok(())
    }

    /// Returns the progress of the delivery by any process, or `None` if nothing was ever delivered.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delivery_progress(&self) -> Result<Option<DeliveryProgress>, Error> {
        let Some(state) = self.run(ReadDelivery).await? else { return Ok(None) };
        let longest = self.environment.now().plus_seconds(DeliveryLease::LONGEST_SECONDS);
        let reserved = state.until.filter(|until| *until > longest).map(DeliveryBreach::Reserved);
        let breach = self.breach_of(&state.position).await?.or(reserved);
        let newest = self.newest_checkpoint().await?.number;
        Ok(Some(DeliveryProgress { waiting: newest.saturating_sub(state.position.checkpoint).max(0), breach }))
    }

    async fn acquire_delivery_lease(&self, holder: Uuid, seconds: i64) -> Result<Option<DeliveryPosition>, Error> {
        let now = self.environment.now();
        let (until, first) = (now.plus_seconds(seconds), DeliveryPosition::seal(0, now, &*self.environment.audit));
        self.run(DeliveryLease { holder, now, until, first }).await
    }

    async fn note_delivered(&self, holder: Uuid, from: i64, to: i64) -> Result<bool, Error> {
        let to = DeliveryPosition::seal(to, self.environment.now(), &*self.environment.audit);
        self.run(RecordDelivered { holder, from, to }).await
    }

    async fn breach_of(&self, position: &DeliveryPosition) -> Result<Option<DeliveryBreach>, Error> {
        let (position, genuine) = (position.checkpoint, position.is_genuine(&*self.environment.audit));
        if !genuine {
            return Ok(Some(DeliveryBreach::Changed(position)));
        }
        let newest = self.newest_checkpoint().await?.number;
        Ok((position > newest).then_some(DeliveryBreach::Ahead { position, newest }))
    }
}
