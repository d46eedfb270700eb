//! Stored audit entries, and the encoding that their MACs cover.

use super::change::{self, AuditChange, ChangedField};
use super::state::{RecordedRow, RowState};
use super::{AuditAction, AuditNote, AuditRecord, SealedAuditRecord};
use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::port::AuditSealer;
use crate::time::Timestamp;
use std::borrow::Cow;
use uuid::Uuid;

/// An entry as stored, with unvalidated columns: a newer version may have written it, or it may have been changed
/// outside the service. Its MAC shows whether it is genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// ID of the entry.
    pub id: String,
    /// Time of the event.
    pub at: Timestamp,
    /// Organization, if the entry belongs to one.
    pub organization: Option<String>,
    /// Kind of the actor.
    pub actor: String,
    /// Account that acted.
    pub account: Option<String>,
    /// Session that the account used.
    pub session: Option<String>,
    /// Integration that acted.
    pub integration: Option<String>,
    /// Action.
    pub action: String,
    /// Affected object.
    pub subject: String,
    /// Number of occurrences within a minute that the entry summarizes. 1 for single events.
    pub count: i64,
    /// Namespace that the entry is about.
    pub namespace: Option<String>,
    /// Purpose that the integration stated.
    pub purpose: Option<String>,
    /// Network from which the request came.
    pub network: Option<String>,
    /// Issued credentials, one per line.
    pub credentials: Option<String>,
    /// ID of the request.
    pub request: Option<String>,
    /// Changed rows, one per line.
    pub rows: Option<String>,
    /// Changed values, old and new, in JSON.
    pub changes: Option<String>,
    /// Key of the MAC.
    pub key: String,
    /// MAC of the entry.
    pub mac: Vec<u8>,
    /// Number of the checkpoint that contains it, as stored.
    pub checkpoint: Option<i64>,
}

/// A credential that an entry lists as issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedCredential {
    /// ID of the credential.
    pub id: String,
    /// Issued version.
    pub version: i64,
    /// Issued form: `raw` or `short`.
    pub form: String,
    /// Expiry of the short-lived credential.
    pub expires_at: Option<Timestamp>,
}

impl AuditEntry {
    /// Returns the issued credentials. Skips malformed lines.
    pub fn credentials(&self) -> Vec<AuditedCredential> {
        let read = |line: &str| {
            let mut parts = line.split(' ');
            let (id, version, form) = (parts.next()?, parts.next()?, parts.next()?);
            let expires_at = parts.next().and_then(|end| end.parse().ok()).map(Timestamp::from_millis);
            Some(AuditedCredential {
                id: id.to_owned(),
                version: version.parse().ok()?,
                form: form.to_owned(),
                expires_at,
            })
        };
        self.credentials.as_deref().unwrap_or_default().lines().filter_map(read).collect()
    }

    /// Returns the changed values, old and new.
    pub fn changes(&self) -> Vec<AuditChange> {
        self.changes.as_deref().map(change::parse).unwrap_or_default()
    }

    /// Returns the subject, for a namespace with its name.
    pub fn subject(&self) -> Cow<'_, str> {
        match (&*self.subject, &self.namespace) {
            ("namespace", Some(namespace)) => format!("namespace:{namespace}").into(),
            (subject, _) => subject.into(),
        }
    }

    /// Returns whether the entry is about `action`. One request can do several things: its entry has the name of the
    /// most severe action, and its changes show the others.
    pub fn is_action(&self, action: &str) -> bool {
        let also = match self.subject.split_once(':') {
            Some(("credential", _)) => AuditAction::CredentialDescribed,
            Some(("integration", _)) => AuditAction::IntegrationChanged,
            _ => return self.action == action,
        };
        const FIELDS: [ChangedField; 4] =
            [ChangedField::Labels, ChangedField::Description, ChangedField::ExpiresAt, ChangedField::Namespaces];
        let changed = || self.changes().iter().any(|change| FIELDS.iter().any(|field| field.as_str() == change.field));
        self.action == action || (also.as_str() == action && changed())
    }

    /// Returns whether `wanted` is involved, given as `credential:<id>` or by ID only: as the subject, as an issued
    /// credential or as the integration that acted.
    pub fn concerns(&self, wanted: &str) -> bool {
        let subject = self.subject();
        let (kind, id) = wanted.split_once(':').map_or((None, wanted), |(kind, id)| (Some(kind), id));
        let is = |of: &str| kind.is_none_or(|kind| kind == of);
        *subject == *wanted
            || (kind.is_none() && subject.split_once(':').is_some_and(|(_, subject)| subject == id))
            || (is("integration") && self.integration.as_deref() == Some(id))
            || (is("credential") && self.credentials().iter().any(|credential| credential.id == id))
    }

    /// Returns the recorded state of the `row` of its subject.
    pub fn left(&self, row: RecordedRow) -> Option<RowState> {
        RowState::of(row, self.rows.as_deref()?)
    }

    /// Returns whether its MAC verifies.
    pub fn is_genuine(&self, sealer: &dyn AuditSealer) -> bool {
        self.id.parse().is_ok_and(|id| self.mac_matches_id(id, sealer))
    }

    /// Returns whether its MAC would verify with the ID `id`.
    pub fn mac_matches_id(&self, id: AuditId, sealer: &dyn AuditSealer) -> bool {
        let (Ok(key), Ok(mac)) = (self.key.parse::<KeyId>(), self.mac.as_slice().try_into()) else { return false };
        self.to_authenticated_bytes(id).is_some_and(|bytes| sealer.is_mac(key, &bytes, Digest::from_bytes(mac)))
    }

    /// Returns the encoding that its MAC covers, with the ID `id`. Returns `None` if a column has an invalid value.
    fn to_authenticated_bytes(&self, id: AuditId) -> Option<Vec<u8>> {
        let covered = Covered {
            id: *id.as_bytes(),
            at: self.at.as_millis(),
            organization: uuid(self.organization.as_deref())?,
            actor: &self.actor,
            account: uuid(self.account.as_deref())?,
            session: uuid(self.session.as_deref())?,
            action: &self.action,
            subject: &self.subject,
            count: self.count,
            integration: uuid(self.integration.as_deref())?,
            namespace: full(self.namespace.as_deref())?,
            purpose: full(self.purpose.as_deref())?,
            network: full(self.network.as_deref())?,
            credentials: full(self.credentials.as_deref())?,
            request: full(self.request.as_deref())?,
            rows: full(self.rows.as_deref())?,
            changes: full(self.changes.as_deref())?,
        };
        Some(covered.to_bytes())
    }
}

/// Parses an optional ID. Returns `None` if it is malformed.
fn uuid(column: Option<&str>) -> Option<Option<[u8; 16]>> {
    match column {
        None => Some(None),
        Some(text) => text.parse::<AuditId>().ok().map(|id| Some(*id.as_bytes())),
    }
}

/// Returns the optional text. Returns `None` if it is empty, because that has the same encoding as an absent text.
fn full(column: Option<&str>) -> Option<Option<&str>> {
    match column {
        Some("") => None,
        column => Some(column),
    }
}

/// The fields that a MAC covers.
struct Covered<'a> {
    id: [u8; 16],
    at: i64,
    organization: Option<[u8; 16]>,
    actor: &'a str,
    account: Option<[u8; 16]>,
    session: Option<[u8; 16]>,
    action: &'a str,
    subject: &'a str,
    count: i64,
    integration: Option<[u8; 16]>,
    namespace: Option<&'a str>,
    purpose: Option<&'a str>,
    network: Option<&'a str>,
    credentials: Option<&'a str>,
    request: Option<&'a str>,
    rows: Option<&'a str>,
    changes: Option<&'a str>,
}

impl Covered<'_> {
    /// Encodes every field with a length prefix. An entry without the newer fields is encoded without them: the number
    /// of fields distinguishes the formats.
    fn to_bytes(&self) -> Vec<u8> {
        fn id(id: &Option<[u8; 16]>) -> &[u8] {
            id.as_ref().map_or(&[], |bytes| bytes.as_slice())
        }
        let (at, count) = (self.at.to_be_bytes(), self.count.to_be_bytes());
        let fields: [&[u8]; 17] = [
            &self.id,
            &at,
            id(&self.organization),
            self.actor.as_bytes(),
            id(&self.account),
            id(&self.session),
            self.action.as_bytes(),
            self.subject.as_bytes(),
            &count,
            id(&self.integration),
            self.namespace.unwrap_or_default().as_bytes(),
            self.purpose.unwrap_or_default().as_bytes(),
            self.network.unwrap_or_default().as_bytes(),
            self.credentials.unwrap_or_default().as_bytes(),
            self.request.unwrap_or_default().as_bytes(),
            self.rows.unwrap_or_default().as_bytes(),
            self.changes.unwrap_or_default().as_bytes(),
        ];
        let written = if self.changes.is_some() {
            17
        } else if self.rows.is_some() {
            16
        } else if self.request.is_some() {
            15
        } else if self.network.is_some() || self.credentials.is_some() {
            14
        } else if self.integration.is_some() || self.namespace.is_some() || self.purpose.is_some() {
            12
        } else {
            9
        };
        let mut bytes = Vec::with_capacity(256);
        for field in fields.into_iter().take(written) {
            bytes.extend_from_slice(&u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend_from_slice(field);
        }
        bytes
    }
}

impl SealedAuditRecord {
    /// Returns the entry as it is stored, without a checkpoint.
    pub fn to_entry(&self) -> AuditEntry {
        let Self { record, key, mac } = self;
        let note = record.note.as_ref();
        AuditEntry {
            id: record.id.to_string(),
            at: record.at,
            organization: record.organization.map(|id| id.to_string()),
            actor: record.actor.kind().to_owned(),
            account: record.actor.account().map(|id| id.to_string()),
            session: record.actor.session().map(|id| id.to_string()),
            integration: record.actor.integration().map(|id| id.to_string()),
            action: record.action.as_str().to_owned(),
            subject: record.subject.text(),
            count: record.count,
            namespace: note.map(|note| note.namespace.as_str().to_owned()),
            purpose: note.and_then(|note| note.purpose.as_ref()).map(|purpose| purpose.as_str().to_owned()),
            network: record.network_text(),
            credentials: note.and_then(AuditNote::credentials_text),
            request: record.origin.request_text(),
            rows: record.rows_text(),
            changes: record.changes_text(),
            key: key.to_string(),
            mac: mac.as_bytes().to_vec(),
            checkpoint: None,
        }
    }
}

impl AuditRecord {
    /// Returns the encoding that the entry's MAC covers: every field with a length prefix.
    pub fn to_authenticated_bytes(&self) -> Vec<u8> {
        let bytes = |id: &Uuid| *id.as_bytes();
        let note = self.note.as_ref();
        let (subject, network, request) = (self.subject.text(), self.network_text(), self.origin.request_text());
        let (rows, changes) = (self.rows_text(), self.changes_text());
        let credentials = note.and_then(AuditNote::credentials_text);
        let covered = Covered {
            id: *self.id.as_bytes(),
            at: self.at.as_millis(),
            organization: self.organization.map(|id| bytes(id.as_uuid())),
            actor: self.actor.kind(),
            account: self.actor.account().map(|id| bytes(id.as_uuid())),
            session: self.actor.session().map(|id| bytes(id.as_uuid())),
            action: self.action.as_str(),
            subject: &subject,
            count: self.count,
            integration: self.actor.integration().map(|id| bytes(id.as_uuid())),
            namespace: note.map(|note| note.namespace.as_str()),
            purpose: note.and_then(|note| note.purpose.as_ref()).map(|purpose| purpose.as_str()),
            network: network.as_deref(),
            credentials: credentials.as_deref(),
            request: request.as_deref(),
            rows: rows.as_deref(),
            changes: changes.as_deref(),
        };
        covered.to_bytes()
    }
}
