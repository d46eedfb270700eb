//! Make an integration and its token.

use super::{Administrator, AdministratorError, Ambient};
use crate::audit::{Actor, AuditAction, Subject};
use crate::field::{FieldCode, FieldError};
use crate::id::IntegrationId;
use crate::integration::{Integration, IntegrationName, IntegrationState, IntegrationToken, NamespacePatterns};
use crate::port::{
    CreateIntegration, CreateIntegrationOutcome, Entropy, IntegrationRepository, KeyedDigester, NoEntropy,
    OrganizationRepository, StoreError,
};
use crate::principal::Denial;
use crate::time::Timestamp;
use std::sync::Arc;

/// An integration to be made, as it was asked for.
#[derive(Clone, Debug)]
pub struct CreateIntegrationRequest {
    /// Its name.
    pub name: String,
    /// The namespaces that it may activate.
    pub namespaces: Vec<String>,
    /// When it expires, if it is to.
    pub expires_at: Option<Timestamp>,
}

/// An integration that was made.
pub struct CreatedIntegration {
    /// The integration.
    pub integration: Integration,
    /// Its token; shown this once.
    pub token: IntegrationToken,
}

/// Why none was made.
#[derive(Debug, thiserror::Error)]
pub enum CreateIntegrationError {
    /// Who asks may not, or not there.
    #[error(transparent)]
    Administrator(#[from] AdministratorError),
    /// The session may no longer act.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// Fields that are refused, at `/name`, `/namespaces/…` and `/expires_at`.
    #[error("{} fields are refused", .0.len())]
    Fields(Vec<FieldError>),
    /// Another integration of the organization has the name.
    #[error("an integration of this name is already there")]
    NameTaken,
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ports of making integrations.
pub struct CreateIntegrationUseCase {
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

impl CreateIntegrationUseCase {
    /// Makes an integration.
    ///
    /// # Errors
    /// See [`CreateIntegrationError`].
    pub async fn run(
        &self,
        administrator: Administrator,
        request: CreateIntegrationRequest,
    ) -> Result<CreatedIntegration, CreateIntegrationError> {
        let (authority, organization) = administrator.authority(&*self.organizations).await?;
        let now = self.ambient.now();
        let (name, patterns) = read(&request, now).map_err(CreateIntegrationError::Fields)?;
        let token = IntegrationToken::generate(&*self.entropy)?;
        let integration = Integration {
            id: IntegrationId::from_uuid(self.ambient.ids.ordered(now)),
            organization,
            name,
            patterns,
            expires_at: request.expires_at,
            state: IntegrationState::Active,
            token: token.digest(&*self.digester),
            earlier: None,
            created_at: now,
        };
        let (actor, subject) = (Actor::from(&authority), Subject::Integration(integration.id));
        let command = CreateIntegration {
            authority,
            digest: integration.digest(&*self.digester),
            integration: integration.clone(),
            now,
            audit: self.ambient.record(now, Some(organization), actor, AuditAction::IntegrationCreated, subject),
        };
        match self.integrations.create_integration(command).await? {
            CreateIntegrationOutcome::Created => Ok(CreatedIntegration { integration, token }),
            CreateIntegrationOutcome::NameTaken => Err(CreateIntegrationError::NameTaken),
            CreateIntegrationOutcome::NoOrganization => Err(AdministratorError::NoOrganization.into()),
            CreateIntegrationOutcome::Refused(refusal) => Err(CreateIntegrationError::Principal(refusal)),
        }
    }
}

fn read(
    request: &CreateIntegrationRequest,
    now: Timestamp,
) -> Result<(IntegrationName, NamespacePatterns), Vec<FieldError>> {
    let name = IntegrationName::parse(&request.name, "/name").map_err(|error| vec![error]);
    let patterns = NamespacePatterns::parse(&request.namespaces, "/namespaces");
    let past = request.expires_at.filter(|end| *end <= now);
    let past = past.map(|_| FieldError::new("/expires_at", FieldCode::OutOfRange, "must lie in the future"));
    match (name, patterns, past) {
        (Ok(name), Ok(patterns), None) => Ok((name, patterns)),
        (name, patterns, past) => {
            let errors = [name.err(), patterns.err(), past.map(|error| vec![error])];
            Err(errors.into_iter().flatten().flatten().collect())
        }
    }
}
