//! Sessions of the caller's own account: list, end and times of use.

use super::Accounts;
use crate::error::{Error, Refusal};
use crate::id::{OrganizationId, SessionId};
use crate::principal::{Principal, SessionPrincipal};
use crate::session::{EndSession, ListSessions, RecordUses, SessionUse, StoredSession};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MINUTE: i64 = 60_000;
/// Maximum number of uses that are written in one transaction.
const SLICE: usize = 500;

impl Accounts {
    /// Returns the active sessions of the principal's account, newest first.
    ///
    /// # Errors
    /// [`Error::Denied`], or the store failed.
    pub async fn sessions(&self, principal: &SessionPrincipal) -> Result<Vec<StoredSession>, Error> {
        let session = Principal::Session(principal.clone());
        self.operations.run(&self.environment, &session, ListSessions(principal.clone())).await
    }

    /// Ends one session of the principal's account. Ending the own session is a logout.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also for a session of another account.
    pub async fn end_session(&self, principal: &SessionPrincipal, session: SessionId) -> Result<(), Error> {
        if self.end(principal, session).await? { Ok(()) } else { Err(Refusal::NotFound.into()) }
    }

    /// Ends a session. Returns `false` if the account has no such active session.
    pub(super) async fn end(&self, principal: &SessionPrincipal, session: SessionId) -> Result<bool, Error> {
        let end = EndSession { organization: principal.organization, session };
        self.operations.run(&self.environment, &Principal::Session(principal.clone()), end).await
    }

    /// Writes when sessions were last used, truncated to the minute and at most once a minute per session. Call it
    /// every few seconds and at shutdown. Uses that cannot be written are kept for the next call. A cancelled call
    /// loses at most the uses that it was writing, and the next use of the session compensates for that.
    ///
    /// # Errors
    /// The store failed.
    pub async fn write_session_uses(&self) -> Result<(), Error> {
        let uses = self.uses.take();
        let mut slices = uses.chunks(SLICE);
        while let Some(slice) = slices.next() {
            let record = RecordUses::new(slice.to_vec());
            if let Err(error) = self.operations.run(&self.environment, &Principal::Operator, record).await {
                self.uses.release(slice.iter().chain(slices.flatten()));
                return Err(error);
            }
        }
        self.uses.forget_before(self.environment.now());
        Ok(())
    }
}

/// Times of the last uses of sessions, truncated to the minute, and whether they were written.
#[derive(Default)]
pub(super) struct SessionUses(Mutex<HashMap<SessionId, Use>>);

struct Use {
    organization: OrganizationId,
    minute: i64,
    written: bool,
}

impl SessionUses {
    pub(super) fn note(&self, organization: OrganizationId, session: SessionId, now: Timestamp) {
        let minute = now.as_millis().div_euclid(MINUTE);
        let mut uses = self.lock();
        let kept = uses.entry(session).or_insert(Use { organization, minute, written: false });
        if kept.minute < minute {
            *kept = Use { organization, minute, written: false };
        }
    }

    fn take(&self) -> Vec<SessionUse> {
        let mut uses = self.lock();
        let new = uses.iter_mut().filter(|(_, kept)| !kept.written);
        let taken = new.map(|(session, kept)| {
            kept.written = true;
            let at = Timestamp::from_millis(kept.minute * MINUTE);
            SessionUse { organization: kept.organization, session: *session, at }
        });
        taken.collect()
    }

    fn release<'a>(&self, uses: impl Iterator<Item = &'a SessionUse>) {
        let mut kept = self.lock();
        for given in uses {
            if let Some(kept) = kept.get_mut(&given.session) {
                kept.written = false;
            }
        }
    }

    /// Removes uses that were written before this minute.
    fn forget_before(&self, now: Timestamp) {
        let minute = now.as_millis().div_euclid(MINUTE);
        self.lock().retain(|_, kept| !kept.written || kept.minute >= minute);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Use>> {
        // A use is consistent at every point, so a panic elsewhere does not leave a partial change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORGANIZATION: OrganizationId = OrganizationId::from_bytes([1; 16]);

    fn session(number: u8) -> SessionId {
        SessionId::from_bytes([number; 16])
    }

    fn at(minute: i64, millis: i64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE + millis)
    }

    fn used(number: u8, minute: i64) -> SessionUse {
        SessionUse { organization: ORGANIZATION, session: session(number), at: at(minute, 0) }
    }

    #[test]
    fn session_use_is_written_once_a_minute() {
        let uses = SessionUses::default();
        uses.note(ORGANIZATION, session(1), at(7, 1));
        assert_eq!(uses.take(), [used(1, 7)]);
        uses.note(ORGANIZATION, session(1), at(7, MINUTE - 1));
        uses.note(ORGANIZATION, session(1), at(6, 0));
        assert_eq!(uses.take(), [], "the minute is written, and the clock was moved back");
        uses.note(ORGANIZATION, session(1), at(8, 0));
        assert_eq!(uses.take(), [used(1, 8)]);
    }

    #[test]
    fn failed_writes_are_retried_later() {
        let uses = SessionUses::default();
        uses.note(ORGANIZATION, session(1), at(7, 0));
        let taken = uses.take();
        uses.release(taken.iter());
        uses.forget_before(at(9, 0));
        assert_eq!(uses.take(), [used(1, 7)]);
    }

    #[test]
    fn written_uses_are_dropped_after_their_minute() {
        let uses = SessionUses::default();
        uses.note(ORGANIZATION, session(1), at(7, 0));
        uses.take();
        uses.note(ORGANIZATION, session(2), at(7, 0));
        uses.forget_before(at(7, MINUTE - 1));
        assert_eq!(uses.lock().len(), 2, "the minute lasts");
        uses.forget_before(at(8, 0));
        assert_eq!(uses.lock().keys().copied().collect::<Vec<_>>(), [session(2)], "not written yet");
    }
}
