//! Integrity check of all stored rows: whether they can be decrypted at their location, and whether a row was rolled back to an
//! earlier state or deleted.

mod deleted;
mod page;
mod row;

pub use page::{InspectionPage, ReadPage, Stage};
use row::Records;
pub use row::{InspectRow, Inspected, InspectedRow, RecordState, SealedVersions};

use crate::error::Error;
use crate::operation::{Operation, Operations};
use crate::port::{Event, Opener, SealError, StoreError};
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::usecase::Environment;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Number of rows per step when states are recorded.
const RECORDED: usize = 256;

const NO_KEY: &str = "it names a key that does not exist";

/// Tables whose rows grant rights, contain secrets, or decide where they are sent. The check verifies all their rows: each has a
/// MAC or sealed columns, or is part of such a row, or a lookup that leads to one.
pub const PROTECTED_TABLES: [&str; 6] =
    ["credentials", "credential_labels", "credential_secrets", "entities", "lookups", "global_lookups"];

/// A finding about a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowFinding {
    /// Table of the row.
    pub table: &'static str,
    /// ID of the row.
    pub id: String,
    /// The violation.
    pub violation: Violation,
}

/// Way in which a row differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// The row cannot be decoded, or a related row is missing.
    Unreadable(&'static str),
    /// A column cannot be decrypted.
    Sealed {
        /// Name of the column.
        column: &'static str,
        /// Reason of the failure.
        reason: &'static str,
    },
    /// The stored label digests of a credential differ from its labels.
    Labels,
    /// The row is not in the state that the newest entry about it recorded.
    NotAsRecorded {
        /// ID of the entry.
        entry: String,
    },
    /// The row exists although the newest entry about it recorded its removal.
    Removed {
        /// ID of the entry.
        entry: String,
    },
    /// The row does not exist, although the newest entry about it recorded a state.
    Deleted {
        /// ID of the entry.
        entry: String,
    },
    /// The lookup data does not lead to the row.
    Lookup {
        /// Table that should contain the lookup data.
        table: &'static str,
    },
    /// The row is a version of a credential that does not exist.
    NoCredential,
    /// No audit entry states that the row exists, although every operation records this.
    Unrecorded,
    /// The MAC of an audit entry about the row does not verify.
    Entry {
        /// ID of the entry.
        entry: String,
    },
}

impl RowFinding {
    fn new(table: &'static str, id: impl ToString, violation: Violation) -> Self {
        Self { table, id: id.to_string(), violation }
    }

    /// Returns the finding that a sealed value does not open because the row is damaged, or any other error.
    fn of(error: SealError) -> Result<Self, SealError> {
        let (table, column, id, reason) = match error {
            SealError::Integrity { table, column, object, reason } => (table, column, object, reason),
            SealError::UnknownKey { table, column, object, .. } => (table, column, object, NO_KEY),
            error => return Err(error),
        };
        Ok(Self { table, id, violation: Violation::Sealed { column, reason } })
    }
}

impl fmt::Display for RowFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, id, violation } = self;
        write!(f, "row {id} of table {table} ")?;
        match violation {
            Violation::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Violation::Sealed { column, reason } => write!(f, "cannot be decrypted: {column}: {reason}"),
            Violation::Labels => f.write_str("is indexed under other labels than it has"),
            Violation::NotAsRecorded { entry } => {
                write!(
                    f,
                    "differs from its state in audit entry {entry}: it was rolled back or modified outside the service"
                )
            }
            Violation::Removed { entry } => {
                write!(f, "was removed according to audit entry {entry}, and was restored outside the service")
            }
            Violation::Deleted { entry } => {
                write!(f, "exists according to audit entry {entry}, and was deleted outside the service")
            }
            Violation::Lookup { table } => {
                write!(f, "cannot be looked up: table {table} does not refer to it")
            }
            Violation::NoCredential => {
                f.write_str("is a version without a credential: it was moved or kept outside the service")
            }
            Violation::Unrecorded => f.write_str("is in no audit entry: it was restored or added outside the service"),
            Violation::Entry { entry } => {
                write!(f, "has an audit entry that was modified outside the service: {entry}")
            }
        }
    }
}

/// Integrity check of stored rows.
#[derive(Clone)]
pub struct Inspector {
    environment: Environment,
    operations: Operations,
    /// Decrypts the data of credentials. Without it, the check only verifies that the data exists next to a decryptable card.
    opener: Option<Arc<dyn Opener>>,
    records: Records,
}

/// One pass over all rows. The progress is only in memory, so a dropped round starts again.
pub struct InspectionRound {
    inspector: Inspector,
    stage: Stage,
    /// Rows of the last page that were not inspected yet.
    waiting: VecDeque<InspectedRow>,
    rows: u64,
}

impl Inspector {
    /// Creates an integrity check on these ports.
    pub const fn new(environment: Environment, operations: Operations, opener: Option<Arc<dyn Opener>>) -> Self {
        Self { environment, operations, opener, records: Records::No }
    }

    /// Also records the states of valid rows whose newest entry is older than `before` again, so that these entries can be
    /// deleted after a complete round: a row without an entry is a finding.
    #[must_use]
    pub fn renewing(self, before: Timestamp) -> Self {
        Self { records: Records::Older(before), ..self }
    }

    /// Records the state of each valid privileged row that differs from its newest entry, and the removal of issuers,
    /// receivers and invitations that do not exist. Needed after a restore, which replaces rows of an older database by those
    /// of a newer one.
    ///
    /// # Errors
    /// The store failed, or keys cannot be read.
    pub async fn record_states(self) -> Result<(), Error> {
        let mut round = Self { records: Records::All, ..self }.begin();
        while matches!(round.stage, Stage::Entities(_)) {
            round.step(RECORDED, &mut |_| {}).await?;
        }
        round.stage = Stage::Recorded(None);
        while round.step(RECORDED, &mut |_| {}).await? {}
        Ok(())
    }

    /// Starts a round at the first row.
    pub fn begin(&self) -> InspectionRound {
        let (stage, waiting) = (Stage::Entities(None), VecDeque::new());
        InspectionRound { inspector: self.clone(), stage, waiting, rows: 0 }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    /// Inspects a row, and records its state if required.
    async fn look(&self, row: &InspectedRow) -> Result<Vec<RowFinding>, Error> {
        let Inspected { mut findings, record, sealed } =
            match self.run(InspectRow { row: row.clone(), records: self.records }).await {
                // The store could not read the row because it is damaged.
                Err(Error::Store(StoreError::Integrity { table, id, reason })) => {
                    return Ok(vec![RowFinding { table, id, violation: Violation::Unreadable(reason) }]);
                }
                inspected => inspected?,
            };
        let before = findings.len();
        if let (Some(opener), Some(sealed)) = (&self.opener, sealed) {
            // Not in the operation: none can decrypt the data of credentials.
            for error in sealed.open(&**opener).filter_map(Result::err) {
                findings.push(RowFinding::of(error)?);
            }
        }
        if let Some(record) = record.filter(|_| findings.len() == before) {
            self.run(record).await?;
        }
        Ok(findings)
    }
}

impl InspectionRound {
    /// Returns the number of inspected rows. A credential and its versions count as one.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Inspects at most `limit` further rows and passes each finding to `report`. Findings are counted and logged like
    /// damage that a request encounters. Returns `false` if no rows remain.
    ///
    /// # Errors
    /// The store failed, or keys cannot be read. The call can be repeated.
    pub async fn step(&mut self, limit: usize, report: &mut (dyn FnMut(RowFinding) + Send)) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            if matches!(self.stage, Stage::End) {
                return Ok(false);
            }
            let page = self.inspector.run(ReadPage { stage: self.stage.clone(), limit }).await?;
            (self.stage, self.waiting) = (page.next, page.rows.into());
            self.find(page.findings, report);
        }
        while let Some(row) = self.waiting.front() {
            let findings = self.inspector.look(row).await?;
            self.rows += u64::from(!matches!(row, InspectedRow::Absent(..)));
            self.waiting.pop_front();
            self.find(findings, report);
        }
        Ok(true)
    }

    fn find(&self, findings: Vec<RowFinding>, report: &mut (dyn FnMut(RowFinding) + Send)) {
        for finding in findings {
            let event = Event::IntegrityFailure { table: finding.table, id: finding.id.clone() };
            self.inspector.environment.emit(event);
            report(finding);
        }
    }
}
