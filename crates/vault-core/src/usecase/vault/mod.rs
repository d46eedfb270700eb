//! The vault of an organization: save, list, show and delete credentials. These operations cannot decrypt their data.

mod delete;
mod describe;
mod find;
mod list;
mod matches;
mod promote;
mod provider_trust;
mod replace;
mod request_check;
mod save;
mod show;
mod uses;
mod versions;

pub use find::{FoundKey, KEY_ID_END, KeyMatch, WantedKey};
pub use list::{ListedCredential, PreviousVersion};
pub use replace::{CredentialRef, CredentialReplacement};
pub use save::{IdempotencyKey, NewCredential};
pub use versions::ListedVersion;

use super::{AuditTally, Environment};
use crate::audit::Origin;
use crate::credential::VersionLimits;
use crate::federation::FederationIssuer;
use crate::operation::Operations;
use crate::port::{KeyedDigester, StorageProbe};
use std::sync::Arc;

/// Default limit of credentials per organization. [`Vault::limit`] changes it.
pub const DEFAULT_CREDENTIAL_LIMIT: i64 = 1_000_000;

/// Operations of an organization's users on its credentials.
#[derive(Clone)]
pub struct Vault {
    environment: Environment,
    tally: Arc<AuditTally>,
    operations: Operations,
    digester: Arc<dyn KeyedDigester>,
    probe: Option<Arc<dyn StorageProbe>>,
    limit: i64,
    version_limits: VersionLimits,
    federation: Option<FederationIssuer>,
}

impl Vault {
    /// Creates the context on these ports.
    pub fn new(environment: Environment, tally: Arc<AuditTally>, operations: Operations) -> Self {
        Self {
            environment,
            tally,
            digester: Arc::clone(&operations.ports.digester),
            operations,
            probe: None,
            limit: DEFAULT_CREDENTIAL_LIMIT,
            version_limits: VersionLimits::default(),
            federation: None,
        }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut operations = self.clone();
        operations.environment.origin = origin;
        operations
    }

    /// Sets the limit of credentials per organization.
    #[must_use]
    pub fn limit(self, limit: i64) -> Self {
        Self { limit, ..self }
    }

    /// Sets the limits of the versions of a credential.
    #[must_use]
    pub fn version_limits(self, version_limits: VersionLimits) -> Self {
        Self { version_limits, ..self }
    }

    /// Enables keyless credentials.
    #[must_use]
    pub fn federation(self, federation: Option<FederationIssuer>) -> Self {
        Self { federation, ..self }
    }

    /// Returns the issuer of federation tokens, if keyless credentials are enabled.
    pub fn federation_issuer(&self) -> Option<&FederationIssuer> {
        self.federation.as_ref()
    }

    /// Returns whether a save can request that its credential is checked with the storage first.
    pub fn verifies(&self) -> bool {
        self.probe.is_some()
    }

    /// Sets the port for checks, so that a save can request that its credential is checked with the storage first.
    #[must_use]
    pub fn probe(self, probe: Option<Arc<dyn StorageProbe>>) -> Self {
        Self { probe, ..self }
    }
}
