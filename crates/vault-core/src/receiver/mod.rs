//! Receivers: webhooks and e-mail addresses that get notifications of events.
//!
//! Events are read from the audit log, from expiries and from notices after their transactions, so no transaction
//! writes anything for receivers. [`Occurrence`] defines the reported events, and [`decide_attempt`] the result of an
//! attempt to deliver it.

mod address;
mod deliver;
mod delivery;
mod event;
mod manage;
mod occurrence;
mod read;

pub use address::{MAX_ADDRESS_LENGTH, Url as WebhookUrl, check_url};
pub use deliver::{
    IsMember, ListDeliveries, Pending, PendingDeliveries, QueueDeliveries, ReceiversDue, RecordAttempts,
    RemoveDeliveries, ResendEvent, TestReceiver,
};
pub use delivery::{
    Attempted, DeliveryFailure, DeliveryState, EventDelivery, FIRST_RETRY_SECONDS, GIVE_UP_SECONDS, KEPT_SECONDS,
    LONGEST_PAUSE_SECONDS, MAIL_EVERY_SECONDS, ReceiverEffect, decide_attempt,
};
pub use event::{EventKind, EventKinds};
pub use manage::{
    ActiveReceivers, AddReceiver, ChangeReceiver, DisableReceiver, FindReceivers, ReceiverChange, RemoveReceiver,
};
pub(crate) use occurrence::{DAY, may_set_expiry};
pub use occurrence::{EventPosition, Expiring, ExpiringObject, Occurrence, THRESHOLD_DAYS};
pub use read::{AccountNotice, EventLease, FindExpiring, NoticesBetween, RecordEvents};

use crate::audit::{Affected, Subject};
use crate::entity::{DocumentSecret, Entity, EntityKey, Index, Kind, Lookup, OF_INSTANCE, Opened};
use crate::id::{OrganizationId, ReceiverId};
use crate::port::{Entropy, NoEntropy};
use crate::principal::Principal;
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Maximum number of receivers of an organization, or of the instance.
pub const MAX_RECEIVERS: usize = 10;
/// Time for which a replaced signing secret still signs, in seconds.
pub const SECRET_OVERLAP_SECONDS: i64 = 24 * 3600;
/// Prefix of a signing secret (Standard Webhooks 1.0).
pub const SECRET_PREFIX: &str = "whsec_";
/// Length of a signing secret in bytes (Standard Webhooks 1.0: 24 to 64).
const SECRET_BYTES: usize = 32;

/// Generates a signing secret.
///
/// # Errors
/// The operating system returns no randomness.
pub fn generate_signing_secret(entropy: &dyn Entropy) -> Result<DocumentSecret, NoEntropy> {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    entropy.fill(&mut *secret)?;
    let encoded = Zeroizing::new(STANDARD.encode(*secret));
    Ok(SecretString::from(format!("{SECRET_PREFIX}{}", *encoded)).into())
}

/// Owner of receivers: an organization, or `None` for the instance.
pub type ReceiverOwner = Option<OrganizationId>;

/// Identifies a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiverKey {
    /// Its owner.
    pub owner: ReceiverOwner,
    /// Its ID.
    pub id: ReceiverId,
}

impl ReceiverKey {
    /// Returns the organization in its rows: the nil ID for a receiver of the instance.
    pub fn organization(self) -> OrganizationId {
        self.owner.unwrap_or(OF_INSTANCE)
    }

    /// Returns the key of a row with this organization and ID.
    pub fn of_row(organization: OrganizationId, id: Uuid) -> Self {
        Self { owner: Some(organization).filter(|owner| *owner != OF_INSTANCE), id: ReceiverId::from_uuid(id) }
    }
}

/// Returns whether a principal may see the receivers of an owner: those of its organization; an operator, all.
fn reaches(principal: &Principal, owner: ReceiverOwner) -> bool {
    principal.organization().is_none_or(|own| owner == Some(own))
}

/// Channel through which a receiver gets notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    /// A signed request to a URL (Standard Webhooks 1.0).
    Webhook,
    /// A mail.
    Email,
}

named!(Channel);

/// State of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReceiverState {
    /// Gets notifications.
    Active,
    /// Gets no notifications, because an admin or a response with status 410 disabled it.
    Disabled,
}

named!(ReceiverState);

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receiver {
    /// Channel.
    pub channel: Channel,
    /// URL or e-mail address. The path of a URL may be a secret.
    pub address: DocumentSecret,
    /// Masked address.
    pub shown: String,
    /// Events of which it is notified.
    pub events: EventKinds,
    /// Whether it gets notifications.
    pub state: ReceiverState,
    /// Signing secret of a webhook.
    pub secret: Option<DocumentSecret>,
    /// The signing secret that was replaced last.
    pub previous: Option<PreviousSecret>,
    /// Time of the addition.
    pub created_at: Timestamp,
}

/// A replaced signing secret, which signs too until the end of its overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    /// The secret.
    pub secret: DocumentSecret,
    /// Time from which it no longer signs.
    pub until: Timestamp,
}

impl Receiver {
    /// Returns whether it is notified of events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.state == ReceiverState::Active && (kind == EventKind::ReceiverTest || self.events.contains(kind))
    }

    /// Returns the secrets that sign at `now`, the current one first.
    pub fn secrets(&self, now: Timestamp) -> Vec<SecretString> {
        let previous = self.previous.iter().filter(|previous| now < previous.until).map(|previous| &previous.secret);
        self.secret.iter().chain(previous).map(|secret| secret.text().clone()).collect()
    }
}

impl Entity for Receiver {
    const KIND: Kind = Kind::Receiver;

    fn lookups(&self, id: Uuid) -> Vec<Lookup> {
        let active = (self.state == ReceiverState::Active).then(|| Lookup::new(Index::ActiveReceiver, id.to_string()));
        active.into_iter().collect()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Receiver(ReceiverId::from_uuid(id)).into()
    }
}

/// Delivery status of a receiver, in a row that is not protected.
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
    /// Owner and ID.
    pub key: ReceiverKey,
    /// Number that each change increments.
    pub version: i64,
    /// The receiver.
    pub receiver: Receiver,
    /// Delivery status.
    pub status: ReceiverStatus,
}

impl StoredReceiver {
    fn new(opened: Opened<Receiver>, status: ReceiverStatus) -> Self {
        let EntityKey { organization, id, .. } = opened.key();
        let (key, version) = (ReceiverKey::of_row(organization, id), opened.version());
        Self { key, version, receiver: opened.into_value(), status }
    }

    /// Returns the displayed state: `active`, `disabled` or `failing`.
    pub fn shown_state(&self) -> &'static str {
        match (self.receiver.state, self.status.failing_since) {
            (ReceiverState::Active, Some(_)) => "failing",
            (state, _) => state.as_str(),
        }
    }
}
