//! The audit trail.

use super::backend::{Connection, RunQuery, Store};
use super::{Decided, Verdict};
use crate::failure::Failure;
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
    for sealed in records {
        record(connection, sealed).await?;
    }
    Ok(Verdict::Recorded(()))
}

/// The statement that appends one entry.
macro_rules! entry {
    ($sealed:expr) => {{
        use crate::schema::audit as columns;
        let vault_core::audit::SealedAuditRecord { record, key, code } = $sealed;
        diesel::insert_into(columns::table).values((
            columns::id.eq(record.id.text()),
            columns::at.eq(record.at.as_millis()),
            columns::organization_id.eq(record.organization.map(|id| id.text())),
            columns::actor.eq(record.actor.kind()),
            columns::account_id.eq(record.actor.account().map(|id| id.text())),
            columns::session_id.eq(record.actor.session().map(|id| id.text())),
            columns::action.eq(record.action.as_str()),
            columns::subject.eq(record.subject.text()),
            columns::count.eq(record.count),
            columns::key_id.eq(key.text()),
            columns::code.eq(code.as_bytes().as_slice()),
            columns::integration_id.eq(record.actor.integration().map(|id| id.text())),
            columns::namespace.eq(record.note.as_ref().map(|note| note.namespace.as_str())),
            columns::purpose.eq(record.note.as_ref().and_then(|note| note.purpose.as_ref()).map(|said| said.as_str())),
            columns::network.eq(record.note.as_ref().and_then(vault_core::audit::AuditNote::network_text)),
            columns::credentials.eq(record.note.as_ref().and_then(vault_core::audit::AuditNote::credentials_text)),
        ))
    }};
}

pub(crate) use entry;

/// Appends one entry; part of the decision that it records.
pub(crate) async fn record(connection: &mut Connection, sealed: &SealedAuditRecord) -> Result<(), Failure> {
    entry!(sealed).execute(connection).await?;
    Ok(())
}
