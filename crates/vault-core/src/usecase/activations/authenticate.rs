//! Authentication of integration tokens.

use super::Activations;
use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::Digest;
use crate::error::{Error, Refusal};
use crate::id::IntegrationId;
use crate::integration::{
    FindByToken, FoundIntegration, IntegrationPrincipal, IntegrationRefusal, IntegrationToken, StoredIntegration,
};
use crate::network::Network;
use crate::port::Event;
use crate::principal::{Denial, Principal};
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

    /// Returns what follows from an `error` of an operation: the integration verified again if its row was changed,
    /// otherwise an error, which is counted.
    pub(super) async fn after(
        &self,
        principal: &IntegrationPrincipal,
        error: Error,
    ) -> Result<IntegrationPrincipal, Error> {
        match error {
            Error::Denied(Denial::Integration(refusal)) => self.after_refusal(principal, refusal).await,
            error => Err(error),
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
        let found = self.look_up(token, network).await?;
        let found = found.ok_or_else(|| self.refuse(IntegrationRefusal::Unknown, None, network))?;
        match found.principal(token, self.environment.now()) {
            Ok(principal) => Ok(IntegrationPrincipal { network, ..principal }),
            Err(refusal) => {
                self.count(&found.stored);
                Err(self.refuse(refusal, Some(found.stored.id), network))
            }
        }
    }

    /// Returns the integration to which a digest leads, if there is one. One that does not open is unknown, and so is reported.
    pub(super) async fn look_up(
        &self,
        token: Digest,
        network: Option<Network>,
    ) -> Result<Option<FoundIntegration>, Error> {
        let found = self.operations.run(&self.environment, &Principal::Operator, FindByToken(token)).await;
        let found = match found {
            Err(Error::Refused(Refusal::Damaged { id, .. })) => {
                return Err(self.refuse(IntegrationRefusal::Unknown, id.parse().ok(), network));
            }
            found => found?,
        };
        match &found {
            Some(FoundIntegration { stored, organization_active: false, .. }) => {
                Err(self.refuse(IntegrationRefusal::OrganizationDisabled, Some(stored.id), network))
            }
            _ => Ok(found),
        }
    }

    /// Counts the use of a token that was valid before. Recorded once a minute with the count, because such requests
    /// are not limited.
    fn count(&self, integration: &StoredIntegration) {
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
