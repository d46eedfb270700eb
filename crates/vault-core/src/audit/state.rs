//! States of rows after an audited action, which reveal that a row was rolled back to an earlier state.

use super::{AuditChange, Subject};
use crate::digest::{Digest, DigestPurpose, LookupDigests};
use crate::id::{AccountId, CredentialId, IntegrationId, IssuerId, KeyId, OrganizationId, ReceiverId};
use crate::namespace::Namespace;
use crate::port::KeyedDigester;
use uuid::Uuid;

/// Kind of row of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RecordedRow {
    /// Row of an account.
    Account,
    /// Row of an invitation. Its subject is the future account.
    Invitation,
    /// Row of an integration.
    Integration,
    /// Row of a credential.
    Credential,
    /// Row of an organization.
    Organization,
    /// Row of a namespace, whose name is in the entry.
    Namespace,
    /// Row of an issuer.
    Issuer,
    /// Row of a receiver.
    Receiver,
    /// Document of the signing keys of federation tokens.
    #[strum(to_string = "signing_keys")]
    SigningKeys,
}

impl RecordedRow {
    /// Returns the name of the row in entries.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the kinds of rows whose states entries about a subject record, and the ID of the rows. Namespaces are excluded:
    /// their subject does not name the row.
    pub(crate) fn of_subject(subject: &str) -> Option<(&'static [Self], Uuid)> {
        let (kind, id) = subject.split_once(':')?;
        let rows: &[Self] = match kind {
            "account" => &[Self::Account, Self::Invitation],
            "integration" => &[Self::Integration],
            "credential" => &[Self::Credential],
            "organization" => &[Self::Organization],
            "issuer" => &[Self::Issuer],
            "receiver" => &[Self::Receiver],
            "signing-keys" => &[Self::SigningKeys],
            _ => return None,
        };
        Some((rows, Uuid::try_parse(id).ok()?))
    }

    /// Returns the subject of entries about a row with this ID.
    pub(crate) fn subject(self, id: Uuid) -> Subject {
        match self {
            Self::Account | Self::Invitation => Subject::Account(AccountId::from_uuid(id)),
            Self::Integration => Subject::Integration(IntegrationId::from_uuid(id)),
            Self::Credential => Subject::Credential(CredentialId::from_uuid(id)),
            Self::Organization => Subject::Organization(OrganizationId::from_uuid(id)),
            Self::Issuer => Subject::Issuer(IssuerId::from_uuid(id)),
            Self::Receiver => Subject::Receiver(ReceiverId::from_uuid(id)),
            Self::SigningKeys => Subject::SigningKeys(KeyId::from_uuid(id)),
            Self::Namespace => Subject::Namespace,
        }
    }
}

/// State of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// State of a privileged row.
    Grants {
        /// Version, which each change increments. An invitation that replaces another one starts again.
        version: i64,
        /// Digest of all fields that its MAC covers, for the audit log only. The row does not accept this digest as its
        /// MAC, so it is useless to a reader of the audit log, and it is unaffected when the MAC key is replaced.
        digest: Digest,
    },
    /// State of a credential's row: its revision, which each change of data, versions, labels, description and vend
    /// rule increments.
    Revision(i64),
    /// The row was deleted.
    Gone,
}

impl RowState {
    /// Returns the state of `row` in the text of an entry about its subject.
    pub fn of(row: RecordedRow, text: &str) -> Option<Self> {
        let stored = text.lines().find_map(|line| line.strip_prefix(row.as_str())?.strip_prefix(' '))?;
        Self::parse(stored)
    }

    /// Returns the states of a privileged row with the fields `parts`, one under each audit key. The first is recorded
    /// in new entries.
    pub(crate) fn of_grant(
        row: RecordedRow,
        version: i64,
        parts: &[&[u8]],
        digester: &dyn KeyedDigester,
    ) -> RecordedRights {
        let named: Vec<_> = std::iter::once(row.as_str().as_bytes()).chain(parts.iter().copied()).collect();
        RecordedRights { version, digests: digester.lookup(DigestPurpose::RecordedState, &named) }
    }

    /// Returns a number that orders the states of a row: a later state has a higher number.
    pub const fn number(self) -> i64 {
        match self {
            Self::Grants { version: number, .. } | Self::Revision(number) => number,
            Self::Gone => i64::MAX,
        }
    }

    /// Returns its format in entries.
    fn text(self) -> String {
        match self {
            Self::Grants { version, digest } => {
                let digits: String = digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{version} {digits}")
            }
            Self::Revision(revision) => revision.to_string(),
            Self::Gone => GONE.to_owned(),
        }
    }

    /// Parses the format of entries.
    fn parse(text: &str) -> Option<Self> {
        if text == GONE {
            return Some(Self::Gone);
        }
        let Some((version, digits)) = text.split_once(' ') else { return text.parse().ok().map(Self::Revision) };
        let digits = digits.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != bytes.len() * 2 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self::Grants { version: version.parse().ok()?, digest: Digest::from_bytes(bytes) })
    }
}

const GONE: &str = "gone";

/// State of a privileged row, under each audit key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRights {
    version: i64,
    digests: LookupDigests,
}

impl RecordedRights {
    /// Returns the state as new entries record it.
    pub fn current(&self) -> RowState {
        RowState::Grants { version: self.version, digest: *self.digests.current() }
    }

    /// Returns all forms in which entries may have recorded the state.
    pub fn all(&self) -> impl Iterator<Item = RowState> {
        let version = self.version;
        self.digests.all().iter().map(move |digest| RowState::Grants { version, digest: *digest })
    }
}

/// The subject of an audited action, with the effects of the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// Subject of the action.
    pub subject: Subject,
    /// Changed rows, each at most once.
    pub rows: Vec<(RecordedRow, RowState)>,
    /// Namespace of the subject.
    pub namespace: Option<Namespace>,
    /// Changed values, old and new.
    pub changes: Vec<AuditChange>,
}

impl From<Subject> for Affected {
    fn from(subject: Subject) -> Self {
        Self { subject, rows: Vec::new(), namespace: None, changes: Vec::new() }
    }
}

impl Subject {
    /// Returns the subject with the state of one of its rows after the action.
    pub fn left(self, row: RecordedRow, state: RowState) -> Affected {
        Affected::from(self).and(row, state)
    }
}

impl Affected {
    /// Adds the state of another row.
    #[must_use]
    pub fn and(mut self, row: RecordedRow, state: RowState) -> Self {
        self.rows.push((row, state));
        self
    }

    /// Sets the namespace.
    #[must_use]
    pub fn within(self, namespace: Namespace) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Adds changes.
    #[must_use]
    pub fn changing(mut self, changes: impl IntoIterator<Item = AuditChange>) -> Self {
        self.changes.extend(changes);
        self
    }
}

/// Returns the rows as an entry contains them: per line, name and state. Returns `None` if there are none.
pub(super) fn text(rows: &[(RecordedRow, RowState)]) -> Option<String> {
    let lines: Vec<_> = rows.iter().map(|(row, state)| format!("{} {}", row.as_str(), state.text())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::port::ProtectedTable;
    use proptest::prelude::*;

    fn state() -> impl Strategy<Value = RowState> {
        let grants = (any::<i64>(), any::<[u8; 32]>());
        prop_oneof![
            grants.prop_map(|(version, digest)| RowState::Grants { version, digest: Digest::from_bytes(digest) }),
            any::<i64>().prop_map(RowState::Revision),
            Just(RowState::Gone),
        ]
    }

    proptest! {
        #[test]
        fn row_states_follow_audit_entries(account in state(), invitation in state()) {
            let rows = [(RecordedRow::Account, account), (RecordedRow::Invitation, invitation)];
            let text = text(&rows).unwrap();
            prop_assert_eq!(RowState::of(RecordedRow::Account, &text), Some(account));
            prop_assert_eq!(RowState::of(RecordedRow::Invitation, &text), Some(invitation));
            prop_assert_eq!(RowState::of(RecordedRow::Integration, &text), None);
        }

        #[test]
        fn subject_of_a_row_leads_to_its_kind(id in any::<u128>().prop_map(Uuid::from_u128)) {
            let recorded = ProtectedTable::ALL.into_iter().flat_map(|table| table.recorded);
            for row in recorded.copied().filter(|row| *row != RecordedRow::Namespace) {
                let text = row.subject(id).text();
                let (rows, found) = RecordedRow::of_subject(&text).unwrap();
                prop_assert!(rows.contains(&row) && found == id);
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,80}") {
            let _ = RowState::of(RecordedRow::Account, &format!("account {text}"));
        }
    }
}
