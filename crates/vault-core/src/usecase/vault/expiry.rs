//! Read the expiry of credentials that were saved before expiries were stored.

use super::Vault;
use crate::error::Error;
use crate::port::{CredentialContext, SealedInformation};

/// How many are read at once.
const SLICE: usize = 100;

impl Vault {
    /// Reads and stores the expiry of some of them. Whether there may be more.
    ///
    /// # Errors
    /// The store, or the keys of an organization.
    pub async fn read_expiries(&self) -> Result<bool, Error> {
        let mut unread = self.store.unread_expiries(SLICE).await?;
        for one in &unread {
            let (organization, row) = (one.organization, &one.credential);
            let context = CredentialContext { organization, credential: row.id, version: row.version };
            let row = SealedInformation { context, key: row.key, blob: &row.information };
            // A rotation ended between reading the row and reading the keys.
            if self.names_unknown_key(organization, &[row]).await? {
                unread = self.store.unread_expiries(SLICE).await?;
                break;
            }
        }
        for one in &unread {
            let expires_at = self.data_expires_at(one.organization, &one.credential).await;
            self.store.note_expiry(one, expires_at).await?;
        }
        Ok(unread.len() == SLICE)
    }
}
