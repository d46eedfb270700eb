//! The end of an attempt that was not counted.

use crate::audit::{Actor, AuditAction, Subject};
use crate::digest::Digest;
use crate::entity::OF_INSTANCE;
use crate::id::{AccountId, OrganizationId};
use crate::operation::{Access, Failure, Operation, Unit};
use futures_util::try_join;

/// ID that no account has.
pub(crate) const NO_ACCOUNT: AccountId = AccountId::from_bytes([0; 16]);

/// Finishes an attempt that was not counted: repeats on a decoy the statements, locks and computations of a refusal. Has
/// no effect and adds no audit entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishDecoy {
    /// Decoy of the address.
    pub decoy: u16,
    /// Digest of the presented recovery code, if any. Its lookup never succeeds.
    pub recovery_code: Option<Digest>,
    /// Actor in the entry of an equivalent refusal, which is written to the decoy instead.
    pub actor: Actor,
}

impl Operation for FinishDecoy {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(OF_INSTANCE)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let (rows, decoy) = (unit.rows(), self.decoy);
        let code = async {
            match &self.recovery_code {
                Some(code) => rows.lock_recovery_code((OF_INSTANCE, NO_ACCOUNT), code).await,
                None => Ok(false),
            }
        };
        try_join!(rows.decoy_organization(decoy), rows.lock_decoy_account(decoy), rows.lock_decoy_logins(decoy), code)?;
        rows.write_decoy_logins(decoy, unit.now()).await?;
        let subject = Subject::Account(NO_ACCOUNT).into();
        let entry = unit.seal_entry(self.actor, Some(OF_INSTANCE), AuditAction::LoginRefused, subject);
        rows.write_decoy_entry(decoy, &entry).await?;
        unit.commit_without_entry();
        Ok(())
    }
}
