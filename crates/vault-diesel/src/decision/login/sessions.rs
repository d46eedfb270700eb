//! Sessions.

use super::super::backend::{Connection, RunQuery, Store, narrow};
use super::super::{Decided, Decision, Verdict, decide};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::sessions;
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::{authorize_and_lock_both_sessions, authorize_session};
use crate::update::update;
use async_trait::async_trait;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable};
use vault_core::Command;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::port::{EndSession, SessionRepository, SessionUse, StoreError};
use vault_core::principal::{Denial, Principal, SessionPrincipal};
use vault_core::session::{NewSession, StoredSession};
use vault_core::time::Timestamp;

#[async_trait]
impl SessionRepository for Store {
    async fn end_session(&self, command: Command<EndSession>) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(decide(connection, command))).await
    }

    async fn list_sessions(
        &self,
        principal: SessionPrincipal,
        now: Timestamp,
    ) -> Result<Vec<StoredSession>, StoreError> {
        self.read_for(Some(principal.organization), (principal, now), |connection, (principal, now)| {
            Box::pin(list(connection, principal, *now))
        })
        .await
    }

    async fn note_uses(&self, mut uses: Vec<SessionUse>) -> Result<(), StoreError> {
        // In one order, so that two that write the same rows do not wait for each other.
        uses.sort_by_key(|used| (used.organization, used.session));
        self.write(uses, |connection, uses| Box::pin(note_uses(connection, uses))).await
    }
}

/// The sessions of the account of a principal.
macro_rules! sessions_of {
    ($principal:expr) => {
        sessions::table
            .filter(sessions::organization_id.eq($principal.organization.stored()))
            .filter(narrow!(sessions::account_id.eq($principal.account.stored())))
    };
}

/// Makes a session; part of the decision that lets its holder in.
pub(crate) async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    session: &NewSession,
) -> Result<(), Failure> {
    diesel::insert_into(sessions::table)
        .values((
            sessions::organization_id.eq(organization.stored()),
            sessions::id.eq(session.id.stored()),
            sessions::account_id.eq(account.stored()),
            sessions::created_at.eq(session.created_at.as_millis()),
            sessions::expires_at.eq(session.expires_at.as_millis()),
            sessions::network.eq(session.network.as_str()),
            sessions::client.eq(session.client.as_deref()),
            sessions::last_used_at.eq(session.created_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Ends every session of the principal's account but its own.
pub(crate) async fn end_others(connection: &mut Connection, principal: &SessionPrincipal) -> Result<(), Failure> {
    let others = sessions_of!(principal).filter(sessions::id.ne(principal.session.stored()));
    diesel::delete(others).execute(connection).await?;
    Ok(())
}

impl Decision for EndSession {
    /// Whether the account has such a live session.
    type Held = bool;
    type Outcome = bool;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<bool, Failure> {
        let Principal::Session(principal) = &command.principal else { return Err(Denial::InsufficientRole.into()) };
        authorize_and_lock_both_sessions(&connection.tx(), principal, command.act.session, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, is_live: bool) -> Decided<bool> {
        let Some(organization) = command.principal.organization().filter(|_| is_live) else {
            return Ok(Verdict::Refused(false));
        };
        diesel::delete(
            sessions::table
                .filter(sessions::organization_id.eq(organization.stored()))
                .filter(sessions::id.eq(command.act.session.stored())),
        )
        .execute(connection)
        .await?;
        Ok(Verdict::Done(true))
    }
}

#[derive(Queryable)]
struct SessionRow {
    id: Column<SessionId>,
    created_at: i64,
    expires_at: i64,
    network: String,
    client: Option<String>,
    last_used_at: Option<i64>,
}

async fn list(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    now: Timestamp,
) -> Result<Vec<StoredSession>, Failure> {
    authorize_session(&connection.tx(), principal, now).await?;
    let rows: Vec<SessionRow> = sessions_of!(principal)
        .filter(sessions::expires_at.gt(now.as_millis()))
        .order((sessions::created_at.desc(), sessions::id))
        .select((
            sessions::id,
            sessions::created_at,
            sessions::expires_at,
            sessions::network,
            sessions::client,
            sessions::last_used_at,
        ))
        .load(connection)
        .await?;
    rows.into_iter().map(|row| row.decode(principal)).collect()
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

async fn note_uses(connection: &mut Connection, uses: &[SessionUse]) -> Decided<()> {
    for used in uses {
        let at = used.at.as_millis();
        let earlier = sessions::last_used_at.is_null().or(sessions::last_used_at.lt(at));
        update(
            sessions::table
                .filter(sessions::organization_id.eq(used.organization.stored()))
                .filter(sessions::id.eq(used.session.stored()))
                .filter(earlier),
        )
        .set(sessions::last_used_at.eq(at))
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(()))
}
