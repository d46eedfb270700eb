//! Rows of organizations, in addition to their documents.

use super::{TxRows, erasure, lock_all, logins, several, then};
use crate::db::{self, Tx, Update, locked};
use crate::schema::{
    account_logins, account_notices, attempt_classes, check_requests, entities, event_deliveries, global_lookups,
    hourly_counts, lookups, organizations, receiver_status, recovery_codes, sessions,
};
use crate::stored::{IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into, update};
use futures_util::try_join;
use vault_core::entity::Kind;
use vault_core::id::OrganizationId;
use vault_core::port::{OrganizationRows, Reply};

#[auto_type(no_type_alias)]
fn row_of(organization: IdBytes) -> _ {
    organizations::table.filter(organizations::id.eq(organization))
}

/// Locks the number of credentials. Returns `None` if the organization does not exist.
pub(super) fn lock_count<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> db::Reply<'t, Option<i64>> {
    tx.first(locked(row_of(organization.stored()).select(organizations::credentials), Update))
}

/// Adds to the number of credentials.
pub(super) fn add_to_count<'t>(tx: &'t Tx<'_>, organization: OrganizationId, change: i64) -> db::Reply<'t, usize> {
    let count = organizations::credentials.eq(organizations::credentials + change);
    tx.execute(update(row_of(organization.stored())).set(count))
}

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
        let uses = self.tx.first(row_of(organization.stored()).select(organizations::key_uses));
        then(uses, |uses: Option<i64>| Ok(uses.unwrap_or_default()))
    }

    fn add_key_uses(&self, organization: OrganizationId, uses: i64) -> Reply<'_, ()> {
        let uses = organizations::key_uses.eq(organizations::key_uses + uses);
        then(self.tx.execute(update(row_of(organization.stored())).set(uses)), |_| Ok(()))
    }

    fn reset_key_uses(&self, organization: OrganizationId) -> Reply<'_, ()> {
        let uses = organizations::key_uses.eq(0);
        then(self.tx.execute(update(row_of(organization.stored())).set(uses)), |_| Ok(()))
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
            try_join!(tx.execute(delete(row_of(of))), erasure::start(tx, organization))?;
            Ok(())
        })
    }
}
