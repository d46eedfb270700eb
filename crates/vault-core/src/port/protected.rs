//! The list of protected tables. The integrity check, the rotation of instance keys, the search for deleted rows and the
//! test that changes every table with SQL all follow this list.

use crate::audit::RecordedRow;

/// A table whose rows grant rights, contain secrets, or decide where they are sent. Each row has a MAC or sealed columns, which
/// the integrity check verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedTable {
    /// Name of the table.
    pub name: &'static str,
    /// Columns of the row key: the organization and the row's own ID.
    pub key: [&'static str; 2],
    /// Kinds of the rows in audit entries, which record every state of a row including its deletion. None if a row of another
    /// table names the existing rows, or if rows are temporary.
    pub recorded: &'static [RecordedRow],
    /// Tables whose rows are verified together with a row of this table: parts of the row, and lookups that lead to it.
    pub dependent: &'static [&'static str],
}

const OWN_ID: [&str; 2] = ["organization_id", "id"];

impl ProtectedTable {
    const fn new(name: &'static str, key: [&'static str; 2]) -> Self {
        Self { name, key, recorded: &[], dependent: &[] }
    }

    const fn recorded(self, rows: &'static [RecordedRow]) -> Self {
        Self { recorded: rows, ..self }
    }

    const fn with(self, dependent: &'static [&'static str]) -> Self {
        Self { dependent, ..self }
    }

    /// All protected tables, in the order in which the integrity check reads them.
    pub const ALL: [Self; 2] = {
        [
            Self::new("credentials", OWN_ID)
                .recorded(&[RecordedRow::Credential])
                .with(&["credential_labels", "credential_secrets"]),
            // Documents of all kinds.
            Self::new("entities", OWN_ID)
                .recorded(&[
                    RecordedRow::Account,
                    RecordedRow::Organization,
                    RecordedRow::Integration,
                    RecordedRow::Namespace,
                    RecordedRow::Receiver,
                    RecordedRow::Issuer,
                    RecordedRow::SigningKeys,
                    RecordedRow::Invitation,
                ])
                .with(&["lookups", "global_lookups"]),
        ]
    };

    fn find(is_it: impl Fn(&Self) -> bool) -> Self {
        Self::ALL.into_iter().find(is_it).unwrap_or(Self::new("", ["", ""]))
    }
}

impl RecordedRow {
    /// Returns its table.
    pub fn protected(self) -> ProtectedTable {
        ProtectedTable::find(|table| table.recorded.contains(&self))
    }

    /// Returns the name of its table.
    pub fn table(self) -> &'static str {
        self.protected().name
    }
}
