//! What must not come back with an earlier state of the store.

use super::StoreError;
use crate::command::Command;
use crate::passcode::TimeStep;
use async_trait::async_trait;

/// Ends what an earlier state of the store would bring back: every session, recovery code, live activation, and new seed or
/// enrolment that waits to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleRestore {
    /// The restore epoch from now on. Access tokens of another epoch are refused by servers that start after this.
    pub epoch: u64,
    /// Passcodes of this step and of earlier ones are spent, for every account.
    pub step: TimeStep,
    /// Whether open enrolment codes end too, because nobody knows which of them were used or withdrawn since.
    pub ends_invitations: bool,
}

/// What settling a restore ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// How many sessions.
    pub sessions: u64,
    /// How many recovery codes.
    pub recovery_codes: u64,
    /// How many activations.
    pub activations: u64,
    /// How many invitations and enrolment codes.
    pub invitations: u64,
}

/// The restore epoch, and the steps after a restore.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RestoreRepository: Send + Sync {
    /// The restore epoch: 0 until the first restore.
    async fn restore_epoch(&self) -> Result<u64, StoreError>;

    /// Settles a restore. `None`: the store has a later epoch, or the same; nothing was changed. Only an operator may.
    async fn settle_restore(&self, command: Command<SettleRestore>) -> Result<Option<Settled>, StoreError>;
}
