//! Delete what has expired, and record what was counted.

use super::Operator;
use crate::error::Error;
use crate::port::{Expired, SWEEP_SLICE, StoreError};

/// What a round of upkeep came to.
#[derive(Debug, Default)]
pub struct Tidied {
    /// How many rows were deleted.
    pub deleted: usize,
    /// The kinds that could not be deleted, and why.
    pub failed: Vec<(Expired, StoreError)>,
    /// Whether the round ended because its time was used up: more may have expired.
    pub more: bool,
}

impl Operator {
    /// Deletes what has expired, slice after slice, kinds in turn, until nothing is left or `millis` milliseconds are
    /// used. A kind that fails does not keep the others from being deleted.
    pub async fn tidy(&self, millis: i64) -> Tidied {
        let began = self.ambient.now();
        let mut tidied = Tidied::default();
        let mut left = Expired::ALL.to_vec();
        while !left.is_empty() {
            let mut unfinished = Vec::new();
            for expired in left {
                let now = self.ambient.now();
                if now.millis_since(began) >= millis {
                    tidied.more = true;
                    return tidied;
                }
                match self.store.sweep(expired, now).await {
                    Ok(deleted) => {
                        tidied.deleted += deleted;
                        if deleted >= SWEEP_SLICE {
                            unfinished.push(expired);
                        }
                    }
                    Err(error) => tidied.failed.push((expired, error)),
                }
            }
            left = unfinished;
        }
        tidied
    }

    /// Records the counted acts of the minutes that are over; with `everything`, of the current one too.
    ///
    /// # Errors
    /// The log could not be written; the counts are kept for the next call.
    pub async fn record_counts(&self, everything: bool) -> Result<(), Error> {
        Ok(self.tally.flush(everything).await?)
    }

    /// Whether the store answers and, where it is a server, how far its clock is from ours, in milliseconds.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn check_store(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.check(self.ambient.now()).await?)
    }
}
