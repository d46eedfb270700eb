//! Metrics that are counted periodically instead of with each change.

use super::Operator;
use crate::audit::UnsealedEntries;
use crate::credential_counts::{CredentialCounts, ExpiryBounds};
use crate::error::Error;
use crate::id::AuditId;
use crate::maintenance::{CountCredentials, ReadMostKeyUses};
use crate::time::Timestamp;

/// Usage of keys, and age of audit entries without a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyUsage {
    /// Uses of the most used active organization key, as a fraction of 2^28. Keys are replaced from a sixteenth.
    pub organization_key: f64,
    /// Age of the oldest audit entry without a checkpoint, in milliseconds, or 0 if there is none.
    pub unsealed_millis: i64,
}

impl Operator {
    /// Counts the credentials of all organizations, at most `limit` of them with one operation. Credentials that are saved or deleted concurrently may or may not be counted.
    ///
    /// # Errors
    /// The store failed.
    pub async fn count_by_state(&self, limit: usize) -> Result<CredentialCounts, Error> {
        let bounds = ExpiryBounds::new(self.environment.now());
        let (mut credential_counts, mut after) = (CredentialCounts::default(), None);
        loop {
            let slice = self.run(CountCredentials { bounds, after, limit }).await?;
            slice.groups.iter().for_each(|group| credential_counts.add(&bounds, *group));
            let counted: u64 = slice.groups.iter().map(|group| group.credentials).sum();
            match slice.last {
                Some(last) if usize::try_from(counted).is_ok_and(|counted| counted >= limit) => after = Some(last),
                _ => return Ok(credential_counts),
            }
        }
    }

    /// Returns the usage of keys, and the age of audit entries without a checkpoint.
    ///
    /// # Errors
    /// The store failed.
    pub async fn key_usage(&self) -> Result<KeyUsage, Error> {
        let uses = self.run(ReadMostKeyUses).await?;
        let oldest = self.run(UnsealedEntries { after: None, limit: 1 }).await?;
        let written_at = oldest.first().and_then(|entry| entry.id.parse().ok()).map(written_at);
        let now = self.environment.now();
        Ok(KeyUsage {
            organization_key: part_of_limit(uses),
            unsealed_millis: written_at.map_or(0, |at| now.millis_since(at).max(0)),
        })
    }
}

/// Returns the part of 2^28 uses, a sixteenth of what NIST SP 800-38D permits for a key.
fn part_of_limit(uses: i64) -> f64 {
    f64::from(u32::try_from(uses).unwrap_or(u32::MAX)) / f64::from(1_u32 << 28)
}

/// Returns the time of an entry: its ID is a UUID of version 7, which starts with the milliseconds in 48 bits.
fn written_at(id: AuditId) -> Timestamp {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&id.as_bytes()[..6]);
    Timestamp::from_millis(i64::from_be_bytes(millis))
}
