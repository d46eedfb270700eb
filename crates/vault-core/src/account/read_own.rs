//! The principal's own account.

use super::Account;
use crate::notice::StoredNotice;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::principal::{Denial, SessionPrincipal};
use futures_util::try_join;

/// An account as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// The account.
    pub account: Account,
    /// Number of unused recovery codes.
    pub recovery_codes_left: u32,
    /// Notices in any order. Expired notices may be included.
    pub notices: Vec<StoredNotice>,
}

/// Reads the account of a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOwnAccount(pub SessionPrincipal);

impl Operation for ReadOwnAccount {
    type Outcome = OwnAccount;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<OwnAccount, Failure> {
        let (rows, place) = (unit.rows(), (self.0.organization, self.0.account));
        let (account, recovery_codes_left, notices, ()) = try_join!(
            unit.find::<Account>(place.0, *place.1.as_uuid()),
            flat(rows.count_recovery_codes(place)),
            flat(rows.notices(place)),
            unit.authorize(),
        )?;
        let account = account.ok_or(Denial::AccountChanged)?.into_value();
        Ok(OwnAccount { account, recovery_codes_left, notices })
    }
}
