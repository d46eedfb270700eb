//! Take credential_counts: numbers that an operator watches and that nobody counts as they change.

use super::Operator;
use crate::credential_counts::{CredentialCounts, ExpiryBounds};
use crate::error::Error;
use crate::id::AuditId;
use crate::key_use::KeyUseLimits;
use crate::port::{COUNT_SLICE, CountCredentials};
use crate::time::Timestamp;

/// How far keys are used up, and how far the audit is sealed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyUsage {
    /// How much of its uses the most used active organization key has had: at 1 it seals nothing more. Keys are replaced
    /// from a sixteenth on.
    pub organization_key: f64,
    /// The age of the oldest audit entry that is in no checkpoint, in milliseconds; 0 if there is none.
    pub unsealed_millis: i64,
}

impl Operator {
    /// Counts the credentials of all organizations, slice by slice. A credential is expiring `expiring_seconds` before its
    /// expiry. One that is saved or deleted meanwhile may be counted or not.
    ///
    /// # Errors
    /// The store failed.
    pub async fn count_by_state(&self, expiring_seconds: i64) -> Result<CredentialCounts, Error> {
        let bounds = ExpiryBounds::new(self.environment.now(), expiring_seconds);
        let (mut credential_counts, mut after) = (CredentialCounts::default(), None);
        loop {
            let query = CountCredentials { bounds, after, limit: COUNT_SLICE };
            let slice = self.store.count_credentials(query).await?;
            slice.groups.iter().for_each(|group| credential_counts.add(&bounds, *group));
            let counted: u64 = slice.groups.iter().map(|group| group.credentials).sum();
            match slice.last {
                Some(last) if usize::try_from(counted).is_ok_and(|counted| counted >= COUNT_SLICE) => {
                    after = Some(last)
                }
                _ => return Ok(credential_counts),
            }
        }
    }

    /// How far keys are used up, and how far the audit is sealed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn key_usage(&self) -> Result<KeyUsage, Error> {
        let uses = self.store.most_key_uses().await?;
        let oldest = self.store.unsealed_entries(None, 1).await?;
        let written_at = oldest.first().and_then(|entry| entry.id.parse().ok()).map(written_at);
        let now = self.environment.now();
        Ok(KeyUsage {
            organization_key: KeyUseLimits::MOST.part_used(uses),
            unsealed_millis: written_at.map_or(0, |at| now.millis_since(at).max(0)),
        })
    }
}

/// When an entry was written: its id is a UUID of version 7, which begins with the milliseconds in 48 bits.
fn written_at(id: AuditId) -> Timestamp {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&id.as_bytes()[..6]);
    Timestamp::from_millis(i64::from_be_bytes(millis))
}
