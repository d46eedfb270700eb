//! Receivers: webhooks and e-mail addresses that get notifications of events.
//!
//! Events are read from the audit log, from expiries and from notices after their transactions, so no transaction
//! writes anything for receivers. [`Occurrence`] defines the reported events, and [`decide_attempt`] the result of an
//! attempt to deliver it.

mod address;
mod delivery;
mod event;
mod occurrence;

pub use address::{MAX_ADDRESS_LENGTH, Url as WebhookUrl, check_url};
pub use delivery::{
    Attempted, DeliveryFailure, DeliveryState, EventDelivery, FIRST_RETRY_SECONDS, GIVE_UP_SECONDS, KEPT_SECONDS,
    LONGEST_PAUSE_SECONDS, MAIL_EVERY_SECONDS, ReceiverEffect, decide_attempt,
};
pub use event::{EventKind, EventKinds};
pub(crate) use occurrence::{DAY, may_set_expiry};
pub use occurrence::{EventPosition, Expiring, ExpiringObject, Occurrence, THRESHOLD_DAYS};

use crate::audit::{Affected, RecordedRights, RecordedRow, RowState, Subject};
use crate::digest::{Digest, DigestPurpose};
use crate::id::{OrganizationId, ReceiverId};
use crate::port::KeyedDigester;
use crate::sealed::Blob;
use crate::time::Timestamp;

/// Maximum number of receivers of an organization, or of the instance.
pub const MAX_RECEIVERS: i64 = 10;
/// Time for which a replaced signing secret still signs, in seconds.
pub const SECRET_OVERLAP_SECONDS: i64 = 24 * 3600;
/// Prefix of a signing secret (Standard Webhooks 1.0).
pub const SECRET_PREFIX: &str = "whsec_";

/// Channel through which a receiver gets notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A signed request to a URL (Standard Webhooks 1.0).
    Webhook,
    /// A mail.
    Email,
}

impl Channel {
    /// Returns the name of the channel on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Email => "email",
        }
    }

    /// Returns the channel with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Webhook, Self::Email].into_iter().find(|channel| channel.as_str() == text)
    }
}

/// State of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverState {
    /// Gets notifications.
    Active,
    /// Gets no notifications, because an admin or a response with status 410 disabled it.
    Disabled,
}

impl ReceiverState {
    /// Returns the name of the state on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// Returns the state with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|state| state.as_str() == text)
    }
}

/// A receiver without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// ID of the receiver.
    pub id: ReceiverId,
    /// Organization whose events it gets. `None` for those of the instance.
    pub organization: Option<OrganizationId>,
    /// Channel.
    pub channel: Channel,
    /// Masked address.
    pub shown: String,
    /// Events of which it is notified.
    pub events: EventKinds,
    /// Whether it gets notifications.
    pub state: ReceiverState,
    /// Number that each change increments.
    pub version: i64,
    /// Time of the addition.
    pub created_at: Timestamp,
}

impl Receiver {
    /// Version of a new receiver.
    pub const FIRST_VERSION: i64 = 1;

    /// Returns whether it is notified of events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.state == ReceiverState::Active && (kind == EventKind::ReceiverTest || self.events.contains(kind))
    }
}

/// Sealed fields of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedTarget {
    /// Its URL or e-mail address.
    pub address: Blob,
    /// Number of the current signing secret, starting at 1.
    pub secret_number: i64,
    /// The current signing secret, empty for e-mail.
    pub secret: Blob,
    /// The previous signing secret, empty if there is none.
    pub previous_secret: Blob,
    /// Time until which the previous secret also signs.
    pub previous_until: Timestamp,
}

/// Delivery status of a receiver. The row's MAC does not cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// Time of the last accepted delivery.
    pub last_delivered_at: Option<Timestamp>,
    /// Failure of the last attempt. `None` if it succeeded.
    pub last_failure: Option<DeliveryFailure>,
    /// Time since which deliveries fail: a delivery was given up or the endpoint is gone, and nothing was accepted
    /// since.
    pub failing_since: Option<Timestamp>,
    /// Time before which nothing but tests is sent.
    pub not_before: Timestamp,
}

impl ReceiverStatus {
    /// Status of a new receiver.
    pub const NEW: Self = Self {
        last_delivered_at: None,
        last_failure: None,
        failing_since: None,
        not_before: Timestamp::from_millis(0),
    };
}

/// A stored receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceiver {
    /// The receiver.
    pub receiver: Receiver,
    /// Its sealed fields.
    pub target: SealedTarget,
    /// MAC of both. If it does not verify, the receiver gets no notifications.
    pub code: Digest,
    /// Delivery status.
    pub status: ReceiverStatus,
}

impl StoredReceiver {
    /// Signs the fields and returns the row with its MAC.
    pub fn sign(
        receiver: Receiver,
        target: SealedTarget,
        status: ReceiverStatus,
        digester: &dyn KeyedDigester,
    ) -> Self {
        let unsigned = Self { receiver, target, code: Digest::from_bytes([0; 32]), status };
        let code = unsigned.with_parts(|parts| digester.digest(DigestPurpose::ReceiverGrant, parts));
        Self { code, ..unsigned }
    }

    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::ReceiverGrant, parts, &self.code))
    }

    /// Returns the state of the row, as the audit log records it. The version stands for the sealed fields, because a
    /// key rotation seals them again.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedRights {
        let Receiver { id, organization, events, state, version, .. } = &self.receiver;
        let organization = organization.as_ref().map_or(&[][..], |organization| organization.as_bytes());
        let (events, version_bytes) = (events.to_stored(), version.to_be_bytes());
        let parts: [&[u8]; 5] =
            [id.as_bytes(), organization, events.as_bytes(), state.as_str().as_bytes(), &version_bytes];
        RowState::of_grant(RecordedRow::Receiver, *version, &parts, digester)
    }

    /// Returns the audited effect of an operation after which the receiver has this row.
    pub fn left(&self, digester: &dyn KeyedDigester) -> Affected {
        Subject::Receiver(self.receiver.id).left(RecordedRow::Receiver, self.states(digester).current())
    }

    /// Returns the displayed state: `active`, `disabled` or `failing`.
    pub const fn shown_state(&self) -> &'static str {
        match (self.receiver.state, self.status.failing_since) {
            (ReceiverState::Active, Some(_)) => "failing",
            (state, _) => state.as_str(),
        }
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Receiver { id, organization, channel, shown, events, state, version, created_at } = &self.receiver;
        let SealedTarget { address, secret_number, secret, previous_secret, previous_until } = &self.target;
        let events = events.to_stored();
        let organization = organization.as_ref().map_or(&[][..], |organization| organization.as_bytes());
        digest(&[
            id.as_bytes(),
            organization,
            channel.as_str().as_bytes(),
            shown.as_bytes(),
            events.as_bytes(),
            state.as_str().as_bytes(),
            &version.to_be_bytes(),
            &created_at.as_millis().to_be_bytes(),
            address.as_bytes(),
            &secret_number.to_be_bytes(),
            secret.as_bytes(),
            previous_secret.as_bytes(),
            &previous_until.as_millis().to_be_bytes(),
        ])
    }
}
