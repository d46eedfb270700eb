//! Looking accounts up by their addresses.

use crate::digest::Digest;
use crate::port::{AccountKey, AccountRepository, FindAccount, FoundAccount, StoreError};
use crate::principal::Principal;
use crate::time::Timestamp;

/// The account or invitation whose address has the digest `address`, for an operator.
pub(super) async fn as_operator(
    accounts: &dyn AccountRepository,
    address: Digest,
    now: Timestamp,
) -> Result<Option<FoundAccount>, StoreError> {
    let query = FindAccount { authority: Principal::Operator, key: AccountKey::Address(address), now };
    // An operator is refused nothing.
    Ok(accounts.find_account(query).await?.unwrap_or_default())
}

/// Whether an account or an open invitation has the address.
pub(super) async fn is_taken(
    accounts: &dyn AccountRepository,
    address: Digest,
    now: Timestamp,
) -> Result<bool, StoreError> {
    Ok(match as_operator(accounts, address, now).await? {
        None => false,
        Some(FoundAccount::Account(_)) => true,
        Some(FoundAccount::Invitation(stored)) => stored.invitation.is_open(now),
    })
}
