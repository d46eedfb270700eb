//! Sessions in the store.

use super::StoreError;
use crate::audit::SealedAuditRecord;
use crate::principal::{PrincipalRefusal, SessionPrincipal};
use crate::time::Timestamp;
use async_trait::async_trait;

/// Ends a session for good.
#[derive(Clone, Debug)]
pub struct EndSession {
    /// Its holder; must still be allowed to act.
    pub principal: SessionPrincipal,
    /// Now.
    pub now: Timestamp,
    /// The record of it.
    pub audit: SealedAuditRecord,
}

/// Sessions.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionRepository: Send + Sync {
    /// Ends a session. Of several at once, one is told that it did, the others that it had ended.
    async fn end_session(&self, command: EndSession) -> Result<Result<(), PrincipalRefusal>, StoreError>;
}
