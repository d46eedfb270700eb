//! The number of credentials of an organization.

use crate::db::{Reply, Tx, Update, locked};
use crate::schema::credential_counts;
use crate::stored::{IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::OrganizationId;

#[auto_type(no_type_alias)]
fn count_of(organization: IdBytes) -> _ {
    credential_counts::table.filter(credential_counts::organization_id.eq(organization))
}

/// Locks the number of credentials. Returns `None` if the organization does not exist.
pub(crate) fn lock<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, Option<i64>> {
    tx.first(locked(count_of(organization.stored()).select(credential_counts::credentials), Update))
}

/// Adds to the number of credentials.
pub(crate) fn add<'t>(tx: &'t Tx<'_>, organization: OrganizationId, change: i64) -> Reply<'t, usize> {
    let count = diesel::update(count_of(organization.stored()));
    tx.execute(count.set(credential_counts::credentials.eq(credential_counts::credentials + change)))
}
