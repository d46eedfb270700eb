//! List an organization's credentials, newest first.

use super::Vault;
use crate::audit::{Actor, AuditAction, Subject};
use crate::credential::{CredentialType, Information};
use crate::cursor::{self, ListFilter};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::port::{CredentialContext, ListCredentials, SealedInformation, StoredCredential};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// A page to read.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// Which credentials.
    pub filter: ListFilter,
    /// At most so many.
    pub limit: usize,
    /// Where to begin, as the page before said.
    pub cursor: Option<String>,
}

/// A credential as a list shows it: never its data.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its version.
    pub version: i64,
    /// When it was saved.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// What may be shown of its data; `None`: it is damaged, and an operator has to look.
    pub information: Option<Information>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialPage {
    /// The credentials, newest first.
    pub credentials: Vec<ListedCredential>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl Vault {
    /// Reads one page.
    ///
    /// # Errors
    /// [`Refusal::Cursor`]: the cursor is not one of this list.
    pub async fn list(&self, principal: &Principal, request: ListRequest) -> Result<CredentialPage, Error> {
        let organization = principal.member(Action::List)?;
        let after = request
            .cursor
            .map(|text| cursor::decode(&*self.digester, organization, &request.filter, &text))
            .transpose()
            .map_err(|_| Refusal::Cursor)?;
        let now = self.ambient.now();
        let query = ListCredentials {
            principal: principal.clone(),
            organization,
            now,
            filter: request.filter.clone(),
            after,
            limit: request.limit.saturating_add(1), // one more tells whether there is a next page
        };
        let mut rows = self.store.list_credentials(query).await?;
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows
            .last()
            .filter(|_| more)
            .map(|last| cursor::encode(&*self.digester, organization, &request.filter, last.id));
        let credentials = self.open(organization, rows).await?;
        self.count(principal, organization, now, AuditAction::CredentialsListed);
        Ok(CredentialPage { credentials, next })
    }

    /// Opens the information of stored rows.
    pub(super) async fn open(
        &self,
        organization: OrganizationId,
        rows: Vec<StoredCredential>,
    ) -> Result<Vec<ListedCredential>, Error> {
        let sealed: Vec<_> = rows
            .iter()
            .map(|row| SealedInformation {
                context: CredentialContext { organization, credential: row.id, version: row.version },
                key: row.key,
                blob: &row.information,
            })
            .collect();
        let opened = self.opener.open_information(organization, &sealed).await?;
        let listed = rows.into_iter().zip(opened).map(|(row, information)| ListedCredential {
            id: row.id,
            kind: row.kind,
            namespace: row.namespace,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
            information: information.map_err(|error| self.ambient.report(&error)).ok(),
        });
        Ok(listed.collect())
    }

    /// Counts a read for the audit, off the answer's path.
    pub(super) fn count(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        now: Timestamp,
        action: AuditAction,
    ) {
        self.tally.count(now, Some(organization), Actor::from(principal), action, Subject::Vault);
    }
}
