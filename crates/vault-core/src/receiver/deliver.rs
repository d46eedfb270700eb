//! Operations on the deliveries of events.

use super::manage::find;
use super::{
    Attempted, DeliveryState, EventDelivery, Receiver, ReceiverKey, ReceiverOwner, ReceiverStatus, StoredReceiver,
};
use crate::account::is_member;
use crate::audit::{AuditAction, Subject};
use crate::email::EmailAddress;
use crate::entity::{EntityKey, Kind};
use crate::error::Refusal;
use crate::hourly::HourlyLimit;
use crate::id::{EventId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::future::try_join_all;
use futures_util::try_join;

/// Queues a test event as the newest delivery to its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReceiver(pub EventDelivery);

impl Operation for TestReceiver {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| operation.0.organization);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let key = self.0.to();
        unit.authorize().await?;
        find(unit, key).await?;
        // The operator has other ways to overload the server.
        if let Some(organization) = key.owner {
            unit.count_hourly(organization, &format!("test:{}", key.id), HourlyLimit::TESTS).await?;
        }
        unit.rows().insert_delivery(&self.0).await?;
        unit.record(key.owner, AuditAction::ReceiverTested, Subject::Receiver(key.id).into()).await
    }
}

/// Queues an event again as if it were new, whatever its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResendEvent {
    /// The receiver.
    pub key: ReceiverKey,
    /// The event.
    pub event: EventId,
}

impl Operation for ResendEvent {
    type Outcome = EventDelivery;
    const ACCESS: Access<Self> = Access::Write(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<EventDelivery, Failure> {
        let Self { key, event } = *self;
        unit.authorize().await?;
        find(unit, key).await?;
        let found = unit.rows().delivery(key, event).await?.ok_or(Refusal::NotFound)?;
        let now = unit.now();
        let again = EventDelivery { state: DeliveryState::Waiting, since: now, next_at: now, ..found };
        unit.rows().set_progress(&again).await?;
        unit.record(key.owner, AuditAction::ReceiverResent, Subject::Receiver(key.id).into()).await?;
        Ok(again)
    }
}

/// Lists deliveries to a receiver, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListDeliveries {
    /// The receiver.
    pub key: ReceiverKey,
    /// Position of the last delivery that was read.
    pub before: Option<i64>,
    /// Maximum number of results.
    pub limit: usize,
}

impl Operation for ListDeliveries {
    type Outcome = Vec<EventDelivery>;
    const ACCESS: Access<Self> = Access::Read(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<EventDelivery>, Failure> {
        unit.authorize().await?;
        find(unit, self.key).await?;
        Ok(unit.rows().deliveries(self.key, self.before.unwrap_or(i64::MAX), self.limit).await?)
    }
}

/// Queues deliveries of events that no other source contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDeliveries(pub Vec<EventDelivery>);

impl Operation for QueueDeliveries {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        try_join_all(self.0.iter().map(|delivery| unit.rows().insert_delivery(delivery))).await?;
        unit.commit_without_entry();
        Ok(())
    }
}

/// Finds the receivers with pending deliveries that may be attempted at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiversDue(pub Timestamp);

impl Operation for ReceiversDue {
    type Outcome = Vec<ReceiverKey>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<ReceiverKey>, Failure> {
        Ok(unit.rows().receivers_due(self.0).await?)
    }
}

/// Reads a receiver with its pending deliveries, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDeliveries {
    /// The receiver.
    pub key: ReceiverKey,
    /// Maximum number of deliveries.
    pub limit: usize,
}

/// Pending deliveries of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The receiver. The error is its status, if it does not open.
    pub receiver: Result<StoredReceiver, ReceiverStatus>,
    /// The deliveries.
    pub deliveries: Vec<EventDelivery>,
}

impl Operation for PendingDeliveries {
    /// `None` if the receiver does not exist.
    type Outcome = Option<Pending>;
    const ACCESS: Access<Self> = Access::Read(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Pending>, Failure> {
        let Self { key, limit } = *self;
        let entity = EntityKey { organization: key.organization(), kind: Kind::Receiver, id: *key.id.as_uuid() };
        let rows = unit.rows();
        let (row, status, deliveries) =
            try_join!(rows.entity(entity), rows.receiver_status(key), rows.waiting_deliveries(key, limit))?;
        let Some(row) = row else { return Ok(None) };
        let opened = unit.open_or_report::<Receiver>(&row)?;
        let receiver = opened.map(|opened| StoredReceiver::new(opened, status)).ok_or(status);
        Ok(Some(Pending { receiver, deliveries }))
    }
}

/// Returns whether an address belongs to an active account of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsMember {
    /// The organization.
    pub organization: OrganizationId,
    /// The address.
    pub address: EmailAddress,
}

impl Operation for IsMember {
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        is_member(unit, self.organization, &self.address).await
    }
}

/// Records the results of attempts to deliver to one receiver, in their order. Skips deliveries that were deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordAttempts(pub Vec<Attempted>);

impl Operation for RecordAttempts {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let rows = unit.rows();
        try_join_all(self.0.iter().map(|attempted| rows.set_progress(&attempted.delivery))).await?;
        if let Some(Attempted { delivery, receiver, .. }) = self.0.last() {
            rows.set_receiver_status(delivery.to(), &receiver.status).await?;
        }
        unit.commit_without_entry();
        Ok(())
    }
}

/// Deletes deliveries that finished before a time, and returns their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveDeliveries(pub Timestamp);

impl Operation for RemoveDeliveries {
    type Outcome = usize;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<usize, Failure> {
        unit.commit_without_entry();
        Ok(unit.rows().remove_ended_deliveries(self.0).await?)
    }
}

impl EventDelivery {
    /// Returns the receiver.
    pub const fn to(&self) -> ReceiverKey {
        let owner: ReceiverOwner = self.organization;
        ReceiverKey { owner, id: self.receiver }
    }
}
