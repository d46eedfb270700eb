//! Sessions, and the authorization before every vault operation.

use super::row::SessionRow;
use super::{Decided, MemoryStore, State};
use async_trait::async_trait;
use std::cmp::Reverse;
use vault_core::Command;
use vault_core::account::AccountState;
use vault_core::port::{EndSession, SessionRepository, SessionUse, StoreError};
use vault_core::principal::{Denial, Principal, SessionFacts, SessionPrincipal, check_session};
use vault_core::session::StoredSession;
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

#[async_trait]
impl SessionRepository for MemoryStore {
    async fn end_session(&self, command: Command<EndSession>) -> Result<bool, StoreError> {
        let Principal::Session(principal) = command.principal.clone() else {
            return Err(StoreError::Denied(Denial::InsufficientRole));
        };
        self.carry_out(command, |state, _, now, payload| {
            let own = |row: &SessionRow| row.account == principal.account && now < row.session.expires_at;
            if !state.sessions.get(&payload.session).is_some_and(own) {
                return Decided::Refused(false);
            }
            state.sessions.remove(&payload.session);
            Decided::Done(true)
        })
    }

    async fn list_sessions(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Vec<StoredSession>, StoreError> {
        self.decide(|state| {
            state.check_session(&principal, now)?;
            let own = state.sessions.values().filter(|row| row.account == principal.account);
            let live = own.filter(|row| now < row.session.expires_at);
            let mut live: Vec<_> = live
                .map(|row| StoredSession { session: row.session.clone(), last_used_at: row.last_used_at })
                .collect();
            live.sort_by_key(|stored| (Reverse(stored.session.created_at), stored.session.id));
            Ok(live)
        })?
    }

    async fn record_uses(&self, uses: Vec<SessionUse>) -> Result<(), StoreError> {
        self.decide(|state| {
            for used in uses {
                let row = state.sessions.get_mut(&used.session).filter(|row| row.organization == used.organization);
                if let Some(row) = row {
                    row.last_used_at = row.last_used_at.max(used.at);
                }
            }
        })
    }
}
