//! Delete a credential, its wrapped data key included.

use super::Ambient;
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::CredentialId;
use crate::port::{CredentialRepository, DeleteCredential, Event, StoreError};
use crate::principal::{Principal, PrincipalRefusal};
use crate::role::Action;
use std::sync::Arc;

/// Why nothing was deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteCredentialError {
    /// The role does not permit it.
    #[error("the role does not permit deleting")]
    InsufficientRole,
    /// The principal may no longer act.
    #[error("the principal may no longer act")]
    Principal(PrincipalRefusal),
    /// There is no such credential in the principal's organization.
    #[error("no such credential")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deletes credentials.
pub struct DeleteCredentialUseCase {
    ambient: Ambient,
    credentials: Arc<dyn CredentialRepository>,
}

impl DeleteCredentialUseCase {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, credentials: Arc<dyn CredentialRepository>) -> Self {
        Self { ambient, credentials }
    }

    /// Deletes one credential for good.
    ///
    /// # Errors
    /// See [`DeleteCredentialError`]; another organization's credential is [`DeleteCredentialError::NotFound`].
    pub async fn run(&self, principal: &Principal, id: CredentialId) -> Result<(), DeleteCredentialError> {
        if !principal.role().permits(Action::Delete) {
            return Err(DeleteCredentialError::InsufficientRole);
        }
        let now = self.ambient.now();
        let actor = Actor::from(principal);
        let subject = Subject::Credential(id);
        let organization = Some(principal.organization());
        let audit = self.ambient.record(now, organization, actor, AuditAction::CredentialDeleted, subject);
        let command = DeleteCredential { principal: principal.clone(), now, id, audit };
        let deleted = self.credentials.delete_credential(command).await?.map_err(DeleteCredentialError::Principal)?;
        if !deleted {
            return Err(DeleteCredentialError::NotFound);
        }
        self.ambient.emit(Event::CredentialDeleted);
        Ok(())
    }
}
