//! Sessions.

use super::{TxRows, then};
use crate::db::{Db, narrow};
use crate::failure::Failure;
use crate::schema::sessions;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::port::{AccountPlace, Reply, SessionRows};
use vault_core::session::{NewSession, SessionUse, StoredSession};
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
fn sessions_of(organization: IdBytes, account: IdBytes) -> _ {
    sessions::table.filter(sessions::organization_id.eq(organization)).filter(narrow(sessions::account_id.eq(account)))
}

#[auto_type(no_type_alias)]
fn session_of(organization: IdBytes, session: IdBytes) -> _ {
    sessions::table.filter(sessions::organization_id.eq(organization)).filter(sessions::id.eq(session))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions, check_for_backend(Db))]
struct SessionRow {
    id: Column<SessionId>,
    created_at: i64,
    expires_at: i64,
    network: String,
    client: Option<String>,
    last_used_at: Option<i64>,
}

impl SessionRow {
    fn decode(self, account: AccountId) -> Result<StoredSession, Failure> {
        let created_at = Timestamp::from_millis(self.created_at);
        let session = NewSession {
            id: self.id.decode("sessions", &account, "id")?,
            created_at,
            expires_at: Timestamp::from_millis(self.expires_at),
            network: self.network,
            client: self.client,
        };
        Ok(StoredSession { session, last_used_at: self.last_used_at.map_or(created_at, Timestamp::from_millis) })
    }
}

impl SessionRows for TxRows<'_> {
    fn active_sessions(&self, (organization, account): AccountPlace, now: Timestamp) -> Reply<'_, Vec<StoredSession>> {
        let rows = sessions_of(organization.stored(), account.stored())
            .filter(sessions::expires_at.gt(now.as_millis()))
            .order((sessions::created_at.desc(), sessions::id))
            .select(SessionRow::as_select());
        then(self.tx.load(rows), move |rows| rows.into_iter().map(|row| row.decode(account)).collect())
    }

    fn insert_session(&self, (organization, account): AccountPlace, session: &NewSession) -> Reply<'_, ()> {
        let new = diesel::insert_into(sessions::table).values((
            sessions::organization_id.eq(organization.stored()),
            sessions::id.eq(session.id.stored()),
            sessions::account_id.eq(account.stored()),
            sessions::created_at.eq(session.created_at.as_millis()),
            sessions::expires_at.eq(session.expires_at.as_millis()),
            sessions::network.eq(session.network.as_str()),
            sessions::client.eq(session.client.as_deref()),
            sessions::last_used_at.eq(session.created_at.as_millis()),
        ));
        then(self.tx.execute(new), |_| Ok(()))
    }

    fn end_account_sessions(&self, (organization, account): AccountPlace) -> Reply<'_, ()> {
        then(self.tx.execute(diesel::delete(sessions_of(organization.stored(), account.stored()))), |_| Ok(()))
    }

    fn end_other_sessions(&self, (organization, account): AccountPlace, kept: SessionId) -> Reply<'_, ()> {
        let own = sessions_of(organization.stored(), account.stored());
        then(self.tx.execute(diesel::delete(own.filter(sessions::id.ne(kept.stored())))), |_| Ok(()))
    }

    fn remove_session(&self, organization: OrganizationId, session: SessionId) -> Reply<'_, ()> {
        then(self.tx.execute(diesel::delete(session_of(organization.stored(), session.stored()))), |_| Ok(()))
    }

    fn set_session_use(&self, used: &SessionUse) -> Reply<'_, ()> {
        let at = used.at.as_millis();
        let session = session_of(used.organization.stored(), used.session.stored())
            .filter(sessions::last_used_at.is_null().or(sessions::last_used_at.lt(at)));
        then(self.tx.execute(diesel::update(session).set(sessions::last_used_at.eq(at))), |_| Ok(()))
    }
}
