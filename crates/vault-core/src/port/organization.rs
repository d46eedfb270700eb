//! Ports that the operator's use cases require.

use super::{AuditLog, AuditTrail, KeyRepository, Maintenance, RestoreRepository};

/// Store ports that the operator's use cases require.
pub trait OperatorStore: KeyRepository + AuditLog + AuditTrail + Maintenance + RestoreRepository {}

impl<S> OperatorStore for S where S: KeyRepository + AuditLog + AuditTrail + Maintenance + RestoreRepository + ?Sized {}
