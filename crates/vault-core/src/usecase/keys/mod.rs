//! Overview and rotation of keys.

mod overview;
mod progress;
mod rekey_lookups;
mod replace_root;
mod rotate_instance;
mod rotate_organization;

pub use overview::{KeyOverview, OrganizationKeyOverview, PurposeKeyOverview, RetiringInstance, RetiringKey};
pub use progress::RotationEnd;
pub use rekey_lookups::LookUpMoves;
pub use rotate_instance::InstanceRotation;
pub use rotate_organization::OrganizationRotation;

use super::{CountedSealer, Environment};
use crate::error::Error;
use crate::key_use::KeyUseLimits;
use crate::operation::{Operation, Operations};
use crate::port::{CardOpener, InstanceRewrapper, KeyRepository, KeyedDigester, Rewrapper, RotationStore, Sealer};
use crate::principal::Principal;
use std::sync::Arc;

/// Number of rows that one transaction moves.
const BATCH: usize = 256;
/// Number of key uses that a rotation reserves at a time. It is low, because unused ones are lost at the end.
const BLOCK: i64 = 4_096;

/// Ports for the rotation of keys.
#[derive(Clone)]
pub struct KeyCrypto {
    /// Generates organization keys.
    pub sealer: Arc<dyn Sealer>,
    /// Moves credentials from one organization key to another.
    pub rewrapper: Arc<dyn Rewrapper>,
    /// Creates instance keys.
    pub instance_rewrapper: Arc<dyn InstanceRewrapper>,
    /// Decrypts labels, for which a lookup key creates digests.
    pub cards: Arc<dyn CardOpener>,
    /// Computes MACs of rows, and loads the instance keys.
    pub digester: Arc<dyn KeyedDigester>,
}

/// Operations of operators on keys.
#[derive(Clone)]
pub struct Keys {
    environment: Environment,
    store: Arc<dyn RotationStore>,
    operations: Operations,
    sealer: Arc<dyn Sealer>,
    rewrapper: Arc<dyn Rewrapper>,
    instance_rewrapper: Arc<dyn InstanceRewrapper>,
    cards: Arc<dyn CardOpener>,
    digester: Arc<dyn KeyedDigester>,
    limits: KeyUseLimits,
    batch: usize,
}

impl Keys {
    /// Creates the context on these ports.
    pub fn new(
        environment: Environment,
        store: Arc<dyn RotationStore>,
        operations: Operations,
        crypto: KeyCrypto,
    ) -> Self {
        let KeyCrypto { sealer, rewrapper, instance_rewrapper, cards, digester } = crypto;
        let most = KeyUseLimits::MOST;
        let limits = KeyUseLimits::new(BLOCK, most.replace_at(), most.stop_at());
        Self {
            environment,
            store,
            operations,
            sealer,
            rewrapper,
            instance_rewrapper,
            cards,
            digester,
            limits,
            batch: BATCH,
        }
    }

    /// Sets the number of rows per transaction, at least 1.
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch: batch.max(1), ..self }
    }

    /// Sets lower limits for the uses of a key.
    #[must_use]
    pub fn limits(self, limits: KeyUseLimits) -> Self {
        Self { limits, ..self }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    /// Returns a sealer that counts the uses of a rotation.
    fn counted(&self) -> CountedSealer {
        let keys = Arc::clone(&self.store) as Arc<dyn KeyRepository>;
        CountedSealer::new(self.environment.clone(), Arc::clone(&self.sealer), keys).with_limits(self.limits)
    }
}
