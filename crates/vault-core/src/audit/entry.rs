//! Entries as they are stored, and the bytes that their codes cover.

use super::change::{self, AuditChange, ChangedField};
use super::state::{self, RecordedRow, RowState};
use super::{AuditAction, AuditNote, AuditRecord, SealedAuditRecord};
use crate::digest::Digest;
use crate::id::{AuditId, KeyId};
use crate::port::AuditSealer;
use crate::time::Timestamp;
use std::borrow::Cow;
use uuid::Uuid;

/// An entry as a store has it, with whatever its columns hold: it may have been written by a newer version, or changed
/// outside the service. Its code tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: String,
    /// When it happened.
    pub at: Timestamp,
    /// In which organization, where in one.
    pub organization: Option<String>,
    /// The kind of who acted.
    pub actor: String,
    /// The account that acted.
    pub account: Option<String>,
    /// The session through which it acted.
    pub session: Option<String>,
    /// The integration that acted.
    pub integration: Option<String>,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// How often within a minute, before the entry was written; 1 for single acts.
    pub count: i64,
    /// Which namespace it is about.
    pub namespace: Option<String>,
    /// What the integration said it is for.
    pub purpose: Option<String>,
    /// The network that the request came from.
    pub network: Option<String>,
    /// The credentials that were issued, a line for each.
    pub credentials: Option<String>,
    /// The request that it was done by.
    pub request: Option<String>,
    /// The rows that it changed, a line for each.
    pub rows: Option<String>,
    /// What it changed, from what to what, as JSON.
    pub changes: Option<String>,
    /// The key of its code.
    pub key: String,
    /// The code over the entry.
    pub code: Vec<u8>,
    /// The checkpoint that it is said to be in.
    pub checkpoint: Option<i64>,
}

/// A credential that an entry says was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedCredential {
    /// Its id.
    pub id: String,
    /// Which version of it.
    pub version: i64,
    /// In which form: `raw` or `short`.
    pub form: String,
    /// When the short-lived credential ends.
    pub expires_at: Option<Timestamp>,
}

impl AuditEntry {
    /// The credentials that were issued. Lines that are none are left out.
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

    /// What it changed, from what to what.
    pub fn changes(&self) -> Vec<AuditChange> {
        self.changes.as_deref().map(change::parse).unwrap_or_default()
    }

    /// Its subject; of a namespace, with the name.
    pub fn subject(&self) -> Cow<'_, str> {
        match (&*self.subject, &self.namespace) {
            ("namespace", Some(namespace)) => format!("namespace:{namespace}").into(),
            (subject, _) => subject.into(),
        }
    }

    /// Whether `action` is what was done. One request may do several things at once: its entry has the name of the gravest, and
    /// says by its changes what else was done.
    pub fn is_action(&self, action: &str) -> bool {
        let beside = match self.subject.split_once(':') {
            Some(("credential", _)) => AuditAction::CredentialDescribed,
            Some(("integration", _)) => AuditAction::IntegrationChanged,
            _ => return self.action == action,
        };
        const FIELDS: [ChangedField; 4] =
            [ChangedField::Labels, ChangedField::Description, ChangedField::ExpiresAt, ChangedField::Namespaces];
        let changed = || self.changes().iter().any(|change| FIELDS.iter().any(|field| field.as_str() == change.field));
        self.action == action || (beside.as_str() == action && changed())
    }

    /// Whether `wanted` had a part in it: its subject, as `credential:<id>` or by id alone; a credential that was issued; or
    /// the integration that acted.
    pub fn concerns(&self, wanted: &str) -> bool {
        let subject = self.subject();
        let (kind, id) = wanted.split_once(':').map_or((None, wanted), |(kind, id)| (Some(kind), id));
        let is = |of: &str| kind.is_none_or(|kind| kind == of);
        *subject == *wanted
            || (kind.is_none() && subject.split_once(':').is_some_and(|(_, subject)| subject == id))
            || (is("integration") && self.integration.as_deref() == Some(id))
            || (is("credential") && self.credentials().iter().any(|credential| credential.id == id))
    }

    /// The state in which it says that `row` of its subject was left.
    pub fn left(&self, row: RecordedRow) -> Option<RowState> {
        state::find(self.rows.as_deref()?, row)
    }

    /// Whether it fits its code.
    pub fn is_genuine(&self, sealer: &dyn AuditSealer) -> bool {
        self.id.parse().is_ok_and(|id| self.would_be_genuine_as(id, sealer))
    }

    /// Whether it would fit its code if its id were `id`.
    pub fn would_be_genuine_as(&self, id: AuditId, sealer: &dyn AuditSealer) -> bool {
        let (Ok(key), Ok(code)) = (self.key.parse::<KeyId>(), self.code.as_slice().try_into()) else { return false };
        self.to_authenticated_bytes(id).is_some_and(|bytes| sealer.is_code(key, &bytes, Digest::from_bytes(code)))
    }

    /// The bytes that its code covers if its id is `id`. `None` if a column holds what no entry has.
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

/// The id in a column, if there is one. `None`: it is not written as ids are.
fn uuid(column: Option<&str>) -> Option<Option<[u8; 16]>> {
    match column {
        None => Some(None),
        Some(text) => text.parse::<AuditId>().ok().map(|id| Some(*id.as_bytes())),
    }
}

/// The text in a column, if there is one. `None`: it is empty, which would have the same bytes as none.
fn full(column: Option<&str>) -> Option<Option<&str>> {
    match column {
        Some("") => None,
        column => Some(column),
    }
}

/// The fields that a code covers.
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
    /// Every field, each with its length before it. An entry without any of the later ones is written without them; the number
    /// of fields tells the forms apart.
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
    /// The entry as it is stored, in no checkpoint yet.
    pub fn to_entry(&self) -> AuditEntry {
        let Self { record, key, code } = self;
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
            code: code.as_bytes().to_vec(),
            checkpoint: None,
        }
    }
}

impl AuditRecord {
    /// The bytes that the entry's code covers: every field, each with its length before it.
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
