//! Facts that authorize principals, in addition to documents.

use super::{TxRows, then};
use crate::schema::{lookups, sessions};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::entity::Index;
use vault_core::id::OrganizationId;
use vault_core::organization::OrganizationState;
use vault_core::port::{AuthorityRows, Reply};
use vault_core::principal::SessionPrincipal;
use vault_core::time::Timestamp;

/// The state of an organization: the value that leads to it.
#[auto_type(no_type_alias)]
fn state_of(organization: IdBytes) -> _ {
    let index: &'static str = Index::OrganizationState.as_str();
    lookups::table
        .filter(lookups::organization_id.eq(organization))
        .filter(lookups::name.eq(index))
        .select(lookups::value)
}

impl AuthorityRows for TxRows<'_> {
    fn session_expiry(&self, session: &SessionPrincipal) -> Reply<'_, Option<Timestamp>> {
        let key = (session.organization, session.account, session.session);
        self.kept_or(
            |facts| &mut facts.sessions,
            key,
            || {
                let expires_at = sessions::table
                    .filter(sessions::organization_id.eq(session.organization.stored()))
                    .filter(sessions::account_id.eq(session.account.stored()))
                    .filter(sessions::id.eq(session.session.stored()))
                    .select(sessions::expires_at);
                then(self.tx.first(expires_at), |at: Option<i64>| Ok(at.map(Timestamp::from_millis)))
            },
        )
    }

    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>> {
        then(self.tx.first(state_of(organization.stored())), move |state: Option<Column<OrganizationState>>| {
            state.map(|state| state.decode("lookups", &organization, "value")).transpose()
        })
    }
}
