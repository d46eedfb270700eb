//! Lists of an organization's credentials, newest first.

use super::Vault;
use crate::activation::VendRule;
use crate::audit::{Actor, AuditAction, Subject};
use crate::credential::{
    CredentialPage, CredentialQuery, CredentialType, Health, Information, ListCredentials, ListFilter, Metadata,
    OpenedCredential,
};
use crate::cursor::{self, Page, PageRequest};
use crate::error::Error;
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// The version of a credential that was current before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousVersion {
    /// Version number.
    pub number: i64,
    /// Time until which it is kept.
    pub until: Timestamp,
}

/// A credential as a list shows it, without its data.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// Time of the save.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Number of changes by clients, including the save.
    pub revision: i64,
    /// The staged version, if any.
    pub staged: Option<i64>,
    /// The version that was current before, while it is kept.
    pub previous: Option<PreviousVersion>,
    /// The displayable part of the data. `None` if it is damaged and an operator must act.
    pub information: Option<Information>,
    /// Labels and description. `None` if they are damaged.
    pub metadata: Option<Metadata>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// Expiry, if known.
    pub expires_at: Option<Timestamp>,
    /// Health, as far as it is known.
    pub health: Health,
    /// Time of the last activation, truncated to the minute.
    pub last_activated_at: Option<Timestamp>,
}

impl ListedCredential {
    /// Shows an opened credential at `now`.
    pub fn of(OpenedCredential { row, card }: OpenedCredential, now: Timestamp) -> Self {
        let card = card.ok();
        let previous = card.as_ref().and_then(|card| card.previous(now));
        let previous = previous.and_then(|version| Some((version.number, version.destroy_at()?)));
        let staged = card.as_ref().and_then(|card| Some(card.staged()?.number));
        let (information, metadata) = card.map(|card| (card.current.information, card.metadata)).unzip();
        Self {
            id: row.id,
            kind: row.kind,
            namespace: row.namespace,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
            revision: row.revision,
            staged,
            previous: previous.map(|(number, until)| PreviousVersion { number, until }),
            information,
            metadata,
            vend: row.vend,
            expires_at: row.expires_at,
            health: Health::at(now, row.expires_at, row.check),
            last_activated_at: row.last_activated_at,
        }
    }
}

impl Vault {
    /// Reads one page.
    ///
    /// # Errors
    /// [`Refusal::Cursor`](crate::Refusal::Cursor) if the cursor does not belong to this list.
    pub async fn list(
        &self,
        principal: &Principal,
        filter: ListFilter,
        page: PageRequest,
    ) -> Result<Page<ListedCredential>, Error> {
        let add = |items: &mut Vec<_>, opened, now| items.push(ListedCredential::of(opened, now));
        let (items, next) = self.list_into(principal, filter, page, add).await?;
        Ok(Page { items, next })
    }

    /// Reads one page into a `P`, for example into text. `add` appends a credential, and may run on another thread. Returns it
    /// with the cursor of the next page, if any.
    ///
    /// # Errors
    /// Those of [`list`](Self::list).
    pub async fn list_into<P: Default + Send + 'static>(
        &self,
        principal: &Principal,
        filter: ListFilter,
        page: PageRequest,
        add: fn(&mut P, OpenedCredential, Timestamp),
    ) -> Result<(P, Option<String>), Error> {
        let organization = principal.member(Action::List)?;
        let digester = &*self.digester;
        let after = match page.cursor.as_deref() {
            Some(text) => Some(cursor::decode(digester, organization, &filter, text).await?),
            None => None,
        };
        let labels = filter.labels.iter().map(|label| label.lookup(digester, organization)).collect();
        let query = CredentialQuery { organization, filter: filter.clone(), labels, after, limit: page.rows() };
        let list = ListCredentials { query, page: page.limit, add };
        let CredentialPage { credentials, next } = self.operations.run(&self.environment, principal, list).await?;
        self.count(principal, organization, AuditAction::CredentialsListed);
        Ok((credentials, next.map(|position| cursor::encode(digester, organization, &filter, position))))
    }

    /// Counts a read for the audit log, outside of the request's path.
    pub(super) fn count(&self, principal: &Principal, organization: OrganizationId, action: AuditAction) {
        self.tally.count(self.environment.now(), Some(organization), Actor::from(principal), action, Subject::Vault);
    }
}
