//! Authentication of integration tokens.

use super::Activations;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::Digest;
use crate::error::Error;
use crate::id::IntegrationId;
use crate::integration::{Integration, IntegrationPrincipal, IntegrationRefusal, IntegrationToken};
use crate::network::Network;
use crate::port::{Event, FoundIntegration, StoreError};
use crate::principal::Denial;
use secrecy::{ExposeSecret as _, SecretString};

impl Activations {
    /// Returns the principal of the token `text`, sent from `network`. A token with a malformed text or a wrong
    /// checksum is refused before any lookup. Later operations of the principal require the row that is verified here,
    /// otherwise the token is verified again.
    ///
    /// # Errors
    /// [`Denial::Integration`] if the token is invalid. The metrics contain the reason, but no response does. Uses of
    /// tokens that were valid before are audited.
    pub async fn authenticate(
        &self,
        text: &SecretString,
        network: Option<Network>,
    ) -> Result<IntegrationPrincipal, Error> {
        match IntegrationToken::read(text) {
            Some(token) => self.find(token.digest(&*self.digester), network).await,
            None if is_identity_token(text) => self.authenticate_workload(text, network).await,
            None => Err(self.refuse(IntegrationRefusal::Unknown, None, network)),
        }
    }

    /// Returns the principal for the current row.
    pub(super) async fn again(&self, principal: &IntegrationPrincipal) -> Result<IntegrationPrincipal, Error> {
        match &principal.workload {
            Some(workload) => self.workload_again(principal, workload).await,
            None => self.find(principal.token, principal.network).await,
        }
    }

    /// Counts and logs the refusal of an integration.
    pub(super) fn refuse(
        &self,
        refusal: IntegrationRefusal,
        integration: Option<IntegrationId>,
        network: Option<Network>,
    ) -> Error {
        self.environment.emit(Event::IntegrationRefused { refusal, integration, network });
        Denial::Integration(refusal).into()
    }

    /// Returns what follows from an `error` of the store: the integration verified again if its row was changed,
    /// otherwise an error, which is counted.
    pub(super) async fn after(
        &self,
        principal: &IntegrationPrincipal,
        error: StoreError,
    ) -> Result<IntegrationPrincipal, Error> {
        match error {
            StoreError::Denied(Denial::Integration(refusal)) => self.after_refusal(principal, refusal).await,
            error => Err(error.into()),
        }
    }

    /// Like [`Activations::after`], for a refusal.
    pub(super) async fn after_refusal(
        &self,
        principal: &IntegrationPrincipal,
        refusal: IntegrationRefusal,
    ) -> Result<IntegrationPrincipal, Error> {
        match refusal {
            IntegrationRefusal::Changed => self.again(principal).await,
            refusal => Err(self.refuse(refusal, Some(principal.integration), principal.network)),
        }
    }

    async fn find(&self, token: Digest, network: Option<Network>) -> Result<IntegrationPrincipal, Error> {
        let found = self.store.find_integration_by_token(token).await?;
        let found = found.ok_or_else(|| self.refuse(IntegrationRefusal::Unknown, None, network))?;
        let FoundIntegration { stored, .. } = self.sound(found, network).await?;
        let integration = Some(stored.integration.id);
        match stored.integration.principal(token, stored.digest.code, self.environment.now()) {
            Ok(principal) => Ok(IntegrationPrincipal { network, ..principal }),
            Err(refusal) => {
                self.count(&stored.integration);
                Err(self.refuse(refusal, integration, network))
            }
        }
    }

    /// Returns an integration if the MAC of its row verifies and its organization is active.
    pub(super) async fn sound(
        &self,
        found: FoundIntegration,
        network: Option<Network>,
    ) -> Result<FoundIntegration, Error> {
        let FoundIntegration { stored, organization_active } = &found;
        let integration = Some(stored.integration.id);
        self.digester.load_keys(&[stored.digest.key]).await?;
        if !stored.mac_is_valid(&*self.digester) {
            let id = stored.integration.id.to_string();
            self.environment.emit(Event::IntegrityFailure { table: "integrations", id });
            return Err(self.refuse(IntegrationRefusal::Unknown, integration, network));
        }
        if !organization_active {
            return Err(self.refuse(IntegrationRefusal::OrganizationDisabled, integration, network));
        }
        Ok(found)
    }

    /// Counts the use of a token that was valid before. Recorded once a minute with the count, because such requests
    /// are not limited.
    fn count(&self, integration: &Integration) {
        let (organization, actor) = (Some(integration.organization), Actor::Integration(integration.id));
        let subject = Subject::Integration(integration.id);
        self.tally.count(self.environment.now(), organization, actor, AuditAction::ActivationRefusedToken, subject);
    }
}

/// Returns whether the text looks like a JSON Web Token: its header is a JSON object, so it starts with `{` and `"` or
/// white space, in base64url.
fn is_identity_token(text: &SecretString) -> bool {
    ["ey", "ew"].iter().any(|start| text.expose_secret().starts_with(start))
}
