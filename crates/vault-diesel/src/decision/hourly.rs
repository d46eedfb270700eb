//! What may be done only so often within an hour.

use super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::hourly_counts;
use crate::stored::StoredId as _;
use crate::update::update;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::hourly::HourlyLimit;
use vault_core::id::OrganizationId;
use vault_core::time::Timestamp;

/// What addresses in use are counted as.
pub(crate) const ADDRESS_CONFLICTS: &str = "address conflicts";
/// What requested checks are counted as.
pub(crate) const CHECKS: &str = "checks";

macro_rules! row_of {
    ($organization:expr, $subject:expr) => {
        hourly_counts::table
            .filter(hourly_counts::organization_id.eq($organization.stored()))
            .filter(hourly_counts::subject.eq($subject))
    };
}

/// Takes the count, which then nobody else changes.
pub(crate) async fn hold(
    connection: &mut Connection,
    organization: OrganizationId,
    subject: &str,
    now: Timestamp,
) -> Result<HourlyLimit, Failure> {
    // A row that is not there yet could not be taken.
    diesel::insert_into(hourly_counts::table)
        .values((
            hourly_counts::organization_id.eq(organization.stored()),
            hourly_counts::subject.eq(subject),
            hourly_counts::count.eq(0),
            hourly_counts::since.eq(now.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let counted = row_of!(organization, subject).select((hourly_counts::count, hourly_counts::since));
    let (count, since): (i64, i64) = for_update!(counted).get_result(connection).await?;
    let damaged = |_| Failure::damaged("hourly_counts", organization.to_string(), "count");
    let count = u32::try_from(count).map_err(damaged)?;
    Ok(HourlyLimit { count, since: (count > 0).then_some(Timestamp::from_millis(since)) })
}

/// Counts one more than what is held.
pub(crate) async fn count(
    connection: &mut Connection,
    organization: OrganizationId,
    subject: &str,
    held: HourlyLimit,
    now: Timestamp,
) -> Result<(), Failure> {
    let counted = held.plus_one(now);
    update(row_of!(organization, subject))
        .set((
            hourly_counts::count.eq(i64::from(counted.count)),
            hourly_counts::since.eq(counted.since.unwrap_or(now).as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
