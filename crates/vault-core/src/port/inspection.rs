//! Port for the integrity check: reads stored rows one by one, so that a damaged row does not hide others.

use super::{Reply, RowKey, StoredVersions};
use crate::activation::FetchedCredential;
use crate::audit::{AuditEntry, RecordedRow, Subject};
use crate::digest::Digest;
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;

/// A credential with all of its stored rows.
#[derive(Clone, Debug)]
pub struct WholeCredential {
    /// The credential and its versions, without their data.
    pub versions: StoredVersions,
    /// All versions with their sealed data.
    pub data: Vec<FetchedCredential>,
    /// Digests of its labels, in any order.
    pub labels: Vec<Digest>,
}

/// Query for audit entries that contain the state of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStates {
    /// Organization of the entries.
    pub organization: OrganizationId,
    /// Subject of the entries.
    pub subject: Subject,
    /// Kind of row of the subject.
    pub row: RecordedRow,
    /// Namespace of the entries. `None` for any.
    pub namespace: Option<Namespace>,
    /// Maximum number of results.
    pub limit: usize,
}

/// An audit entry that contains states of rows of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedSubject {
    /// Subject of the entry.
    pub subject: String,
    /// ID of the entry.
    pub entry: String,
    /// Organization of the entry. The nil ID for entries about the instance.
    pub organization: String,
}

/// Row key as stored: the IDs of the organization and of the row. In a damaged row they may be malformed.
pub type StoredRowKey = (String, String);

/// Rows as they are stored, for integrity checks: those of which some can be damaged.
pub trait InspectionRows: Send + Sync {
    /// Reads the ordered row keys of credentials, including those of disabled organizations.
    fn credential_places(&self, after: Option<StoredRowKey>, limit: usize) -> Reply<'_, Vec<StoredRowKey>>;

    /// Reads a credential with all its rows. An error if one of them cannot be decoded, or is missing.
    fn whole_credential(&self, organization: OrganizationId, id: CredentialId) -> Reply<'_, Option<WholeCredential>>;

    /// Reads the ordered row keys of credentials that have versions, and whether each credential exists.
    fn version_places(&self, after: Option<StoredRowKey>, limit: usize) -> Reply<'_, Vec<(StoredRowKey, bool)>>;

    /// Reads the newest entries that contain the state of a row, newest first.
    fn recorded_entries(&self, query: &RecordedStates) -> Reply<'_, Vec<AuditEntry>>;

    /// Reads the entries that contain the state of a row, ordered by subject and ID.
    fn recorded_subjects(&self, after: Option<RecordedSubject>, limit: usize) -> Reply<'_, Vec<RecordedSubject>>;

    /// Returns whether a row exists. None of a namespace is asked for.
    fn row_exists(&self, row: RecordedRow, key: RowKey) -> Reply<'_, bool>;
}
