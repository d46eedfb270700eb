//! Sessions.

use super::super::authorize::{judge_and_take_session, judge_holder};
use super::super::backend::{Connection, RunQuery, Store, narrow};
use super::super::{Decided, Verdict, audit};
use crate::failure::Failure;
use crate::schema::sessions;
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::port::{EndSession, ListSessions, SessionRepository, StoreError};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

#[async_trait]
impl SessionRepository for Store {
    async fn end_session(&self, command: EndSession) -> Result<Result<bool, Denial>, StoreError> {
        self.write(command, |connection, command| Box::pin(end(connection, command))).await
    }

    async fn list_sessions(&self, query: ListSessions) -> Result<Result<Vec<NewSession>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(list(connection, query))).await
    }
}

/// The sessions of the account of a principal.
macro_rules! sessions_of {
    ($principal:expr) => {
        sessions::table
            .filter(sessions::organization_id.eq($principal.organization.text()))
            .filter(narrow!(sessions::account_id.eq($principal.account.text())))
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
            sessions::organization_id.eq(organization.text()),
            sessions::id.eq(session.id.text()),
            sessions::account_id.eq(account.text()),
            sessions::created_at.eq(session.created_at.as_millis()),
            sessions::expires_at.eq(session.expires_at.as_millis()),
            sessions::network.eq(session.network.as_str()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Ends every session of the principal's account but its own.
pub(crate) async fn end_others(connection: &mut Connection, principal: &SessionPrincipal) -> Result<(), Failure> {
    let others = sessions_of!(principal).filter(sessions::id.ne(principal.session.text()));
    diesel::delete(others).execute(connection).await?;
    Ok(())
}

async fn end(connection: &mut Connection, command: &EndSession) -> Decided<Result<bool, Denial>> {
    let EndSession { principal, session, now, audit: entry } = command;
    match judge_and_take_session(connection, principal, *session, *now).await? {
        Ok(true) => {}
        refused_or_not_there => return Ok(Verdict::Undo(refused_or_not_there)),
    }
    diesel::delete(
        sessions::table
            .filter(sessions::organization_id.eq(principal.organization.text()))
            .filter(sessions::id.eq(session.text())),
    )
    .execute(connection)
    .await?;
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(Ok(true)))
}

async fn list(connection: &mut Connection, query: &ListSessions) -> Result<Result<Vec<NewSession>, Denial>, Failure> {
    if let Err(refusal) = judge_holder(connection, &query.principal, query.now).await? {
        return Ok(Err(refusal));
    }
    let rows: Vec<(Read<SessionId>, i64, i64, String)> = sessions_of!(query.principal)
        .filter(sessions::expires_at.gt(query.now.as_millis()))
        .order((sessions::created_at.desc(), sessions::id))
        .select((sessions::id, sessions::created_at, sessions::expires_at, sessions::network))
        .load(connection)
        .await?;
    let decode = |(id, created_at, expires_at, network): (Read<SessionId>, i64, i64, String)| {
        let id = id.sound("sessions", &query.principal.account, "id")?;
        let (created_at, expires_at) = (Timestamp::from_millis(created_at), Timestamp::from_millis(expires_at));
        Ok(NewSession { id, created_at, expires_at, network })
    };
    Ok(Ok(rows.into_iter().map(decode).collect::<Result<_, Failure>>()?))
}
