//! Sessions in the store.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::id::SessionId;
use crate::principal::{Denial, SessionPrincipal};
use crate::session::NewSession;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Ends a session of one's own account for good.
#[derive(Clone, Debug)]
pub struct EndSession {
    /// Who ends it; must still be allowed to act.
    pub principal: SessionPrincipal,
    /// Which: the principal's own, or another one of the same account.
    pub session: SessionId,
    /// Now.
    pub now: Timestamp,
    /// The record of it; kept only if it was there.
    pub audit: SealedAuditRecord,
}

/// Lists the live sessions of one's own account.
#[derive(Clone, Debug)]
pub struct ListSessions {
    /// Whose; must still be allowed to act.
    pub principal: SessionPrincipal,
    /// Now.
    pub now: Timestamp,
}

/// Sessions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionRepository: Send + Sync {
    /// Ends a session. `false`: the account has no live session of this id. Of several that end their own at
    /// once, one is told that it did, the others that it had ended.
    async fn end_session(&self, command: EndSession) -> Result<Result<bool, Denial>, StoreError>;

    /// The account's sessions that have not expired, newest first (of one moment, by id).
    async fn list_sessions(&self, query: ListSessions) -> Result<Result<Vec<NewSession>, Denial>, StoreError>;
}
