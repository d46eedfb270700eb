//! Rekeying of lookup digests: replaces the digests of rows with those of the current lookup key, so that the previous
//! key can be destroyed.
//!
//! These digests do not name their key, and rows are found and verified with any available key. The process therefore
//! reads all credentials. After an interruption it starts again, but only reads the rows that it has already changed.
//! Deliveries of events and idempotency keys are not rekeyed, because they are deleted gradually.

use super::Keys;
use crate::audit::ReadCheckpoints;
use crate::credential::RelabelCredential;
use crate::error::{Error, Refusal};
use crate::inspect::{InspectedRow, ReadPage, Stage as Rows};
use crate::port::StoreError;
use crate::principal::Principal;
use crate::receiver::{EventLease, EventPosition, RecordEvents};
use std::sync::Arc;

/// Position of the process.
enum Stage {
    Credentials(Rows),
    Position,
    End,
}

/// One pass over all rows.
pub struct LookUpMoves {
    keys: Keys,
    stage: Stage,
    rows: u64,
    moved: u64,
}

impl Keys {
    /// Starts rekeying rows with the current lookup key. Call it after the previous keys are
    /// [drained](crate::keyring::KeyringEntry::is_drained).
    pub fn rekey_lookups(&self) -> LookUpMoves {
        LookUpMoves { keys: self.clone(), stage: Stage::Credentials(Rows::Credentials(None)), rows: 0, moved: 0 }
    }
}

impl LookUpMoves {
    /// Returns the number of processed rows.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of changed rows.
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// Processes the next rows. Returns `false` if none remain. A row that matches no key is not changed, because the
    /// integrity check reports it.
    ///
    /// # Errors
    /// The store failed, or keys cannot be read. The call can be repeated.
    pub async fn step(&mut self) -> Result<bool, Error> {
        let (keys, limit) = (self.keys.clone(), self.keys.batch);
        match &self.stage {
            Stage::Credentials(after) => {
                let page = ReadPage { stage: after.clone(), limit };
                let page = keys.operations.run(&keys.environment, &Principal::Operator, page).await?;
                self.move_credentials(&page.rows).await?;
                self.stage = if page.rows.is_empty() { Stage::Position } else { Stage::Credentials(page.next) };
            }
            Stage::Position => {
                self.move_position().await?;
                self.stage = Stage::End;
            }
            Stage::End => return Ok(false),
        }
        Ok(true)
    }

    fn count(&mut self, moved: usize) {
        self.moved = self.moved.saturating_add(u64::try_from(moved).unwrap_or(u64::MAX));
    }

    async fn move_credentials(&mut self, rows: &[InspectedRow]) -> Result<(), Error> {
        let Keys { operations, environment, .. } = self.keys.clone();
        for row in rows {
            let InspectedRow::Credential((organization, id)) = row else { continue };
            self.rows += 1;
            let (Ok(organization), Ok(id)) = (organization.parse(), id.parse()) else { continue };
            let moved = operations.run(&environment, &Principal::Operator, RelabelCredential(organization, id)).await;
            self.count(usize::from(readable(moved)?.unwrap_or_default()));
        }
        Ok(())
    }

    /// Signs the event position again. A server that reads events does this itself.
    async fn move_position(&mut self) -> Result<(), Error> {
        let Keys { environment, operations, .. } = self.keys.clone();
        let digester = Arc::clone(&operations.ports.digester);
        let Some(newest) = operations.run(&environment, &Principal::Operator, ReadCheckpoints::Newest).await?.pop()
        else {
            return Ok(());
        };
        let now = environment.now();
        let holder = environment.ids.random();
        let first = EventPosition::sign(newest.number, now, crate::usecase::receivers::position(now), &*digester);
        let lease = |until| EventLease { holder, now, until, first };
        let longest = now.plus_seconds(EventLease::LONGEST_SECONDS);
        let Some(from) = operations.run(&environment, &Principal::Operator, lease(longest)).await? else {
            return Ok(());
        };
        self.rows += 1;
        let to = from.signed_again(&*digester);
        if from.mac_is_valid(&*digester) && from.mac != to.mac {
            let record = RecordEvents { holder, from, to, deliveries: Vec::new() };
            self.count(usize::from(operations.run(&environment, &Principal::Operator, record).await?));
        }
        operations.run(&environment, &Principal::Operator, lease(now)).await?;
        Ok(())
    }
}

/// Returns `None` if the row is damaged, which the integrity check reports.
fn readable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(Error::Store(StoreError::Integrity { .. }) | Error::Refused(Refusal::Damaged { .. })) => Ok(None),
        read => read.map(Some),
    }
}
