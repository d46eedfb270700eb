//! States of rows after an audited action, which reveal that a row was rolled back to an earlier state.

use super::{AuditChange, Subject};
use crate::entity::EntityKey;
use crate::id::{AccountId, CredentialId, IntegrationId, IssuerId, KeyId, OrganizationId, ReceiverId};
use crate::namespace::Namespace;
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

/// Kind of row of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
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

named!(RecordedRow);

impl RecordedRow {
    /// Returns the name of its table.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Credential => "credentials",
            _ => EntityKey::TABLE,
        }
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
    /// Version of an entity, or revision of a credential, which each change increments.
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

    /// Returns a number that orders the states of a row: a later state has a higher number.
    pub const fn number(self) -> i64 {
        match self {
            Self::Revision(number) => number,
            Self::Gone => i64::MAX,
        }
    }

    /// Returns its format in entries.
    fn text(self) -> String {
        match self {
            Self::Revision(revision) => revision.to_string(),
            Self::Gone => GONE.to_owned(),
        }
    }

    /// Parses the format of entries.
    fn parse(text: &str) -> Option<Self> {
        if text == GONE { Some(Self::Gone) } else { text.parse().ok().map(Self::Revision) }
    }
}

const GONE: &str = "gone";

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
    use proptest::prelude::*;

    fn state() -> impl Strategy<Value = RowState> {
        prop_oneof![any::<i64>().prop_map(RowState::Revision), Just(RowState::Gone)]
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
            let all = <RecordedRow as strum::VariantArray>::VARIANTS.iter().copied();
            for row in all.filter(|row| *row != RecordedRow::Namespace) {
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
