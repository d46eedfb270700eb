//! The admins of an organization.

use super::row::SignedRow;
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::StoredId as _;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::role::{Action, Role};

/// The admins other than the account to be changed.
pub(super) struct OtherAdmins {
    /// How many of them are active.
    pub(super) active: u64,
    /// All of them, whatever their state.
    pub(super) all: Vec<AccountId>,
}

/// Locks the accounts on which a change by an admin depends: the admin's own, the one to be changed, and every admin. They are
/// locked by id, so that admins who change each other are queued in one order, and the later one reads what the earlier one has
/// written.
pub(super) async fn lock(
    tx: &Tx<'_>,
    organization: OrganizationId,
    admin: AccountId,
    target: AccountId,
) -> Result<OtherAdmins, Failure> {
    let managing: Vec<&str> =
        Role::ALL.into_iter().filter(|role| role.permits(Action::ManageAccounts)).map(Role::as_str).collect();
    let concerned = accounts::id.eq_any([admin.stored(), target.stored()]).or(accounts::role.eq_any(managing));
    let rows = accounts::table
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(concerned)
        .order(accounts::id)
        .select(SignedRow::as_select());
    let mut others = OtherAdmins { active: 0, all: Vec::new() };
    for row in tx.load(locked(rows, Update)).await? {
        let grant = row.decode()?.grant;
        if grant.account != target && grant.role.permits(Action::ManageAccounts) {
            others.active += u64::from(grant.is_active_admin());
            others.all.push(grant.account);
        }
    }
    Ok(others)
}
