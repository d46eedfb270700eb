//! How far the audit was delivered outside.

use crate::digest::Digest;
use crate::id::KeyId;
use crate::port::AuditSealer;
use crate::time::Timestamp;

/// Before what the code of a position covers. An entry's bytes begin with the length of its id.
const PREFIX: &[u8] = b"audit delivery ";

/// The last checkpoint that was delivered, as a store has it: it may have been changed outside the service. Its code tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPosition {
    /// The number of the checkpoint; 0 before the first.
    pub checkpoint: i64,
    /// Key of the MAC.
    pub key: String,
    /// The code over the number.
    pub code: Vec<u8>,
}

impl DeliveryPosition {
    /// The position after the checkpoint of this number, as it is noted at `now`.
    pub fn seal(checkpoint: i64, now: Timestamp, sealer: &dyn AuditSealer) -> Self {
        let (key, code) = sealer.code(&covered(checkpoint), now);
        Self { checkpoint, key: key.to_string(), code: code.as_bytes().to_vec() }
    }

    /// Returns whether the MAC verifies.
    pub fn is_genuine(&self, sealer: &dyn AuditSealer) -> bool {
        let (Ok(key), Ok(code)) = (self.key.parse::<KeyId>(), self.code.as_slice().try_into()) else { return false };
        sealer.is_code(key, &covered(self.checkpoint), Digest::from_bytes(code))
    }
}

fn covered(checkpoint: i64) -> Vec<u8> {
    [PREFIX, &checkpoint.to_be_bytes()].concat()
}

/// How the delivery of the audit stands in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryState {
    /// How far it was delivered.
    pub position: DeliveryPosition,
    /// Until when a process has the right to deliver.
    pub until: Option<Timestamp>,
}

/// What was done to the delivery of the audit from outside the service. Entries may not have been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryBreach {
    /// The position does not fit its code.
    #[error(
        "the position of the audit's delivery, checkpoint {0}, was changed outside the service: it does not fit its code"
    )]
    Changed(i64),
    /// The position is after the newest checkpoint.
    #[error("the position of the audit's delivery is checkpoint {position}, but the newest checkpoint is {newest}")]
    Ahead {
        /// The number in the position.
        position: i64,
        /// The number of the newest checkpoint.
        newest: i64,
    },
    /// A process has the right to deliver for longer than any process takes it.
    #[error("the audit's delivery is reserved until {}, longer than any server reserves it", .0.to_rfc3339().unwrap_or_default())]
    Reserved(Timestamp),
}
