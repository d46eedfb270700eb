//! Creating and changing integrations.

use super::super::Transaction;
use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock, lock_organization_for_update};
use super::super::instance_key::require_active;
use super::row;
use crate::db::Tx;
use crate::failure::Failure;
use vault_core::port::{ChangeIntegration, CreateIntegration, IntegrationChange};
use vault_core::{Command, Refusal};

impl Transaction for Command<CreateIntegration> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let CreateIntegration { integration, digest, limit } = &self.payload;
        let organization = integration.organization;
        // A transaction that locks all integrations, to stop them, shares a lock of the organization. With this lock, no
        // integration is created while it runs. It comes before the shared lock of the session: two such transactions that
        // first share the lock would deadlock.
        let exists = self.principal.reaches(organization) && lock_organization_for_update(tx, organization).await?;
        authorize_and_lock(tx, &self.principal, self.now).await?;
        require_active(tx, [digest.key]).await?;
        if !exists {
            return Err(Refusal::NoOrganization.into());
        }
        if row::count(tx, organization).await? >= *limit {
            return Err(self.payload.limit_reached().into());
        }
        if !row::insert(tx, integration, digest).await? {
            return Err(Refusal::NameTaken.into());
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

impl Transaction for Command<ChangeIntegration> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let ChangeIntegration { organization, integration: id, version, change } = &self.payload;
        if !self.principal.reaches(*organization) {
            return Err(Refusal::NotFound.into());
        }
        let token = match row::lock(tx, *organization, *id).await? {
            None => return Err(Refusal::NotFound.into()),
            Some((found, _)) if found != *version => return Err(Refusal::Contended.into()),
            Some((_, token)) => token,
        };
        match change {
            IntegrationChange::Replace { integration, digest } => {
                require_active(tx, [digest.key]).await?;
                row::replace(tx, integration, digest, token).await?;
            }
            IntegrationChange::Delete => row::remove(tx, *organization, *id).await?,
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}
