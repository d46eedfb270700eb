//! Integrations and frozen namespaces of an organization. These operations cannot decrypt credentials.
//!
//! Every method may be cancelled, although the change may still be committed. If [`Integrations::create`] or
//! [`Integrations::rotate`] is cancelled, the new token is lost. Rotate again in that case.

mod change;
mod create;
mod freeze;
mod list;
mod trusts;
mod usage;

pub use crate::integration::IntegrationRef;
pub use change::IntegrationEdit;
pub use create::{CreateIntegrationRequest, CreatedIntegration};
pub use usage::{IntegrationUsage, NamespaceDenial, NamespaceUsage, NamespaceUse};

use super::Environment;
use crate::audit::Origin;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::operation::Operations;
use crate::port::{Entropy, KeyedDigester};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;
use std::sync::Arc;

/// Default limit of integrations per organization. [`Integrations::limit`] changes it.
pub const DEFAULT_INTEGRATION_LIMIT: i64 = 10_000;

/// Operations of admins and operators on integrations and namespaces.
#[derive(Clone)]
pub struct Integrations {
    environment: Environment,
    operations: Operations,
    entropy: Arc<dyn Entropy>,
    digester: Arc<dyn KeyedDigester>,
    limit: i64,
}

impl Integrations {
    /// Creates the context on these ports.
    pub fn new(environment: Environment, operations: Operations, entropy: Arc<dyn Entropy>) -> Self {
        let digester = Arc::clone(&operations.ports.digester);
        Self { environment, operations, entropy, digester, limit: DEFAULT_INTEGRATION_LIMIT }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut operations = self.clone();
        operations.environment.origin = origin;
        operations
    }

    /// Returns the current time, which determines in lists whether an integration has expired.
    pub fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// Sets the limit of integrations per organization.
    #[must_use]
    pub fn limit(self, limit: i64) -> Self {
        Self { limit, ..self }
    }

    /// Authorizes `principal` to administer the integrations of `organization`.
    fn permit(principal: &Principal, organization: OrganizationId) -> Result<(), Error> {
        principal.administers(Action::ManageIntegrations)?;
        // Another organization results in the same error as one that does not exist.
        if principal.reaches(organization) { Ok(()) } else { Err(Refusal::NoOrganization.into()) }
    }
}
