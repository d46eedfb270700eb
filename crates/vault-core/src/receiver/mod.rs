//! Receivers: where the vault reports what happens, by webhook or e-mail, so that nobody has to look.
//!
//! What happened is read from the audit, from expiries and from notices, after it was decided: a decision writes nothing for
//! receivers. [`Occurrence`] says what is reported, [`judge_attempt`] what follows from an attempt to deliver it.

mod address;
mod delivery;
mod event;
mod mail;
mod occurrence;

pub use address::{MAX_ADDRESS_LENGTH, Url as WebhookUrl, check_url};
pub use delivery::{
    Attempted, DeliveryFailure, DeliveryState, EventDelivery, FIRST_RETRY_SECONDS, GIVE_UP_SECONDS, KEPT_SECONDS,
    MAIL_EVERY_SECONDS, ReceiverEffect, judge_attempt,
};
pub use event::{EventKind, EventKinds};
pub use mail::{Mail, compose_mail};
pub(crate) use occurrence::{DAY, may_set_expiry};
pub use occurrence::{EventPosition, Expiring, ExpiringObject, Occurrence, THRESHOLD_DAYS};

use crate::digest::{Digest, DigestPurpose};
use crate::id::{OrganizationId, ReceiverId};
use crate::port::KeyedDigester;
use crate::sealed::Blob;
use crate::time::Timestamp;

/// The most receivers that an organization, or the instance, may have.
pub const MAX_RECEIVERS: i64 = 10;
/// How long a signing secret that was replaced still signs, in seconds.
pub const SECRET_OVERLAP_SECONDS: i64 = 24 * 3600;
/// What a signing secret begins with (Standard Webhooks 1.0).
pub const SECRET_PREFIX: &str = "whsec_";

/// By what a receiver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A signed request to a URL (Standard Webhooks 1.0).
    Webhook,
    /// A mail.
    Email,
}

impl Channel {
    /// The channel's name on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Email => "email",
        }
    }

    /// The channel of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Webhook, Self::Email].into_iter().find(|channel| channel.as_str() == text)
    }
}

/// Whether a receiver is told anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverState {
    /// It is told what happens.
    Active,
    /// It is told nothing: an admin said so, or the receiver did, by status 410.
    Disabled,
}

impl ReceiverState {
    /// The state's name on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    /// The state of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled].into_iter().find(|state| state.as_str() == text)
    }
}

/// A receiver, without what is secret of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its id.
    pub id: ReceiverId,
    /// Whose events it is told; `None`: those of the instance.
    pub organization: Option<OrganizationId>,
    /// By what it is told.
    pub channel: Channel,
    /// Its address, masked.
    pub shown: String,
    /// What it is told.
    pub events: EventKinds,
    /// Whether it is told anything.
    pub state: ReceiverState,
    /// One more with every change.
    pub version: i64,
    /// When it was added.
    pub created_at: Timestamp,
}

impl Receiver {
    /// The version of a new receiver.
    pub const FIRST_VERSION: i64 = 1;

    /// Whether it is told of this event.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.state == ReceiverState::Active && (kind == EventKind::ReceiverTest || self.events.contains(kind))
    }
}

/// What is sealed of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedTarget {
    /// Its URL or e-mail address.
    pub address: Blob,
    /// The number of the current signing secret: 1 for the first.
    pub secret_number: i64,
    /// The current signing secret; empty for e-mail.
    pub secret: Blob,
    /// The signing secret before it; empty if there is none.
    pub previous_secret: Blob,
    /// Until when that one signs too.
    pub previous_until: Timestamp,
}

/// How telling a receiver goes. None of it is under the row's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// When it last accepted something.
    pub last_delivered_at: Option<Timestamp>,
    /// Why the last attempt failed; `None`: it did not.
    pub last_failure: Option<DeliveryFailure>,
    /// Since when a delivery was given up, or it said that it is gone, and nothing was accepted.
    pub failing_since: Option<Timestamp>,
    /// It is told nothing before this, tests aside.
    pub not_before: Timestamp,
}

impl ReceiverStatus {
    /// That of a new receiver.
    pub const NEW: Self = Self {
        last_delivered_at: None,
        last_failure: None,
        failing_since: None,
        not_before: Timestamp::from_millis(0),
    };
}

/// A receiver as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceiver {
    /// The receiver.
    pub receiver: Receiver,
    /// What is sealed of it.
    pub target: SealedTarget,
    /// The code over both. Where it does not fit, the receiver is told nothing.
    pub code: Digest,
    /// How telling it goes.
    pub status: ReceiverStatus,
}

impl StoredReceiver {
    /// The receiver under the code that its row is to carry.
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

    /// Whether the row fits its code.
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::ReceiverGrant, parts, &self.code))
    }

    /// Its state as it is shown: `active`, `disabled` or `failing`.
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
