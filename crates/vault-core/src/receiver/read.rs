//! Reading of events: one process at a time reads them, and queues their deliveries.

use super::{EventDelivery, EventPosition, Expiring};
use crate::id::{AccountId, OrganizationId};
use crate::notice::StoredNotice;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::future::try_join_all;
use uuid::Uuid;

/// Acquires the lease of one process to read and deliver events, while other processes wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLease {
    /// ID of the process.
    pub holder: Uuid,
    /// Current time.
    pub now: Timestamp,
    /// End of the lease, unless the process renews it.
    pub until: Timestamp,
    /// Position at which reading starts if no events were ever read.
    pub first: EventPosition,
}

impl EventLease {
    /// Maximum duration of a lease, in seconds. A stored lease that ends later was not created by OrgVault, and is
    /// ignored.
    pub const LONGEST_SECONDS: i64 = 60;
}

impl Operation for EventLease {
    /// The position up to which events were read. `None` if another process has the lease.
    type Outcome = Option<EventPosition>;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<EventPosition>, Failure> {
        let position = unit.rows().take_event_lease(self).await?;
        if position.is_some() {
            unit.commit_without_entry();
        }
        Ok(position)
    }
}

/// Records events that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEvents {
    /// ID of the process that has the lease.
    pub holder: Uuid,
    /// Position from which it read.
    pub from: EventPosition,
    /// Position up to which it read.
    pub to: EventPosition,
    /// Deliveries to queue. Deliveries that are already stored are not changed.
    pub deliveries: Vec<EventDelivery>,
}

impl Operation for RecordEvents {
    /// `false` if the process no longer has the lease, or if the stored position is another one. Nothing is changed then.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let rows = unit.rows();
        if !rows.move_event_position(self.holder, &self.from, &self.to).await? {
            return Ok(false);
        }
        try_join_all(self.deliveries.iter().map(|delivery| rows.insert_delivery(delivery))).await?;
        unit.commit_without_entry();
        Ok(true)
    }
}

/// Finds the credentials of an organization that expire within a period, in the order of their expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindExpiring {
    /// The organization.
    pub organization: OrganizationId,
    /// Exclusive start of the period.
    pub after: Timestamp,
    /// Inclusive end of the period.
    pub until: Timestamp,
    /// Maximum number of credentials.
    pub limit: usize,
}

impl Operation for FindExpiring {
    type Outcome = Vec<Expiring>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<Expiring>, Failure> {
        Ok(unit.rows().expiring_credentials(self).await?)
    }
}

/// A notice with its account.
pub type AccountNotice = (OrganizationId, AccountId, StoredNotice);

/// Finds the notices of all accounts in a period, in the order of their times. Accounts whose latest attempt in that period led
/// to a lockout have the notice [`NoticeCode::LockedOut`](crate::notice::NoticeCode::LockedOut).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticesBetween {
    /// Exclusive start of the period.
    pub after: Timestamp,
    /// Inclusive end of the period.
    pub until: Timestamp,
}

impl Operation for NoticesBetween {
    type Outcome = Vec<AccountNotice>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<AccountNotice>, Failure> {
        Ok(unit.rows().notices_between(self.after, self.until).await?)
    }
}
