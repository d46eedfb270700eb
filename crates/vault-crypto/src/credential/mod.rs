//! Sealing and opening credentials: three adapters over one cache of keys, with one ability each.

mod list_opener;
mod opener;
mod placed;
mod sealer;

pub use list_opener::ListOpener;
pub use opener::CredentialOpener;
pub use sealer::CredentialSealer;

use crate::organization_keys::OrganizationKeyring;
use std::sync::Arc;

/// The three adapters. Give each holder the one it needs.
pub struct CredentialCrypto {
    /// Seals; cannot open.
    pub sealer: CredentialSealer,
    /// Opens information; cannot open data.
    pub list_opener: ListOpener,
    /// Opens data. For the activation side only.
    pub opener: CredentialOpener,
}

impl CredentialCrypto {
    pub(crate) fn new(keys: OrganizationKeyring) -> Self {
        let keys = Arc::new(keys);
        Self {
            sealer: CredentialSealer::new(Arc::clone(&keys)),
            list_opener: ListOpener::new(Arc::clone(&keys)),
            opener: CredentialOpener::new(keys),
        }
    }
}

#[cfg(test)]
mod tests;
