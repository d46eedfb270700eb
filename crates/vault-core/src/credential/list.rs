//! Lists of credentials.

use super::{CredentialType, Health, HealthState, LabelFilter, OpenedCredential};
use crate::digest::{Digest, LookupDigests};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::port::StoredCredential;
use crate::time::Timestamp;
use serde::Serialize;

/// Maximum number of rows that a filtered list reads for one page. With this bound, the index entries of several labels
/// fit together into a reader's cache. The API promises clients at most 10,000.
pub const LIST_WINDOW: usize = 4_000;

/// Filter of a list of credentials, which must match all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListFilter {
    /// Filter: only credentials of this namespace.
    pub namespace: Option<Namespace>,
    /// Filter: only credentials of this type.
    pub kind: Option<CredentialType>,
    /// Filter: only credentials with all of these labels.
    pub labels: Vec<LabelFilter>,
    /// Filter: only credentials in this state.
    pub health: Option<HealthState>,
    /// Filter: only credentials that expire before this time, ordered by expiry.
    pub expires_before: Option<Timestamp>,
}

/// A range of a list, newest first. With [`ListFilter::expires_before`], the list is ordered by expiry, then by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialQuery {
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

impl CredentialQuery {
    /// Returns whether one index leads to all rows of the page, in their order: that of the whole list, or of one namespace,
    /// type or label.
    pub fn has_one_index(&self) -> bool {
        let ListFilter { namespace, kind, labels: _, health, expires_before } = &self.filter;
        let filters = usize::from(namespace.is_some()) + usize::from(kind.is_some()) + self.labels.len();
        // While a lookup key is replaced, a label may have several digests.
        let labelled_once = self.labels.iter().all(|label| label.all().len() == 1);
        filters <= 1 && labelled_once && health.is_none() && expires_before.is_none()
    }

    fn position(&self, row: &StoredCredential) -> ListPosition {
        let by_expiry = self.filter.expires_before.is_some();
        ListPosition { expires_at: row.expires_at.filter(|_| by_expiry), id: row.id }
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

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRows {
    /// Credentials of the page.
    pub rows: Vec<StoredCredential>,
    /// Position at which the search stopped after [`LIST_WINDOW`] rows although more remain. `None` if the page is full
    /// or the list has ended.
    pub searched_to: Option<ListPosition>,
}

/// Reads a page of a list into a `P`, on the thread that reads the rows: a `P` of bytes does not move each value of each row
/// to another thread.
#[derive(Debug)]
pub struct ListCredentials<P> {
    /// Rows to read.
    pub query: CredentialQuery,
    /// Maximum number of credentials on the page. A page is followed by another one if the query finds more.
    pub page: usize,
    /// Adds a credential to the page.
    pub add: fn(&mut P, OpenedCredential, Timestamp),
}

impl<P> PartialEq for ListCredentials<P> {
    fn eq(&self, other: &Self) -> bool {
        (&self.query, self.page) == (&other.query, other.page)
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct CredentialPage<P> {
    /// The credentials.
    pub credentials: P,
    /// Position after which the next page starts, if any.
    pub next: Option<ListPosition>,
}

impl<P: Default + Send + 'static> Operation for ListCredentials<P> {
    type Outcome = CredentialPage<P>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.query.organization));
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |operation| operation.query.has_one_index();

    async fn run(&self, unit: &Unit<'_>) -> Result<CredentialPage<P>, Failure> {
        let ListedRows { mut rows, searched_to } =
            unit.authorized(unit.rows().listed_credentials(&self.query, unit.now())).await?;
        let owner = unit.owner(self.query.organization).await?;
        let has_more = rows.len() > self.page;
        rows.truncate(self.page);
        let last = rows.last().filter(|_| has_more).map(|row| self.query.position(row));
        let mut credentials = P::default();
        for row in rows {
            let card = unit.card_or_report(&owner, &row)?;
            (self.add)(&mut credentials, OpenedCredential { row, card }, unit.now());
        }
        Ok(CredentialPage { credentials, next: last.or(searched_to) })
    }
}
