//! What an act left of the rows that it changed, so that a row which is put back in an earlier state shows.

use super::{AuditChange, Subject};
use crate::digest::{Digest, DigestPurpose, LookUpDigests};
use crate::namespace::Namespace;
use crate::port::KeyedDigester;

/// Which row of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedRow {
    /// An account's.
    Account,
    /// An invitation's. Its subject is the account to be.
    Invitation,
    /// An integration's.
    Integration,
    /// A credential's.
    Credential,
    /// An organization's.
    Organization,
    /// A namespace's. Its entry names it.
    Namespace,
}

impl RecordedRow {
    /// The row's name in entries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Invitation => "invitation",
            Self::Integration => "integration",
            Self::Credential => "credential",
            Self::Organization => "organization",
            Self::Namespace => "namespace",
        }
    }

    /// The name of its table.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Account => "accounts",
            Self::Invitation => "invitations",
            Self::Integration => "integrations",
            Self::Credential => "credentials",
            Self::Organization => "organizations",
            Self::Namespace => "frozen_namespaces",
        }
    }
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// A row that grants.
    Grants {
        /// Its version, which grows with every change; an invitation that takes the place of another begins anew.
        version: i64,
        /// The digest of all that its code covers, made for this alone: the row accepts no such code, so a reader of the audit
        /// learns none, and it stays when the key of codes is replaced.
        digest: Digest,
    },
    /// A credential's row: its revision, which grows with every change of data, versions, labels, description and rule.
    Revision(i64),
    /// An organization that is in use, or a namespace that is not frozen.
    Open,
    /// An organization that is disabled, or a frozen namespace.
    Closed,
    /// There is no row any more.
    Gone,
}

impl RowState {
    /// The states of a row that grants what `parts` say, all that its code covers: under each key of the audit, the one that is recorded
    /// from now on first.
    pub(crate) fn of_grant(
        row: RecordedRow,
        version: i64,
        parts: &[&[u8]],
        digester: &dyn KeyedDigester,
    ) -> RecordedGrant {
        let named: Vec<_> = std::iter::once(row.as_str().as_bytes()).chain(parts.iter().copied()).collect();
        RecordedGrant { version, digests: digester.look_up(DigestPurpose::RecordedState, &named) }
    }

    /// Which of two states of a row came later: the one with the higher number.
    pub const fn number(self) -> i64 {
        match self {
            Self::Grants { version: number, .. } | Self::Revision(number) => number,
            Self::Open | Self::Closed => 0,
            Self::Gone => i64::MAX,
        }
    }

    /// Its form in entries.
    fn text(self) -> String {
        match self {
            Self::Grants { version, digest } => {
                let digits: String = digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{version} {digits}")
            }
            Self::Revision(revision) => revision.to_string(),
            Self::Open => OPEN.to_owned(),
            Self::Closed => CLOSED.to_owned(),
            Self::Gone => GONE.to_owned(),
        }
    }

    /// The state of this form.
    fn parse(text: &str) -> Option<Self> {
        match text {
            OPEN => return Some(Self::Open),
            CLOSED => return Some(Self::Closed),
            GONE => return Some(Self::Gone),
            _ => {}
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

const OPEN: &str = "open";
const CLOSED: &str = "closed";
const GONE: &str = "gone";

/// The state of a row that grants, under each key of the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedGrant {
    version: i64,
    digests: LookUpDigests,
}

impl RecordedGrant {
    /// As entries record it from now on.
    pub fn current(&self) -> RowState {
        RowState::Grants { version: self.version, digest: *self.digests.current() }
    }

    /// As entries may have recorded it.
    pub fn all(&self) -> impl Iterator<Item = RowState> {
        let version = self.version;
        self.digests.all().iter().map(move |digest| RowState::Grants { version, digest: *digest })
    }
}

/// A subject, and what an act did to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The subject.
    pub subject: Subject,
    /// The rows that the act changed, each once.
    pub rows: Vec<(RecordedRow, RowState)>,
    /// The namespace that it is in.
    pub namespace: Option<Namespace>,
    /// What the act changed, from what to what.
    pub changes: Vec<AuditChange>,
}

impl From<Subject> for Affected {
    fn from(subject: Subject) -> Self {
        Self { subject, rows: Vec::new(), namespace: None, changes: Vec::new() }
    }
}

impl Subject {
    /// The subject, one of whose rows the act leaves in this state.
    pub fn left(self, row: RecordedRow, state: RowState) -> Affected {
        Affected::from(self).and(row, state)
    }
}

impl Affected {
    /// Another row, too.
    #[must_use]
    pub fn and(mut self, row: RecordedRow, state: RowState) -> Self {
        self.rows.push((row, state));
        self
    }

    /// In a namespace.
    #[must_use]
    pub fn within(self, namespace: Namespace) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// With these changes, too.
    #[must_use]
    pub fn changing(mut self, changes: impl IntoIterator<Item = AuditChange>) -> Self {
        self.changes.extend(changes);
        self
    }
}

/// The rows as an entry has them: a line for each, with name and state. `None` without any.
pub(super) fn text(rows: &[(RecordedRow, RowState)]) -> Option<String> {
    let lines: Vec<_> = rows.iter().map(|(row, state)| format!("{} {}", row.as_str(), state.text())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The state in which an entry's text says that `row` was left.
pub(super) fn find(text: &str, row: RecordedRow) -> Option<RowState> {
    let said = text.lines().find_map(|line| line.strip_prefix(row.as_str())?.strip_prefix(' '))?;
    RowState::parse(said)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use proptest::prelude::*;

    fn state() -> impl Strategy<Value = RowState> {
        let grants = (any::<i64>(), any::<[u8; 32]>());
        prop_oneof![
            grants.prop_map(|(version, digest)| RowState::Grants { version, digest: Digest::from_bytes(digest) }),
            any::<i64>().prop_map(RowState::Revision),
            Just(RowState::Open),
            Just(RowState::Closed),
            Just(RowState::Gone),
        ]
    }

    proptest! {
        #[test]
        fn each_row_is_found_as_it_was_left(account in state(), invitation in state()) {
            let rows = [(RecordedRow::Account, account), (RecordedRow::Invitation, invitation)];
            let text = text(&rows).unwrap();
            prop_assert_eq!(find(&text, RecordedRow::Account), Some(account));
            prop_assert_eq!(find(&text, RecordedRow::Invitation), Some(invitation));
            prop_assert_eq!(find(&text, RecordedRow::Integration), None);
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,80}") {
            let _ = find(&format!("account {text}"), RecordedRow::Account);
        }
    }
}
