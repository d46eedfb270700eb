//! Port: the rows of one open transaction. Its methods read and write rows and know no rules.
//!
//! `try_join!` of several calls is one exchange with PostgreSQL, because each statement is sent when its future is first
//! polled. SQLite and memory return a completed future.

use super::{
    AuditRange, Idempotency, InspectionRows, InstanceRows, RecordedStates, SealedCredential, StoreError,
    StoredCredential, StoredVersions,
};
use crate::account::AccountLogins;
use crate::activation::{Activation, FetchedCredential, ListActivations, VendRule};
use crate::audit::{
    AuditEntry, DeliveryLease, DeliveryPosition, DeliveryState, RecordDelivered, RowState, SealedAuditRecord,
    SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
use crate::credential::{
    CheckRound, CredentialQuery, CredentialUpdate, CredentialUse, DueCheck, EarlierRequest, Holder, LastCheck,
    ListUses, ListedRows, NewCredentialRow, VersionKey,
};
use crate::digest::Digest;
use crate::entity::{EntityKey, Index, Kind};
use crate::hourly::HourlyLimit;
use crate::id::{
    AccountId, ActivationId, AuditId, CredentialId, EventId, IntegrationId, KeyId, OrganizationId, SessionId,
};
use crate::integration::{CountedPeriod, HourlyActions, IntegrationActions};
use crate::lockout::{BucketKey, ThrottleCounter, ThrottleCounters, WrongPasscodes};
use crate::maintenance::{CountCredentials, CountedSlice, Expired, Settled};
use crate::namespace::Namespace;
use crate::notice::{NoticeCode, StoredNotice};
use crate::operation::{Cache, Work};
use crate::organization::OrganizationState;
use crate::passcode::TimeStep;
use crate::principal::SessionPrincipal;
use crate::receiver::{
    AccountNotice, EventDelivery, EventLease, EventPosition, Expiring, FindExpiring, ReceiverKey, ReceiverStatus,
};
use crate::sealed::{Blob, OrganizationKeys};
use crate::session::{NewSession, SessionUse, StoredSession};
use crate::time::Timestamp;
use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, Ready};
use std::any::Any;
use std::fmt;
use uuid::Uuid;
use zeroize::Zeroizing;

/// Error of a store within a transaction. Only the store that created it can read it, and decides about a retry.
pub struct RowsError(pub Box<dyn Any + Send + Sync>);

impl fmt::Debug for RowsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsError").finish_non_exhaustive()
    }
}

/// Result of a method of [`Rows`]. Allocates only where the store waits.
pub type Reply<'t, T> = Either<Ready<Result<T, RowsError>>, BoxFuture<'t, Result<T, RowsError>>>;

/// Position of the last row of a page that is ordered by organization and name. The next page starts after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePosition {
    /// Organization of the row, the first sort key.
    pub organization: OrganizationId,
    /// Sort key within the organization.
    pub name: String,
}

/// Row of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRow {
    /// Key of the row.
    pub key: EntityKey,
    /// Version of the entity.
    pub version: i64,
    /// Time at which something is due for it, as in the document.
    pub due_at: Option<Timestamp>,
    /// Minute of its last use. Neither the document nor its associated data contains it.
    pub last_used_at: Option<Timestamp>,
    /// Sealed document.
    pub sealed: Blob,
}

/// Row of a lookup, which may have been changed outside the service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupRow {
    /// Organization of the value.
    pub organization: OrganizationId,
    /// Stored text of the index.
    pub index: String,
    /// The value.
    pub value: String,
    /// The entity to which the value leads.
    pub id: Uuid,
}

/// Entities of all kinds, and the values by which they are found.
pub trait EntityRows: Send + Sync {
    /// Reads an entity.
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>>;

    /// Inserts an entity. Returns `false` if the row exists.
    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool>;

    /// Replaces an entity, except its last use. Returns `false` if the row does not have the version `before`.
    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool>;

    /// Removes an entity with all values that lead to it. Returns `false` if it does not exist.
    fn remove_entity(&self, key: EntityKey) -> Reply<'_, bool>;

    /// Sets the minute of an entity's last use.
    fn set_last_use(&self, key: EntityKey, last_used_at: Option<Timestamp>) -> Reply<'_, ()>;

    /// Counts the entities of a kind.
    fn count_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, i64>;

    /// Reads the entities of a kind and locks them until the transaction ends.
    fn lock_entities(&self, organization: OrganizationId, kind: Kind) -> Reply<'_, Vec<EntityRow>>;

    /// Reads the entities of a kind that are due after `after` until `until`, in the order of these times.
    fn due_entities(
        &self,
        organization: OrganizationId,
        kind: Kind,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>>;

    /// Replaces the sealed document of a row that is unchanged, without a new version: for rotations.
    fn reseal_entity(&self, row: &EntityRow, sealed: &Blob) -> Reply<'_, bool>;

    /// Reads rows of all kinds in the order of their [keys](EntityKey::order): for rotations and integrity checks.
    fn entities_after(&self, after: Option<EntityKey>, limit: usize) -> Reply<'_, Vec<EntityRow>>;

    /// Reads a page of the entities of a kind, of one organization or of all, ordered by organization and within it newest
    /// first.
    fn newest_entities(
        &self,
        kind: Kind,
        of: Option<OrganizationId>,
        after: Option<(OrganizationId, Uuid)>,
        limit: usize,
    ) -> Reply<'_, Vec<EntityRow>>;

    /// Reads entities with their values in an index, in the order of organizations and values, of one organization or of all.
    fn listed_entities(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Reply<'_, Vec<(String, EntityRow)>>;

    /// Reads lookups of all organizations in the order of organization, index and value: for integrity checks.
    fn lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>>;

    /// Reads lookups that are unique in the instance, in the order of index and value: for integrity checks.
    fn global_lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>>;

    /// Returns the entity to which a value that is unique in the instance leads.
    fn find_anywhere(&self, index: Index, value: &str) -> Reply<'_, Option<(OrganizationId, Uuid)>>;

    /// Returns the entity of an organization to which a value leads.
    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>>;

    /// Makes a value lead to an entity. Returns `false` if it leads to one already.
    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool>;

    /// Removes a value that leads to an entity. Returns `false` if it does not.
    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool>;
}

/// Facts that authorize principals, in addition to documents. In a transaction that writes, they stay unchanged until it ends.
pub trait AuthorityRows: Send + Sync {
    /// Returns the expiry of a session of an account, if it exists.
    fn session_expiry(&self, session: &SessionPrincipal) -> Reply<'_, Option<Timestamp>>;

    /// Returns the state of an organization, from the value that leads to its document.
    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>>;
}

/// An account and its organization.
pub type AccountPlace = (OrganizationId, AccountId);

/// Rows of accounts, in addition to their documents.
pub trait AccountRows: Send + Sync {
    /// Inserts the rows of a new account, whose steps up to `last_step` are used.
    fn insert_account(&self, place: AccountPlace, last_step: TimeStep) -> Reply<'_, ()>;

    /// Removes all rows of an account, except sessions.
    fn remove_account(&self, place: AccountPlace) -> Reply<'_, ()>;

    /// Resets wrong passcodes for another TOTP secret, whose steps up to `last_step` are used.
    fn reset_passcodes(&self, place: AccountPlace, last_step: TimeStep) -> Reply<'_, ()>;

    /// Counts the recovery codes.
    fn count_recovery_codes(&self, place: AccountPlace) -> Reply<'_, u32>;

    /// Locks a recovery code. Returns whether it is stored.
    fn lock_recovery_code(&self, place: AccountPlace, code: &Digest) -> Reply<'_, bool>;

    /// Removes a recovery code.
    fn remove_recovery_code(&self, place: AccountPlace, code: &Digest) -> Reply<'_, ()>;

    /// Replaces all recovery codes.
    fn replace_recovery_codes(&self, place: AccountPlace, codes: &[Digest]) -> Reply<'_, ()>;

    /// Reads the notices, in any order.
    fn notices(&self, place: AccountPlace) -> Reply<'_, Vec<StoredNotice>>;

    /// Stores a notice. An account has no notice twice at the same moment, and of some codes only the newest.
    fn leave_notice(&self, place: AccountPlace, code: NoticeCode, at: Timestamp) -> Reply<'_, ()>;
}

/// Throttle buckets, known networks, and results of logins.
pub trait LoginRows: Send + Sync {
    /// Reads the results of the logins of accounts, as at `now`.
    fn logins(
        &self,
        organization: OrganizationId,
        accounts: &[AccountId],
        now: Timestamp,
    ) -> Reply<'_, Vec<(AccountId, AccountLogins)>>;

    /// Locks the bucket of a network and the shared one, or all. `None` if the account does not exist.
    fn lock_buckets(&self, place: AccountPlace, network: Option<&Digest>) -> Reply<'_, Option<ThrottleCounters>>;

    /// Empties all buckets of an account, which ends its lockouts.
    fn reset_buckets(&self, place: AccountPlace) -> Reply<'_, ()>;

    /// Stores the counter of a bucket that exists.
    fn set_bucket(&self, place: AccountPlace, key: &BucketKey, counter: ThrottleCounter) -> Reply<'_, ()>;

    /// Removes a network of an account with its bucket.
    fn forget_network(&self, place: AccountPlace, network: &Digest) -> Reply<'_, ()>;

    /// Stores the latest login of an account from a network, with an empty bucket.
    fn put_network(&self, place: AccountPlace, network: &Digest, last_login_at: Timestamp) -> Reply<'_, ()>;

    /// Returns the time of the latest noted login of any account from a network.
    fn known_network(&self, network: &Digest) -> Reply<'_, Option<Timestamp>>;

    /// Notes a login of any account from a network, if none was noted after `stale`: logins of many accounts share the row.
    fn note_network(&self, network: &Digest, last_login_at: Timestamp, stale: Timestamp) -> Reply<'_, ()>;

    /// Locks the results of an account's logins: the last used time step and the wrong passcodes. Without the account, no
    /// step is unused.
    fn lock_logins(&self, place: AccountPlace) -> Reply<'_, (TimeStep, WrongPasscodes)>;

    /// Stores the last used time step.
    fn set_last_step(&self, place: AccountPlace, step: TimeStep) -> Reply<'_, ()>;

    /// Stores the time of the last login.
    fn set_last_login(&self, place: AccountPlace, at: Timestamp) -> Reply<'_, ()>;

    /// Stores the time of the last refusal, and the wrong passcodes.
    fn set_refused(&self, place: AccountPlace, wrong: WrongPasscodes, at: Timestamp) -> Reply<'_, ()>;
}

/// Rows of organizations, in addition to their documents.
pub trait OrganizationRows: Send + Sync {
    /// Inserts the row that the operations of a new organization lock.
    fn insert_organization(&self, organization: OrganizationId) -> Reply<'_, ()>;

    /// Returns the uses of the active key of an organization.
    fn key_uses(&self, organization: OrganizationId) -> Reply<'_, i64>;

    /// Adds uses of the active key of an organization.
    fn add_key_uses(&self, organization: OrganizationId, uses: i64) -> Reply<'_, ()>;

    /// Forgets the uses of the active key of an organization, which was replaced.
    fn reset_key_uses(&self, organization: OrganizationId) -> Reply<'_, ()>;

    /// Ends the sessions of an organization.
    fn end_sessions(&self, organization: OrganizationId) -> Reply<'_, ()>;

    /// Removes all rows of an organization, except its audit log and those that are removed gradually.
    fn remove_organization(&self, organization: OrganizationId) -> Reply<'_, ()>;
}

/// Sessions.
pub trait SessionRows: Send + Sync {
    /// Reads the sessions of an account that are unexpired at `now`, newest first, those of the same time by ID.
    fn active_sessions(&self, place: AccountPlace, now: Timestamp) -> Reply<'_, Vec<StoredSession>>;

    /// Inserts a session of an account.
    fn insert_session(&self, place: AccountPlace, session: &NewSession) -> Reply<'_, ()>;

    /// Removes all sessions of an account.
    fn end_account_sessions(&self, place: AccountPlace) -> Reply<'_, ()>;

    /// Removes all sessions of an account but one.
    fn end_other_sessions(&self, place: AccountPlace, kept: SessionId) -> Reply<'_, ()>;

    /// Removes a session.
    fn remove_session(&self, organization: OrganizationId, session: SessionId) -> Reply<'_, ()>;

    /// Stores the time of the last use of a session that exists, unless a later one is stored.
    fn set_session_use(&self, used: &SessionUse) -> Reply<'_, ()>;
}

/// Counts of actions per hour.
pub trait CounterRows: Send + Sync {
    /// Reads the count of a subject, and locks it until the transaction ends.
    fn lock_hourly_count(&self, organization: OrganizationId, subject: &str, now: Timestamp) -> Reply<'_, HourlyLimit>;

    /// Stores a count that was locked.
    fn set_hourly_count(&self, organization: OrganizationId, subject: &str, counted: HourlyLimit) -> Reply<'_, ()>;
}

/// Deliveries of events to receivers.
pub trait DeliveryRows: Send + Sync {
    /// Inserts a delivery, unless it exists.
    fn insert_delivery(&self, delivery: &EventDelivery) -> Reply<'_, ()>;

    /// Stores state, attempts, times and failure of a delivery, if it exists.
    fn set_progress(&self, delivery: &EventDelivery) -> Reply<'_, ()>;

    /// Reads the delivery of an event to a receiver.
    fn delivery(&self, key: ReceiverKey, event: EventId) -> Reply<'_, Option<EventDelivery>>;

    /// Reads the deliveries to a receiver before a position, newest first.
    fn deliveries(&self, key: ReceiverKey, before: i64, limit: usize) -> Reply<'_, Vec<EventDelivery>>;

    /// Reads the pending deliveries to a receiver, oldest first.
    fn waiting_deliveries(&self, key: ReceiverKey, limit: usize) -> Reply<'_, Vec<EventDelivery>>;

    /// Gives up the pending deliveries to a receiver.
    fn give_up_deliveries(&self, key: ReceiverKey, at: Timestamp) -> Reply<'_, ()>;

    /// Removes the deliveries to a receiver and its delivery status.
    fn remove_deliveries(&self, key: ReceiverKey) -> Reply<'_, ()>;

    /// Removes the deliveries that ended before a time, and returns their number.
    fn remove_ended_deliveries(&self, before: Timestamp) -> Reply<'_, usize>;
}

/// Delivery status of receivers, and the reading of events.
pub trait EventRows: Send + Sync {
    /// Reads the delivery status of a receiver.
    fn receiver_status(&self, key: ReceiverKey) -> Reply<'_, ReceiverStatus>;

    /// Stores the delivery status of a receiver.
    fn set_receiver_status(&self, key: ReceiverKey, status: &ReceiverStatus) -> Reply<'_, ()>;

    /// Returns the active receivers with pending deliveries that may be attempted at `now`: tests at any time, others when
    /// [`ReceiverStatus::not_before`] has passed.
    fn receivers_due(&self, now: Timestamp) -> Reply<'_, Vec<ReceiverKey>>;

    /// Takes the lease for reading events, and returns the position. `None` if another process has it, for at most
    /// [`EventLease::LONGEST_SECONDS`] from [`EventLease::now`].
    fn take_event_lease(&self, lease: &EventLease) -> Reply<'_, Option<EventPosition>>;

    /// Moves the position. Returns `false` if the process no longer has the lease, or the position is not `from`.
    fn move_event_position(&self, holder: Uuid, from: &EventPosition, to: &EventPosition) -> Reply<'_, bool>;

    /// Reads the credentials that expire within a period, in the order of their expiry.
    fn expiring_credentials(&self, query: &FindExpiring) -> Reply<'_, Vec<Expiring>>;

    /// Reads the notices of all accounts after `after` until `until`, in their order, with the lockouts of that period.
    fn notices_between(&self, after: Timestamp, until: Timestamp) -> Reply<'_, Vec<AccountNotice>>;
}

/// Namespaces of credentials.
pub trait NamespaceRows: Send + Sync {
    /// Counts the credentials of a namespace, up to `most`.
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace, most: usize) -> Reply<'_, i64>;

    /// Returns the first namespace after a text that has credentials.
    fn namespace_after(&self, organization: OrganizationId, after: &str) -> Reply<'_, Option<Namespace>>;
}

/// Credentials and their uses.
pub trait CredentialRows: Send + Sync {
    /// Reads a credential. In a transaction that writes, it stays unchanged until the transaction ends.
    fn credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredCredential>>;

    /// Reads a credential with its other versions.
    fn credential_versions(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<StoredVersions>>;

    /// Reads a page of a list at `now`.
    fn listed_credentials(&self, query: &CredentialQuery, now: Timestamp) -> Reply<'_, ListedRows>;

    /// Returns the number of credentials of an organization, which the transaction has locked.
    fn credential_count(&self, organization: OrganizationId) -> Reply<'_, i64>;

    /// Inserts a credential with its labels and idempotency key, and counts it.
    fn insert_credential<'t>(&'t self, new: &'t NewCredentialRow) -> Reply<'t, ()>;

    /// Changes a credential and its versions, and inserts the idempotency key of the change.
    fn change_credential<'t>(&'t self, update: &'t CredentialUpdate<'t>) -> Reply<'t, ()>;

    /// Returns the result of the last check of a version.
    fn version_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
    ) -> Reply<'_, Option<LastCheck>>;

    /// Counts the credentials that a key seals.
    fn count_sealed(&self, organization: OrganizationId, key: KeyId) -> Reply<'_, i64>;

    /// Reads the sealed parts of credentials that another key seals, after one, in the order of their IDs. Locks them.
    fn sealed_except(
        &self,
        organization: OrganizationId,
        key: KeyId,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Reply<'_, Vec<SealedCredential>>;

    /// Stores the sealed parts of a credential under its new key, and preserves revision and times.
    fn reseal_credential<'t>(&'t self, organization: OrganizationId, credential: &'t SealedCredential)
    -> Reply<'t, ()>;

    /// Reads the lookup digests of a credential's labels.
    fn labels(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Vec<Digest>>;

    /// Replaces the lookup digests of a credential's labels.
    fn set_labels(&self, organization: OrganizationId, id: CredentialId, labels: &[Digest]) -> Reply<'_, ()>;

    /// Removes a credential that exists, with its versions, labels, uses and requested check, and counts it no longer.
    fn remove_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, ()>;

    /// Reads the earlier request with an idempotency key.
    fn earlier_request(
        &self,
        organization: OrganizationId,
        idempotency: &Idempotency,
    ) -> Reply<'_, Option<EarlierRequest>>;

    /// Reads a page of the uses of a credential, newest first.
    fn uses(&self, query: &ListUses) -> Reply<'_, Vec<CredentialUse>>;

    /// Returns the time at which an activation process last claimed checks.
    fn checker_seen_at(&self) -> Reply<'_, Option<Timestamp>>;

    /// Queues a check of a version, in place of an earlier request for the credential.
    fn request_check(
        &self,
        organization: OrganizationId,
        id: CredentialId,
        version: i64,
        at: Timestamp,
    ) -> Reply<'_, ()>;

    /// Removes the requested check of a version, if there is one.
    fn remove_check_request(&self, key: VersionKey) -> Reply<'_, ()>;

    /// Stores the result of a check. Returns `false` if the version does not exist.
    fn set_check(&self, key: VersionKey, check: LastCheck) -> Reply<'_, bool>;

    /// Locks the round of periodic checks, which it creates at `now`. Returns also the time at which an activation process
    /// last claimed checks.
    fn lock_check_round(&self, now: Timestamp) -> Reply<'_, (Timestamp, CheckRound)>;

    /// Stores the round, and that an activation process claimed checks at `now`.
    fn set_check_round(&self, now: Timestamp, round: CheckRound) -> Reply<'_, ()>;

    /// Claims requested checks of active organizations that no process works on, oldest first.
    fn claim_requested_checks(&self, now: Timestamp, most: usize) -> Reply<'_, Vec<VersionKey>>;

    /// Reads the current versions of the credentials of active organizations after one, in the order of their keys.
    fn credentials_after(
        &self,
        after: Option<(OrganizationId, CredentialId)>,
        most: usize,
    ) -> Reply<'_, Vec<VersionKey>>;

    /// Reads a version with its sealed data, for a check.
    fn due_check(&self, key: VersionKey) -> Reply<'_, Option<DueCheck>>;

    /// Stores the minute of the last activation of credentials, unless a later one is stored.
    fn set_activated(
        &self,
        organization: OrganizationId,
        credentials: &[CredentialId],
        minute: Timestamp,
    ) -> Reply<'_, ()>;

    /// Returns the current version of a credential, if it exists.
    fn current_version(&self, organization: OrganizationId, credential: CredentialId) -> Reply<'_, Option<i64>>;

    /// Counts the uses of a credential by integration and version, ordered by both.
    fn holders(&self, organization: OrganizationId, credential: CredentialId, now: Timestamp)
    -> Reply<'_, Vec<Holder>>;
}

/// The audit log.
pub trait AuditRows: Send + Sync {
    /// Appends an entry.
    fn append_entry(&self, entry: &SealedAuditRecord) -> Reply<'_, ()>;

    /// Reads entries of a range after the ID of the last entry that was read.
    fn entries(&self, range: AuditRange, after: Option<String>, limit: usize) -> Reply<'_, Vec<AuditEntry>>;

    /// Reads the entries with these IDs, ordered by ID. Skips entries that are not stored.
    fn entries_with(&self, ids: &[AuditId]) -> Reply<'_, Vec<AuditEntry>>;

    /// Reads the states of a row in the newest entries that contain one, newest first.
    fn recorded(&self, query: &RecordedStates) -> Reply<'_, Vec<RowState>>;

    /// Counts the sealed entries of an organization's integrations within a period, by integration, namespace, action and day,
    /// in any order. Entries with unknown actions are omitted.
    fn count_actions(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<IntegrationActions>>;

    /// Counts the same entries by action and hour, in any order.
    fn count_hours(&self, organization: OrganizationId, period: CountedPeriod) -> Reply<'_, Vec<HourlyActions>>;
}

/// Checkpoints of the audit log, and its delivery.
pub trait CheckpointRows: Send + Sync {
    /// Reads entries without a checkpoint, by ID, after the ID `after`.
    fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Reply<'_, Vec<UnsealedEntry>>;

    /// Reads the checkpoint with the highest number.
    fn newest_checkpoint(&self) -> Reply<'_, Option<StoredCheckpoint>>;

    /// Reads checkpoints by number, after the number `after`.
    fn checkpoints(&self, after: i64, limit: usize) -> Reply<'_, Vec<StoredCheckpoint>>;

    /// Inserts a checkpoint. Returns `false` if one with its number exists.
    fn insert_checkpoint(&self, sealed: &SealedCheckpoint) -> Reply<'_, bool>;

    /// Records a checkpoint in entries without one. Returns their number.
    fn seal_entries(&self, entries: &[AuditId], checkpoint: i64) -> Reply<'_, usize>;

    /// Removes the IDs of entries from the checkpoint with number and hash of `start`, and replaces key and MAC. Returns
    /// `false` if it does not exist.
    fn empty_checkpoint(&self, start: &SealedCheckpoint) -> Reply<'_, bool>;

    /// Removes the checkpoints before a number, and these entries.
    fn remove_audit(&self, before: i64, entries: &[AuditId]) -> Reply<'_, ()>;

    /// Acquires the lease of the delivery. `None` if another process has it, for at most [`DeliveryLease::LONGEST_SECONDS`]
    /// from [`DeliveryLease::now`].
    fn take_delivery_lease(&self, lease: &DeliveryLease) -> Reply<'_, Option<DeliveryPosition>>;

    /// Moves the position of the delivery. Returns `false` if the process does not have the lease, or the position is another
    /// one.
    fn move_delivery_position(&self, delivered: &RecordDelivered) -> Reply<'_, bool>;

    /// Reads the state of the delivery. `None` if no process ever acquired the lease.
    fn delivery_state(&self) -> Reply<'_, Option<DeliveryState>>;
}

/// Activations, and what they issue.
pub trait ActivationRows: Send + Sync {
    /// Reads the credentials of a namespace with their sealed data, in the order of their IDs.
    fn sealed_credentials(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        limit: usize,
    ) -> Reply<'_, Vec<FetchedCredential>>;

    /// Reads the current versions and vend rules of those credentials that are in a namespace.
    fn issuable_versions(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        credentials: &[CredentialId],
    ) -> Reply<'_, Vec<(CredentialId, i64, VendRule)>>;

    /// Counts the activations of an integration that are active at `now`.
    fn count_activations(
        &self,
        organization: OrganizationId,
        integration: IntegrationId,
        now: Timestamp,
    ) -> Reply<'_, i64>;

    /// Reads a page of an integration's active activations.
    fn active_activations(&self, query: &ListActivations) -> Reply<'_, Vec<Activation>>;

    /// Reads an activation.
    fn activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, Option<Activation>>;

    /// Inserts an activation.
    fn insert_activation(&self, activation: &Activation) -> Reply<'_, ()>;

    /// Stores expiry and number of credentials of an activation.
    fn renew_activation(&self, activation: &Activation) -> Reply<'_, ()>;

    /// Removes an activation, if it exists.
    fn remove_activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, ()>;

    /// Inserts uses of credentials. Of one that exists, stores version, form and expiry.
    fn set_uses(&self, organization: OrganizationId, uses: &[(CredentialId, CredentialUse)]) -> Reply<'_, ()>;

    /// Stores the end of an activation in the uses of its credentials, all of which are in its namespace.
    fn end_uses(&self, activation: &Activation, at: Timestamp) -> Reply<'_, ()>;

    /// Removes the activations of an integration.
    fn remove_activations(&self, organization: OrganizationId, integration: IntegrationId) -> Reply<'_, ()>;
}

/// Rows of all organizations, for maintenance.
pub trait MaintenanceRows: Send + Sync {
    /// Deletes at most [`EXPIRED_SLICE`](crate::maintenance::EXPIRED_SLICE) rows of one kind that are expired at `now`, using an
    /// index. Returns their number.
    fn delete_expired(&self, expired: Expired, now: Timestamp) -> Reply<'_, usize>;

    /// Counts a slice of credentials.
    fn count_credentials(&self, query: &CountCredentials) -> Reply<'_, CountedSlice>;

    /// Returns the number of uses of the most used active organization key, or 0 if there is none.
    fn most_key_uses(&self) -> Reply<'_, i64>;

    /// Reads something, and returns the time of the store's clock, if it is a server.
    fn server_time(&self) -> Reply<'_, Option<Timestamp>>;

    /// Writes something that needs space on the disk, and leaves nothing.
    fn prove_space(&self) -> Reply<'_, ()>;

    /// Removes sessions, recovery codes, activations, unconfirmed TOTP secrets and drafts, and invitations if they end. Sets last
    /// used time steps before `step` to it.
    fn revoke_restored(&self, step: TimeStep, ends_invitations: bool) -> Reply<'_, Settled>;
}

/// All rows of a transaction.
pub trait Rows:
    EntityRows
    + AuthorityRows
    + AccountRows
    + LoginRows
    + SessionRows
    + OrganizationRows
    + CounterRows
    + NamespaceRows
    + CredentialRows
    + ActivationRows
    + DeliveryRows
    + EventRows
    + AuditRows
    + InspectionRows
    + CheckpointRows
    + InstanceRows
    + MaintenanceRows
{
    /// Locks an organization for writing until the transaction ends. What is read afterwards is current and stays so.
    fn lock(&self, organization: OrganizationId) -> Reply<'_, ()>;

    /// Returns the active instance key, which stays active until the transaction ends.
    fn active_instance_key(&self) -> Reply<'_, Option<KeyId>>;
}

/// Store port for operations.
#[async_trait]
pub trait RowStore: Send + Sync {
    /// Runs work in one transaction, alone or with other work that shares its commit. Returns it with its outcome after the
    /// commit is durable.
    async fn submit(&self, work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError>;
}

/// Port that seals the documents of entities with the active instance key, and opens them with all existing ones. Without
/// I/O, so it can be used in a transaction.
pub trait EntitySealer: Send + Sync {
    /// Returns the loaded instance key that seals documents.
    fn active_key(&self) -> KeyId;

    /// Returns the documents that were opened before, if they are cached.
    fn cache(&self) -> Option<&Cache> {
        None
    }

    /// Returns whether the key that sealed a document is loaded, or the document names none.
    fn has_key_of(&self, sealed: &Blob) -> bool;

    /// Seals a document for a row with this key and version.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    fn seal(&self, key: &EntityKey, version: i64, document: &[u8]) -> Result<Blob, super::SealError>;

    /// Opens the document of a row with this key and version.
    ///
    /// # Errors
    /// Why it does not open.
    fn open(&self, key: &EntityKey, version: i64, sealed: &Blob) -> Result<Zeroizing<Vec<u8>>, &'static str>;

    /// Returns the keys of an organization, all wrapped with the active instance key, or `None` if they are.
    ///
    /// # Errors
    /// Why a key does not unwrap.
    fn rewrap_keys(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
    ) -> Result<Option<OrganizationKeys>, &'static str>;
}
