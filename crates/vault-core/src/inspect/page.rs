//! Reading of the keys of all rows, page by page.

use super::row::{opened, readable};
use super::{InspectedRow, RowFinding, Violation};
use crate::audit::RecordedRow;
use crate::entity::{EntityKey, Index, Lookup};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::{LookupRow, RecordedSubject, StoredRowKey};
use futures_util::future::try_join_all;

/// Position of an integrity check, after the last row that it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Entities of all kinds.
    Entities(Option<EntityKey>),
    /// Values that are unique in the instance and lead to entities.
    GlobalLookups(Option<LookupRow>),
    /// Values that are unique in an organization and lead to entities.
    Lookups(Option<LookupRow>),
    /// Credentials with their versions.
    Credentials(Option<StoredRowKey>),
    /// Versions whose credentials do not exist.
    Versions(Option<StoredRowKey>),
    /// Rows that audit entries name.
    Recorded(Option<RecordedSubject>),
    /// No rows remain.
    End,
}

/// Reads the next rows of an integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPage {
    /// Position of the check.
    pub stage: Stage,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Rows of an integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectionPage {
    /// Position after the page.
    pub next: Stage,
    /// Rows to be inspected.
    pub rows: Vec<InspectedRow>,
    /// Findings about rows that are no part of others.
    pub findings: Vec<RowFinding>,
}

impl Operation for ReadPage {
    type Outcome = InspectionPage;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<InspectionPage, Failure> {
        let (rows, limit) = (unit.rows(), self.limit);
        let (mut inspected, mut findings) = (Vec::new(), Vec::new());
        let next = match self.stage.clone() {
            Stage::Entities(after) => {
                inspected
                    .extend(rows.entities_after(after, limit).await?.iter().map(|row| InspectedRow::Entity(row.key)));
                match inspected.last() {
                    Some(InspectedRow::Entity(last)) => Stage::Entities(Some(*last)),
                    _ => Stage::GlobalLookups(None),
                }
            }
            Stage::GlobalLookups(after) => {
                let page = rows.global_lookups_after(after, limit).await?;
                for row in strays(unit, &page).await? {
                    findings.push(stray("global_lookups", row.id));
                }
                page.into_iter().next_back().map_or(Stage::Lookups(None), |last| Stage::GlobalLookups(Some(last)))
            }
            Stage::Lookups(after) => {
                let page = rows.lookups_after(after, limit).await?;
                for row in strays(unit, &page).await? {
                    // The value says more than the ID: a namespace.
                    findings.push(stray("lookups", &row.value));
                }
                page.into_iter().next_back().map_or(Stage::Credentials(None), |last| Stage::Lookups(Some(last)))
            }
            Stage::Credentials(after) => {
                let places = rows.credential_places(after, limit).await?;
                inspected.extend(places.iter().cloned().map(InspectedRow::Credential));
                places.into_iter().next_back().map_or(Stage::Versions(None), |last| Stage::Credentials(Some(last)))
            }
            Stage::Versions(after) => {
                // Versions of existing credentials are inspected with the credential.
                let places = rows.version_places(after, limit).await?;
                for ((_, id), _) in places.iter().filter(|(_, has_credential)| !has_credential) {
                    findings.push(RowFinding::new("credential_secrets", id, Violation::NoCredential));
                }
                places.into_iter().next_back().map_or(Stage::Recorded(None), |(last, _)| Stage::Versions(Some(last)))
            }
            Stage::Recorded(after) => {
                let subjects = rows.recorded_subjects(after, limit).await?;
                inspected = absent(unit, &subjects).await?;
                subjects.into_iter().next_back().map_or(Stage::End, |last| Stage::Recorded(Some(last)))
            }
            Stage::End => Stage::End,
        };
        Ok(InspectionPage { next, rows: inspected, findings })
    }
}

fn stray(table: &'static str, id: impl ToString) -> RowFinding {
    RowFinding::new(table, id, Violation::Unreadable("no object lists this value"))
}

/// Returns the lookups that no entity lists.
async fn strays<'r>(unit: &Unit<'_>, lookups: &'r [LookupRow]) -> Result<Vec<&'r LookupRow>, Failure> {
    let mut strays = Vec::new();
    for lookup in lookups {
        if !is_listed(unit, lookup).await? {
            strays.push(lookup);
        }
    }
    Ok(strays)
}

/// Returns whether an entity lists a value that leads to it. One that does not open is a finding itself.
async fn is_listed(unit: &Unit<'_>, lookup: &LookupRow) -> Result<bool, Failure> {
    let Ok(index) = lookup.index.parse::<Index>() else { return Ok(false) };
    let key = EntityKey { organization: lookup.organization, kind: index.kind(), id: lookup.id };
    let Some(row) = unit.rows().entity(key).await? else { return Ok(false) };
    let entity = readable(unit, opened(unit, &row))?;
    Ok(entity.is_none_or(|(_, listed)| listed.contains(&Lookup::new(index, &*lookup.value))))
}

/// Returns the rows of these subjects that do not exist.
async fn absent(unit: &Unit<'_>, subjects: &[RecordedSubject]) -> Result<Vec<InspectedRow>, Failure> {
    let mut subjects: Vec<_> = subjects.iter().map(|one| (&*one.subject, &*one.organization)).collect();
    subjects.dedup(); // several entries of a subject follow each other
    let mut named = Vec::new();
    for (subject, organization) in subjects {
        // Another subject or organization was changed with SQL, which the verification of the audit log finds.
        let (Some((rows, id)), Ok(organization)) = (RecordedRow::of_subject(subject), organization.parse()) else {
            continue;
        };
        named.extend(rows.iter().map(|row| (*row, (organization, id))));
    }
    let exist = try_join_all(named.iter().map(|(row, place)| unit.rows().row_exists(*row, *place))).await?;
    let named = named.into_iter().zip(exist).filter(|(_, exists)| !exists);
    Ok(named.map(|((row, place), _)| InspectedRow::Absent(row, place)).collect())
}
