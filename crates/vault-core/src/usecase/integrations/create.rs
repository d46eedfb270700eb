//! Creation of integrations and their tokens.

use super::Integrations;
use crate::audit::{AuditAction, RecordedRow, Subject};
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::Trusts;
use crate::integration::{
    Integration, IntegrationName, IntegrationState, IntegrationToken, ManagedBy, NamespacePatterns,
};
use crate::port::{CreateIntegration, Event};
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::usecase::under_active_key;

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
    pub integration: Integration,
    /// Its token, if any, which is shown only once.
    pub token: Option<IntegrationToken>,
}

impl Integrations {
    /// Creates an integration of `organization`.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/name`, `/namespaces/…`, `/expires_at`, `/managed_by` and `/trusts/…`.
    /// - Those of [`create_integration`](crate::port::IntegrationRepository::create_integration).
    pub async fn create(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        request: CreateIntegrationRequest,
    ) -> Result<CreatedIntegration, Error> {
        Self::permit(principal, organization)?;
        let trusts = self.read_trusts(principal, organization, &request.trusts).await?;
        under_active_key(&self.environment, &*self.digester, || {
            self.create_once(principal, organization, &request, &trusts)
        })
        .await
    }

    async fn create_once(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        request: &CreateIntegrationRequest,
        trusts: &Trusts,
    ) -> Result<CreatedIntegration, Error> {
        let now = self.environment.now();
        let (name, patterns, managed_by) = read(request, now)?;
        // An integration without a token gets a random one that is not returned.
        let token = IntegrationToken::generate(&*self.entropy)?;
        let integration = Integration {
            id: IntegrationId::from_uuid(self.environment.ids.ordered(now)),
            organization,
            name,
            patterns,
            expires_at: request.expires_at,
            state: IntegrationState::Active,
            token: token.digest(&*self.digester),
            previous: None,
            trusts: trusts.clone(),
            managed_by,
            version: Integration::FIRST_VERSION,
            created_at: now,
        };
        let state = integration.recorded(&*self.digester);
        let affected = Subject::Integration(integration.id).left(RecordedRow::Integration, state);
        let digest = integration.digest(&*self.digester);
        let payload = CreateIntegration { integration: integration.clone(), digest, limit: self.limit };
        let action = AuditAction::IntegrationCreated;
        let command = self.environment.command(principal, Some(organization), action, affected, payload);
        let created = Event::recorded(&command.audit);
        self.store.create_integration(command).await?;
        self.environment.emit(created);
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
