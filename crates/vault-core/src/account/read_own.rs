//! The principal's own account.

use super::SignedAccount;
use crate::id::OrganizationId;
use crate::notice::StoredNotice;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::principal::{Denial, SessionPrincipal};
use crate::time::Timestamp;

/// An account as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// Fields that the row's MAC covers.
    pub signed: SignedAccount,
    /// Time since which its TOTP secret is in use.
    pub passcode_enrolled_at: Timestamp,
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
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<OwnAccount, Failure> {
        let own = unit.authorized(unit.rows().own_account((self.0.organization, self.0.account))).await?;
        own.ok_or_else(|| Denial::AccountChanged.into())
    }
}
