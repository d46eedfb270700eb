//! `{base_url}/accounts`: operations of admins on their organization's accounts.

pub(super) mod change;
pub(super) mod delete;
pub(super) mod invite;
pub(super) mod list;
pub(super) mod re_enrol;
pub(super) mod unlock;

use super::NO_ID;
use crate::answer::time_text;
use crate::route::RequestPath;
use vault_api::AccountItem;
use vault_core::account::ListedAccount;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::AccountId;
use vault_core::role::Role;

/// Returns the account ID in the path. An invalid ID is handled like that of an account that does not exist.
fn account_id(place: RequestPath<'_>) -> AccountId {
    place.id().parse().unwrap_or(AccountId::from_bytes(NO_ID))
}

/// Parses the exact name of a role.
fn parse_role(text: &str) -> Result<Role, FieldError> {
    Role::parse(text).ok_or_else(|| FieldError::new("/role", FieldCode::OutOfRange, "must be admin, editor or viewer"))
}

/// Converts an account or invitation.
pub fn item(account: &ListedAccount) -> AccountItem {
    AccountItem {
        id: account.grant.account.to_string(),
        email: account.grant.email.to_string(),
        role: account.grant.role.as_str().to_owned(),
        state: account.grant.state.as_str().to_owned(),
        created_at: time_text(account.created_at),
        last_login_at: account.logins.last_login_at.map(time_text),
        locked: account.logins.is_locked(),
        locked_since: account.logins.locked_since().map(time_text),
        failed_logins: account.logins.attempts.attempts,
        last_failed_login_at: account.logins.last_refused_at.map(time_text),
        locked_until: account.logins.attempts.waits_until.map(time_text),
        login_closed: account.logins.attempts.closed,
        wrong_passcodes: account.logins.wrong_passcodes,
        passcode_disabled: account.logins.passcode_disabled(),
        invitation_expires_at: account.invitation_expires_at.map(time_text),
    }
}
