//! Checks that the store responds, and that its disk has space.

use crate::operation::{Access, Failure, Operation, Unit};

/// Reads something. If the store is a server, returns the difference of its clock to this one, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckStore;

impl Operation for CheckStore {
    type Outcome = Option<i64>;
    const ACCESS: Access<Self> = Access::Read(|_| None);
    const IS_ONE_EXCHANGE: fn(&Self) -> bool = |_| true;

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<i64>, Failure> {
        Ok(unit.rows().server_time().await?.map(|time| time.millis_since(unit.now())))
    }
}

/// Writes something that needs space on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProveSpace;

impl Operation for ProveSpace {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.commit_without_entry();
        Ok(unit.rows().prove_space().await?)
    }
}
