//! Open a namespace's credentials for an integration: what activations and dry runs have in common.

use super::{Ambient, AuthenticateIntegration, AuthenticateIntegrationError};
use crate::activation::{MAX_CREDENTIALS, Purpose};
use crate::audit::{Actor, AuditAction, AuditNote, SealedAuditRecord, Subject};
use crate::credential::CredentialData;
use crate::id::{CredentialId, OrganizationId};
use crate::integration::{IntegrationPrincipal, IntegrationRefusal, PrincipalStale};
use crate::namespace::Namespace;
use crate::port::{
    AbortActivation, ActivationRepository, AuditLog, CredentialContext, NewActivation, Opener, SealError, StoreError,
    TakeCredentials, TakeOutcome, TakenCredential,
};
use std::sync::Arc;

/// How often the integration is verified anew because its row changed under the decision.
const ATTEMPTS: usize = 3;

/// Why nothing was opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenNamespaceError {
    /// The integration may not act any more.
    #[error("the integration may not act")]
    Principal(IntegrationRefusal),
    /// The namespace is none of the integration's, whether it exists or not.
    #[error("the integration may not activate this namespace")]
    NotAllowed,
    /// The namespace is frozen.
    #[error("the namespace is frozen")]
    Frozen,
    /// It holds no credentials.
    #[error("there is nothing in this namespace")]
    NotFound,
    /// It holds more than can be activated at once.
    #[error("the namespace holds too many credentials")]
    TooLarge,
    /// The integration has as many live activations as it may.
    #[error("the integration has as many live activations as it may")]
    TooManyLive,
    /// A credential did not open.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AuthenticateIntegrationError> for OpenNamespaceError {
    fn from(error: AuthenticateIntegrationError) -> Self {
        match error {
            AuthenticateIntegrationError::Invalid(refusal) => Self::Principal(refusal),
            AuthenticateIntegrationError::Store(error) => Self::Store(error),
        }
    }
}

/// What is to be opened, and why.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) namespace: Namespace,
    pub(super) purpose: Option<Purpose>,
    /// The activation that it begins; `None` for a dry run.
    pub(super) activation: Option<NewActivation>,
}

/// A credential, open.
pub(super) struct Opened {
    pub(super) id: CredentialId,
    pub(super) version: i64,
    pub(super) data: CredentialData,
}

/// The ports of opening.
#[derive(Clone)]
pub struct OpenNamespace {
    /// Surroundings.
    pub ambient: Ambient,
    /// Verifies integrations.
    pub authenticate: AuthenticateIntegration,
    /// The store.
    pub activations: Arc<dyn ActivationRepository>,
    /// Opens data.
    pub opener: Arc<dyn Opener>,
    /// Where refusals are recorded.
    pub log: Arc<dyn AuditLog>,
}

impl OpenNamespace {
    /// Opens the credentials. What is opened stays in memory; that it was opened is on record before.
    pub(super) async fn run(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
    ) -> Result<Vec<Opened>, OpenNamespaceError> {
        let taken = self.take(principal.clone(), opening).await?;
        let mut opened = Vec::with_capacity(taken.len());
        for row in taken {
            match self.open(principal.organization, &opening.namespace, &row).await {
                Ok(data) => opened.push(Opened { id: row.id, version: row.version, data }),
                Err(error) => {
                    // The record names the credential; the log says what is wrong with it.
                    self.abort(principal, opening, row.id).await?;
                    return Err(self.ambient.witness(error).into());
                }
            }
        }
        Ok(opened)
    }

    /// Takes back what was begun, since nothing of it will be handed out. On record in any case.
    pub(super) async fn abort(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        failed: CredentialId,
    ) -> Result<(), StoreError> {
        let audit = self.record(principal, opening, AuditAction::ActivationFailed, Subject::Credential(failed));
        match &opening.activation {
            Some(activation) => {
                let (organization, activation) = (principal.organization, activation.id);
                self.activations.abort_activation(AbortActivation { organization, activation, audit }).await
            }
            None => self.log.append(vec![audit]).await,
        }
    }

    async fn take(
        &self,
        mut principal: IntegrationPrincipal,
        opening: &Opening,
    ) -> Result<Vec<TakenCredential>, OpenNamespaceError> {
        for _ in 0..ATTEMPTS {
            if !principal.patterns.allow(&opening.namespace) {
                // Before anything is looked up that could tell whether the namespace exists.
                self.refuse(&principal, opening, AuditAction::ActivationRefusedOutside).await?;
                return Err(OpenNamespaceError::NotAllowed);
            }
            let command = self.command(&principal, opening);
            let outcome = self.activations.take_credentials(command).await;
            let error = match outcome.map_err(|error| self.ambient.witness(error))? {
                TakeOutcome::Taken(rows) => return Ok(rows),
                TakeOutcome::Refused(PrincipalStale::Changed) => {
                    principal = self.authenticate.again(&principal).await?;
                    continue;
                }
                TakeOutcome::Refused(stale) => return Err(self.authenticate.refuse(stale.into()).into()),
                TakeOutcome::Frozen => OpenNamespaceError::Frozen,
                TakeOutcome::Empty => OpenNamespaceError::NotFound,
                TakeOutcome::TooLarge => OpenNamespaceError::TooLarge,
                TakeOutcome::TooManyLive => OpenNamespaceError::TooManyLive,
            };
            let frozen = matches!(error, OpenNamespaceError::Frozen);
            let action = if frozen { AuditAction::ActivationRefusedFrozen } else { AuditAction::ActivationRefused };
            self.refuse(&principal, opening, action).await?;
            return Err(error);
        }
        let cause = "the integration was changed again and again";
        Err(StoreError::Unavailable(cause.into()).into())
    }

    fn command(&self, principal: &IntegrationPrincipal, opening: &Opening) -> TakeCredentials {
        let (action, subject) = match &opening.activation {
            Some(activation) => (AuditAction::NamespaceActivated, Subject::Activation(activation.id)),
            None => (AuditAction::NamespaceChecked, Subject::Vault),
        };
        TakeCredentials {
            principal: principal.clone(),
            namespace: opening.namespace.clone(),
            activation: opening.activation.clone(),
            most: MAX_CREDENTIALS,
            now: self.ambient.now(),
            audit: self.record(principal, opening, action, subject),
        }
    }

    async fn open(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        row: &TakenCredential,
    ) -> Result<CredentialData, SealError> {
        let context = CredentialContext { organization, credential: row.id, version: row.version };
        self.opener.open(context, namespace, row.kind, &row.sealed).await
    }

    async fn refuse(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        action: AuditAction,
    ) -> Result<(), StoreError> {
        let subject = Subject::Integration(principal.integration);
        self.log.append(vec![self.record(principal, opening, action, subject)]).await
    }

    fn record(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        action: AuditAction,
        subject: Subject,
    ) -> SealedAuditRecord {
        let note = AuditNote { namespace: opening.namespace.clone(), purpose: opening.purpose.clone() };
        let now = self.ambient.now();
        self.ambient.record_on(now, principal.organization, Actor::from(principal), action, subject, note)
    }
}
