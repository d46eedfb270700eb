//! The row of an organization: the number of its credentials, and the uses of its key.

use crate::db::{Reply, Tx, Update, locked};
use crate::schema::organizations;
use crate::stored::{IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use vault_core::id::OrganizationId;

#[auto_type(no_type_alias)]
fn count_of(organization: IdBytes) -> _ {
    organizations::table.filter(organizations::id.eq(organization))
}

/// Locks the number of credentials. Returns `None` if the organization does not exist.
pub(crate) fn lock<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, Option<i64>> {
    tx.first(locked(count_of(organization.stored()).select(organizations::credentials), Update))
}

/// Returns the uses of the active key of an organization.
pub(crate) fn key_uses<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, Option<i64>> {
    tx.first(count_of(organization.stored()).select(organizations::key_uses))
}

/// Adds to the uses of the active key.
pub(crate) fn add_key_uses<'t>(tx: &'t Tx<'_>, organization: OrganizationId, uses: i64) -> Reply<'t, usize> {
    let own = diesel::update(count_of(organization.stored()));
    tx.execute(own.set(organizations::key_uses.eq(organizations::key_uses + uses)))
}

/// Forgets the uses of the active key.
pub(crate) fn reset_key_uses<'t>(tx: &'t Tx<'_>, organization: OrganizationId) -> Reply<'t, usize> {
    tx.execute(diesel::update(count_of(organization.stored())).set(organizations::key_uses.eq(0)))
}

/// Adds to the number of credentials.
pub(crate) fn add<'t>(tx: &'t Tx<'_>, organization: OrganizationId, change: i64) -> Reply<'t, usize> {
    let count = diesel::update(count_of(organization.stored()));
    tx.execute(count.set(organizations::credentials.eq(organizations::credentials + change)))
}
