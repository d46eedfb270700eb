//! Counts of actions per hour.

use super::{TxRows, several, then};
use crate::db::{Update, locked};
use crate::failure::Failure;
use crate::schema::hourly_counts;
use crate::stored::{IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::hourly::HourlyLimit;
use vault_core::id::OrganizationId;
use vault_core::port::{CounterRows, Reply};
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
fn row_of<'a>(organization: IdBytes, subject: &'a str) -> _ {
    hourly_counts::table
        .filter(hourly_counts::organization_id.eq(organization))
        .filter(hourly_counts::subject.eq(subject))
}

impl CounterRows for TxRows<'_> {
    fn lock_hourly_count(&self, organization: OrganizationId, subject: &str, now: Timestamp) -> Reply<'_, HourlyLimit> {
        let subject = subject.to_owned();
        several(async move {
            // Insert first, because a row that does not exist cannot be locked.
            let new = diesel::insert_into(hourly_counts::table)
                .values((
                    hourly_counts::organization_id.eq(organization.stored()),
                    hourly_counts::subject.eq(&subject),
                    hourly_counts::count.eq(0),
                    hourly_counts::since.eq(now.as_millis()),
                ))
                .on_conflict_do_nothing();
            self.tx.execute(new).await?;
            let columns = (hourly_counts::count, hourly_counts::since);
            let counted: Option<(i64, i64)> =
                self.tx.first(locked(row_of(organization.stored(), &subject).select(columns), Update)).await?;
            let (count, since) = counted.ok_or(diesel::NotFound)?;
            let damaged = |_| Failure::damaged("hourly_counts", organization.to_string(), "count");
            let count = u32::try_from(count).map_err(damaged)?;
            Ok(HourlyLimit { count, since: (count > 0).then_some(Timestamp::from_millis(since)) })
        })
    }

    fn set_hourly_count(&self, organization: OrganizationId, subject: &str, counted: HourlyLimit) -> Reply<'_, ()> {
        let change = diesel::update(row_of(organization.stored(), subject)).set((
            hourly_counts::count.eq(i64::from(counted.count)),
            hourly_counts::since.eq(counted.since.map_or(0, Timestamp::as_millis)),
        ));
        then(self.tx.execute(change), |_| Ok(()))
    }
}
