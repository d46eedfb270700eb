//! Delivery of the audit log to a sink: its lease, and the position up to which it was delivered.

use crate::digest::Digest;
use crate::id::KeyId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::AuditSealer;
use crate::time::Timestamp;
use uuid::Uuid;

/// Prefix of the bytes that the MAC of a position covers. It distinguishes them from an entry, whose encoding starts
/// with the length of its ID.
const PREFIX: &[u8] = b"audit delivery ";

/// The last delivered checkpoint, as stored: it may have been changed outside the service. Its MAC shows whether it is
/// genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPosition {
    /// Number of the checkpoint, or 0 before the first.
    pub checkpoint: i64,
    /// Key of the MAC.
    pub key: String,
    /// MAC of the number.
    pub mac: Vec<u8>,
}

impl DeliveryPosition {
    /// Creates the position after the checkpoint with this number, recorded at `now`.
    pub fn seal(checkpoint: i64, now: Timestamp, sealer: &dyn AuditSealer) -> Self {
        let (key, mac) = sealer.mac(&covered(checkpoint), now);
        Self { checkpoint, key: key.to_string(), mac: mac.as_bytes().to_vec() }
    }

    /// Returns whether the MAC verifies.
    pub fn is_genuine(&self, sealer: &dyn AuditSealer) -> bool {
        let (Ok(key), Ok(mac)) = (self.key.parse::<KeyId>(), self.mac.as_slice().try_into()) else { return false };
        sealer.is_mac(key, &covered(self.checkpoint), Digest::from_bytes(mac))
    }
}

fn covered(checkpoint: i64) -> Vec<u8> {
    [PREFIX, &checkpoint.to_be_bytes()].concat()
}

/// State of the delivery in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryState {
    /// Position up to which the log was delivered.
    pub position: DeliveryPosition,
    /// End of the current lease, if any.
    pub until: Option<Timestamp>,
}

/// Change of the delivery state from outside the service. Entries may not have been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryBreach {
    /// The MAC of the position does not verify.
    #[error(
        "the delivery position of the audit log, checkpoint {0}, was modified outside the service: its MAC does not verify"
    )]
    Changed(i64),
    /// The position is after the newest checkpoint.
    #[error("the delivery position of the audit log is checkpoint {position}, but the newest checkpoint is {newest}")]
    Ahead {
        /// Number in the position.
        position: i64,
        /// Number of the newest checkpoint.
        newest: i64,
    },
    /// The lease is longer than any process acquires it.
    #[error("the delivery of the audit log is reserved until {}, which is longer than any server reserves it", .0.to_rfc3339().unwrap_or_default())]
    Reserved(Timestamp),
}

/// Acquires the lease of one process to deliver the audit log to a sink, while other processes wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryLease {
    /// ID of the process.
    pub holder: Uuid,
    /// Current time.
    pub now: Timestamp,
    /// End of the lease, unless the process renews it.
    pub until: Timestamp,
    /// Position at which delivery starts if nothing was ever delivered.
    pub first: DeliveryPosition,
}

impl DeliveryLease {
    /// Maximum duration of a lease, in seconds. A stored lease that ends later was not created by OrgVault, and is
    /// ignored.
    pub const LONGEST_SECONDS: i64 = 60;
}

impl Operation for DeliveryLease {
    /// Position up to which the audit log was delivered. `None` if another process has the lease.
    type Outcome = Option<DeliveryPosition>;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<DeliveryPosition>, Failure> {
        let position = unit.rows().take_delivery_lease(self).await?;
        if position.is_some() {
            unit.commit_without_entry();
        }
        Ok(position)
    }
}

/// Records that the audit log was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordDelivered {
    /// ID of the process that has the lease.
    pub holder: Uuid,
    /// Checkpoint from which it delivered.
    pub from: i64,
    /// Position up to which it delivered.
    pub to: DeliveryPosition,
}

impl Operation for RecordDelivered {
    /// `false` if the process no longer has the lease.
    type Outcome = bool;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<bool, Failure> {
        let is_moved = unit.rows().move_delivery_position(self).await?;
        if is_moved {
            unit.commit_without_entry();
        }
        Ok(is_moved)
    }
}

/// Reads the state of the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadDelivery;

impl Operation for ReadDelivery {
    /// `None` if no process ever acquired the lease.
    type Outcome = Option<DeliveryState>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<DeliveryState>, Failure> {
        Ok(unit.rows().delivery_state().await?)
    }
}
