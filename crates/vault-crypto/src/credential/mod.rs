//! Encryption and decryption of credentials: four adapters that share one key cache, with one permission each.

mod list_opener;
mod opener;
mod placed;
mod rewrapper;
mod sealer;

use self::list_opener::ListOpener;
use self::opener::CredentialOpener;
use self::rewrapper::CredentialRewrapper;
use self::sealer::CredentialSealer;
use crate::organization_keys::OrganizationKeyring;
use std::sync::Arc;
use vault_core::port::{CardOpener, Opener, Rewrapper, Sealer};

/// The four adapters. Pass each component only the one it needs.
pub struct CredentialCrypto {
    /// Seals only; cannot decrypt.
    pub sealer: Arc<dyn Sealer>,
    /// Opens cards; cannot open data.
    pub list_opener: Arc<dyn CardOpener>,
    /// Moves credentials from one organization key to another; cannot open data. Only for the operator.
    pub rewrapper: Arc<dyn Rewrapper>,
    /// Opens cards and data. Only for the activation process.
    pub opener: Arc<dyn Opener>,
}

impl CredentialCrypto {
    pub(crate) fn new(keys: OrganizationKeyring) -> Self {
        let keys = Arc::new(keys);
        Self {
            sealer: Arc::new(CredentialSealer::new(Arc::clone(&keys))),
            list_opener: Arc::new(ListOpener::new(Arc::clone(&keys))),
            rewrapper: Arc::new(CredentialRewrapper::new(Arc::clone(&keys))),
            opener: Arc::new(CredentialOpener::new(keys)),
        }
    }
}

#[cfg(test)]
mod tests;
