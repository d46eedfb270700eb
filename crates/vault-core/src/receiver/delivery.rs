//! An event on its way to a receiver, and what follows from an attempt.

use super::{Channel, EventKind, ReceiverStatus};
use crate::digest::{Digest, DigestPurpose};
use crate::id::{EventId, OrganizationId, ReceiverId};
use crate::port::KeyedDigester;
use crate::time::Timestamp;

/// The second attempt is made so many seconds after the first, at least; at most twelve times as many.
pub const FIRST_RETRY_SECONDS: i64 = 5;
/// After so many seconds, nothing more is attempted.
pub const GIVE_UP_SECONDS: i64 = 24 * 3600;
/// How long a delivery that has ended is kept to be looked at, in seconds.
pub const KEPT_SECONDS: i64 = 7 * 24 * 3600;
/// A receiver gets at most one mail in so many seconds.
pub const MAIL_EVERY_SECONDS: i64 = 3600;

/// How long after each further attempt the next one is made, in seconds; after the last, always as long.
const RETRIES: [i64; 5] = [300, 900, 3_600, 7_200, 14_400];

/// Why an attempt failed, in fixed words: a receiver's answer is no way to look into a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryFailure {
    /// The host name does not resolve.
    Dns,
    /// The address lies in a network that this server does not connect to.
    Blocked,
    /// No connection, or no answer in time.
    Unreachable,
    /// The certificate is not trusted.
    Tls,
    /// It redirects, which is not followed.
    Redirected,
    /// It answers with status 410: it wants no more.
    Gone,
    /// It answers with another error.
    Refused,
    /// This server sends no mail.
    NoMail,
    /// The mail server offers no STARTTLS, which is required.
    NoStartTls,
    /// The mail server offers no login, or none that is supported.
    NoLogin,
    /// The address belongs to no active account of the organization any more.
    NoMember,
    /// The row was changed outside the service.
    Damaged,
}

impl DeliveryFailure {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Dns,
        Self::Blocked,
        Self::Unreachable,
        Self::Tls,
        Self::Redirected,
        Self::Gone,
        Self::Refused,
        Self::NoMail,
        Self::NoStartTls,
        Self::NoLogin,
        Self::NoMember,
        Self::Damaged,
    ];

    /// Its name on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "unknown-host",
            Self::Blocked => "blocked-address",
            Self::Unreachable => "unreachable",
            Self::Tls => "untrusted-certificate",
            Self::Redirected => "redirected",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::NoMail => "no-mail-server",
            Self::NoStartTls => "starttls-not-offered",
            Self::NoLogin => "login-not-offered",
            Self::NoMember => "no-member",
            Self::Damaged => "damaged",
        }
    }

    /// The failure of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.as_str() == text)
    }

    /// Whether nothing that waits for the receiver could be delivered now, whichever it is.
    const fn concerns_all(self) -> bool {
        !matches!(self, Self::Refused | Self::Damaged)
    }

    /// Whether the receiver is to be disabled.
    const fn disables(self) -> bool {
        matches!(self, Self::Gone | Self::NoMember)
    }
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// It is to be attempted, again perhaps.
    Waiting,
    /// It was accepted.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// Its name on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of this exact name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Delivered, Self::Failed].into_iter().find(|state| state.as_str() == text)
    }
}

/// An event for a receiver, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDelivery {
    /// The event. A receiver gets it as `webhook-id`, with each attempt the same.
    pub id: EventId,
    /// Whose event it is.
    pub organization: Option<OrganizationId>,
    /// Who is told.
    pub receiver: ReceiverId,
    /// Orders the events of a receiver.
    pub position: i64,
    /// What happened.
    pub kind: EventKind,
    /// What it happened to: events of one subject are delivered in their order.
    pub subject: String,
    /// The body of the webhook: JSON.
    pub body: String,
    /// When it happened.
    pub at: Timestamp,
    /// The code over all of that. Where it does not fit, nothing is sent.
    pub code: Digest,
    /// How far it is.
    pub state: DeliveryState,
    /// Since when it waits: it is given up a day later.
    pub since: Timestamp,
    /// How often it was attempted.
    pub attempts: i64,
    /// When it was attempted last.
    pub attempted_at: Option<Timestamp>,
    /// When it is attempted next, while it waits.
    pub next_at: Timestamp,
    /// Why the last attempt failed.
    pub failure: Option<DeliveryFailure>,
}

impl EventDelivery {
    /// The delivery under the code that its row is to carry.
    #[must_use]
    pub fn signed(self, digester: &dyn KeyedDigester) -> Self {
        let code = self.with_parts(|parts| digester.digest(DigestPurpose::EventDelivery, parts));
        Self { code, ..self }
    }

    /// Whether the row fits its code.
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::EventDelivery, parts, &self.code))
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

    /// How many seconds after its last attempt it is attempted again. Of many that failed at one moment, each waits for
    /// another time.
    fn retry_seconds(&self) -> i64 {
        if self.attempts <= 1 {
            let spread = i64::from(self.id.as_bytes()[15]) % 12 + 1;
            return FIRST_RETRY_SECONDS * spread;
        }
        let further = usize::try_from(self.attempts - 2).unwrap_or(usize::MAX);
        RETRIES.get(further).or(RETRIES.last()).copied().unwrap_or(GIVE_UP_SECONDS)
    }
}

/// What an attempt changes of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverEffect {
    /// How telling it goes from now on.
    pub status: ReceiverStatus,
    /// Whether it is disabled.
    pub disables: bool,
}

/// What follows from an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The delivery as it is from now on.
    pub delivery: EventDelivery,
    /// What it changes of its receiver.
    pub receiver: ReceiverEffect,
    /// Whether others that wait for the receiver may be attempted now.
    pub goes_on: bool,
}

/// Decides what follows from an attempt at `now` to deliver an event to a receiver.
pub fn judge_attempt(
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
            goes_on: true,
        };
    };
    let next_at = now.plus_seconds(delivery.retry_seconds());
    let disables = failure.disables();
    let gives_up = disables || next_at > delivery.since.plus_seconds(GIVE_UP_SECONDS);
    let concerns_all = failure.concerns_all();
    let receiver = ReceiverStatus {
        last_failure: Some(failure),
        failing_since: status.failing_since.or(gives_up.then_some(now)),
        not_before: if concerns_all { status.not_before.max(next_at) } else { status.not_before },
        ..*status
    };
    let state = if gives_up { DeliveryState::Failed } else { DeliveryState::Waiting };
    Attempted {
        delivery: EventDelivery { state, next_at, ..delivery },
        receiver: ReceiverEffect { status: receiver, disables },
        goes_on: !concerns_all,
    }
}
