//! What integrations do with their token: activate a namespace, check it, list, renew and end activations. The one context
//! that opens credentials.
//!
//! Every method may be cancelled, but run them to their end. A cancelled [`Activations::activate`] hands nothing out;
//! its activation counts as live until it expires, its last record says only that it began, and short-lived
//! credentials that a storage had issued work until they expire.

mod activate;
mod authenticate;
mod check;
mod open;
mod own;
mod recheck;
mod workload;

pub use activate::{ActivationRequest, RenewalRequest};
pub use check::{CheckNamespaceRequest, CheckedCredential};

pub use workload::Identity;

pub(super) use check::authenticates;

use super::{AuditTally, Environment};
use crate::activation::DEFAULT_LIVE_LIMIT;
use crate::audit::{Actor, Affected, AuditAction, AuditChange, AuditNote, ChangedField, SealedAuditRecord, Subject};
use crate::command::Command;
use crate::error::Error;
use crate::integration::IntegrationPrincipal;
use crate::port::{ActivationStore, CredentialVendor, ForIntegration, KeyedDigester, Opener, StorageProbe, StoreError};
use std::sync::Arc;

/// How often something is begun anew because the integration or a credential changed under it.
const RESTARTS: usize = 3;

/// How many storages are waited for at once.
const AT_ONCE: usize = 16;

/// What integrations do.
#[derive(Clone)]
pub struct Activations {
    environment: Environment,
    tally: Arc<AuditTally>,
    store: Arc<dyn ActivationStore>,
    opener: Arc<dyn Opener>,
    digester: Arc<dyn KeyedDigester>,
    vendor: Option<Arc<dyn CredentialVendor>>,
    probe: Option<Arc<dyn StorageProbe>>,
    live_limit: i64,
    identity: Option<Identity>,
}

impl Activations {
    /// The context on these ports. It issues nothing short-lived and checks nothing against storages.
    pub fn new(
        environment: Environment,
        tally: Arc<AuditTally>,
        store: Arc<dyn ActivationStore>,
        opener: Arc<dyn Opener>,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        let live_limit = DEFAULT_LIVE_LIMIT;
        Self { environment, tally, store, opener, digester, vendor: None, probe: None, live_limit, identity: None }
    }

    /// With what issues short-lived credentials.
    #[must_use]
    pub fn vendor(self, vendor: Option<Arc<dyn CredentialVendor>>) -> Self {
        Self { vendor, ..self }
    }

    /// With what checks credentials against their storages.
    #[must_use]
    pub fn probe(self, probe: Option<Arc<dyn StorageProbe>>) -> Self {
        Self { probe, ..self }
    }

    /// With another limit of live activations per integration.
    #[must_use]
    pub fn live_limit(self, live_limit: i64) -> Self {
        Self { live_limit, ..self }
    }

    /// The envelope of `act`, recorded as `action` on `subject`.
    fn command<A>(
        &self,
        principal: &IntegrationPrincipal,
        action: AuditAction,
        subject: Subject,
        note: AuditNote,
        act: A,
    ) -> ForIntegration<A> {
        let audit = self.record(principal, action, subject, note);
        Command { principal: principal.clone(), now: self.environment.now(), audit, act }
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

/// The integration or a credential was changed again and again.
fn contended() -> Error {
    StoreError::Unavailable("the integration or a credential kept changing during the request".into()).into()
}
