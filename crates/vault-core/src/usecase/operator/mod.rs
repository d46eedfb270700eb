//! What somebody with access to the machine does: organizations, maintenance, the audit.

mod change_organization;
mod count_by_state;
mod create_organization;
mod cut_audit;
mod deliver_audit;
mod issuers;
mod maintain;
mod seal_audit;
mod settle_restore;
mod verify_audit;

pub use change_organization::OrganizationCommand;
pub use count_by_state::KeyUsage;
pub use cut_audit::{LEAST_AUDIT_SECONDS, RemovedAudit};
pub use deliver_audit::{DeliveredAudit, DeliveryError, DeliveryProgress};
pub use maintain::{MAX_SKEW, MaintenanceReport};
pub use seal_audit::SealedAudit;

use super::{AuditTally, Environment};
use crate::port::{OperatorStore, Sealer};
use std::sync::Arc;

/// What operators do with organizations, and what keeps the store small.
///
/// Its methods may be cancelled: a decision of the store is then made or not, never in half.
#[derive(Clone)]
pub struct Operator {
    environment: Environment,
    tally: Arc<AuditTally>,
    store: Arc<dyn OperatorStore>,
    sealer: Arc<dyn Sealer>,
}

impl Operator {
    /// The operator's operations on these ports.
    pub fn new(
        environment: Environment,
        tally: Arc<AuditTally>,
        store: Arc<dyn OperatorStore>,
        sealer: Arc<dyn Sealer>,
    ) -> Self {
        Self { environment, tally, store, sealer }
    }
}
