//! Sessions, and the question that every vault operation asks first.

use super::row::SessionRow;
use super::{MemoryStore, State};
use async_trait::async_trait;
use std::cmp::Reverse;
use vault_core::account::AccountState;
use vault_core::port::{EndSession, ListSessions, SessionRepository, StoreError};
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, judge_session};
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

impl State {
    pub(super) fn judge(&self, principal: &Principal, now: Timestamp) -> Result<(), Denial> {
        match principal {
            Principal::Operator => Ok(()),
            Principal::Session(session) => self.judge_session(session, now),
            Principal::Embedder(embedder) if self.organization_is_active(embedder.organization) => Ok(()),
            Principal::Embedder(_) => Err(Denial::OrganizationClosed),
        }
    }

    pub(super) fn judge_session(&self, principal: &SessionPrincipal, now: Timestamp) -> Result<(), Denial> {
        let session = self.sessions.get(&principal.session);
        let account = self.accounts.get(&principal.account).map(|row| &row.grant);
        let facts = SessionFacts {
            session_live: session.is_some_and(|row| {
                row.account == principal.account
                    && row.organization == principal.organization
                    && now < row.session.expires_at
            }),
            active_role: account
                .filter(|grant| grant.organization == principal.organization && grant.state == AccountState::Active)
                .map(|grant| grant.role),
            organization_active: self.organization_is_active(principal.organization),
        };
        judge_session(principal, facts)
    }
}

#[async_trait]
impl SessionRepository for MemoryStore {
    async fn end_session(&self, command: EndSession) -> Result<Result<bool, Denial>, StoreError> {
        self.decide(|state| {
            let EndSession { principal, session, now, audit } = command;
            state.judge_session(&principal, now)?;
            let own = |row: &SessionRow| row.account == principal.account && now < row.session.expires_at;
            let was_there = state.sessions.get(&session).is_some_and(own);
            if was_there {
                state.sessions.remove(&session);
                state.audit.push(audit);
            }
            Ok(was_there)
        })
    }

    async fn list_sessions(&self, query: ListSessions) -> Result<Result<Vec<NewSession>, Denial>, StoreError> {
        self.decide(|state| {
            state.judge_session(&query.principal, query.now)?;
            let own = state.sessions.values().filter(|row| row.account == query.principal.account);
            let mut live: Vec<_> =
                own.map(|row| row.session.clone()).filter(|row| query.now < row.expires_at).collect();
            live.sort_by_key(|session| (Reverse(session.created_at), session.id));
            Ok(live)
        })
    }
}
