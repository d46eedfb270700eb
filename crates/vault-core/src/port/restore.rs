//! Port for the steps after a restore of an earlier state.

use super::StoreError;
use crate::command::Command;
use crate::passcode::TimeStep;
use async_trait::async_trait;

/// Revokes what a restored state would reactivate: all sessions, recovery codes, active activations, and TOTP secrets
/// and enrolments that are pending confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishRestore {
    /// New restore epoch. Servers that start after this refuse access tokens of another epoch.
    pub epoch: u64,
    /// Passcodes of this and earlier time steps are marked as used, for every account.
    pub step: TimeStep,
    /// Whether open enrolment codes are also revoked, because the restored state does not show which of them were used
    /// or withdrawn since.
    pub ends_invitations: bool,
}

/// Numbers of revoked objects after a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of recovery codes.
    pub recovery_codes: u64,
    /// Number of activations.
    pub activations: u64,
    /// Number of invitations and enrolment codes.
    pub invitations: u64,
}

/// Port for the restore epoch, and for the steps after a restore.
#[async_trait]
pub trait RestoreRepository: Send + Sync {
    /// Returns the restore epoch, which is 0 before the first restore.
    async fn restore_epoch(&self) -> Result<u64, StoreError>;

    /// Finishes a restore. Returns `None` and changes nothing if the store has the same or a later epoch. Only an
    /// operator may call it.
    async fn finish_restore(&self, command: Command<FinishRestore>) -> Result<Option<Settled>, StoreError>;
}
