//! Change an integration: its token or its state; or delete it. Operators name it, admins know its id.

use super::{Administrator, AdministratorError, Ambient};
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{
    Integration, IntegrationName, IntegrationState, IntegrationToken, Overlap, StoredIntegration,
};
use crate::port::{
    ChangeIntegration, ChangeIntegrationOutcome, Entropy, Event, FindIntegration, IntegrationChange, IntegrationKey,
    IntegrationRepository, KeyedDigester, NoEntropy, OrganizationRepository, StoreError,
};
use crate::principal::{Denial, Principal};
use std::sync::Arc;

/// How often a change is decided anew because the row changed under it.
const ATTEMPTS: usize = 5;

/// What to do with an integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrationCommand {
    /// It gets a new token; the one it has works on for a while.
    Rotate(Overlap),
    /// Its tokens do not work any more.
    Disable,
    /// They work again.
    Enable,
    /// It goes for good, with its activations.
    Delete,
}

/// By what an integration is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntegrationRef {
    /// Its id.
    Id(IntegrationId),
    /// Its name.
    Name(String),
}

/// A changed integration.
pub struct ChangedIntegration {
    /// The integration as it is now, or was before it was deleted.
    pub integration: Integration,
    /// The new token of a rotation; shown this once.
    pub token: Option<IntegrationToken>,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeIntegrationError {
    /// Who asks may not, or not there.
    #[error(transparent)]
    Administrator(#[from] AdministratorError),
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// No such integration, or one of another organization.
    #[error("no such integration")]
    NotFound,
    /// The row does not fit its code: it grants nothing and is not signed anew.
    #[error("the integration's row does not fit its code: it was changed behind this service's back")]
    Damaged,
    /// The row changed again and again meanwhile.
    #[error("the integration is being changed by others; try again")]
    Contended,
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of changing integrations.
pub struct ChangeIntegrationUseCase {
    /// Surroundings.
    pub ambient: Ambient,
    /// Chance, for tokens.
    pub entropy: Arc<dyn Entropy>,
    /// Look-up digests and row codes.
    pub digester: Arc<dyn KeyedDigester>,
    /// Organizations.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Integrations.
    pub integrations: Arc<dyn IntegrationRepository>,
}

impl ChangeIntegrationUseCase {
    /// Carries `command` out on an integration.
    ///
    /// # Errors
    /// See [`ChangeIntegrationError`].
    pub async fn run(
        &self,
        administrator: Administrator,
        integration: IntegrationRef,
        command: IntegrationCommand,
    ) -> Result<ChangedIntegration, ChangeIntegrationError> {
        let (authority, organization) = administrator.authority(&*self.organizations).await?;
        let key = match integration {
            IntegrationRef::Id(id) => IntegrationKey::Id(id),
            // What cannot be a name names nothing.
            IntegrationRef::Name(name) => {
                IntegrationKey::Name(IntegrationName::parse(&name, "").map_err(|_| ChangeIntegrationError::NotFound)?)
            }
        };
        for _ in 0..ATTEMPTS {
            let found = self.find(&authority, organization, key.clone()).await?;
            let (outcome, changed) = self.change(&authority, found, command).await?;
            match outcome {
                ChangeIntegrationOutcome::Changed => return Ok(changed),
                ChangeIntegrationOutcome::NotFound => return Err(ChangeIntegrationError::NotFound),
                ChangeIntegrationOutcome::Refused(refusal) => return Err(ChangeIntegrationError::Principal(refusal)),
                ChangeIntegrationOutcome::Stale => {}
            }
        }
        Err(ChangeIntegrationError::Contended)
    }

    async fn find(
        &self,
        authority: &Principal,
        organization: OrganizationId,
        key: IntegrationKey,
    ) -> Result<StoredIntegration, ChangeIntegrationError> {
        let query = FindIntegration { authority: authority.clone(), organization, key, now: self.ambient.now() };
        let found = self.integrations.find_integration(query).await.map_err(|error| self.ambient.witness(error))?;
        found.map_err(ChangeIntegrationError::Principal)?.ok_or(ChangeIntegrationError::NotFound)
    }

    async fn change(
        &self,
        authority: &Principal,
        current: StoredIntegration,
        command: IntegrationCommand,
    ) -> Result<(ChangeIntegrationOutcome, ChangedIntegration), ChangeIntegrationError> {
        let now = self.ambient.now();
        // Signing it anew would make a row planted by SQL grant something. One that grants nothing may go.
        if command != IntegrationCommand::Delete && !current.is_sound(&*self.digester) {
            let id = current.integration.id.to_string();
            self.ambient.emit(Event::IntegrityFailure { table: "integrations", id });
            return Err(ChangeIntegrationError::Damaged);
        }
        let StoredIntegration { integration, version, .. } = current;
        let (id, organization) = (integration.id, integration.organization);
        let in_state = |integration: Integration, state| Integration { state, ..integration };
        let (action, integration, token) = match command {
            IntegrationCommand::Rotate(overlap) => {
                let token = IntegrationToken::generate(&*self.entropy)?;
                let rotated = integration.rotated(token.digest(&*self.digester), overlap, now);
                (AuditAction::IntegrationRotated, rotated, Some(token))
            }
            IntegrationCommand::Disable => {
                (AuditAction::IntegrationDisabled, in_state(integration, IntegrationState::Disabled), None)
            }
            IntegrationCommand::Enable => {
                (AuditAction::IntegrationEnabled, in_state(integration, IntegrationState::Active), None)
            }
            IntegrationCommand::Delete => (AuditAction::IntegrationDeleted, integration, None),
        };
        let change = match command {
            IntegrationCommand::Delete => IntegrationChange::Delete,
            _ => {
                let digest = integration.digest(&*self.digester);
                IntegrationChange::Replace { integration: Box::new(integration.clone()), digest }
            }
        };
        let (actor, subject) = (Actor::from(authority), Subject::Integration(id));
        let command = ChangeIntegration {
            authority: authority.clone(),
            organization,
            integration: id,
            version,
            change,
            now,
            audit: self.ambient.record(now, Some(organization), actor, action, subject),
        };
        let outcome = self.integrations.change_integration(command).await?;
        Ok((outcome, ChangedIntegration { integration, token }))
    }
}
