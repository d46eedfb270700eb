//! Delete what has expired, and record what was counted.

use super::Operator;
use crate::error::Error;
use crate::port::{EXPIRED_SLICE, Expired, StoreError};

/// How far a clock may be from the store's, in milliseconds: replicas by whose clocks decisions are made must agree.
pub const MAX_SKEW: i64 = 2_000;

/// What a round of maintenance came to.
#[derive(Debug, Default)]
pub struct MaintenanceReport {
    /// How many rows were deleted.
    pub deleted: usize,
    /// The kinds that could not be deleted, and why.
    pub failed: Vec<(Expired, StoreError)>,
    /// Whether the round ended because its time was used up: more may have expired.
    pub more: bool,
    /// How far our clock is from the store's, in milliseconds, where that is more than [`MAX_SKEW`]: what has expired could
    /// not be told, and nothing was deleted.
    pub skew: Option<i64>,
}

impl Operator {
    /// Deletes what has expired, slice after slice, kinds in turn, until nothing is left or `millis` milliseconds are
    /// used. A kind that fails does not keep the others from being deleted. Nothing is deleted by a wrong clock.
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
                let now = self.environment.now();
                if now.millis_since(began) >= millis {
                    report.more = true;
                    return report;
                }
                match self.store.delete_expired(expired, now).await {
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

    /// Records the counted acts of the minutes that are over; with `everything`, of the current one too.
    ///
    /// # Errors
    /// The log could not be written; the counts are kept for the next call.
    pub async fn record_counts(&self, everything: bool) -> Result<(), Error> {
        Ok(self.tally.flush(everything).await?)
    }

    /// How far our clock is from the store's, if that is too far.
    pub(super) async fn skew(&self) -> Result<Option<i64>, StoreError> {
        Ok(self.store.check(self.environment.now()).await?.filter(|skew| skew.abs() > MAX_SKEW))
    }

    /// Whether the store answers and, where it is a server, how far its clock is from ours, in milliseconds.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn check_store(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.check(self.environment.now()).await?)
    }
}
