//! List and end an integration's own activations.

use super::{Ambient, AuthenticateIntegration, AuthenticateIntegrationError};
use crate::activation::Activation;
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::ActivationId;
use crate::integration::{IntegrationPrincipal, IntegrationRefusal, PrincipalStale};
use crate::port::{ActivationRepository, CredentialVendor, EndActivation, ListActivations, StoreError};
use std::sync::Arc;

/// How often the integration is verified anew because its row changed under the decision.
const ATTEMPTS: usize = 3;

/// Why nothing was listed or ended.
#[derive(Debug, thiserror::Error)]
pub enum OwnActivationsError {
    /// The integration may not act any more.
    #[error("the integration may not act")]
    Principal(IntegrationRefusal),
    /// It has no live activation of this id.
    #[error("no such activation")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AuthenticateIntegrationError> for OwnActivationsError {
    fn from(error: AuthenticateIntegrationError) -> Self {
        match error {
            AuthenticateIntegrationError::Invalid(refusal) => Self::Principal(refusal),
            AuthenticateIntegrationError::Store(error) => Self::Store(error),
        }
    }
}

/// The ports of an integration's own activations.
pub struct OwnActivations {
    /// Surroundings.
    pub ambient: Ambient,
    /// Verifies integrations.
    pub authenticate: AuthenticateIntegration,
    /// The store.
    pub activations: Arc<dyn ActivationRepository>,
    /// Revokes what can be revoked, where something here vends.
    pub vendor: Option<Arc<dyn CredentialVendor>>,
}

impl OwnActivations {
    /// The live ones, newest first.
    ///
    /// # Errors
    /// See [`OwnActivationsError`].
    pub async fn list(&self, principal: &IntegrationPrincipal) -> Result<Vec<Activation>, OwnActivationsError> {
        let mut principal = principal.clone();
        for _ in 0..ATTEMPTS {
            let query = ListActivations { principal: principal.clone(), now: self.ambient.now() };
            let listed = self.activations.list_activations(query).await;
            match listed.map_err(|error| self.ambient.witness(error))? {
                Ok(activations) => return Ok(activations),
                Err(stale) => principal = self.renewed(&principal, stale).await?,
            }
        }
        Err(contended())
    }

    /// Ends one, and revokes what was vended for it as far as that can be revoked.
    ///
    /// # Errors
    /// See [`OwnActivationsError`].
    pub async fn end(
        &self,
        principal: &IntegrationPrincipal,
        activation: ActivationId,
    ) -> Result<(), OwnActivationsError> {
        let mut principal = principal.clone();
        for _ in 0..ATTEMPTS {
            let now = self.ambient.now();
            let (organization, actor) = (Some(principal.organization), Actor::from(&principal));
            let subject = Subject::Activation(activation);
            let audit = self.ambient.record(now, organization, actor, AuditAction::ActivationEnded, subject);
            let command = EndActivation { principal: principal.clone(), activation, now, audit };
            match self.activations.end_activation(command).await? {
                Ok(true) => {
                    if let Some(vendor) = &self.vendor {
                        vendor.revoke(activation).await;
                    }
                    return Ok(());
                }
                Ok(false) => return Err(OwnActivationsError::NotFound),
                Err(stale) => principal = self.renewed(&principal, stale).await?,
            }
        }
        Err(contended())
    }

    async fn renewed(
        &self,
        principal: &IntegrationPrincipal,
        stale: PrincipalStale,
    ) -> Result<IntegrationPrincipal, OwnActivationsError> {
        match stale {
            PrincipalStale::Changed => Ok(self.authenticate.again(principal).await?),
            other => Err(self.authenticate.refuse(other.into()).into()),
        }
    }
}

fn contended() -> OwnActivationsError {
    let cause = "the integration was changed again and again";
    StoreError::Unavailable(cause.into()).into()
}
