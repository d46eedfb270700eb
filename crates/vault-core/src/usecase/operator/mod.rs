//! Operations that require access to the host: organizations, maintenance and the audit log.

mod change_organization;
mod count_by_state;
mod create_organization;
mod cut_audit;
mod deliver_audit;
mod finish_restore;
mod issuers;
mod maintain;
mod seal_audit;
mod verify_audit;

pub use change_organization::OrganizationCommand;
pub use count_by_state::KeyUsage;
pub use cut_audit::{LEAST_AUDIT_SECONDS, RemovedAudit};
pub use deliver_audit::{DeliveredAudit, DeliveryError, DeliveryProgress};
pub use maintain::{MAX_SKEW, MaintenanceReport};
pub use seal_audit::SealedAudit;

use super::{AuditTally, Environment};
use crate::error::Error;
use crate::operation::{Operation, Operations};
use crate::port::{OperatorStore, Sealer};
use crate::principal::Principal;
use std::sync::Arc;

/// Operations of operators on organizations, and maintenance of the store.
///
/// All methods may be cancelled. A transaction of the store is then either committed or not.
#[derive(Clone)]
pub struct Operator {
    environment: Environment,
    tally: Arc<AuditTally>,
    store: Arc<dyn OperatorStore>,
    operations: Operations,
    sealer: Arc<dyn Sealer>,
}

impl Operator {
    /// Creates the context on these ports.
    pub fn new(
        environment: Environment,
        tally: Arc<AuditTally>,
        store: Arc<dyn OperatorStore>,
        operations: Operations,
        sealer: Arc<dyn Sealer>,
    ) -> Self {
        Self { environment, tally, store, operations, sealer }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }
}
