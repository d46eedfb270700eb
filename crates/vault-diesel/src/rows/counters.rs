//! Counts of actions per hour.

use super::{TxRows, several};
use crate::transaction::hourly;
use vault_core::hourly::HourlyLimit;
use vault_core::id::OrganizationId;
use vault_core::port::{CounterRows, Reply};
use vault_core::time::Timestamp;

impl CounterRows for TxRows<'_> {
    fn lock_hourly_count(&self, organization: OrganizationId, subject: &str, now: Timestamp) -> Reply<'_, HourlyLimit> {
        let subject = subject.to_owned();
        several(async move { hourly::lock(&self.tx, organization, &subject, now).await })
    }

    fn set_hourly_count(&self, organization: OrganizationId, subject: &str, counted: HourlyLimit) -> Reply<'_, ()> {
        let subject = subject.to_owned();
        several(async move { hourly::set(&self.tx, organization, &subject, counted).await })
    }
}
