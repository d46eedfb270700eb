//! Sessions.

use super::backend::{Connection, RunQuery, Store};
use super::standing::{Judgement, judge_and_take};
use super::{Decided, Verdict, audit};
use crate::schema::sessions;
use crate::stored::ToIdText as _;
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::port::{EndSession, SessionRepository, StoreError};
use vault_core::principal::PrincipalRefusal;

#[async_trait]
impl SessionRepository for Store {
    async fn end_session(&self, command: EndSession) -> Result<Result<(), PrincipalRefusal>, StoreError> {
        self.write(command, |connection, command| Box::pin(end(connection, command))).await
    }
}

async fn end(connection: &mut Connection, command: &EndSession) -> Decided<Judgement> {
    if let Err(refusal) = judge_and_take(connection, &command.principal, command.now).await? {
        return Ok(Verdict::Undo(Err(refusal)));
    }
    diesel::delete(
        sessions::table
            .filter(sessions::organization_id.eq(command.principal.organization.text()))
            .filter(sessions::id.eq(command.principal.session.text())),
    )
    .execute(connection)
    .await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Keep(Ok(())))
}
