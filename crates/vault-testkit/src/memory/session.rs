//! Sessions.

use super::row::SessionRow;
use super::rows::{MemoryRows, done};
use std::cmp::Reverse;
use vault_core::id::{OrganizationId, SessionId};
use vault_core::port::{AccountPlace, Reply, SessionRows};
use vault_core::session::{NewSession, SessionUse, StoredSession};
use vault_core::time::Timestamp;

impl SessionRows for MemoryRows<'_> {
    fn active_sessions(&self, place: AccountPlace, now: Timestamp) -> Reply<'_, Vec<StoredSession>> {
        let state = self.state();
        let own = state.sessions.values().filter(|row| (row.organization, row.account) == place);
        let mut active: Vec<_> = own
            .filter(|row| now < row.session.expires_at)
            .map(|row| StoredSession { session: row.session.clone(), last_used_at: row.last_used_at })
            .collect();
        active.sort_by_key(|stored| (Reverse(stored.session.created_at), stored.session.id));
        done(active)
    }

    fn insert_session(&self, (organization, account): AccountPlace, session: &NewSession) -> Reply<'_, ()> {
        let (session, last_used_at) = (session.clone(), session.created_at);
        self.state().sessions.insert(session.id, SessionRow { organization, account, session, last_used_at });
        done(())
    }

    fn end_account_sessions(&self, place: AccountPlace) -> Reply<'_, ()> {
        self.state().sessions.retain(|_, row| (row.organization, row.account) != place);
        done(())
    }

    fn end_other_sessions(&self, place: AccountPlace, kept: SessionId) -> Reply<'_, ()> {
        self.state().sessions.retain(|id, row| (row.organization, row.account) != place || *id == kept);
        done(())
    }

    fn remove_session(&self, organization: OrganizationId, session: SessionId) -> Reply<'_, ()> {
        self.state().sessions.retain(|id, row| (row.organization, *id) != (organization, session));
        done(())
    }

    fn set_session_use(&self, used: &SessionUse) -> Reply<'_, ()> {
        let mut state = self.state();
        if let Some(row) = state.sessions.get_mut(&used.session).filter(|row| row.organization == used.organization) {
            row.last_used_at = row.last_used_at.max(used.at);
        }
        done(())
    }
}
