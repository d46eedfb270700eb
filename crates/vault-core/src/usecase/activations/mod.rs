//! Operations of integrations: activation of a namespace, checks, and the list, renewal and end of activations. No
//! other operations decrypt credentials.
//!
//! Every method may be cancelled, but should run to its end. A cancelled [`Activations::activate`] issues nothing. Its
//! activation counts as active until it expires, the audit log contains only its start, and short-lived credentials
//! that a storage provider has already issued are valid until they expire.

mod activate;
mod authenticate;
mod check;
mod open;
mod own;
mod provider_trust;
mod recheck;
mod workload;

pub use activate::{ActivationRequest, RenewalRequest};
pub use check::{CheckNamespaceRequest, CheckedCredential};

pub use workload::Identity;

use workload::FetchLocks;

pub(super) use check::authenticates;

use super::{AuditTally, Environment};
use crate::activation::{DEFAULT_LIVE_LIMIT, ForIntegration};
use crate::audit::{
    Actor, Affected, AuditAction, AuditChange, AuditNote, ChangedField, Origin, SealedAuditRecord, Subject,
};
use crate::command::Command;
use crate::error::Error;
use crate::federation::ClosedTrusts;
use crate::integration::IntegrationPrincipal;
use crate::operation::Operations;
use crate::port::{CredentialVendor, KeyedDigester, Opener, ProviderTrust, StorageProbe, StoreError};
use std::sync::Arc;

/// Maximum number of restarts because the integration or a credential changed concurrently.
const RESTARTS: usize = 3;

/// Maximum number of concurrent requests to storage providers.
const CONCURRENT: usize = 16;

/// Operations of integrations.
#[derive(Clone)]
pub struct Activations {
    environment: Environment,
    tally: Arc<AuditTally>,
    operations: Operations,
    opener: Arc<dyn Opener>,
    digester: Arc<dyn KeyedDigester>,
    vendor: Option<Arc<dyn CredentialVendor>>,
    probe: Option<Arc<dyn StorageProbe>>,
    trust: Option<Arc<dyn ProviderTrust>>,
    closed: Arc<ClosedTrusts>,
    live_limit: i64,
    identity: Option<Identity>,
    fetching: FetchLocks,
}

impl Activations {
    /// Creates the context on these ports, without short-lived credentials and without checks against storages.
    pub fn new(
        environment: Environment,
        tally: Arc<AuditTally>,
        operations: Operations,
        opener: Arc<dyn Opener>,
    ) -> Self {
        Self {
            environment,
            tally,
            digester: Arc::clone(&operations.ports.digester),
            operations,
            opener,
            vendor: None,
            probe: None,
            trust: None,
            closed: Arc::default(),
            live_limit: DEFAULT_LIVE_LIMIT,
            identity: None,
            fetching: FetchLocks::default(),
        }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut operations = self.clone();
        operations.environment.origin = origin;
        operations
    }

    /// Sets the port that issues short-lived credentials.
    #[must_use]
    pub fn vendor(self, vendor: Option<Arc<dyn CredentialVendor>>) -> Self {
        Self { vendor, ..self }
    }

    /// Sets the port that checks credentials with their storages.
    #[must_use]
    pub fn probe(self, probe: Option<Arc<dyn StorageProbe>>) -> Self {
        Self { probe, ..self }
    }

    /// Sets the port that checks provider trusts. Without it, no keyless credential is issued.
    #[must_use]
    pub fn trust(self, trust: Option<Arc<dyn ProviderTrust>>) -> Self {
        Self { trust, ..self }
    }

    /// Sets the limit of active activations per integration.
    #[must_use]
    pub fn live_limit(self, live_limit: i64) -> Self {
        Self { live_limit, ..self }
    }

    /// Creates the command for `payload`, recorded as `action` on `subject`.
    fn command<A>(
        &self,
        principal: &IntegrationPrincipal,
        action: AuditAction,
        subject: Subject,
        note: AuditNote,
        payload: A,
    ) -> ForIntegration<A> {
        let audit = self.record(principal, action, subject, note);
        Command { principal: principal.clone(), now: self.environment.now(), audit, payload }
    }

    fn record(
        &self,
        principal: &IntegrationPrincipal,
        action: AuditAction,
        subject: Subject,
        note: AuditNote,
    ) -> SealedAuditRecord {
        let now = self.environment.now();
        let workload = principal.workload.as_ref().map(|workload| workload.describe());
        let changes = workload.map(|workload| AuditChange::new(ChangedField::Workload, None, Some(workload)));
        let affected = Affected::from(subject).changing(changes);
        self.environment.record_on(now, principal.organization, Actor::from(principal), action, affected, note)
    }
}

/// Returns the error for an integration or a credential that changed repeatedly.
fn contended() -> Error {
    StoreError::Unavailable("the integration or a credential kept changing during the request".into()).into()
}
