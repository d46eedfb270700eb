//! Events for receivers, read from audit entries, from expiries and from notices.

use super::{EventDelivery, EventKind, ReceiverKey};
use crate::audit::{AuditAction, AuditEntry, ChangedField};
use crate::digest::{Digest, DigestPurpose};
use crate::id::{AccountId, CredentialId, EventId, IntegrationId, OrganizationId};
use crate::identity::IssuerName;
use crate::notice::{NoticeCode, StoredNotice};
use crate::port::KeyedDigester;
use crate::receiver::DeliveryState;
use crate::role::Role;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};

/// Days before an expiry on which receivers are notified.
pub const THRESHOLD_DAYS: [i64; 3] = [30, 7, 1];
/// Seconds per day.
pub(crate) const DAY: i64 = 24 * 3600;
/// Interval at which refused requests for a frozen namespace are reported, in seconds.
const REFUSED_SECONDS: i64 = 24 * 3600;

/// Position up to which events were read, as stored: it may have been changed outside the service. Its MAC shows
/// whether it is genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// Last checkpoint of the audit log whose entries were read.
    pub checkpoint: i64,
    /// Time up to which expiries and notices were read.
    pub scanned: Timestamp,
    /// Position of the newest delivery.
    pub newest: i64,
    /// MAC of the three fields.
    pub mac: Digest,
}

impl EventPosition {
    /// Signs the fields and returns the position with its MAC.
    pub fn sign(checkpoint: i64, scanned: Timestamp, newest: i64, digester: &dyn KeyedDigester) -> Self {
        let mac = with_parts(checkpoint, scanned, newest, |parts| digester.digest(DigestPurpose::EventDelivery, parts));
        Self { checkpoint, scanned, newest, mac }
    }

    /// Returns the same position, signed with the current key.
    #[must_use]
    pub fn signed_again(self, digester: &dyn KeyedDigester) -> Self {
        Self::sign(self.checkpoint, self.scanned, self.newest, digester)
    }

    /// Returns whether the MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        with_parts(self.checkpoint, self.scanned, self.newest, |parts| {
            digester.fits(DigestPurpose::EventDelivery, parts, &self.mac)
        })
    }
}

fn with_parts<T>(checkpoint: i64, scanned: Timestamp, newest: i64, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
    let parts = [checkpoint, scanned.as_millis(), newest].map(i64::to_be_bytes);
    let [checkpoint, scanned, newest] = &parts;
    digest(&[b"position", checkpoint, scanned, newest])
}

/// Object that expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpiringObject {
    /// A credential with its type and namespace.
    Credential(CredentialId, String, String),
    /// An integration with its name.
    Integration(IntegrationId, String),
}

impl ExpiringObject {
    /// Returns the subject of its audit entries and events.
    pub fn subject(&self) -> String {
        match self {
            Self::Credential(id, ..) => format!("credential:{id}"),
            Self::Integration(id, _) => format!("integration:{id}"),
        }
    }
}

/// An expiry of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiring {
    /// Organization of the object.
    pub organization: OrganizationId,
    /// The object.
    pub object: ExpiringObject,
    /// Time of the expiry.
    pub expires_at: Timestamp,
    /// Time since which the expiry has been set, or an earlier one.
    pub known_since: Timestamp,
}

/// An event for receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// ID, which is the same every time that the event is read.
    pub id: EventId,
    /// Organization of the event. `None` for an event of the instance.
    pub organization: Option<OrganizationId>,
    /// Kind of the event.
    pub kind: EventKind,
    /// Affected object.
    pub subject: String,
    /// Time of the event.
    pub at: Timestamp,
    /// Content of `data` in a webhook: IDs, names, namespaces and types, never a secret.
    pub data: Map<String, Value>,
}

impl Occurrence {
    /// Returns the event of an audit entry, whose MAC must verify. Returns `None` if receivers are not notified of it.
    pub fn of_entry(entry: &AuditEntry, digester: &dyn KeyedDigester) -> Option<Self> {
        let kind = kind_of(entry)?;
        let organization = entry.organization.as_deref().map(str::parse).transpose().ok()?;
        let mut id: EventId = entry.id.parse().ok()?;
        let mut subject = entry.subject().into_owned();
        let mut data = Map::new();
        if let Some(namespace) = &entry.namespace {
            data.insert("namespace".to_owned(), json!(namespace));
        }
        if kind == EventKind::IntegrationRefusedAfterFreeze {
            let integration = entry.integration.as_deref().unwrap_or_default();
            subject = format!("integration:{integration}");
            let period = entry.at.as_seconds().div_euclid(REFUSED_SECONDS).to_be_bytes();
            let namespace = entry.namespace.as_deref().unwrap_or_default();
            id = derived_id(digester, &[kind.as_str().as_bytes(), subject.as_bytes(), namespace.as_bytes(), &period]);
        }
        if let Some((_, id)) = subject.split_once(':').filter(|(subject, _)| *subject != "namespace") {
            data.insert("id".to_owned(), json!(id));
        }
        Some(Self { id, organization, kind, subject, at: entry.at, data })
    }

    /// Returns the event of an expiry between the times of the last scan, `after`, and of this one, `now`. If several
    /// thresholds were passed in between, reports only the last. Returns `None` if none was passed.
    pub fn of_expiry(
        expiring: &Expiring,
        after: Timestamp,
        now: Timestamp,
        digester: &dyn KeyedDigester,
    ) -> Option<Self> {
        let passed = |days: &i64| {
            let at = threshold(expiring, *days);
            at > after && at <= now && (*days == 0 || at >= expiring.known_since)
        };
        // The expiry of an integration is not reported: its jobs are refused then, which is noticed without an event.
        let end = matches!(expiring.object, ExpiringObject::Credential(..)).then_some(0);
        let days = THRESHOLD_DAYS.into_iter().chain(end).rfind(passed)?;
        Some(Self::of_threshold(expiring, days, threshold(expiring, days), digester))
    }

    /// Returns the event of an expiry that was set at `set_at`, after one or more of its thresholds. Only the nearest
    /// of them is reported. Returns `None` if no threshold had passed, or if the expiry had.
    pub fn of_missed_threshold(expiring: &Expiring, set_at: Timestamp, digester: &dyn KeyedDigester) -> Option<Self> {
        if expiring.expires_at <= set_at {
            return None;
        }
        let days = THRESHOLD_DAYS.into_iter().rfind(|days| threshold(expiring, *days) < set_at)?;
        Some(Self::of_threshold(expiring, days, set_at, digester))
    }

    /// Returns the event of one threshold of an expiry. Its ID is always the same, so repeated reports are recognized.
    fn of_threshold(expiring: &Expiring, days: i64, at: Timestamp, digester: &dyn KeyedDigester) -> Self {
        let Expiring { organization, object, expires_at, .. } = expiring;
        let mut data = Map::new();
        let (kind, subject, id) = match object {
            ExpiringObject::Credential(id, kind, namespace) => {
                data.insert("namespace".to_owned(), json!(namespace));
                data.insert("credential_type".to_owned(), json!(kind));
                let kind = if days == 0 { EventKind::CredentialExpired } else { EventKind::CredentialExpiring };
                (kind, object.subject(), id.to_string())
            }
            ExpiringObject::Integration(id, name) => {
                data.insert("name".to_owned(), json!(name));
                (EventKind::IntegrationTokenExpiring, object.subject(), id.to_string())
            }
        };
        data.insert("id".to_owned(), json!(id));
        data.insert("expires_at".to_owned(), json!(expires_at.to_rfc3339()));
        if days > 0 {
            data.insert("days".to_owned(), json!(days));
        }
        let (days, end) = (days.to_be_bytes(), expires_at.as_millis().to_be_bytes());
        let id = derived_id(digester, &[kind.as_str().as_bytes(), subject.as_bytes(), &days, &end]);
        Self { id, organization: Some(*organization), kind, subject, at, data }
    }

    /// Returns the event of a notice to an account, if any. Events of logins are read from notices, so that all logins
    /// have the same cost.
    pub fn of_notice(
        organization: OrganizationId,
        account: AccountId,
        notice: StoredNotice,
        digester: &dyn KeyedDigester,
    ) -> Option<Self> {
        let kind = match notice.code {
            NoticeCode::LoginLocked | NoticeCode::PasscodeDisabled | NoticeCode::LockedOut => EventKind::AccountLocked,
            NoticeCode::RecoveryCodeUsed => EventKind::AccountRecoveryCodeUsed,
            _ => return None,
        };
        let subject = format!("account:{account}");
        // A lockout gets longer with each attempt. It is one event a day.
        let (code, millis) = (notice.code.stored(), notice.at.as_millis());
        let at =
            if notice.code == NoticeCode::LockedOut { millis.div_euclid(DAY * 1_000) } else { millis }.to_be_bytes();
        let id = derived_id(digester, &[kind.as_str().as_bytes(), subject.as_bytes(), code.as_bytes(), &at]);
        let data = Map::from_iter([("id".to_owned(), json!(account.to_string()))]);
        Some(Self { id, organization: Some(organization), kind, subject, at: notice.at, data })
    }

    /// Returns an event of the instance at `at`, optionally about `name`.
    pub fn of_instance(kind: EventKind, name: Option<&str>, at: Timestamp, digester: &dyn KeyedDigester) -> Self {
        let subject = name.map_or_else(|| "instance".to_owned(), |name| format!("instance:{name}"));
        let millis = at.as_millis().to_be_bytes();
        let id = derived_id(digester, &[kind.as_str().as_bytes(), subject.as_bytes(), &millis]);
        let data = name.map(|name| ("name".to_owned(), json!(name))).into_iter().collect();
        Self { id, organization: None, kind, subject, at, data }
    }

    /// Returns the event that the keys of an issuer could not be fetched.
    pub fn of_issuer(issuer: &IssuerName, asked_at: Timestamp, digester: &dyn KeyedDigester) -> Self {
        Self::of_instance(EventKind::IssuerUnreachable, Some(issuer.as_str()), asked_at, digester)
    }

    /// Returns a test event for a receiver.
    pub fn test(id: EventId, receiver: ReceiverKey, at: Timestamp) -> Self {
        let kind = EventKind::ReceiverTest;
        let (subject, data) = (format!("receiver:{}", receiver.id), Map::new());
        Self { id, organization: receiver.owner, kind, subject, at, data }
    }

    /// Returns the signed delivery of the event to `receiver` with number `position`.
    pub fn to_delivery(
        &self,
        receiver: ReceiverKey,
        position: i64,
        now: Timestamp,
        digester: &dyn KeyedDigester,
    ) -> EventDelivery {
        let mut data = self.data.clone();
        if let Some(organization) = self.organization {
            data.insert("organization".to_owned(), json!(organization.to_string()));
        }
        let body = json!({"type": self.kind.as_str(), "timestamp": self.at.to_rfc3339(), "data": data});
        let delivery = EventDelivery {
            id: self.id,
            organization: receiver.owner,
            receiver: receiver.id,
            position,
            kind: self.kind,
            subject: self.subject.clone(),
            body: body.to_string(),
            at: self.at,
            mac: Digest::from_bytes([0; 32]),
            state: DeliveryState::Waiting,
            since: now,
            attempts: 0,
            attempted_at: None,
            next_at: now,
            failure: None,
        };
        delivery.signed(digester)
    }
}

/// Returns the time at which a threshold of an expiry passes.
fn threshold(expiring: &Expiring, days: i64) -> Timestamp {
    expiring.expires_at.plus_seconds(-days * DAY)
}

/// Returns whether an entry is about an operation that may set an expiry.
pub(crate) fn may_set_expiry(entry: &AuditEntry) -> bool {
    const ACTIONS: [AuditAction; 4] = [
        AuditAction::CredentialSaved,
        AuditAction::CredentialReplaced,
        AuditAction::CredentialPromoted,
        AuditAction::IntegrationCreated,
    ];
    ACTIONS.iter().any(|action| action.as_str() == entry.action)
        || entry.changes().iter().any(|change| change.field == ChangedField::ExpiresAt.as_str() && change.to.is_some())
}

fn kind_of(entry: &AuditEntry) -> Option<EventKind> {
    const ACTIONS: [(AuditAction, EventKind); 9] = [
        (AuditAction::CredentialReplaced, EventKind::CredentialReplaced),
        (AuditAction::CredentialPromoted, EventKind::CredentialReplaced),
        (AuditAction::CredentialDeleted, EventKind::CredentialDeleted),
        (AuditAction::CredentialFailing, EventKind::CredentialFailing),
        (AuditAction::CredentialHealthy, EventKind::CredentialHealthyAgain),
        (AuditAction::ActivationRefusedFrozen, EventKind::IntegrationRefusedAfterFreeze),
        (AuditAction::AccountReEnrolled, EventKind::AccountReEnrolled),
        (AuditAction::NamespaceFrozen, EventKind::NamespaceFrozen),
        (AuditAction::NamespaceThawed, EventKind::NamespaceThawed),
    ];
    if let Some((_, kind)) = ACTIONS.into_iter().find(|(action, _)| action.as_str() == entry.action) {
        return Some(kind);
    }
    const GRANTING: [AuditAction; 3] =
        [AuditAction::AccountCreated, AuditAction::AccountEnrolled, AuditAction::AccountRoleChanged];
    let granting = GRANTING.into_iter().find(|action| action.as_str() == entry.action)?;
    let role = entry.changes().into_iter().find(|change| change.field == ChangedField::Role.as_str());
    match (role.and_then(|change| change.to), granting) {
        (Some(role), _) if role == Role::Admin.as_str() => Some(EventKind::AccountAdminAdded),
        // Only a new account gets a role, so this entry is about an existing one.
        (None, AuditAction::AccountEnrolled) => Some(EventKind::AccountReEnrolmentConfirmed),
        _ => None,
    }
}

/// Derives an ID from the content of an event (RFC 9562, version 8).
fn derived_id(digester: &dyn KeyedDigester, parts: &[&[u8]]) -> EventId {
    let digest = digester.digest(DigestPurpose::EventId, parts);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    EventId::from_bytes(bytes)
}
