//! Encryption and decryption of credentials: two adapters that share the unwrapped keys, with one permission each.

mod opener;
mod placed;
mod sealer;

use self::opener::CredentialOpener;
use self::sealer::CredentialSealer;
use crate::organization_keys::OrganizationKeyring;
use std::sync::Arc;
use vault_core::port::{Opener, Sealer};

/// The two adapters. Pass each component only the one it needs.
pub struct CredentialCrypto {
    /// Seals, and opens cards; cannot open data.
    pub sealer: Arc<dyn Sealer>,
    /// Opens data. Only for the activation process.
    pub opener: Arc<dyn Opener>,
}

impl CredentialCrypto {
    pub(crate) fn new(keys: OrganizationKeyring) -> Self {
        let keys = Arc::new(keys);
        Self {
            sealer: Arc::new(CredentialSealer::new(Arc::clone(&keys))),
            opener: Arc::new(CredentialOpener::new(keys)),
        }
    }
}

#[cfg(test)]
mod tests;
