//! Times at which sessions were used.

use crate::id::{OrganizationId, SessionId};
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;

/// Time at which a session was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionUse {
    /// Organization of the session.
    pub organization: OrganizationId,
    /// Session that was used.
    pub session: SessionId,
    /// Time of the use.
    pub at: Timestamp,
}

/// Records when sessions were last used. An earlier time than the stored one changes nothing. Deleted sessions are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordUses(Vec<SessionUse>);

impl RecordUses {
    /// Puts the uses in one order, so that two transactions that write the same rows do not wait for each other.
    pub fn new(mut uses: Vec<SessionUse>) -> Self {
        uses.sort_by_key(|used| (used.organization, used.session));
        Self(uses)
    }
}

impl Operation for RecordUses {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        for used in &self.0 {
            unit.rows().set_session_use(used).await?;
        }
        unit.commit_without_entry();
        Ok(())
    }
}
