//! Lists of credentials.

use super::{Health, OpenedCredential};
use crate::cursor::ListFilter;
use crate::digest::{Digest, LookupDigests};
use crate::id::{CredentialId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::StoredCredential;
use crate::time::Timestamp;

/// Maximum number of rows that a filtered list reads for one page. With this bound, the index entries of several labels
/// fit together into a reader's cache. The API promises clients at most 10,000.
pub const LIST_WINDOW: usize = 4_000;

/// Reads a page of a list, newest first. With [`ListFilter::expires_before`], the list is ordered by expiry, then by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCredentials {
    /// Organization of the credentials.
    pub organization: OrganizationId,
    /// Filter. Stores compare `labels` instead of its labels.
    pub filter: ListFilter,
    /// Filter: digests of all labels that the credentials have.
    pub labels: Vec<LookupDigests>,
    /// Position after which the page starts.
    pub after: Option<ListPosition>,
    /// Maximum number of results.
    pub limit: usize,
}

impl ListCredentials {
    /// Returns whether one index leads to all rows of the page, in their order: that of the whole list, or of one namespace,
    /// type or label.
    pub fn has_one_index(&self) -> bool {
        let ListFilter { namespace, kind, labels: _, health, expires_before } = &self.filter;
        let filters = usize::from(namespace.is_some()) + usize::from(kind.is_some()) + self.labels.len();
        // While a lookup key is replaced, a label may have several digests.
        let labelled_once = self.labels.iter().all(|label| label.all().len() == 1);
        filters <= 1 && labelled_once && health.is_none() && expires_before.is_none()
    }

    /// Returns whether the list contains this credential at `now`, for stores that filter in memory.
    pub fn matches(&self, row: &StoredCredential, labels: &[Digest], now: Timestamp) -> bool {
        let ListFilter { namespace, kind, labels: _, health, expires_before } = &self.filter;
        let state = || Health::at(now, row.expires_at, row.check).state;
        namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && kind.is_none_or(|kind| row.kind == kind)
            && self.labels.iter().all(|label| label.all().iter().any(|label| labels.contains(label)))
            && expires_before.is_none_or(|before| row.expires_at.is_some_and(|at| at < before))
            && health.is_none_or(|health| health == state())
    }
}

/// A position in a list of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// Expiry of the credential at this position, if the list is ordered by expiry.
    pub expires_at: Option<Timestamp>,
    /// ID of the credential at this position.
    pub id: CredentialId,
}

/// A page of a list, with opened cards.
#[derive(Debug)]
pub struct OpenedRows {
    /// Credentials of the page.
    pub credentials: Vec<OpenedCredential>,
    /// See [`ListedRows::searched_to`].
    pub searched_to: Option<ListPosition>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRows {
    /// Credentials of the page.
    pub rows: Vec<StoredCredential>,
    /// Position at which the search stopped after [`LIST_WINDOW`] rows although more remain. `None` if the page is full
    /// or the list has ended.
    pub searched_to: Option<ListPosition>,
}

impl Operation for ListCredentials {
    type Outcome = OpenedRows;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    fn is_one_exchange(&self) -> bool {
        self.has_one_index()
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<OpenedRows, Failure> {
        let listed = unit.authorized(unit.rows().listed_credentials(self, unit.now())).await?;
        let owner = unit.owner(self.organization).await?;
        let opened = |row| Ok(OpenedCredential { card: unit.open_card(&owner, &row)?, row });
        let credentials = listed.rows.into_iter().map(opened).collect::<Result<_, Failure>>()?;
        Ok(OpenedRows { credentials, searched_to: listed.searched_to })
    }
}
