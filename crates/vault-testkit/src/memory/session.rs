//! Sessions, and the authorization before every vault operation.

use super::State;
use super::row::SessionRow;
use super::rows::{MemoryRows, done};
use std::cmp::Reverse;
use vault_core::account::AccountState;
use vault_core::id::{OrganizationId, SessionId};
use vault_core::port::{AccountPlace, Reply, SessionRows};
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, check_session};
use vault_core::session::{NewSession, SessionUse, StoredSession};
use vault_core::time::Timestamp;

impl State {
    pub(super) fn authorize(&self, principal: &Principal, now: Timestamp) -> Result<(), Denial> {
        match principal {
            Principal::Operator => Ok(()),
            Principal::Session(session) => self.check_session(session, now),
            Principal::Embedder(embedder) if self.organization_is_active(embedder.organization) => Ok(()),
            Principal::Embedder(_) => Err(Denial::OrganizationDisabled),
        }
    }

    pub(super) fn check_session(&self, principal: &SessionPrincipal, now: Timestamp) -> Result<(), Denial> {
        check_session(
            principal,
            self.organization_is_active(principal.organization),
            self.session_facts(principal, now),
        )
    }

    pub(super) fn session_facts(&self, principal: &SessionPrincipal, now: Timestamp) -> SessionFacts {
        let session = self.sessions.get(&principal.session);
        let account = self.accounts.get(&principal.account).map(|row| &row.signed);
        SessionFacts {
            session_live: session.is_some_and(|row| {
                row.account == principal.account
                    && row.organization == principal.organization
                    && now < row.session.expires_at
            }),
            active: account
                .filter(|signed| signed.grant.organization == principal.organization)
                .filter(|signed| signed.grant.state == AccountState::Active)
                .map(|signed| (signed.grant.role, signed.sessions)),
        }
    }
}

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
