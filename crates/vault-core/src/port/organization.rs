//! Ports that the operator's use cases require.

use super::{KeyRepository, Maintenance, RestoreRepository};

/// Store ports that the operator's use cases require.
pub trait OperatorStore: KeyRepository + Maintenance + RestoreRepository {}

impl<S> OperatorStore for S where S: KeyRepository + Maintenance + RestoreRepository + ?Sized {}
