//! Writing the signed fields of an account.

use super::SignedAccount;
use crate::audit::RowState;
use crate::operation::{Failure, Unit};

/// Signs and writes the next version of an account. Returns the state that the entry records.
///
/// # Errors
/// [`Failure::Overtaken`] if the loaded instance key is not the active one.
pub(crate) async fn sign_account(unit: &Unit<'_>, signed: &SignedAccount) -> Result<RowState, Failure> {
    let digest = signed.digest(unit.digester());
    unit.require_active_key(digest.key).await?;
    unit.rows().sign_account(signed, &digest).await?;
    Ok(signed.state(unit.digester()))
}
