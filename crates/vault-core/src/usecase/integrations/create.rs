//! Creation of integrations and their tokens.

use super::Integrations;
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{
    CreateIntegration, Integration, IntegrationName, IntegrationState, IntegrationToken, ManagedBy, NamespacePatterns,
    StoredIntegration,
};
use crate::principal::Principal;
use crate::time::Timestamp;

/// Request for a new integration.
#[derive(Clone, Debug)]
pub struct CreateIntegrationRequest {
    /// Its name.
    pub name: String,
    /// Namespaces that the integration may activate.
    pub namespaces: Vec<String>,
    /// Time of its expiry, if any.
    pub expires_at: Option<Timestamp>,
    /// Whether it gets a token. Without one, only trusted workloads can use it.
    pub token: bool,
    /// Workloads that may use it, each as a JSON object.
    pub trusts: Vec<serde_json::Value>,
    /// Document set that manages the object, if any.
    pub managed_by: Option<String>,
}

/// A new integration.
pub struct CreatedIntegration {
    /// The integration.
    pub integration: StoredIntegration,
    /// Its token, if any, which is shown only once.
    pub token: Option<IntegrationToken>,
}

impl Integrations {
    /// Creates an integration of `organization`.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/name`, `/namespaces/…`, `/expires_at`, `/managed_by` and `/trusts/…`.
    /// - [`Refusal::NameTaken`](crate::Refusal::NameTaken) if another integration of the organization has the name,
    ///   [`Refusal::LimitReached`](crate::Refusal::LimitReached) if it has the largest number of integrations.
    pub async fn create(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        request: CreateIntegrationRequest,
    ) -> Result<CreatedIntegration, Error> {
        Self::permit(principal, organization)?;
        let trusts = self.read_trusts(principal, organization, &request.trusts).await?;
        let now = self.environment.now();
        let (name, patterns, managed_by) = read(&request, now)?;
        // An integration without a token gets a random one that is not returned.
        let token = IntegrationToken::generate(&*self.entropy)?;
        let id = IntegrationId::from_uuid(self.environment.ids.ordered(now));
        let integration = Integration {
            name,
            patterns,
            expires_at: request.expires_at,
            state: IntegrationState::Active,
            token: token.digest(&*self.digester),
            previous: None,
            trusts,
            managed_by,
            created_at: now,
        };
        let operation = CreateIntegration { organization, id, integration: integration.clone(), limit: self.limit };
        self.operations.run(&self.environment, principal, operation).await?;
        let integration = StoredIntegration { id, organization, version: 1, integration, last_used_at: None };
        Ok(CreatedIntegration { integration, token: request.token.then_some(token) })
    }
}

type Validated = (IntegrationName, NamespacePatterns, Option<ManagedBy>);

fn read(request: &CreateIntegrationRequest, now: Timestamp) -> Result<Validated, Error> {
    let name = IntegrationName::parse(&request.name, "/name").map_err(|error| vec![error]);
    let patterns = NamespacePatterns::parse(&request.namespaces, "/namespaces");
    let managed_by = request.managed_by.as_ref().map(|set| ManagedBy::parse(set, "/managed_by")).transpose();
    let past = past(request.expires_at, now);
    match (name, patterns, managed_by, past) {
        (Ok(name), Ok(patterns), Ok(managed_by), None) => Ok((name, patterns, managed_by)),
        (name, patterns, managed_by, past) => {
            let rest = managed_by.err().into_iter().chain(past).collect();
            let errors = [name.err(), patterns.err(), Some(rest)];
            Err(Error::Invalid(errors.into_iter().flatten().flatten().collect()))
        }
    }
}

/// Returns the error for an expiry that is not in the future.
pub(super) fn past(expires_at: Option<Timestamp>, now: Timestamp) -> Option<FieldError> {
    let past = expires_at.filter(|end| *end <= now);
    past.map(|_| FieldError::new("/expires_at", FieldCode::OutOfRange, "must be in the future"))
}
