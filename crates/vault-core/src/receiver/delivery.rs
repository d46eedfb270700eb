//! Delivery of an event to a receiver, and the result of an attempt.

use super::{Channel, EventKind, ReceiverStatus};
use crate::digest::{Digest, DigestPurpose};
use crate::id::{EventId, OrganizationId, ReceiverId};
use crate::port::KeyedDigester;
use crate::time::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Minimum time between the first and the second attempt, in seconds. The maximum is twelve times as long.
pub const FIRST_RETRY_SECONDS: i64 = 5;
/// Time after which a delivery is given up, in seconds.
pub const GIVE_UP_SECONDS: i64 = 24 * 3600;
/// Retention of a finished delivery, in seconds.
pub const KEPT_SECONDS: i64 = 7 * 24 * 3600;
/// Maximum time for which a failed attempt suspends all deliveries to a webhook, in seconds.
pub const LONGEST_PAUSE_SECONDS: i64 = 300;
/// Minimum time between two mails to a receiver, in seconds.
pub const MAIL_EVERY_SECONDS: i64 = 3600;

/// Time after each further attempt until the next one, in seconds. The last value applies to all later attempts.
const RETRIES: [i64; 5] = [300, 900, 3_600, 7_200, 14_400];

/// Reason why an attempt failed, in fixed words, so that the response of a receiver cannot be used to explore a
/// network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum DeliveryFailure {
    /// The host name cannot be resolved.
    #[strum(to_string = "unknown-host")]
    Dns,
    /// The address is in a network to which this server does not connect.
    #[strum(to_string = "blocked-address")]
    Blocked,
    /// The outgoing proxy does not respond, refuses this server's credentials, or does not permit the host.
    #[strum(to_string = "proxy-failed")]
    Proxy,
    /// No connection, or no response in time.
    Unreachable,
    /// The certificate is not trusted.
    #[strum(to_string = "untrusted-certificate")]
    Tls,
    /// The endpoint responded with a redirect, which is not followed.
    Redirected,
    /// The endpoint responded with status 410, and wants no more events.
    Gone,
    /// The endpoint responded with another error.
    Refused,
    /// This server sends no mail.
    #[strum(to_string = "no-mail-server")]
    NoMail,
    /// The mail server offers no STARTTLS, which is required.
    #[strum(to_string = "starttls-not-offered")]
    NoStartTls,
    /// The mail server offers no login, or none that is supported.
    #[strum(to_string = "login-not-offered")]
    NoLogin,
    /// The address no longer belongs to an active account of the organization.
    NoMember,
    /// The row was changed outside the service.
    Damaged,
}

named!(DeliveryFailure);

impl DeliveryFailure {
    /// Returns for how long the failure suspends all deliveries to the receiver, in seconds, if the attempt is repeated
    /// after `retry_seconds`. `None`: other deliveries continue.
    ///
    /// The event itself may be why a webhook drops the connection. Events of other subjects do not wait for it, so the
    /// pause is only long enough not to flood an endpoint that is down. One mail contains all pending events.
    fn pause_seconds(self, channel: Channel, retry_seconds: i64) -> Option<i64> {
        match (self, channel) {
            (Self::Refused | Self::Damaged, _) => None,
            (_, Channel::Email) => Some(retry_seconds),
            (Self::Unreachable, Channel::Webhook) => Some(FIRST_RETRY_SECONDS),
            (_, Channel::Webhook) => Some(retry_seconds.min(LONGEST_PAUSE_SECONDS)),
        }
    }

    /// Returns whether the failure disables the receiver.
    const fn disables(self) -> bool {
        matches!(self, Self::Gone | Self::NoMember)
    }
}

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum DeliveryState {
    /// Queued for the first or another attempt.
    Waiting,
    /// Accepted by the receiver.
    Delivered,
    /// Given up.
    Failed,
}

named!(DeliveryState);

/// An event for a receiver, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDelivery {
    /// ID of the event. Every attempt sends it as `webhook-id`.
    pub id: EventId,
    /// Organization of the event.
    pub organization: Option<OrganizationId>,
    /// ID of the receiver.
    pub receiver: ReceiverId,
    /// Position in the order of the receiver's events.
    pub position: i64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Object of the event. Events of one subject are delivered in order.
    pub subject: String,
    /// Body of the webhook, in JSON.
    pub body: String,
    /// Time of the event.
    pub at: Timestamp,
    /// MAC of all fields above. If it does not verify, nothing is sent.
    pub mac: Digest,
    /// State of the delivery.
    pub state: DeliveryState,
    /// Time since which it is pending. A day later, it is given up.
    pub since: Timestamp,
    /// Number of attempts.
    pub attempts: i64,
    /// Time of the last attempt.
    pub attempted_at: Option<Timestamp>,
    /// Time of the next attempt, while it is pending.
    pub next_at: Timestamp,
    /// Failure of the last attempt.
    pub failure: Option<DeliveryFailure>,
}

impl EventDelivery {
    /// Signs the fields and returns the delivery with its MAC.
    #[must_use]
    pub fn signed(self, digester: &dyn KeyedDigester) -> Self {
        let mac = self.with_parts(|parts| digester.digest(DigestPurpose::EventDelivery, parts));
        Self { mac, ..self }
    }

    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::EventDelivery, parts, &self.mac))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let organization = self.organization.as_ref().map_or(&[][..], |organization| organization.as_bytes());
        digest(&[
            self.id.as_bytes(),
            organization,
            self.receiver.as_bytes(),
            &self.position.to_be_bytes(),
            self.kind.as_str().as_bytes(),
            self.subject.as_bytes(),
            self.body.as_bytes(),
            &self.at.as_millis().to_be_bytes(),
        ])
    }

    /// Returns the time until the next attempt, in seconds. The first delay depends on the event ID, so that deliveries
    /// that fail together are not retried together.
    fn retry_seconds(&self) -> i64 {
        if self.attempts <= 1 {
            let spread = i64::from(self.id.as_bytes()[15]) % 12 + 1;
            return FIRST_RETRY_SECONDS * spread;
        }
        let further = usize::try_from(self.attempts - 2).unwrap_or(usize::MAX);
        RETRIES.get(further).or(RETRIES.last()).copied().unwrap_or(GIVE_UP_SECONDS)
    }
}

/// Change of a receiver by an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverEffect {
    /// New delivery status.
    pub status: ReceiverStatus,
    /// Whether it is disabled.
    pub disables: bool,
}

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// New state of the delivery.
    pub delivery: EventDelivery,
    /// Change of its receiver.
    pub receiver: ReceiverEffect,
    /// Whether other pending deliveries of the receiver may be attempted now.
    pub continues: bool,
}

/// Decides the result of an attempt at `now` to deliver an event to a receiver.
pub fn decide_attempt(
    channel: Channel,
    status: &ReceiverStatus,
    delivery: &EventDelivery,
    outcome: Result<(), DeliveryFailure>,
    now: Timestamp,
) -> Attempted {
    let attempts = delivery.attempts.saturating_add(1);
    let delivery = EventDelivery { attempts, attempted_at: Some(now), failure: outcome.err(), ..delivery.clone() };
    let Err(failure) = outcome else {
        let is_counted = channel == Channel::Email && delivery.kind != EventKind::ReceiverTest;
        let not_before = if is_counted { now.plus_seconds(MAIL_EVERY_SECONDS) } else { status.not_before };
        let status =
            ReceiverStatus { last_delivered_at: Some(now), last_failure: None, failing_since: None, not_before };
        return Attempted {
            delivery: EventDelivery { state: DeliveryState::Delivered, ..delivery },
            receiver: ReceiverEffect { status, disables: false },
            continues: true,
        };
    };
    let retry_seconds = delivery.retry_seconds();
    let next_at = now.plus_seconds(retry_seconds);
    let disables = failure.disables();
    let gives_up = disables || next_at > delivery.since.plus_seconds(GIVE_UP_SECONDS);
    let pause = failure.pause_seconds(channel, retry_seconds);
    let receiver = ReceiverStatus {
        last_failure: Some(failure),
        failing_since: status.failing_since.or(gives_up.then_some(now)),
        not_before: pause.map_or(status.not_before, |seconds| status.not_before.max(now.plus_seconds(seconds))),
        ..*status
    };
    let state = if gives_up { DeliveryState::Failed } else { DeliveryState::Waiting };
    Attempted {
        delivery: EventDelivery { state, next_at, ..delivery },
        receiver: ReceiverEffect { status: receiver, disables },
        continues: pause.is_none(),
    }
}
