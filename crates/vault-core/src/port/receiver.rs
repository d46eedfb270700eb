//! Receivers of events: in the store, their secrets sealed, and what reaches them.

use super::{AuditTrail, Find, IssuerRepository, List, SealError, StoreError};
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::digest::LookUpDigests;
use crate::error::Refusal;
use crate::id::{AccountId, EventId, OrganizationId, ReceiverId};
use crate::notice::StoredNotice;
use crate::receiver::{
    Attempted, DeliveryFailure, EventDelivery, EventPosition, Expiring, Mail, SealedTarget, StoredReceiver, WebhookUrl,
};
use crate::sealed::Blob;
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;
use uuid::Uuid;

/// Whose receivers are meant: an organization's, or those of the instance.
pub type ReceiverOwner = Option<OrganizationId>;

/// Adds a receiver.
#[derive(Clone, Debug)]
pub struct AddReceiver {
    /// The receiver.
    pub receiver: StoredReceiver,
    /// The digest of the e-mail address, which must be that of an active account of the organization; `None`: anybody's.
    pub member: Option<LookUpDigests>,
    /// The most receivers that its owner may have.
    pub limit: i64,
}

impl AddReceiver {
    /// The refusal of one receiver too many.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "receivers", limit: self.limit }
    }
}

/// Changes a receiver.
#[derive(Clone, Debug)]
pub struct ChangeReceiver {
    /// Whose it is.
    pub owner: ReceiverOwner,
    /// The receiver.
    pub receiver: ReceiverId,
    /// The version that the change was decided on.
    pub version: i64,
    /// The row as it is from now on; `None`: it is removed, with what waits for it.
    pub next: Option<Box<StoredReceiver>>,
}

/// Sends an event again.
#[derive(Clone, Copy, Debug)]
pub struct ResendEvent {
    /// Whose receiver it is.
    pub owner: ReceiverOwner,
    /// The receiver.
    pub receiver: ReceiverId,
    /// The event.
    pub event: EventId,
}

/// Receivers, as admins and operators administer them. Every method refuses a principal that may no longer act
/// ([`StoreError::Denied`]), in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ReceiverRepository: Send + Sync {
    /// Adds one.
    ///
    /// Refused with [`AddReceiver::limit_reached`]; [`Refusal::NoMember`]: the address belongs to no active account of the
    /// organization.
    async fn add_receiver(&self, command: Command<AddReceiver>) -> Result<(), StoreError>;

    /// Those of an owner, by id; with an id, that one.
    async fn list_receivers(
        &self,
        query: Find<Option<ReceiverId>, ReceiverOwner>,
    ) -> Result<Vec<StoredReceiver>, StoreError>;

    /// Changes one.
    ///
    /// Refused with [`Refusal::NotFound`]; [`Refusal::Contended`]: the row has another version.
    async fn change_receiver(&self, command: Command<ChangeReceiver>) -> Result<(), StoreError>;

    /// Puts a delivery on its way, as the newest of its receiver.
    ///
    /// Refused with [`Refusal::NotFound`]: there is no such receiver.
    async fn add_delivery(&self, command: Command<EventDelivery>) -> Result<(), StoreError>;

    /// Has an event attempted again as if it were new. `None`: there is none.
    async fn resend_event(&self, command: Command<ResendEvent>) -> Result<Option<EventDelivery>, StoreError>;

    /// Deliveries to a receiver, the newest first; [`List::after`] is the position of the last one that was read.
    async fn list_deliveries(
        &self,
        query: List<i64, (ReceiverOwner, ReceiverId)>,
    ) -> Result<Vec<EventDelivery>, StoreError>;
}

/// The right of one process to read events and to deliver them, while others wait.
#[derive(Clone, Debug)]
pub struct EventLease {
    /// The process.
    pub holder: Uuid,
    /// The time.
    pub now: Timestamp,
    /// Until when the process has the right, unless it takes it again.
    pub until: Timestamp,
    /// Where reading begins if no events were ever read.
    pub first: EventPosition,
}

impl EventLease {
    /// For how long the right is taken at most, in seconds. One that ends later was not taken by a process, and counts as none.
    pub const LONGEST_SECONDS: i64 = 60;
}

/// Notes what was read of events.
#[derive(Clone, Debug)]
pub struct NoteEvents {
    /// The process that has the right.
    pub holder: Uuid,
    /// Where it read from.
    pub from: EventPosition,
    /// How far it has read.
    pub to: EventPosition,
    /// What is to be delivered. What is stored already is left as it is.
    pub deliveries: Vec<EventDelivery>,
}

/// What of an organization expires within a time.
#[derive(Clone, Copy, Debug)]
pub struct FindExpiring {
    /// The organization.
    pub organization: OrganizationId,
    /// After this moment.
    pub after: Timestamp,
    /// At this moment or before.
    pub until: Timestamp,
    /// At most so many credentials, and so many integrations.
    pub limit: usize,
}

/// A notice of an account.
pub type AccountNotice = (OrganizationId, AccountId, StoredNotice);

/// What delivers events needs of a store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EventRepository: Send + Sync {
    /// Takes the right to read and deliver. How far events were read: at first [`EventLease::first`]. `None`: another process
    /// has the right, for at most [`EventLease::LONGEST_SECONDS`] from [`EventLease::now`].
    async fn take_events(&self, lease: EventLease) -> Result<Option<EventPosition>, StoreError>;

    /// Every receiver of every owner, each with its id as it is stored; `None`: its row does not decode. One damaged row hides
    /// no other.
    async fn all_receivers(&self) -> Result<Vec<(String, Option<StoredReceiver>)>, StoreError>;

    /// What expires, by the time of it.
    async fn find_expiring(&self, query: FindExpiring) -> Result<Vec<Expiring>, StoreError>;

    /// Notices left after one moment and not after another, by their time.
    async fn notices_between(&self, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, StoreError>;

    /// Stores deliveries, and how far events were read, in one decision. `false`: the process no longer has the right, or
    /// events were not read up to [`NoteEvents::from`] only; nothing was changed.
    async fn note_events(&self, command: NoteEvents) -> Result<bool, StoreError>;

    /// Stores deliveries that are read from nothing else.
    async fn add_deliveries(&self, deliveries: Vec<EventDelivery>) -> Result<(), StoreError>;

    /// The receivers for which something waits that may be attempted at `now`.
    async fn receivers_due(&self, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, StoreError>;

    /// What waits for a receiver, the oldest first, at most `limit`.
    async fn waiting_deliveries(
        &self,
        owner: ReceiverOwner,
        receiver: ReceiverId,
        limit: usize,
    ) -> Result<Vec<EventDelivery>, StoreError>;

    /// Whether an e-mail address, by its digest, belongs to an active account of the organization.
    async fn is_member(&self, organization: OrganizationId, address: LookUpDigests) -> Result<bool, StoreError>;

    /// Notes what attempts came to, in their order. A delivery or a receiver that is gone is left out.
    async fn note_attempts(&self, attempts: Vec<Attempted>) -> Result<(), StoreError>;

    /// Disables a receiver and gives up what waits for it, unless its row has another version by now.
    async fn disable_receiver(&self, next: StoredReceiver, audit: SealedAuditRecord) -> Result<(), StoreError>;

    /// Removes deliveries that ended before a moment. How many.
    async fn remove_deliveries(&self, ended_before: Timestamp) -> Result<usize, StoreError>;
}

/// What telling receivers needs of a store.
pub trait EventStore: EventRepository + ReceiverRepository + AuditTrail + IssuerRepository {}

impl<S: EventRepository + ReceiverRepository + AuditTrail + IssuerRepository + ?Sized> EventStore for S {}

/// Seals what is secret of a receiver; cannot open it.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait ReceiverSealer: Send + Sync {
    /// Seals an address.
    ///
    /// # Errors
    /// No entropy.
    fn seal_address(&self, receiver: ReceiverId, address: &SecretString) -> Result<Blob, SealError>;

    /// A new signing secret, and it sealed as number `number` of the receiver.
    ///
    /// # Errors
    /// No entropy.
    fn new_secret(&self, receiver: ReceiverId, number: i64) -> Result<(SecretString, Blob), SealError>;
}

/// An opened receiver.
pub struct OpenedTarget {
    /// Its URL or e-mail address.
    pub address: SecretString,
    /// Its signing secrets that are valid, the current one first.
    pub secrets: Vec<SecretString>,
}

/// Opens what is secret of a receiver, and signs with it.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait ReceiverOpener: Send + Sync {
    /// The receiver's address and its secrets.
    ///
    /// # Errors
    /// It does not open.
    fn open(&self, receiver: ReceiverId, target: &SealedTarget, now: Timestamp) -> Result<OpenedTarget, SealError>;

    /// The signature of a webhook's message: `v1,` and the base64 of HMAC-SHA-256 (Standard Webhooks 1.0).
    fn sign(&self, secret: &SecretString, id: &str, at: Timestamp, body: &str) -> String;
}

/// A webhook's message. No `Debug`: its URL may be a secret.
pub struct WebhookMessage {
    /// Where to.
    pub url: SecretString,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub at: Timestamp,
    /// `webhook-signature`: one for each valid secret, separated by spaces.
    pub signature: String,
    /// The body: JSON.
    pub body: String,
}

/// Carries events to receivers.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EventCarrier: Send + Sync {
    /// Posts a message.
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure>;

    /// Sends a mail. `id` is the same when it is sent again.
    async fn mail(&self, to: &SecretString, id: &str, mail: &Mail) -> Result<(), DeliveryFailure>;
}

/// Judges where receivers may be, before they are added.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait ReceiverGuard: Send + Sync {
    /// Whether this server would connect to the URL, as far as that is seen by the URL alone.
    fn permits(&self, url: &WebhookUrl) -> bool;

    /// Whether this server sends mail.
    fn sends_mail(&self) -> bool;
}
