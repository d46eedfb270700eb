//! Writing the signed fields of an account.

use super::{NewAccount, SignedAccount};
use crate::audit::{Affected, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::digest::Digest;
use crate::operation::{Failure, Unit};
use crate::passcode::TimeStep;
use crate::sealed::{SealedPassword, SealedSeed};

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

/// Signs and stores a new account. Returns what the entry records.
///
/// # Errors
/// [`Failure::Overtaken`] if the loaded instance key is not the active one.
pub(crate) async fn insert_account(
    unit: &Unit<'_>,
    signed: &SignedAccount,
    (password, seed, recovery_codes): (SealedPassword, SealedSeed, Vec<Digest>),
    last_step: TimeStep,
) -> Result<Affected, Failure> {
    let (signed, digest, created_at) = (signed.clone(), signed.digest(unit.digester()), unit.now());
    unit.require_active_key(digest.key).await?;
    let new = NewAccount { signed, digest, password, seed, recovery_codes, last_step, created_at };
    unit.rows().insert_account(&new).await?;
    let (grant, state) = (&new.signed.grant, new.signed.state(unit.digester()));
    let role = AuditChange::new(ChangedField::Role, None, Some(grant.role.to_string()));
    Ok(Subject::Account(grant.account).left(RecordedRow::Account, state).changing([role]))
}
