//! An organization's integrations and frozen namespaces. Cannot decrypt credentials.
//!
//! Every method may be cancelled; a change may be committed all the same. If [`Integrations::create`] or
//! [`Integrations::rotate`] is cancelled, the new token is lost: rotate again.

mod change;
mod create;
mod freeze;
mod list;
mod trusts;

pub use change::{ChangedIntegration, IntegrationEdit, IntegrationRef};
pub use create::{CreateIntegrationRequest, CreatedIntegration};

use super::Environment;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::port::{Entropy, IntegrationStore, KeyedDigester};
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;
use std::sync::Arc;

/// How many integrations an organization may have, unless [`Integrations::limit`] says otherwise.
pub const DEFAULT_INTEGRATION_LIMIT: i64 = 10_000;

/// What admins and operators do with integrations and namespaces.
#[derive(Clone)]
pub struct Integrations {
    environment: Environment,
    store: Arc<dyn IntegrationStore>,
    entropy: Arc<dyn Entropy>,
    digester: Arc<dyn KeyedDigester>,
    limit: i64,
}

impl Integrations {
    /// The context on these ports.
    pub fn new(
        environment: Environment,
        store: Arc<dyn IntegrationStore>,
        entropy: Arc<dyn Entropy>,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        Self { environment, store, entropy, digester, limit: DEFAULT_INTEGRATION_LIMIT }
    }

    /// The time, by which lists tell what has expired.
    pub fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// With another limit of integrations per organization.
    #[must_use]
    pub fn limit(self, limit: i64) -> Self {
        Self { limit, ..self }
    }

    /// Whether `principal` may administer the integrations of `organization`.
    fn permit(principal: &Principal, organization: OrganizationId) -> Result<(), Error> {
        principal.administers(Action::ManageIntegrations)?;
        // Another organization is answered like one that does not exist.
        if principal.reaches(organization) { Ok(()) } else { Err(Refusal::NoOrganization.into()) }
    }
}
