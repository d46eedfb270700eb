//! Show one credential as a list would.

use super::list_credentials::open_all;
use super::{Ambient, AuditTally, ListedCredential, ReadError};
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::CredentialId;
use crate::port::{CredentialRepository, InformationOpener, ShowCredential};
use crate::principal::Principal;
use crate::role::Action;
use std::sync::Arc;

/// The ports of showing.
pub struct ShowCredentialUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Counts shows.
    pub tally: Arc<AuditTally>,
    /// Opens what a list shows, and nothing else.
    pub opener: Arc<dyn InformationOpener>,
    /// The store.
    pub credentials: Arc<dyn CredentialRepository>,
}

impl ShowCredentialUseCase {
    /// Reads one credential's information.
    ///
    /// # Errors
    /// See [`ReadError`]; another organization's credential is [`ReadError::NotFound`].
    pub async fn run(&self, principal: &Principal, id: CredentialId) -> Result<ListedCredential, ReadError> {
        if !principal.role().permits(Action::List) {
            return Err(ReadError::InsufficientRole);
        }
        let organization = principal.organization();
        let now = self.ambient.now();
        let query = ShowCredential { principal: principal.clone(), now, id };
        let row = self.credentials.show_credential(query).await.map_err(|error| self.ambient.witness(error))?;
        let row = row.map_err(ReadError::Principal)?.ok_or(ReadError::NotFound)?;
        let shown = open_all(&self.ambient, &*self.opener, organization, vec![row]).await?;
        let shown = shown.into_iter().next().ok_or(ReadError::NotFound)?;
        let actor = Actor::from(principal);
        self.tally.count(now, Some(organization), actor, AuditAction::CredentialShown, Subject::Vault);
        Ok(shown)
    }
}
