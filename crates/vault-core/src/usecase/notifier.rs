//! Delivery of notifications: reads events from the audit log, expiries and notices, and delivers them to receivers.
//! One of several processes does so at a time. A restarted process continues at the stored position, and repeated
//! deliveries of an event have the same ID.

use super::Environment;
use crate::audit::{AuditEntry, FindEntries, ReadCheckpoints};
use crate::email::EmailAddress;
use crate::error::Error;
use crate::id::OrganizationId;
use crate::identity::ListIssuers;
use crate::integration::ExpiringIntegrations;
use crate::operation::{Operation, Operations};
use crate::port::{Event, EventCarrier, KeyedDigester, WebhookMessage};
use crate::principal::Principal;
use crate::receiver::{
    ActiveReceivers, Attempted, Channel, DAY, DeliveryFailure, DeliveryState, DisableReceiver, EventDelivery,
    EventKind, EventLease, EventPosition, Expiring, FindExpiring, GIVE_UP_SECONDS, IsMember, KEPT_SECONDS,
    NoticesBetween, Occurrence, Pending, PendingDeliveries, Receiver, ReceiverEffect, ReceiverKey, ReceiverOwner,
    ReceiverStatus, ReceiversDue, RecordAttempts, RecordEvents, RemoveDeliveries, StoredReceiver, THRESHOLD_DAYS,
    decide_attempt, may_set_expiry,
};
use crate::time::Timestamp;
use futures_util::lock::Mutex;
use secrecy::ExposeSecret as _;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// Duration of the lease for reading and delivering, in seconds.
const LEASE_SECONDS: i64 = EventLease::LONGEST_SECONDS / 2;
/// Number of checkpoints that are read at a time.
const CHECKPOINTS: usize = 16;
/// Interval at which expiries and notices are read, in seconds.
const SCAN_EVERY_SECONDS: i64 = 10;
/// Maximum delay between the time of a notice and its commit, in seconds.
const COMMITTED_WITHIN_SECONDS: i64 = 5;
/// Interval at which the position is stored if nothing is to be delivered, in milliseconds.
const NOTE_EVERY_MILLIS: i64 = 300_000;
/// Number of expiring objects that are read at a time.
const EXPIRING: usize = 1_000;
/// Number of deliveries of a receiver that are read at a time.
const WAITING: usize = 1_000;
/// Number of attempts that are recorded at a time. After a crash, up to this number may be repeated.
const NOTED: usize = 64;
/// Time after which a receiver with more pending deliveries waits for its next turn, in seconds, so that a slow one does
/// not keep others waiting.
const TURN_SECONDS: i64 = 10;
/// Time for which deliveries to a receiver are suspended after its row was changed outside the service, in seconds.
const DAMAGED_SECONDS: i64 = 3_600;

/// Kinds of events about expiries.
const EXPIRY: [EventKind; 3] =
    [EventKind::CredentialExpiring, EventKind::CredentialExpired, EventKind::IntegrationTokenExpiring];

/// Result of one round of reading events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadEvents {
    /// Number of deliveries that were queued.
    pub deliveries: usize,
    /// Whether more events remain to be read.
    pub more: bool,
}

/// Delivers notifications to receivers.
#[derive(Clone)]
pub struct Notifier {
    environment: Environment,
    operations: Operations,
    carrier: Arc<dyn EventCarrier>,
    digester: Arc<dyn KeyedDigester>,
    reading: Arc<Mutex<Option<Reading>>>,
    /// Whether another process had the lease at the last attempt to acquire it.
    waits: Arc<AtomicBool>,
}

/// Position up to which this process has read, while it has the lease.
struct Reading {
    /// Position as stored.
    stored: EventPosition,
    /// Position as read, which may be ahead of the stored one.
    read: EventPosition,
    /// Time at which the lease is renewed.
    renew_at: Timestamp,
}

/// Active receivers, by owner.
type Listening = HashMap<ReceiverOwner, Vec<(ReceiverKey, Receiver)>>;

impl Notifier {
    /// Creates a notifier on these ports.
    pub fn new(environment: Environment, carrier: Arc<dyn EventCarrier>, operations: Operations) -> Self {
        let digester = Arc::clone(&operations.ports.digester);
        Self { environment, operations, carrier, digester, reading: Arc::default(), waits: Arc::default() }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    /// Reads events since the last round and queues their deliveries. Returns `None` if another process has the lease.
    ///
    /// # Errors
    /// The store failed. The call can be repeated.
    pub async fn read_events(&self, holder: Uuid) -> Result<Option<ReadEvents>, Error> {
        let mut reading = self.reading.lock().await;
        self.digester.refresh().await?;
        if reading.as_ref().is_none_or(|reading| self.environment.now() >= reading.renew_at) {
            *reading = self.take(holder, reading.take()).await?;
        }
        let Some(held) = reading.as_mut() else { return Ok(None) };
        let listening = self.listening().await?;
        let (entries, checkpoint, more) = self.read_audit(held.read.checkpoint, &listening).await?;
        let mut occurrences: Vec<_> =
            entries.iter().filter_map(|entry| Occurrence::of_entry(entry, &*self.digester)).collect();
        occurrences.extend(self.missed_thresholds(&listening, &entries).await?);
        let until = self.environment.now().plus_seconds(-COMMITTED_WITHIN_SECONDS);
        let mut scanned = held.read.scanned;
        if until >= scanned.plus_seconds(SCAN_EVERY_SECONDS) {
            occurrences.extend(self.scan(&listening, scanned, until).await?);
            scanned = until;
        }
        let mut seen = HashSet::new();
        occurrences.retain(|occurrence| seen.insert(occurrence.id));
        let now = self.environment.now();
        let mut newest = held.read.newest.max(super::receivers::position(now));
        let mut deliveries = Vec::new();
        for occurrence in &occurrences {
            newest += 1;
            for (key, receiver) in listening.get(&occurrence.organization).into_iter().flatten() {
                // A receiver gets only events that happened after it was added.
                if receiver.wants(occurrence.kind) && occurrence.at >= receiver.created_at {
                    deliveries.push(occurrence.to_delivery(*key, newest, now, &*self.digester));
                }
            }
        }
        let read = EventPosition::sign(checkpoint, scanned, newest, &*self.digester);
        let (count, kept) = (deliveries.len(), read.scanned.millis_since(held.stored.scanned));
        held.read = read;
        // If nothing is to be delivered, the position is stored rarely to save writes. After a crash, reading the same
        // events again has the same result.
        if count > 0 || more || kept >= NOTE_EVERY_MILLIS {
            let note = RecordEvents { holder, from: held.stored, to: read, deliveries };
            if !self.run(note).await? {
                *reading = None;
                return Ok(None);
            }
            held.stored = read;
        }
        Ok(Some(ReadEvents { deliveries: count, more }))
    }

    /// Acquires or renews the lease for reading and delivering. If the position was changed outside the service,
    /// reports that and continues at the newest checkpoint.
    async fn take(&self, holder: Uuid, before: Option<Reading>) -> Result<Option<Reading>, Error> {
        let now = self.environment.now();
        let newest = self.newest_checkpoint().await?;
        let first = EventPosition::sign(newest, now, super::receivers::position(now), &*self.digester);
        let lease = EventLease { holder, now, until: now.plus_seconds(LEASE_SECONDS), first };
        let Some(mut stored) = self.run(lease).await? else {
            self.waits.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        if self.waits.swap(false, Ordering::Relaxed) {
            self.environment.emit(Event::EventsTakenOver);
        }
        if !stored.mac_is_valid(&*self.digester) || stored.checkpoint > newest {
            let id = stored.checkpoint.to_string();
            self.environment.emit(Event::IntegrityFailure { table: "event_position", id });
            let note = RecordEvents { holder, from: stored, to: first, deliveries: Vec::new() };
            if !self.run(note).await? {
                return Ok(None);
            }
            stored = first;
        }
        let signed = stored.signed_again(&*self.digester);
        if signed != stored {
            // The key of the position was replaced. Sign the position again now, because without events nothing else
            // would do so before the old key is destroyed.
            let note = RecordEvents { holder, from: stored, to: signed, deliveries: Vec::new() };
            if !self.run(note).await? {
                return Ok(None);
            }
            stored = signed;
        }
        let read = before.filter(|before| before.stored == stored).map_or(stored, |before| before.read);
        Ok(Some(Reading { stored, read, renew_at: now.plus_seconds(LEASE_SECONDS / 2) }))
    }

    /// Releases the lease, so that another process can acquire it before it expires.
    ///
    /// # Errors
    /// The store failed. The lease expires automatically.
    pub async fn end(&self, holder: Uuid) -> Result<(), Error> {
        let Some(Reading { stored, .. }) = self.reading.lock().await.take() else { return Ok(()) };
        let now = self.environment.now();
        self.run(EventLease { holder, now, until: now, first: stored }).await?;
        Ok(())
    }

    async fn listening(&self) -> Result<Listening, Error> {
        let mut listening = Listening::new();
        for (key, receiver) in self.run(ActiveReceivers).await? {
            listening.entry(key.owner).or_default().push((key, receiver));
        }
        Ok(listening)
    }

    /// Returns the next audit entries whose MACs verify, the number of the last checkpoint read, and whether more
    /// exist. Reads no entries if there are no active receivers.
    async fn read_audit(&self, after: i64, listening: &Listening) -> Result<(Vec<AuditEntry>, i64, bool), Error> {
        if listening.is_empty() {
            let newest = self.newest_checkpoint().await?;
            return Ok((Vec::new(), newest.max(after), false));
        }
        let checkpoints = self.run(ReadCheckpoints::After { number: after, limit: CHECKPOINTS }).await?;
        let last = checkpoints.last().map_or(after, |checkpoint| checkpoint.number);
        let more = checkpoints.len() == CHECKPOINTS;
        let mut entries = Vec::new();
        for checkpoint in checkpoints {
            // Missing and damaged checkpoints are reported by the verification of the audit log.
            let ids = checkpoint.sealed.map(|sealed| sealed.checkpoint.entries).unwrap_or_default();
            entries.extend(self.run(FindEntries(ids)).await?);
        }
        entries.retain(|entry| entry.is_genuine(&*self.environment.audit));
        Ok((entries, last, more))
    }

    async fn newest_checkpoint(&self) -> Result<i64, Error> {
        Ok(self.run(ReadCheckpoints::Newest).await?.first().map_or(0, |checkpoint| checkpoint.number))
    }

    /// Returns the events of expiries, notices and issuers after `after` until `until`, ordered by time.
    async fn scan(&self, listening: &Listening, after: Timestamp, until: Timestamp) -> Result<Vec<Occurrence>, Error> {
        let mut found = Vec::new();
        let digester = &*self.digester;
        for (owner, receivers) in listening {
            let wanted = |kind| receivers.iter().any(|(_, receiver)| receiver.wants(kind));
            let Some(organization) = *owner else {
                if wanted(EventKind::IssuerUnreachable) {
                    for stored in self.run(ListIssuers).await? {
                        // The server retries every minute while the issuer fails. Report only the start of the failure.
                        let began = !stored.set.failure.is_empty()
                            && stored.set.asked_at > after
                            && stored.set.asked_at <= until;
                        if began {
                            found.push(Occurrence::of_issuer(&stored.issuer.name, stored.set.fetched_at, digester));
                        }
                    }
                }
                continue;
            };
            if EXPIRY.into_iter().any(wanted) {
                found.extend(self.expiries(organization, after, until).await?);
            }
        }
        for (organization, account, notice) in self.run(NoticesBetween { after, until }).await? {
            found.extend(Occurrence::of_notice(organization, account, notice, digester));
        }
        found.sort_by_key(|occurrence| occurrence.at);
        Ok(found)
    }

    /// Returns objects that passed a threshold before their expiry.
    async fn expiries(
        &self,
        organization: OrganizationId,
        after: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Occurrence>, Error> {
        let mut found = Vec::new();
        for days in THRESHOLD_DAYS.into_iter().chain([0]) {
            let shift = |at: Timestamp| at.plus_seconds(days * DAY);
            let expiring = self.all_expiring(organization, shift(after), shift(until)).await?;
            found.extend(expiring.iter().filter_map(|one| Occurrence::of_expiry(one, after, until, &*self.digester)));
        }
        Ok(found)
    }

    /// Returns expiries that these entries set when one or more of their thresholds had already passed. The entries
    /// contain the time of the change, the rows the expiry.
    async fn missed_thresholds(&self, listening: &Listening, entries: &[AuditEntry]) -> Result<Vec<Occurrence>, Error> {
        let mut set: BTreeMap<OrganizationId, HashMap<Cow<'_, str>, Timestamp>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| may_set_expiry(entry)) {
            if let Some(organization) = entry.organization.as_deref().and_then(|id| id.parse().ok()) {
                set.entry(organization).or_default().insert(entry.subject(), entry.at);
            }
        }
        let mut found = Vec::new();
        for (organization, subjects) in set {
            let receivers = listening.get(&Some(organization)).into_iter().flatten();
            let (Some(first), Some(last)) = (subjects.values().min(), subjects.values().max()) else { continue };
            if receivers.into_iter().any(|(_, receiver)| EXPIRY.into_iter().any(|kind| receiver.wants(kind))) {
                let until = last.plus_seconds(THRESHOLD_DAYS[0] * DAY);
                let expiring = self.all_expiring(organization, *first, until).await?;
                found.extend(expiring.iter().filter_map(|one| {
                    let set_at = subjects.get(&*one.object.subject())?;
                    Occurrence::of_missed_threshold(one, *set_at, &*self.digester)
                }));
            }
        }
        Ok(found)
    }

    /// Returns everything of an organization that expires after `from` until `end`.
    async fn all_expiring(
        &self,
        organization: OrganizationId,
        mut from: Timestamp,
        end: Timestamp,
    ) -> Result<Vec<Expiring>, Error> {
        let (mut found, mut limit) = (Vec::new(), EXPIRING);
        loop {
            let query = FindExpiring { organization, after: from, until: end, limit };
            let mut expiring = self.run(query).await?;
            let integrations = ExpiringIntegrations { organization, after: from, until: end, limit };
            expiring.extend(self.run(integrations).await?);
            let (count, last) = (expiring.len(), expiring.iter().map(|one| one.expires_at).max());
            found.extend(expiring);
            match last.filter(|_| count >= limit) {
                // More objects may share the last expiry, so read that time again.
                Some(last) if last > from.plus_seconds(1) => from = Timestamp::from_millis(last.as_millis() - 1),
                Some(_) => limit *= 2,
                None => return Ok(found),
            }
        }
    }

    /// Returns the receivers with pending deliveries.
    ///
    /// # Errors
    /// The store failed.
    pub async fn due(&self) -> Result<Vec<ReceiverKey>, Error> {
        self.run(ReceiversDue(self.environment.now())).await
    }

    /// Delivers the pending events of a receiver, in order for each subject. Returns the number of accepted deliveries.
    ///
    /// # Errors
    /// The store failed. Attempts since the last recorded one are repeated.
    pub async fn deliver(&self, key: ReceiverKey) -> Result<usize, Error> {
        self.digester.refresh().await?;
        let pending = self.run(PendingDeliveries { key, limit: WAITING }).await?;
        let Some(Pending { receiver, deliveries }) = pending else { return Ok(0) };
        match receiver {
            Err(status) => self.leave_alone(status, deliveries).await,
            Ok(stored) if stored.receiver.channel == Channel::Webhook => self.post(stored, deliveries).await,
            Ok(stored) => self.mail(stored, deliveries).await,
        }
    }

    /// Records that the receiver, which does not open, cannot get events at present.
    async fn leave_alone(&self, status: ReceiverStatus, waiting: Vec<EventDelivery>) -> Result<usize, Error> {
        if let Some(first) = waiting.into_iter().next() {
            let now = self.environment.now();
            let failure = Some(DeliveryFailure::Damaged);
            let not_before = now.plus_seconds(DAMAGED_SECONDS);
            let status = ReceiverStatus {
                last_failure: failure,
                failing_since: status.failing_since.or(Some(now)),
                not_before,
                ..status
            };
            let state = if gives_up(&first, now) { DeliveryState::Failed } else { first.state };
            let delivery = EventDelivery { failure, next_at: not_before, state, ..first };
            let receiver = ReceiverEffect { status, disables: false };
            self.run(RecordAttempts(vec![Attempted { delivery, receiver, continues: false }])).await?;
        }
        Ok(0)
    }

    async fn post(&self, mut stored: StoredReceiver, waiting: Vec<EventDelivery>) -> Result<usize, Error> {
        let (mut attempts, mut accepted) = (Vec::new(), 0);
        let mut held_back: BTreeSet<String> = BTreeSet::new();
        let turn_ends = self.environment.now().plus_seconds(TURN_SECONDS);
        for delivery in waiting {
            let now = self.environment.now();
            if now >= turn_ends {
                break;
            }
            let is_held = |status_until: Timestamp| status_until > now && delivery.kind != EventKind::ReceiverTest;
            if held_back.contains(&delivery.subject) || is_held(stored.status.not_before) || delivery.next_at > now {
                held_back.insert(delivery.subject.clone());
                continue;
            }
            let outcome = self.attempt(&stored.receiver, &delivery, now).await;
            let attempted = self.evaluated(&mut stored, &delivery, outcome);
            accepted += usize::from(outcome.is_ok());
            if attempted.delivery.state == DeliveryState::Waiting {
                held_back.insert(delivery.subject.clone());
            }
            let (continues, disables) = (attempted.continues, attempted.receiver.disables);
            attempts.push(attempted);
            if attempts.len() >= NOTED || disables {
                self.run(RecordAttempts(std::mem::take(&mut attempts))).await?;
            }
            if disables {
                self.disable(&stored).await?;
            }
            if !continues {
                break;
            }
        }
        if !attempts.is_empty() {
            self.run(RecordAttempts(attempts)).await?;
        }
        Ok(accepted)
    }

    /// Posts an event, unless its row was changed outside the service or it has been pending too long.
    async fn attempt(
        &self,
        receiver: &Receiver,
        delivery: &EventDelivery,
        now: Timestamp,
    ) -> Result<(), DeliveryFailure> {
        if !delivery.mac_is_valid(&*self.digester) {
            let id = delivery.id.to_string();
            self.environment.emit(Event::IntegrityFailure { table: "event_deliveries", id });
            return Err(DeliveryFailure::Damaged);
        }
        if let Some(failure) = delivery.failure.filter(|_| gives_up(delivery, now)) {
            return Err(failure);
        }
        let id = format!("msg_{}", delivery.id);
        let (url, secrets) = (receiver.address.text().clone(), receiver.secrets(now));
        let message = WebhookMessage { url, secrets, at: now, body: delivery.body.clone(), id };
        self.carrier.post(&message).await
    }

    /// Returns the result of an attempt, and updates the receiver's status.
    fn evaluated(
        &self,
        stored: &mut StoredReceiver,
        delivery: &EventDelivery,
        outcome: Result<(), DeliveryFailure>,
    ) -> Attempted {
        let now = self.environment.now();
        let attempted = decide_attempt(stored.receiver.channel, &stored.status, delivery, outcome, now);
        stored.status = attempted.receiver.status;
        attempted
    }

    /// Sends pending events as one mail: tests immediately, other events at most once an hour.
    async fn mail(&self, mut stored: StoredReceiver, waiting: Vec<EventDelivery>) -> Result<usize, Error> {
        let now = self.environment.now();
        let is_held = stored.status.not_before > now;
        let (tests, events): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|delivery| delivery.kind == EventKind::ReceiverTest);
        let mut accepted = 0;
        for of_mail in [tests, if is_held { Vec::new() } else { events }] {
            let (sound, damaged): (Vec<_>, Vec<_>) =
                of_mail.into_iter().partition(|delivery| delivery.mac_is_valid(&*self.digester));
            let mut attempts = Vec::new();
            for delivery in damaged {
                let id = delivery.id.to_string();
                self.environment.emit(Event::IntegrityFailure { table: "event_deliveries", id });
                attempts.push(self.evaluated(&mut stored, &delivery, Err(DeliveryFailure::Damaged)));
            }
            if let Some(first) = sound.first() {
                let outcome = self.send(&stored, first, &sound).await;
                for delivery in &sound {
                    attempts.push(self.evaluated(&mut stored, delivery, outcome));
                    accepted += usize::from(outcome.is_ok());
                }
            }
            let disables = attempts.iter().any(|attempted: &Attempted| attempted.receiver.disables);
            if !attempts.is_empty() {
                self.run(RecordAttempts(attempts)).await?;
            }
            if disables {
                self.disable(&stored).await?;
                break;
            }
        }
        Ok(accepted)
    }

    async fn send(
        &self,
        stored: &StoredReceiver,
        first: &EventDelivery,
        deliveries: &[EventDelivery],
    ) -> Result<(), DeliveryFailure> {
        let to = stored.receiver.address.text();
        if let Some(organization) = stored.key.owner {
            let address = EmailAddress::parse(to.expose_secret()); // to look it up
            let address = address.map_err(|_| DeliveryFailure::NoMember)?;
            match self.run(IsMember { organization, address }).await {
                Ok(true) => {}
                Ok(false) => return Err(DeliveryFailure::NoMember),
                Err(_) => return Err(DeliveryFailure::Unreachable),
            }
        }
        self.carrier.mail(to, &first.id.to_string(), deliveries).await
    }

    /// Disables a receiver whose endpoint responded that it is gone, or whose mail address no longer exists.
    async fn disable(&self, stored: &StoredReceiver) -> Result<(), Error> {
        self.run(DisableReceiver { key: stored.key, version: stored.version }).await
    }

    /// Deletes deliveries that finished long ago.
    ///
    /// # Errors
    /// The store failed.
    pub async fn remove_old(&self) -> Result<usize, Error> {
        self.run(RemoveDeliveries(self.environment.now().plus_seconds(-KEPT_SECONDS))).await
    }
}

/// Returns whether a delivery has been pending too long to be attempted again.
fn gives_up(delivery: &EventDelivery, now: Timestamp) -> bool {
    now > delivery.since.plus_seconds(GIVE_UP_SECONDS)
}
