//! Counts of audit entries by integration and action.

use super::super::Read;
use super::super::authorize::authorize;
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::stored::{Column, Id, IdBytes, StoredId as _};
use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Text};
use vault_core::audit::AuditAction;
use vault_core::id::{AuditId, IntegrationId};
use vault_core::port::{Find, IntegrationActions};
use vault_core::time::Timestamp;

/// Counts the sealed entries of an organization's integrations from an ID on. The index of the organization's entries leads to
/// the first one.
#[derive(Clone, Copy, Debug, QueryId)]
struct Count {
    organization: IdBytes,
    from: IdBytes,
}

impl Query for Count {
    type SqlType = (Id, Text, BigInt, BigInt);
}

impl QueryFragment<Db> for Count {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        // The sum of a BIGINT is NUMERIC on PostgreSQL.
        out.push_sql(
            "SELECT integration_id, action, CAST(sum(audit.count) AS BIGINT), max(at) FROM audit WHERE audit.organization_id = ",
        );
        out.push_bind_param::<Id, _>(&self.organization)?;
        out.push_sql(" AND audit.id >= ");
        out.push_bind_param::<Id, _>(&self.from)?;
        out.push_sql(" AND checkpoint IS NOT NULL AND integration_id IS NOT NULL GROUP BY integration_id, action");
        Ok(())
    }
}

/// The entries of an organization's integrations, by integration and action.
pub(crate) struct CountActions(pub(crate) Find<AuditId>);

impl Read for CountActions {
    type Outcome = Vec<IntegrationActions>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<IntegrationActions>, Failure> {
        let Find { principal, of, key, now } = &self.0;
        authorize(tx, principal, *now).await?;
        let rows = tx.load::<(Column<IntegrationId>, String, i64, i64), _>(Count {
            organization: of.stored(),
            from: key.stored(),
        });
        let known = rows.await?.into_iter().filter_map(|row| Some((AuditAction::parse(&row.1)?, row)));
        known
            .map(|(action, (integration, _, count, last_at))| {
                let integration = integration.decode("audit", of, "integration_id")?;
                Ok(IntegrationActions { integration, action, count, last_at: Timestamp::from_millis(last_at) })
            })
            .collect()
    }
}
