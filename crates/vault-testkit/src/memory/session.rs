//! Sessions, and the question that every vault operation asks first.

use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::account::AccountState;
use vault_core::port::{EndSession, SessionRepository, StoreError};
use vault_core::principal::{Principal, PrincipalRefusal, SessionFacts, SessionPrincipal, judge_session};
use vault_core::time::Timestamp;

impl State {
    pub(super) fn judge(&self, principal: &Principal, now: Timestamp) -> Result<(), PrincipalRefusal> {
        match principal {
            Principal::Session(session) => self.judge_session(session, now),
            Principal::Embedder(embedder) if self.organization_is_active(embedder.organization) => Ok(()),
            Principal::Embedder(_) => Err(PrincipalRefusal::OrganizationClosed),
        }
    }

    fn judge_session(&self, principal: &SessionPrincipal, now: Timestamp) -> Result<(), PrincipalRefusal> {
        let session = self.sessions.get(&principal.session);
        let account = self.accounts.get(&principal.account).map(|row| &row.grant);
        let facts = SessionFacts {
            session_live: session.is_some_and(|row| {
                row.account == principal.account && row.organization == principal.organization && now < row.expires_at
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
    async fn end_session(&self, command: EndSession) -> Result<Result<(), PrincipalRefusal>, StoreError> {
        self.decide(|state| {
            state.judge_session(&command.principal, command.now)?;
            state.sessions.remove(&command.principal.session);
            state.audit.push(command.audit);
            Ok(())
        })
    }
}
