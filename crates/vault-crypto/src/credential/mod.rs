//! Sealing and opening credentials: three adapters over one cache of keys, each with its one ability.

mod list_opener;
mod opener;
mod placed;
mod sealer;

pub use list_opener::ListOpener;
pub use opener::CredentialOpener;
pub use sealer::CredentialSealer;

use crate::aead::AeadKey;
use crate::organization_keys::{KeyUseLimits, OrganizationKeyring};
use std::sync::Arc;
use vault_core::id::InstanceId;
use vault_core::port::{AuditSealer, Clock, Entropy, EventSink, IdGenerator, KeyRepository};

/// What sealing needs from outside: where wrapped keys lie, and what recording a replaced key takes.
#[derive(Clone)]
pub struct CredentialPorts {
    /// Where wrapped keys lie.
    pub repository: Arc<dyn KeyRepository>,
    /// Seals the record of a replaced key.
    pub audit: Arc<dyn AuditSealer>,
    /// The time of it.
    pub clock: Arc<dyn Clock>,
    /// Its id.
    pub ids: Arc<dyn IdGenerator>,
    /// Is told of it.
    pub events: Arc<dyn EventSink>,
}

/// The three adapters. Give each holder the one it needs.
pub struct CredentialCrypto {
    /// Seals; cannot open.
    pub sealer: CredentialSealer,
    /// Opens what a list shows; cannot open data.
    pub list_opener: ListOpener,
    /// Opens data: the activation side's alone.
    pub opener: CredentialOpener,
}

impl CredentialCrypto {
    pub(crate) fn new(
        instance: InstanceId,
        wrap: AeadKey,
        ports: CredentialPorts,
        limits: KeyUseLimits,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let keys = Arc::new(OrganizationKeyring::new(instance, wrap, ports, limits, entropy));
        Self {
            sealer: CredentialSealer::new(Arc::clone(&keys)),
            list_opener: ListOpener::new(Arc::clone(&keys)),
            opener: CredentialOpener::new(keys),
        }
    }
}

#[cfg(test)]
mod tests;
