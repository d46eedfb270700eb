//! Tell whose integration token this is, and whether its holder may act.

use super::{Ambient, AuditTally};
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::Digest;
use crate::integration::{Integration, IntegrationPrincipal, IntegrationRefusal, IntegrationToken};
use crate::port::{Event, IntegrationRepository, KeyedDigester, StoreError};
use secrecy::SecretString;
use std::sync::Arc;

/// Why nobody was recognised.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateIntegrationError {
    /// The token does not work. All reasons are the same to its holder; the metrics tell them apart, and that somebody
    /// holds a token that worked once is in the audit.
    #[error("the integration token does not work")]
    Invalid(IntegrationRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads an integration token and verifies the row behind it. What the principal then asks for is decided on that
/// very row, or anew.
#[derive(Clone)]
pub struct AuthenticateIntegration {
    ambient: Ambient,
    tally: Arc<AuditTally>,
    digester: Arc<dyn KeyedDigester>,
    integrations: Arc<dyn IntegrationRepository>,
}

impl AuthenticateIntegration {
    /// The operation on these ports.
    pub fn new(
        ambient: Ambient,
        tally: Arc<AuditTally>,
        digester: Arc<dyn KeyedDigester>,
        integrations: Arc<dyn IntegrationRepository>,
    ) -> Self {
        Self { ambient, tally, digester, integrations }
    }

    /// The principal whose token is spelt `text`. What is no token, by its form or its checksum, is refused before
    /// any look-up.
    ///
    /// # Errors
    /// The token does not work now.
    pub async fn run(&self, text: &SecretString) -> Result<IntegrationPrincipal, AuthenticateIntegrationError> {
        match IntegrationToken::read(text) {
            Some(token) => self.find(token.digest(&*self.digester)).await,
            None => Err(self.refuse(IntegrationRefusal::Unknown)),
        }
    }

    /// The same principal as its row stands now, after the store said that it has changed.
    ///
    /// # Errors
    /// Its token does not work any more.
    pub async fn again(
        &self,
        principal: &IntegrationPrincipal,
    ) -> Result<IntegrationPrincipal, AuthenticateIntegrationError> {
        self.find(principal.token).await
    }

    /// Counts that somebody was refused.
    pub(super) fn refuse(&self, refusal: IntegrationRefusal) -> AuthenticateIntegrationError {
        self.ambient.emit(Event::IntegrationRefused(refusal));
        AuthenticateIntegrationError::Invalid(refusal)
    }

    async fn find(&self, token: Digest) -> Result<IntegrationPrincipal, AuthenticateIntegrationError> {
        let found = self.integrations.find_integration_by_token(token).await;
        let found = found.map_err(|error| self.ambient.witness(error))?;
        let stored = found.ok_or_else(|| self.refuse(IntegrationRefusal::Unknown))?;
        if !stored.is_sound(&*self.digester) {
            let id = stored.integration.id.to_string();
            self.ambient.emit(Event::IntegrityFailure { table: "integrations", id });
            return Err(self.refuse(IntegrationRefusal::Unknown));
        }
        let principal = stored.integration.principal(token, stored.digest, self.ambient.now());
        principal.map_err(|refusal| {
            self.count(&stored.integration);
            self.refuse(refusal)
        })
    }

    /// Counts that a token came that once was this integration's. Its holder may come as often as it likes: hence no
    /// record of its own for each.
    fn count(&self, integration: &Integration) {
        let (organization, actor) = (Some(integration.organization), Actor::Integration(integration.id));
        let subject = Subject::Integration(integration.id);
        self.tally.count(self.ambient.now(), organization, actor, AuditAction::ActivationRefusedToken, subject);
    }
}
