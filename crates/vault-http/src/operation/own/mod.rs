//! `{base_url}/account`: operations of all users on their own accounts.

pub(super) mod change_password;
pub(super) mod confirm_passcode;
pub(super) mod end_session;
pub(super) mod list_sessions;
pub(super) mod replace_passcode;
pub(super) mod replace_recovery_codes;
pub(super) mod show;

use crate::call::Call;
use vault_api::ProofRequest;
use vault_core::usecase::OwnerProof;

/// Returns the re-authentication data of a request.
fn proof(call: &Call<'_>, request: ProofRequest) -> OwnerProof {
    let (password, passcode) = (request.password.into_secret(), request.passcode.into_secret());
    OwnerProof { password, passcode, network: call.network }
}
