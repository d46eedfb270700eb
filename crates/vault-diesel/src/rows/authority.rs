//! Facts that authorize principals.

use super::accounts::directory;
use super::accounts::row::account_of;
use super::{TxRows, several, then};
use crate::db::{Share, Unlocked};
use crate::schema::accounts;
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::{facts, state_of};
use diesel::QueryDsl as _;
use vault_core::account::AccountState;
use vault_core::email::EmailAddress;
use vault_core::id::OrganizationId;
use vault_core::operation::Access;
use vault_core::organization::OrganizationState;
use vault_core::port::{AuthorityRows, Reply};
use vault_core::principal::{SessionFacts, SessionPrincipal};
use vault_core::time::Timestamp;

impl AuthorityRows for TxRows<'_> {
    fn session_facts(&self, session: &SessionPrincipal, now: Timestamp) -> Reply<'_, SessionFacts> {
        let key = (session.organization, session.account, session.session);
        self.kept_or(
            |facts| &mut facts.sessions,
            key,
            || {
                let session = session.clone();
                several(async move {
                    match self.access {
                        Access::Read => facts(&self.tx, &session, Unlocked, now).await,
                        Access::Write => facts(&self.tx, &session, Share, now).await,
                    }
                })
            },
        )
    }

    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>> {
        then(self.tx.first(state_of(organization.stored())), move |state: Option<Column<OrganizationState>>| {
            state.map(|state| state.decode("lookups", &organization, "value")).transpose()
        })
    }

    fn is_member(&self, organization: OrganizationId, address: &EmailAddress) -> Reply<'_, bool> {
        let address = address.clone();
        several(async move {
            let found = directory::account_of(&self.tx, &address).await?;
            let Some((_, account)) = found.filter(|(of, _)| *of == organization) else { return Ok(false) };
            let state = account_of(organization.stored(), account.stored()).select(accounts::state);
            let state: Option<Column<AccountState>> = self.tx.first(state).await?;
            let state = state.map(|state| state.decode("accounts", &account, "state")).transpose()?;
            Ok(state == Some(AccountState::Active))
        })
    }
}
