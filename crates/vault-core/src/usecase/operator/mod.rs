//! What somebody with access to the machine does: organizations, upkeep, the audit.

mod change_organization;
mod create_organization;
mod cut_audit;
mod deliver_audit;
mod seal_audit;
mod settle_restore;
mod take_stock;
mod tidy;
mod verify_audit;

pub use change_organization::OrganizationCommand;
pub use cut_audit::{LEAST_AUDIT_SECONDS, RemovedAudit};
pub use deliver_audit::{DeliveredAudit, DeliveryError};
pub use seal_audit::SealedAudit;
pub use take_stock::Wear;
pub use tidy::{MAX_SKEW, Tidied};

use super::{Ambient, AuditTally};
use crate::port::{OperatorStore, Sealer};
use std::sync::Arc;

/// What operators do with organizations, and what keeps the store small.
///
/// Its methods may be cancelled: a decision of the store is then made or not, never in half.
#[derive(Clone)]
pub struct Operator {
    ambient: Ambient,
    tally: Arc<AuditTally>,
    store: Arc<dyn OperatorStore>,
    sealer: Arc<dyn Sealer>,
}

impl Operator {
    /// The operator's operations on these ports.
    pub fn new(
        ambient: Ambient,
        tally: Arc<AuditTally>,
        store: Arc<dyn OperatorStore>,
        sealer: Arc<dyn Sealer>,
    ) -> Self {
        Self { ambient, tally, store, sealer }
    }
}
