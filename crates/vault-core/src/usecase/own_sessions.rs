//! List the sessions of one's own account, or end one.

use super::{Ambient, OwnAccountError};
use crate::audit::{Actor, AuditAction, Subject};
use crate::id::SessionId;
use crate::port::{EndSession, ListSessions, SessionRepository};
use crate::principal::SessionPrincipal;
use crate::session::NewSession;
use std::sync::Arc;

/// A live session as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// The session.
    pub session: NewSession,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// Lists and ends sessions of one's own account.
pub struct OwnSessions {
    ambient: Ambient,
    sessions: Arc<dyn SessionRepository>,
}

impl OwnSessions {
    /// The operations on these ports.
    pub fn new(ambient: Ambient, sessions: Arc<dyn SessionRepository>) -> Self {
        Self { ambient, sessions }
    }

    /// The live sessions of the principal's account, newest first.
    ///
    /// # Errors
    /// See [`OwnAccountError`].
    pub async fn list(&self, principal: &SessionPrincipal) -> Result<Vec<ListedSession>, OwnAccountError> {
        let query = ListSessions { principal: principal.clone(), now: self.ambient.now() };
        let sessions = self.sessions.list_sessions(query).await.map_err(|error| self.ambient.witness(error))?;
        let sessions = sessions.map_err(OwnAccountError::Principal)?.into_iter();
        Ok(sessions.map(|session| ListedSession { current: session.id == principal.session, session }).collect())
    }

    /// Ends one session of the principal's account; its own one as a logout does.
    ///
    /// # Errors
    /// See [`OwnAccountError`]; another account's session is [`OwnAccountError::NotFound`].
    pub async fn end(&self, principal: &SessionPrincipal, session: SessionId) -> Result<(), OwnAccountError> {
        let now = self.ambient.now();
        let own = session == principal.session;
        let action = if own { AuditAction::LoggedOut } else { AuditAction::SessionEnded };
        let (actor, subject) = (Actor::from(principal), Subject::Session(session));
        let audit = self.ambient.record(now, Some(principal.organization), actor, action, subject);
        let command = EndSession { principal: principal.clone(), session, now, audit };
        let ended = self.sessions.end_session(command).await?.map_err(OwnAccountError::Principal)?;
        if ended { Ok(()) } else { Err(OwnAccountError::NotFound) }
    }
}
