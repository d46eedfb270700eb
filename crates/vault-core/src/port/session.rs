//! Sessions in the store.

use super::StoreError;
use crate::command::Command;
use crate::id::{OrganizationId, SessionId};
use crate::principal::SessionPrincipal;
use crate::session::StoredSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Ends a session of one's own account for good. The principal is a session, and the one that ends or another of the
/// same account.
#[derive(Clone, Copy, Debug)]
pub struct EndSession {
    /// Which.
    pub session: SessionId,
}

/// That a session was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionUse {
    /// The organization.
    pub organization: OrganizationId,
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Timestamp,
}

/// Sessions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionRepository: Send + Sync {
    /// Ends a session. `false`: the account has no live session with this id. Of several calls that end their own session
    /// at once, one succeeds; the others get [`StoreError::Denied`].
    async fn end_session(&self, command: Command<EndSession>) -> Result<bool, StoreError>;

    /// The principal's account's sessions that have not expired, newest first (of one moment, by id).
    async fn list_sessions(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Vec<StoredSession>, StoreError>;

    /// Writes when sessions were last used, where that is later than what is stored. A session that is gone is
    /// skipped.
    async fn note_uses(&self, uses: Vec<SessionUse>) -> Result<(), StoreError>;
}
