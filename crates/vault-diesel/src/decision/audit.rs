//! The audit trail.

use super::backend::{Connection, RunQuery, Store};
use super::{Decided, Verdict};
use crate::failure::Failure;
use crate::schema::audit;
use crate::stored::ToIdText as _;
use async_trait::async_trait;
use diesel::ExpressionMethods as _;
use vault_core::audit::SealedAuditRecord;
use vault_core::port::{AuditLog, StoreError};

#[async_trait]
impl AuditLog for Store {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.write(records, |connection, records| Box::pin(append(connection, records))).await
    }
}

async fn append(connection: &mut Connection, records: &[SealedAuditRecord]) -> Decided<()> {
    for entry in records {
        record(connection, entry).await?;
    }
    Ok(Verdict::Keep(()))
}

/// Appends one entry; part of the decision that it records.
pub(super) async fn record(connection: &mut Connection, entry: &SealedAuditRecord) -> Result<(), Failure> {
    let SealedAuditRecord { record, key, code } = entry;
    diesel::insert_into(audit::table)
        .values((
            audit::id.eq(record.id.text()),
            audit::at.eq(record.at.as_millis()),
            audit::organization_id.eq(record.organization.map(|id| id.text())),
            audit::actor.eq(record.actor.kind()),
            audit::account_id.eq(record.actor.account().map(|id| id.text())),
            audit::session_id.eq(record.actor.session().map(|id| id.text())),
            audit::action.eq(record.action.as_str()),
            audit::subject.eq(record.subject.text()),
            audit::count.eq(record.count),
            audit::key_id.eq(key.text()),
            audit::code.eq(code.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
