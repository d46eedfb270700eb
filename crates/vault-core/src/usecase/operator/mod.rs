//! Operations that require access to the host: organizations, maintenance and the audit log.

mod change_organization;
mod count_by_state;
mod create_organization;
mod cut_audit;
mod deliver_audit;
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
use crate::organization::KEY_REPLACED_AT;
use crate::principal::Principal;
use std::sync::Arc;

/// Operations of operators on organizations, and maintenance of the store.
///
/// All methods may be cancelled. A transaction of the store is then either committed or not.
#[derive(Clone)]
pub struct Operator {
    environment: Environment,
    tally: Arc<AuditTally>,
    operations: Operations,
    key_replaced_at: i64,
}

impl Operator {
    /// Creates the context on these ports.
    pub fn new(environment: Environment, tally: Arc<AuditTally>, operations: Operations) -> Self {
        Self { environment, tally, operations, key_replaced_at: KEY_REPLACED_AT }
    }

    /// Sets a lower number of uses from which the key of an organization is replaced.
    #[must_use]
    pub fn key_replaced_at(self, uses: i64) -> Self {
        Self { key_replaced_at: uses.min(KEY_REPLACED_AT), ..self }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }
}
