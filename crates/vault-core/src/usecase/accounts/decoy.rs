//! The decoy account, on which attempts are evaluated that have no account.

use super::Accounts;
use crate::account::{AccountRights, AccountState, SignedAccount};
use crate::email::EmailAddress;
use crate::error::Error;
use crate::id::{AccountId, OrganizationId};
use crate::login::ReservedAccount;
use crate::port::SealError;
use crate::role::Role;
use crate::sealed::{Blob, SealedPassword};
use std::sync::{Arc, PoisonError};

/// Has the length of typical addresses. Logins with it fail: an attempt on the decoy account is always refused.
const EMAIL: &str = "nobody@decoy.invalid";

impl Accounts {
    /// Returns the decoy account. It is not a row of any table: its TOTP secret is random, and its password is the
    /// hasher's decoy. It is recreated after the instance key was replaced, so that it is decrypted like other
    /// accounts.
    pub(super) fn decoy(&self) -> Result<Arc<ReservedAccount>, Error> {
        // No code panics in the middle of a change while it has the lock, so a poisoned value is consistent.
        let mut held = self.decoy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decoy) = held.as_ref().filter(|decoy| decoy.digest.key == self.digester.active_key()) {
            return Ok(Arc::clone(decoy));
        }
        Ok(Arc::clone(held.insert(Arc::new(self.new_decoy()?))))
    }

    fn new_decoy(&self) -> Result<ReservedAccount, Error> {
        let email = EmailAddress::parse(EMAIL).map_err(|invalid| SealError::Fault(invalid.0.into()))?;
        let (account, organization) = (AccountId::from_bytes([0; 16]), OrganizationId::from_bytes([0; 16]));
        let seed = self.passcodes.new_seed(account, &email)?.sealed;
        let grant = AccountRights { account, organization, email, role: Role::Viewer, state: AccountState::Active };
        let signed = SignedAccount::new(grant, SignedAccount::NO_PASSWORD, seed.id);
        let digest = signed.digest(&*self.digester);
        let password = SealedPassword { id: signed.password, blob: Blob::from_bytes(Vec::new()) };
        Ok(ReservedAccount { signed, digest, password, seed, attempts: 0 })
    }
}
