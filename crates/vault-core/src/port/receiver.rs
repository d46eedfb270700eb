//! Ports for receivers: storage, encryption of their secrets, and delivery of notifications.

use super::{AuditTrail, Find, IssuerRepository, List, SealError, StoreError};
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::digest::LookupDigests;
use crate::error::Refusal;
use crate::id::{AccountId, EventId, OrganizationId, ReceiverId};
use crate::notice::StoredNotice;
use crate::receiver::{
    Attempted, DeliveryFailure, EventDelivery, EventPosition, Expiring, SealedTarget, StoredReceiver, WebhookUrl,
};
use crate::sealed::Blob;
use crate::time::Timestamp;
use async_trait::async_trait;
use secrecy::SecretString;
use uuid::Uuid;

/// Owner of receivers: an organization, or `None` for the instance.
pub type ReceiverOwner = Option<OrganizationId>;

/// Adds a receiver.
#[derive(Clone, Debug)]
pub struct AddReceiver {
    /// The receiver.
    pub receiver: StoredReceiver,
    /// Lookup digests of the e-mail address, which must belong to an active account of the organization. `None` allows
    /// any address.
    pub member: Option<LookupDigests>,
    /// Maximum number of receivers of the owner.
    pub limit: i64,
}

impl AddReceiver {
    /// Returns the refusal for an exceeded receiver limit.
    pub const fn limit_reached(&self) -> Refusal {
        Refusal::LimitReached { what: "receivers", limit: self.limit }
    }
}

/// Changes a receiver.
#[derive(Clone, Debug)]
pub struct ChangeReceiver {
    /// Owner of the receiver.
    pub owner: ReceiverOwner,
    /// ID of the receiver.
    pub receiver: ReceiverId,
    /// Version that the change is based on.
    pub version: i64,
    /// New row. `None` removes the receiver and its pending deliveries.
    pub next: Option<Box<StoredReceiver>>,
}

/// Delivers an event again.
#[derive(Clone, Copy, Debug)]
pub struct ResendEvent {
    /// Owner of the receiver.
    pub owner: ReceiverOwner,
    /// ID of the receiver.
    pub receiver: ReceiverId,
    /// ID of the event.
    pub event: EventId,
}

/// Port for the administration of receivers by admins and operators. Every method checks authorization in its own
/// transaction and returns [`StoreError::Denied`] if the principal may no longer act.
#[async_trait]
pub trait ReceiverRepository: Send + Sync {
    /// Adds a receiver.
    ///
    /// # Errors
    /// - [`AddReceiver::limit_reached`]: the owner has the maximum number of receivers.
    /// - [`Refusal::NoMember`]: the address belongs to no active account of the organization.
    async fn add_receiver(&self, command: Command<AddReceiver>) -> Result<(), StoreError>;

    /// Returns the receivers of an owner, ordered by ID. With an ID, returns only that one.
    async fn list_receivers(
        &self,
        query: Find<Option<ReceiverId>, ReceiverOwner>,
    ) -> Result<Vec<StoredReceiver>, StoreError>;

    /// Changes or removes a receiver.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the receiver does not exist.
    /// - [`Refusal::Contended`]: the row has another version.
    async fn change_receiver(&self, command: Command<ChangeReceiver>) -> Result<(), StoreError>;

    /// Queues a test event as the newest delivery to its receiver.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the receiver does not exist.
    /// - [`Refusal::TooOften`]: the organization exceeded [`HourlyLimit::TESTS`](crate::hourly::HourlyLimit) for this
    ///   receiver.
    async fn add_delivery(&self, command: Command<EventDelivery>) -> Result<(), StoreError>;

    /// Queues an event again as if it were new. Returns `None` if it does not exist.
    async fn resend_event(&self, command: Command<ResendEvent>) -> Result<Option<EventDelivery>, StoreError>;

    /// Returns deliveries to a receiver, newest first. [`List::after`] is the position of the last delivery that was
    /// read.
    async fn list_deliveries(
        &self,
        query: List<i64, (ReceiverOwner, ReceiverId)>,
    ) -> Result<Vec<EventDelivery>, StoreError>;
}

/// Lease of one process to read and deliver events, while other processes wait.
#[derive(Clone, Debug)]
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

/// Records events that were read.
#[derive(Clone, Debug)]
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

/// Query for credentials of an organization that expire within a period.
#[derive(Clone, Copy, Debug)]
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

/// A notice with its account.
pub type AccountNotice = (OrganizationId, AccountId, StoredNotice);

/// Port for the delivery of events.
#[async_trait]
pub trait EventRepository: Send + Sync {
    /// Acquires the lease for reading and delivering, and returns the position up to which events were read, initially
    /// [`EventLease::first`]. Returns `None` if another process has the lease, for at most
    /// [`EventLease::LONGEST_SECONDS`] from [`EventLease::now`].
    async fn acquire_event_lease(&self, lease: EventLease) -> Result<Option<EventPosition>, StoreError>;

    /// Returns all receivers with their IDs as stored. A row that cannot be decoded is returned as `None`, so that it
    /// does not hide the others.
    async fn all_receivers(&self) -> Result<Vec<(String, Option<StoredReceiver>)>, StoreError>;

    /// Returns the credentials that expire within a period, ordered by expiry.
    async fn find_expiring(&self, query: FindExpiring) -> Result<Vec<Expiring>, StoreError>;

    /// Returns notices created after `after` and not after `until`, ordered by time. Accounts whose latest attempt in that
    /// period led to a lockout have the notice [`NoticeCode::LockedOut`](crate::notice::NoticeCode::LockedOut).
    async fn notices_between(&self, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, StoreError>;

    /// Stores deliveries and the position up to which events were read, in one transaction. Returns `false` and changes
    /// nothing if the process no longer has the lease, or if the stored position is not [`RecordEvents::from`].
    async fn record_events(&self, command: RecordEvents) -> Result<bool, StoreError>;

    /// Stores deliveries without changing the position, for events that no other source contains.
    async fn add_deliveries(&self, deliveries: Vec<EventDelivery>) -> Result<(), StoreError>;

    /// Returns the receivers with pending deliveries that may be attempted at `now`.
    async fn receivers_due(&self, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, StoreError>;

    /// Returns at most `limit` pending deliveries of a receiver, oldest first.
    async fn waiting_deliveries(
        &self,
        owner: ReceiverOwner,
        receiver: ReceiverId,
        limit: usize,
    ) -> Result<Vec<EventDelivery>, StoreError>;

    /// Returns whether an e-mail address, given as its digests, belongs to an active account of the organization.
    async fn is_member(&self, organization: OrganizationId, address: LookupDigests) -> Result<bool, StoreError>;

    /// Records the results of attempts, in their order. Skips deliveries and receivers that were deleted.
    async fn note_attempts(&self, attempts: Vec<Attempted>) -> Result<(), StoreError>;

    /// Disables a receiver and gives up its pending deliveries, unless its row has another version.
    async fn disable_receiver(&self, next: StoredReceiver, audit: SealedAuditRecord) -> Result<(), StoreError>;

    /// Deletes deliveries that finished before a time, and returns their number.
    async fn remove_deliveries(&self, ended_before: Timestamp) -> Result<usize, StoreError>;
}

/// Ports that the delivery of notifications requires of a store.
pub trait EventStore: EventRepository + ReceiverRepository + AuditTrail + IssuerRepository {}

impl<S: EventRepository + ReceiverRepository + AuditTrail + IssuerRepository + ?Sized> EventStore for S {}

/// Port that seals the address and secrets of receivers. It cannot decrypt.
pub trait ReceiverSealer: Send + Sync {
    /// Seals an address.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn seal_address(&self, receiver: ReceiverId, address: &SecretString) -> Result<Blob, SealError>;

    /// Generates a signing secret, and seals it as number `number` of the receiver.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn new_secret(&self, receiver: ReceiverId, number: i64) -> Result<(SecretString, Blob), SealError>;
}

/// The decrypted address and secrets of a receiver.
pub struct OpenedTarget {
    /// Its URL or e-mail address.
    pub address: SecretString,
    /// Valid signing secrets, the current one first.
    pub secrets: Vec<SecretString>,
}

/// Port that decrypts the address and secrets of receivers, and signs with them.
pub trait ReceiverOpener: Send + Sync {
    /// Decrypts the address and the valid secrets of a receiver.
    ///
    /// # Errors
    /// The value cannot be decrypted.
    fn open(&self, receiver: ReceiverId, target: &SealedTarget, now: Timestamp) -> Result<OpenedTarget, SealError>;

    /// Returns the signature of a webhook message: `v1,` and the base64 of HMAC-SHA-256 (Standard Webhooks 1.0).
    fn sign(&self, secret: &SecretString, id: &str, at: Timestamp, body: &str) -> String;
}

/// A webhook message. It does not implement `Debug`, because its URL may be a secret.
pub struct WebhookMessage {
    /// Target URL.
    pub url: SecretString,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub at: Timestamp,
    /// `webhook-signature`: one for each valid secret, separated by spaces.
    pub signature: String,
    /// Body in JSON.
    pub body: String,
}

/// Port that sends events to receivers.
#[async_trait]
pub trait EventCarrier: Send + Sync {
    /// Posts a message.
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure>;

    /// Sends a mail about these events. A repeated mail has the same `id`.
    async fn mail(&self, to: &SecretString, id: &str, events: &[EventDelivery]) -> Result<(), DeliveryFailure>;
}

/// Port that checks permitted addresses before receivers are added.
pub trait ReceiverGuard: Send + Sync {
    /// Returns whether this server would connect to the URL. Checks only the URL itself, without resolving names.
    fn permits(&self, url: &WebhookUrl) -> bool;

    /// Returns whether this server sends mail.
    fn sends_mail(&self) -> bool;
}
