//! Read the expiry of credentials that were saved before expiries were stored.

use super::Vault;
use super::reading::Reading;
use crate::error::Error;

/// How many are read at once.
const SLICE: usize = 100;

impl Vault {
    /// Reads and stores the expiry of some of them. Whether there may be more.
    ///
    /// # Errors
    /// The store, or the keys of an organization.
    pub async fn read_expiries(&self) -> Result<bool, Error> {
        Reading::run(|reading| self.read_expiries_once(reading)).await
    }

    async fn read_expiries_once(&self, reading: Reading) -> Result<bool, Error> {
        let unread = self.store.unread_expiries(SLICE).await?;
        for one in &unread {
            let expires_at = self.data_expires_at(one.organization, &one.credential, reading).await?;
            self.store.note_expiry(one, expires_at).await?;
        }
        Ok(unread.len() == SLICE)
    }
}
