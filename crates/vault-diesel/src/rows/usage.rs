//! Counts of audit entries of integrations.

use crate::db::Db;
use crate::failure::Failure;
use crate::stored::{Column, Id, IdBytes, StoredId as _};
use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text};
use vault_core::audit::AuditAction;
use vault_core::id::{AuditId, IntegrationId, OrganizationId};
use vault_core::integration::{CountedPeriod, HourlyActions, IntegrationActions};
use vault_core::namespace::Namespace;

use vault_core::time::Timestamp;

const TABLE: &str = "audit";

/// The sealed entries of an organization's integrations since a time, in parts of `millis`, of the integrations between two IDs.
/// The index of the organization's entries leads to the first one.
#[derive(Clone, Copy, Debug, QueryId)]
struct Entries {
    organization: IdBytes,
    from: IdBytes,
    integrations: [IdBytes; 2],
    since: i64,
    millis: i64,
}

impl Entries {
    fn of(organization: OrganizationId, period: CountedPeriod, millis: i64) -> Self {
        let CountedPeriod { since, integration } = period;
        let (organization, from) = (organization.stored(), AuditId::first_at(since).stored());
        let all = || [0, u8::MAX].map(|byte| IntegrationId::from_bytes([byte; 16]));
        let integrations = integration.map_or_else(all, |one| [one; 2]).map(|id| id.stored());
        Self { organization, from, integrations, since: since.as_millis(), millis }
    }

    /// Writes a query with these columns, the number of the part, the count, and more aggregates.
    fn walk<'b>(
        &'b self,
        out: &mut AstPass<'_, 'b, Db>,
        columns: &str,
        aggregates: &str,
        grouped: &str,
    ) -> QueryResult<()> {
        out.push_sql("SELECT ");
        out.push_sql(columns);
        out.push_sql(", (at - ");
        out.push_bind_param::<BigInt, _>(&self.since)?;
        out.push_sql(") / ");
        out.push_bind_param::<BigInt, _>(&self.millis)?;
        // The sum of a BIGINT is NUMERIC on PostgreSQL.
        out.push_sql(", CAST(sum(audit.count) AS BIGINT)");
        out.push_sql(aggregates);
        out.push_sql(" FROM audit WHERE audit.organization_id = ");
        out.push_bind_param::<Id, _>(&self.organization)?;
        out.push_sql(" AND audit.id >= ");
        out.push_bind_param::<Id, _>(&self.from)?;
        for (comparison, id) in
            [" AND integration_id >= ", " AND integration_id <= "].into_iter().zip(&self.integrations)
        {
            out.push_sql(comparison);
            out.push_bind_param::<Id, _>(id)?;
        }
        out.push_sql(" AND checkpoint IS NOT NULL GROUP BY ");
        out.push_sql(grouped);
        Ok(())
    }
}

/// The entries by integration, namespace, action and day.
#[derive(Clone, Copy, Debug, QueryId)]
pub(super) struct ByDay(Entries);

impl ByDay {
    pub(super) fn of(organization: OrganizationId, period: CountedPeriod) -> Self {
        Self(Entries::of(organization, period, 24 * HOUR_MILLIS))
    }
}

impl Query for ByDay {
    type SqlType = (Id, Nullable<Text>, Text, BigInt, BigInt, BigInt, BigInt);
}

impl QueryFragment<Db> for ByDay {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.0.walk(&mut out, "integration_id, namespace, action", ", min(at), max(at)", "1, 2, 3, 4")
    }
}

/// The entries by action and hour.
#[derive(Clone, Copy, Debug, QueryId)]
pub(super) struct ByHour(Entries);

impl ByHour {
    pub(super) fn of(organization: OrganizationId, period: CountedPeriod) -> Self {
        Self(Entries::of(organization, period, HOUR_MILLIS))
    }
}

impl Query for ByHour {
    type SqlType = (Text, BigInt, BigInt);
}

impl QueryFragment<Db> for ByHour {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Db>) -> QueryResult<()> {
        self.0.walk(&mut out, "action", "", "1, 2")
    }
}

const HOUR_MILLIS: i64 = 3_600_000;

pub(super) type DayRow = (Column<IntegrationId>, Option<Column<Namespace>>, String, i64, i64, i64, i64);

fn decode(of: OrganizationId, action: AuditAction, row: DayRow) -> Result<IntegrationActions, Failure> {
    let (integration, namespace, _, day, count, first_at, last_at) = row;
    Ok(IntegrationActions {
        integration: integration.decode(TABLE, &of, "integration_id")?,
        namespace: namespace.map(|namespace| namespace.decode(TABLE, &of, "namespace")).transpose()?,
        action,
        day,
        count,
        first_at: Timestamp::from_millis(first_at),
        last_at: Timestamp::from_millis(last_at),
    })
}

pub(super) fn decode_days(of: OrganizationId, rows: Vec<DayRow>) -> Result<Vec<IntegrationActions>, Failure> {
    let known = rows.into_iter().filter_map(|row| Some((AuditAction::parse(&row.2)?, row)));
    known.map(|(action, row)| decode(of, action, row)).collect()
}

pub(super) fn decode_hours(rows: Vec<(String, i64, i64)>) -> Vec<HourlyActions> {
    let known = |(action, hour, count): (String, i64, i64)| {
        AuditAction::parse(&action).map(|action| HourlyActions { action, hour, count })
    };
    rows.into_iter().filter_map(known).collect()
}
