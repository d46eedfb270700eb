//! The last active admin of an organization.

use super::super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::accounts;
use crate::stored::{Read, ToIdText as _};
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::principal::SessionPrincipal;
use vault_core::role::{Action, Role};

/// What a grant is read from.
pub(crate) type GrantRow = (Read<AccountId>, Read<EmailAddress>, Read<Role>, Read<AccountState>);

/// The grant of a row.
pub(crate) fn grant(organization: OrganizationId, row: GrantRow) -> Result<AccountGrant, Failure> {
    const TABLE: &str = "accounts";
    let (account, email, role, state) = row;
    let account = account.sound(TABLE, &"unknown", "id")?;
    Ok(AccountGrant {
        account,
        organization,
        email: email.sound(TABLE, &account, "email")?,
        role: role.sound(TABLE, &account, "role")?,
        state: state.sound(TABLE, &account, "state")?,
    })
}

/// Takes the accounts on which a change by an admin rests: the admin's own, the one to be changed, and every
/// active admin. By id, so that admins who change each other wait for each other in one order and the later finds
/// what the earlier has done. How many active admins there are beside the one to be changed.
pub(crate) async fn take(
    connection: &mut Connection,
    admin: &SessionPrincipal,
    target: AccountId,
) -> Result<u64, Failure> {
    let managing: Vec<&str> =
        Role::ALL.into_iter().filter(|role| role.permits(Action::ManageAccounts)).map(Role::as_str).collect();
    let rows: Vec<GrantRow> = for_update!(
        accounts::table
            .filter(accounts::organization_id.eq(admin.organization.text()))
            .filter(
                accounts::id
                    .eq_any([admin.account.text(), target.text()])
                    .or(accounts::state.eq(AccountState::Active.as_str()).and(accounts::role.eq_any(managing))),
            )
            .order(accounts::id)
            .select((accounts::id, accounts::email, accounts::role, accounts::state))
    )
    .load(connection)
    .await?;
    let mut others = 0;
    for row in rows {
        let grant = grant(admin.organization, row)?;
        others += u64::from(grant.account != target && grant.is_active_admin());
    }
    Ok(others)
}
