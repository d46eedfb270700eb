//! Sessions.

use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock_both_sessions, authorize_session};
use super::super::{Read, Transaction};
use crate::db::{Db, Reply, Tx, narrow};
use crate::failure::Failure;
use crate::schema::sessions;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::Command;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::port::{EndSession, SessionUse};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::session::{NewSession, StoredSession};
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
pub(crate) fn sessions_of(organization: IdBytes, account: IdBytes) -> _ {
    sessions::table.filter(sessions::organization_id.eq(organization)).filter(narrow(sessions::account_id.eq(account)))
}

/// Stores a session.
pub(crate) fn insert<'t>(
    tx: &'t Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    session: &NewSession,
) -> Reply<'t, usize> {
    tx.execute(diesel::insert_into(sessions::table).values((
        sessions::organization_id.eq(organization.stored()),
        sessions::id.eq(session.id.stored()),
        sessions::account_id.eq(account.stored()),
        sessions::created_at.eq(session.created_at.as_millis()),
        sessions::expires_at.eq(session.expires_at.as_millis()),
        sessions::network.eq(session.network.as_str()),
        sessions::client.eq(session.client.as_deref()),
        sessions::last_used_at.eq(session.created_at.as_millis()),
    )))
}

/// Ends every session of the principal's account but its own.
pub(crate) fn end_others<'t>(tx: &'t Tx<'_>, principal: &SessionPrincipal) -> Reply<'t, usize> {
    let own = sessions_of(principal.organization.stored(), principal.account.stored());
    tx.execute(diesel::delete(own.filter(sessions::id.ne(principal.session.stored()))))
}

impl Transaction for Command<EndSession> {
    /// Whether the session was active.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Principal::Session(principal) = &self.principal else { return Err(Denial::InsufficientRole.into()) };
        if !authorize_and_lock_both_sessions(tx, principal, self.payload.session, self.now).await? {
            return Ok(false);
        }
        let session = sessions::table
            .filter(sessions::organization_id.eq(principal.organization.stored()))
            .filter(sessions::id.eq(self.payload.session.stored()));
        tx.execute(diesel::delete(session)).await?;
        audit.record(tx, &self.audit).await?;
        Ok(true)
    }
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

/// The active sessions of the principal's account.
pub(crate) struct ListSessions {
    pub(crate) principal: SessionPrincipal,
    pub(crate) now: Timestamp,
}

impl Read for ListSessions {
    type Outcome = Vec<StoredSession>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredSession>, Failure> {
        let Self { principal, now } = self;
        authorize_session(tx, principal, *now).await?;
        let rows = sessions_of(principal.organization.stored(), principal.account.stored())
            .filter(sessions::expires_at.gt(now.as_millis()))
            .order((sessions::created_at.desc(), sessions::id))
            .select(SessionRow::as_select());
        tx.load(rows).await?.into_iter().map(|row| row.decode(principal)).collect()
    }
}

impl SessionRow {
    fn decode(self, owner: &SessionPrincipal) -> Result<StoredSession, Failure> {
        let created_at = Timestamp::from_millis(self.created_at);
        let session = NewSession {
            id: self.id.decode("sessions", &owner.account, "id")?,
            created_at,
            expires_at: Timestamp::from_millis(self.expires_at),
            network: self.network,
            client: self.client,
        };
        Ok(StoredSession { session, last_used_at: self.last_used_at.map_or(created_at, Timestamp::from_millis) })
    }
}

/// Records when sessions were last used, in the given order.
pub(crate) struct RecordUses(pub(crate) Vec<SessionUse>);

impl Transaction for RecordUses {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        for used in &self.0 {
            let at = used.at.as_millis();
            let session = sessions::table
                .filter(sessions::organization_id.eq(used.organization.stored()))
                .filter(sessions::id.eq(used.session.stored()))
                .filter(sessions::last_used_at.is_null().or(sessions::last_used_at.lt(at)));
            tx.execute(diesel::update(session).set(sessions::last_used_at.eq(at))).await?;
        }
        audit.commit_without_entry();
        Ok(())
    }
}
