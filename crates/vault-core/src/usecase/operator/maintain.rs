//! Deletion of expired rows, recording of counts, health, and the end of a restore.

use super::Operator;
use crate::error::Error;
use crate::maintenance::{CheckStore, DeleteExpired, EXPIRED_SLICE, Expired, FinishRestore, ProveSpace, Settled};
use crate::organization::CountKeyUses;
use crate::port::Event;
use std::sync::atomic::Ordering;

/// Maximum difference between a clock and the store's, in milliseconds. The clocks of replicas must agree, because they
/// determine expiry.
pub const MAX_SKEW: i64 = 2_000;

/// Result of one round of maintenance.
#[derive(Debug, Default)]
pub struct MaintenanceReport {
    /// Number of deleted rows.
    pub deleted: usize,
    /// Kinds that could not be deleted, with the errors.
    pub failed: Vec<(Expired, Error)>,
    /// Whether the round stopped because its time was used up, so more rows may have expired.
    pub more: bool,
    /// Difference between this clock and the store's, in milliseconds, if it exceeds [`MAX_SKEW`]. Nothing was deleted
    /// in this case.
    pub skew: Option<i64>,
}

impl Operator {
    /// Deletes expired rows in slices, alternating between kinds, until none remain or `millis` milliseconds have
    /// passed. An error of one kind does not prevent the others. Nothing is deleted if the clock is wrong.
    pub async fn maintain(&self, millis: i64) -> MaintenanceReport {
        let began = self.environment.now();
        let mut report = MaintenanceReport::default();
        match self.skew().await {
            Ok(None) => {}
            Ok(skew) => return MaintenanceReport { skew, ..report },
            Err(error) => {
                return MaintenanceReport {
                    failed: Expired::ALL.first().map(|kind| (*kind, error)).into_iter().collect(),
                    ..report
                };
            }
        }
        let mut left = Expired::ALL.to_vec();
        while !left.is_empty() {
            let mut unfinished = Vec::new();
            for expired in left {
                if self.environment.now().millis_since(began) >= millis {
                    report.more = true;
                    return report;
                }
                match self.run(DeleteExpired(expired)).await {
                    Ok(deleted) => {
                        report.deleted += deleted;
                        if deleted >= EXPIRED_SLICE {
                            unfinished.push(expired);
                        }
                    }
                    Err(error) => report.failed.push((expired, error)),
                }
            }
            left = unfinished;
        }
        report
    }

    /// Stores the counted actions and key uses of past minutes and, with `everything`, of the current one. Replaces the keys of
    /// organizations that were used too often.
    ///
    /// # Errors
    /// The store failed. The counts are kept for the next call.
    pub async fn record_counts(&self, everything: bool) -> Result<(), Error> {
        self.tally.flush(everything).await?;
        let counted = &self.operations.ports.uses;
        let mut failed = None;
        for ((organization, key), uses) in counted.take(self.environment.now(), everything) {
            let count = CountKeyUses { organization, key, uses, replaced_at: self.key_replaced_at };
            if let Err(error) = self.run(count).await {
                counted.add(organization, key, uses);
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Returns the difference between this clock and the store's, if it is too large.
    pub(super) async fn skew(&self) -> Result<Option<i64>, Error> {
        Ok(self.check_store().await?.filter(|skew| skew.abs() > MAX_SKEW))
    }

    /// Checks whether the store responds, and after its disk was full, whether it has space again. If it is a server, returns the
    /// difference of its clock to this one, in milliseconds.
    ///
    /// # Errors
    /// The store does not respond.
    pub async fn check_store(&self) -> Result<Option<i64>, Error> {
        let is_full = &self.operations.ports.is_full;
        if is_full.load(Ordering::Relaxed) {
            self.run(ProveSpace).await?;
            is_full.store(false, Ordering::Relaxed);
            self.environment.emit(Event::SpaceFreed);
        }
        self.run(CheckStore).await
    }

    /// Revokes all sessions, recovery codes, activations and unconfirmed TOTP secrets, and marks all passcodes up to
    /// now as used. Raises the restore epoch, also above `later_epoch`, so that servers that start after this refuse
    /// older access tokens. With `ends_invitations`, also revokes open enrolment codes, because the restored state does
    /// not show which of them were used or withdrawn since.
    ///
    /// # Errors
    /// The store failed.
    pub async fn finish_restore(&self, later_epoch: u64, ends_invitations: bool) -> Result<Settled, Error> {
        self.run(FinishRestore { later_epoch, ends_invitations }).await
    }
}
