//! Overview and rotation of keys.

mod overview;
mod rekey_lookups;
mod replace_root;
mod rotate_instance;
mod rotate_organization;

pub use overview::{KeyOverview, OrganizationKeyOverview, PurposeKeyOverview, RetiringInstance, RetiringKey};
pub use rekey_lookups::LookUpMoves;
pub use rotate_instance::InstanceRotation;
pub use rotate_organization::OrganizationRotation;

use super::Environment;
use crate::error::Error;
use crate::id::KeyId;
use crate::operation::{Operation, Operations};
use crate::port::{InstanceRewrapper, KeyRepository};
use crate::principal::Principal;
use std::sync::Arc;

/// Number of rows that one transaction moves.
const BATCH: usize = 256;

/// Place of the next step of a pass over all rows.
#[derive(Clone, Copy)]
enum Place<K> {
    After(Option<K>),
    End,
}

impl<K> Place<K> {
    fn of(last: Option<K>) -> Self {
        last.map_or(Self::End, |last| Self::After(Some(last)))
    }
}

/// Result of a completed rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationEnd {
    /// Destroyed keys.
    pub destroyed: Vec<KeyId>,
    /// Keys that are kept, with the number of rows that still need each. These rows are damaged.
    pub kept: Vec<(KeyId, i64)>,
}

/// Operations of operators on keys.
#[derive(Clone)]
pub struct Keys {
    environment: Environment,
    store: Arc<dyn KeyRepository>,
    operations: Operations,
    instance_rewrapper: Arc<dyn InstanceRewrapper>,
    batch: usize,
}

impl Keys {
    /// Creates the context on these ports.
    pub fn new(
        environment: Environment,
        store: Arc<dyn KeyRepository>,
        operations: Operations,
        instance_rewrapper: Arc<dyn InstanceRewrapper>,
    ) -> Self {
        Self { environment, store, operations, instance_rewrapper, batch: BATCH }
    }

    /// Sets the number of rows per transaction, at least 1.
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch: batch.max(1), ..self }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }
}
