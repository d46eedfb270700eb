//! Keys: how they stand, and their rotation.

mod move_look_ups;
mod overview;
mod progress;
mod replace_root;
mod rotate_instance;
mod rotate_organization;

pub use move_look_ups::LookUpMoves;
pub use overview::{KeyOverview, OrganizationKeyOverview, PurposeKeyOverview, RetiringInstance, RetiringKey};
pub use progress::RotationEnd;
pub use rotate_instance::InstanceRotation;
pub use rotate_organization::OrganizationRotation;

use super::{CountedSealer, Environment};
use crate::key_use::KeyUseLimits;
use crate::port::{
    InformationOpener, InstanceRewrapper, KeyRepository, KeyedDigester, Rewrapper, RotationStore, Sealer,
};
use std::sync::Arc;

/// How many rows one transaction moves.
const BATCH: usize = 256;
/// How many uses of a key a rotation takes at once: few, because what it does not need is lost when it ends.
const BLOCK: i64 = 4_096;

/// What keys are rotated with.
#[derive(Clone)]
pub struct KeyCrypto {
    /// Makes keys of organizations.
    pub sealer: Arc<dyn Sealer>,
    /// Moves credentials from one organization key to another.
    pub rewrapper: Arc<dyn Rewrapper>,
    /// Creates instance keys, and rewraps and reseals rows with them.
    pub instance_rewrapper: Arc<dyn InstanceRewrapper>,
    /// Opens labels, of which a look-up key makes digests.
    pub information: Arc<dyn InformationOpener>,
    /// Makes the codes of rows, and knows the instance keys.
    pub digester: Arc<dyn KeyedDigester>,
}

/// What operators do with keys.
#[derive(Clone)]
pub struct Keys {
    environment: Environment,
    store: Arc<dyn RotationStore>,
    sealer: Arc<dyn Sealer>,
    rewrapper: Arc<dyn Rewrapper>,
    instance_rewrapper: Arc<dyn InstanceRewrapper>,
    information: Arc<dyn InformationOpener>,
    digester: Arc<dyn KeyedDigester>,
    limits: KeyUseLimits,
    batch: usize,
}

impl Keys {
    /// The operations on these ports.
    pub fn new(environment: Environment, store: Arc<dyn RotationStore>, crypto: KeyCrypto) -> Self {
        let KeyCrypto { sealer, rewrapper, instance_rewrapper, information, digester } = crypto;
        let most = KeyUseLimits::MOST;
        let limits = KeyUseLimits::new(BLOCK, most.replace_at(), most.stop_at());
        Self { environment, store, sealer, rewrapper, instance_rewrapper, information, digester, limits, batch: BATCH }
    }

    /// With so many rows to a transaction, 1 at least.
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch: batch.max(1), ..self }
    }

    /// With lower limits of the uses of a key.
    #[must_use]
    pub fn limits(self, limits: KeyUseLimits) -> Self {
        Self { limits, ..self }
    }

    /// Counts the uses that a rotation takes.
    fn counted(&self) -> CountedSealer {
        let keys = Arc::clone(&self.store) as Arc<dyn KeyRepository>;
        CountedSealer::new(self.environment.clone(), Arc::clone(&self.sealer), keys).with_limits(self.limits)
    }
}
