//! What an act left of the rows that it changed, so that a row which is put back in an earlier state shows.

use super::Subject;
use crate::digest::Digest;

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
}

impl RecordedRow {
    /// The row's name in entries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Invitation => "invitation",
            Self::Integration => "integration",
            Self::Credential => "credential",
        }
    }

    /// The name of its table.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Account => "accounts",
            Self::Invitation => "invitations",
            Self::Integration => "integrations",
            Self::Credential => "credentials",
        }
    }
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// A row that grants: the digest of all that its code covers, under the key of look-ups, which instance keys may be
    /// replaced above.
    Grants(Digest),
    /// A credential's row: its revision, which grows with every change of data, versions, labels, description and rule.
    Revision(i64),
    /// There is no row any more.
    Gone,
}

impl RowState {
    /// Its form in entries.
    fn text(self) -> String {
        match self {
            Self::Grants(digest) => digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Revision(revision) => revision.to_string(),
            Self::Gone => "gone".to_owned(),
        }
    }
}

/// A subject, and what an act left of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// The subject.
    pub subject: Subject,
    /// The rows that the act changed, each once.
    pub rows: Vec<(RecordedRow, RowState)>,
}

impl From<Subject> for Affected {
    fn from(subject: Subject) -> Self {
        Self { subject, rows: Vec::new() }
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
}

/// The rows as an entry has them: a line for each, with name and state. `None` without any.
pub(super) fn text(rows: &[(RecordedRow, RowState)]) -> Option<String> {
    let lines: Vec<_> = rows.iter().map(|(row, state)| format!("{} {}", row.as_str(), state.text())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What an entry's text says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing.
    Nothing,
    /// This state.
    Same,
    /// Another state, in which a row is.
    Other,
    /// That there is no row any more.
    Gone,
}

/// Compares what the text says of `row` with the state it is in.
pub(super) fn compare(text: Option<&str>, row: RecordedRow, state: RowState) -> Recorded {
    let said = text.unwrap_or_default().lines().find_map(|line| line.strip_prefix(row.as_str())?.strip_prefix(' '));
    match said {
        None => Recorded::Nothing,
        Some(said) if said == state.text() => Recorded::Same,
        Some("gone") => Recorded::Gone,
        Some(_) => Recorded::Other,
    }
}
