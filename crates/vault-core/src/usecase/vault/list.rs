//! List an organization's credentials, newest first.

use super::Vault;
use crate::audit::{Actor, AuditAction, Subject};
use crate::credential::{CredentialType, Information};
use crate::cursor::{self, ListFilter, Page, PageRequest};
use crate::error::Error;
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::port::{CredentialContext, ListCredentials, SealedInformation, StoredCredential};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

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
    /// How many changes clients have made to it, the save included.
    pub revision: i64,
    /// The staged version, if there is one.
    pub staged: Option<i64>,
    /// What may be shown of its data; `None`: it is damaged, and an operator has to look.
    pub information: Option<Information>,
}

impl Vault {
    /// Reads one page.
    ///
    /// # Errors
    /// [`Refusal::Cursor`](crate::Refusal::Cursor): the cursor is not one of this list.
    pub async fn list(
        &self,
        principal: &Principal,
        filter: ListFilter,
        page: PageRequest,
    ) -> Result<Page<ListedCredential>, Error> {
        let organization = principal.member(Action::List)?;
        let decode = |text| cursor::decode(&*self.digester, organization, &filter, text);
        let after = page.cursor.as_deref().map(decode).transpose()?;
        let now = self.ambient.now();
        let query = ListCredentials {
            principal: principal.clone(),
            organization,
            now,
            filter: filter.clone(),
            after,
            limit: page.rows(),
        };
        let Page { items, next } = Page::of(self.store.list_credentials(query).await?, &page, |last| {
            cursor::encode(&*self.digester, organization, &filter, last.id)
        });
        let items = self.open(organization, items).await?;
        self.count(principal, organization, now, AuditAction::CredentialsListed);
        Ok(Page { items, next })
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
            revision: row.revision,
            staged: row.staged,
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
