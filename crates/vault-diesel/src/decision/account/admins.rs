//! The admins of an organization.

use super::super::backend::{Connection, RunQuery, for_update};
use super::row::{SignedRow, signed_columns};
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::StoredId as _;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::role::{Action, Role};

/// The admins besides the account to be changed.
pub(crate) struct OtherAdmins {
    /// How many of them are active.
    pub(crate) active: u64,
    /// All of them, whatever their state.
    pub(crate) all: Vec<AccountId>,
}

/// Takes the accounts on which a change by an admin rests: the admin's own, the one to be changed, and every
/// admin. By id, so that admins who change each other wait for each other in one order and the later finds
/// what the earlier has done.
pub(crate) async fn take(
    connection: &mut Connection,
    organization: OrganizationId,
    admin: AccountId,
    target: AccountId,
) -> Result<OtherAdmins, Failure> {
    let managing: Vec<&str> =
        Role::ALL.into_iter().filter(|role| role.permits(Action::ManageAccounts)).map(Role::as_str).collect();
    let rows: Vec<SignedRow> = for_update!(
        accounts::table
            .filter(accounts::organization_id.eq(organization.stored()))
            .filter(accounts::id.eq_any([admin.stored(), target.stored()]).or(accounts::role.eq_any(managing)),)
            .order(accounts::id)
            .select(signed_columns!())
    )
    .load(connection)
    .await?;
    let mut others = OtherAdmins { active: 0, all: Vec::new() };
    for row in rows {
        let grant = row.decode()?.grant;
        if grant.account != target && grant.role.permits(Action::ManageAccounts) {
            others.active += u64::from(grant.is_active_admin());
            others.all.push(grant.account);
        }
    }
    Ok(others)
}
