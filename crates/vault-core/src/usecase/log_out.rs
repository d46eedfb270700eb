//! Log out: the session ends, on every replica, at once.

use super::Ambient;
use crate::audit::{Actor, AuditAction, Subject};
use crate::port::{EndSession, SessionRepository, StoreError};
use crate::principal::{Denial, SessionPrincipal};
use std::sync::Arc;

/// Why a logout was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum LogOutError {
    /// The token no longer worked.
    #[error("the session may no longer act")]
    Principal(Denial),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ends sessions.
pub struct LogOut {
    ambient: Ambient,
    sessions: Arc<dyn SessionRepository>,
}

impl LogOut {
    /// The operation on these ports.
    pub fn new(ambient: Ambient, sessions: Arc<dyn SessionRepository>) -> Self {
        Self { ambient, sessions }
    }

    /// Ends the principal's session.
    ///
    /// # Errors
    /// See [`LogOutError`].
    pub async fn run(&self, principal: &SessionPrincipal) -> Result<(), LogOutError> {
        let now = self.ambient.now();
        let actor = Actor::from(principal);
        let subject = Subject::Session(principal.session);
        let audit = self.ambient.record(now, Some(principal.organization), actor, AuditAction::LoggedOut, subject);
        let command = EndSession { principal: principal.clone(), session: principal.session, now, audit };
        // A principal that may act has a session to end.
        self.sessions.end_session(command).await?.map(|_| ()).map_err(LogOutError::Principal)
    }
}
