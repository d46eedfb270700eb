//! Rows of organizations, in addition to their documents.

use super::credentials::count;
use super::{TxRows, erasure, lock_all, logins, several, then};
use crate::schema::{
    account_logins, account_notices, attempt_classes, check_requests, entities, event_deliveries, global_lookups,
    hourly_counts, lookups, organizations, receiver_status, recovery_codes, sessions,
};
use crate::stored::StoredId as _;
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into};
use futures_util::try_join;
use vault_core::entity::Kind;
use vault_core::id::OrganizationId;
use vault_core::port::{OrganizationRows, Reply};

impl OrganizationRows for TxRows<'_> {
    fn insert_organization(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let new = (
            organizations::id.eq(organization.stored()),
            organizations::credentials.eq(0),
            organizations::key_uses.eq(0),
        );
        then(self.tx.execute(insert_into(organizations::table).values(new)), |_| Ok(()))
    }

    fn key_uses(&self, organization: OrganizationId) -> Reply<'_, i64> {
        then(count::key_uses(&self.tx, organization), |uses| Ok(uses.unwrap_or_default()))
    }

    fn add_key_uses(&self, organization: OrganizationId, uses: i64) -> Reply<'_, ()> {
        then(count::add_key_uses(&self.tx, organization, uses), |_| Ok(()))
    }

    fn reset_key_uses(&self, organization: OrganizationId) -> Reply<'_, ()> {
        then(count::reset_key_uses(&self.tx, organization), |_| Ok(()))
    }

    fn end_sessions(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let own = sessions::table.filter(sessions::organization_id.eq(organization.stored()));
        then(self.tx.execute(delete(own)), |_| Ok(()))
    }

    fn remove_organization(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let of = organization.stored();
        several(async move {
            let tx = &self.tx;
            lock_all(tx, organization, Kind::Integration).await?;
            macro_rules! remove {
                ($($table:ident),* $(,)?) => {
                    $(tx.execute(delete($table::table.filter($table::organization_id.eq(of)))).await?;)*
                };
            }
            remove!(hourly_counts, check_requests, global_lookups, lookups, entities);
            logins::lock_all_of_organization(tx, organization).await?;
            remove!(sessions, account_notices, recovery_codes, attempt_classes, account_logins);
            remove!(event_deliveries, receiver_status);
            let own = delete(organizations::table.filter(organizations::id.eq(of)));
            try_join!(tx.execute(own), erasure::start(tx, organization))?;
            Ok(())
        })
    }
}
