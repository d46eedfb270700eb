//! Counting credentials across all organizations, a slice of the primary key at a time.

use super::super::backend::{Connection, Database, PLACE, RunQuery};
use crate::failure::Failure;
use crate::schema::organization_keys;
use crate::stored::{Id, IdBytes, StoredId as _};
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Text};
use diesel::{ExpressionMethods as _, QueryDsl as _, QueryResult};
use uuid::Uuid;
use vault_core::credential_counts::{Checked, CountedCredentials, EXPIRY_BOUNDS};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{CountCredentials, CountedSlice};
use vault_core::sealed::KeyState;

/// The statement that counts a slice: how often each group occurs, and the last place of its rows. A group's number has
/// the check and, times three, how many bounds are before the expiry. Expiries that were not read yet count as none.
#[derive(Clone, Copy, Debug, QueryId)]
struct Count {
    bounds: [i64; EXPIRY_BOUNDS],
    organization: IdBytes,
    id: IdBytes,
    limit: i64,
}

impl Query for Count {
    type SqlType = (BigInt, BigInt, Text);
}

impl<C> diesel::RunQueryDsl<C> for Count {}

impl QueryFragment<Database> for Count {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Database>) -> QueryResult<()> {
        out.push_sql("SELECT alike, count(*), max(place) FROM (SELECT CAST(3 * (CASE");
        for (number, bound) in (0..).zip(&self.bounds) {
            out.push_sql(" WHEN expires_at <= ");
            out.push_bind_param::<BigInt, _>(bound)?;
            out.push_sql(" THEN ");
            out.push_sql(DIGITS.get(number).copied().unwrap_or_default());
        }
        out.push_sql(" ELSE 5 END) + (CASE WHEN checked_at IS NULL THEN 0 WHEN check_failed IS NULL THEN 1 ELSE 2 END) AS BIGINT)");
        out.push_sql(" AS alike, ");
        out.push_sql(PLACE);
        out.push_sql(" AS place FROM credentials WHERE (organization_id, id) > (");
        out.push_bind_param::<Id, _>(&self.organization)?;
        out.push_sql(", ");
        out.push_bind_param::<Id, _>(&self.id)?;
        out.push_sql(") ORDER BY organization_id, id LIMIT ");
        out.push_bind_param::<BigInt, _>(&self.limit)?;
        out.push_sql(") AS slice GROUP BY alike");
        Ok(())
    }
}

/// As many as there are bounds.
const DIGITS: [&str; EXPIRY_BOUNDS] = ["0", "1", "2", "3", "4"];

pub(super) async fn count(connection: &mut Connection, query: &CountCredentials) -> Result<CountedSlice, Failure> {
    // No organization has the nil id.
    let nil = (OrganizationId::from_bytes([0; 16]), CredentialId::from_bytes([0; 16]));
    let (organization, id) = query.after.unwrap_or(nil);
    let statement = Count {
        bounds: query.bounds.moments().map(|moment| moment.as_millis()),
        organization: organization.stored(),
        id: id.stored(),
        limit: i64::try_from(query.limit).unwrap_or(i64::MAX),
    };
    let rows: Vec<(i64, i64, String)> = statement.load(connection).await?;
    let mut counted = CountedSlice::default();
    for (alike, credentials, place) in rows {
        let damaged = || Failure::damaged("credentials", place.clone(), "id");
        let (organization, id) = place.split_at_checked(place.len() / 2).ok_or_else(damaged)?;
        let organization = OrganizationId::from_uuid(Uuid::try_parse(organization).map_err(|_| damaged())?);
        let id = CredentialId::from_uuid(Uuid::try_parse(id).map_err(|_| damaged())?);
        let alike = usize::try_from(alike).unwrap_or_default();
        let checked = Checked::ALL[alike % Checked::ALL.len()];
        let bounds_before = alike / Checked::ALL.len();
        let credentials = u64::try_from(credentials).unwrap_or_default();
        counted.groups.push(CountedCredentials { checked, bounds_before, credentials });
        counted.last = counted.last.max(Some((organization, id)));
    }
    Ok(counted)
}

pub(super) async fn most_key_uses(connection: &mut Connection) -> Result<i64, Failure> {
    let most: Option<i64> = organization_keys::table
        .filter(organization_keys::state.eq(KeyState::Active.as_str()))
        .select(diesel::dsl::max(organization_keys::uses))
        .get_result(connection)
        .await?;
    Ok(most.unwrap_or(0))
}
