//! List an organization's credentials, newest first.

use super::{Ambient, AuditTally};
use crate::audit::{Actor, AuditAction, Subject};
use crate::credential::{CredentialType, Information};
use crate::cursor::{self, InvalidCursor, ListFilter};
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::port::{
    CredentialContext, CredentialRepository, InformationOpener, KeyedDigester, ListCredentials, SealError,
    SealedInformation, StoreError, StoredCredential,
};
use crate::principal::{Principal, PrincipalRefusal};
use crate::role::Action;
use crate::time::Timestamp;
use std::sync::Arc;

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
    /// What may be shown of its data.
    pub information: Information,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialPage {
    /// The credentials, newest first.
    pub credentials: Vec<ListedCredential>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The role does not permit it.
    #[error("the role does not permit reading")]
    InsufficientRole,
    /// The principal may no longer act.
    #[error("the principal may no longer act")]
    Principal(PrincipalRefusal),
    /// The cursor is not one of this list.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// There is no such credential in the principal's organization.
    #[error("no such credential")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Opening failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// The ports of listing.
pub struct ListCredentialsUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Counts lists.
    pub tally: Arc<AuditTally>,
    /// Opens what a list shows, and nothing else.
    pub opener: Arc<dyn InformationOpener>,
    /// Codes over cursors.
    pub digester: Arc<dyn KeyedDigester>,
    /// The store.
    pub credentials: Arc<dyn CredentialRepository>,
}

impl ListCredentialsUseCase {
    /// Reads one page.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn run(&self, principal: &Principal, request: ListRequest) -> Result<CredentialPage, ReadError> {
        if !principal.role().permits(Action::List) {
            return Err(ReadError::InsufficientRole);
        }
        let organization = principal.organization();
        let after = request
            .cursor
            .map(|text| cursor::decode(&*self.digester, organization, &request.filter, &text))
            .transpose()?;
        let now = self.ambient.now();
        let query = ListCredentials {
            principal: principal.clone(),
            now,
            filter: request.filter.clone(),
            after,
            limit: request.limit.saturating_add(1), // one more tells whether there is a next page
        };
        let rows = self.credentials.list_credentials(query).await.map_err(|error| self.ambient.witness(error))?;
        let mut rows = rows.map_err(ReadError::Principal)?;
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows
            .last()
            .filter(|_| more)
            .map(|last| cursor::encode(&*self.digester, organization, &request.filter, last.id));
        let credentials = open_all(&self.ambient, &*self.opener, organization, rows).await?;
        let actor = Actor::from(principal);
        self.tally.count(now, Some(organization), actor, AuditAction::CredentialsListed, Subject::Vault);
        Ok(CredentialPage { credentials, next })
    }
}

/// Opens the information of stored rows.
pub(super) async fn open_all(
    ambient: &Ambient,
    opener: &dyn InformationOpener,
    organization: OrganizationId,
    rows: Vec<StoredCredential>,
) -> Result<Vec<ListedCredential>, SealError> {
    let sealed: Vec<_> = rows
        .iter()
        .map(|row| SealedInformation {
            context: CredentialContext { organization, credential: row.id, version: row.version },
            key: row.key,
            blob: &row.information,
        })
        .collect();
    let opened = opener.open_information(organization, &sealed).await.map_err(|error| ambient.witness(error))?;
    let listed = rows.into_iter().zip(opened).map(|(row, information)| ListedCredential {
        id: row.id,
        kind: row.kind,
        namespace: row.namespace,
        version: row.version,
        created_at: row.created_at,
        updated_at: row.updated_at,
        information,
    });
    Ok(listed.collect())
}
