//! Store port for sessions.

use super::StoreError;
use crate::command::Command;
use crate::id::{OrganizationId, SessionId};
use crate::principal::SessionPrincipal;
use crate::session::StoredSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Command that permanently ends a session. The principal is a session of the same account, possibly this session.
#[derive(Clone, Copy, Debug)]
pub struct EndSession {
    /// Session to end.
    pub session: SessionId,
}

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

/// Repository of sessions.
#[async_trait]
pub trait SessionRepository: Send + Sync {
    /// Ends a session. Returns `false` if the account has no active session with this ID. If several calls end their own
    /// session concurrently, exactly one succeeds. The others get [`StoreError::Denied`].
    async fn end_session(&self, command: Command<EndSession>) -> Result<bool, StoreError>;

    /// Lists the unexpired sessions of the principal's account, newest first. Sessions of the same time are ordered by ID.
    async fn list_sessions(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Vec<StoredSession>, StoreError>;

    /// Records when sessions were last used. An earlier time than the stored one changes nothing. Deleted sessions are
    /// skipped.
    async fn record_uses(&self, uses: Vec<SessionUse>) -> Result<(), StoreError>;
}
