//! Concluding an attempt: judged on what the store holds now, then carried out or refused, in one decision. A refusal
//! takes as many statements and locks whether an account has the address or not, and whatever was wrong.

use super::super::account::accounts::replace_recovery_codes;
use super::super::account::lookup::wrong_passcodes;
use super::super::account::row::{SignedRow, row_of, sign, signed_columns};
use super::super::account::{notices, pending_seed};
use super::super::backend::{Connection, RunQuery, for_share, for_update};
use super::super::organization::keys::require_active;
use super::super::{Decided, Verdict, audit};
use super::attempts::Classes;
use super::decoys::{self, Part};
use super::sessions;
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, recovery_codes};
use crate::stored::{AnyId, StoredId as _};
use crate::transaction::authorize::{authorize_and_lock_account, lock_organization};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, SignedAccount};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::WrongPasscodes;
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    ConcludeProof, Conclusion, LoginRefusal, OwnChange, ProofEffect, VerifiedFactors, VerifiedProof,
};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::proof::{ProofFacts, ProofOutcome, RefusedProof, conclude_proof};
use vault_core::sealed::SealedPassword;
use vault_core::time::Timestamp;

macro_rules! logins_of {
    ($grant:expr) => {
        account_logins::table
            .filter(account_logins::organization_id.eq($grant.organization.stored()))
            .filter(account_logins::account_id.eq($grant.account.stored()))
    };
}

/// Does what [`conclude`] does to refuse, on decoys.
pub(crate) async fn conclude_decoy(
    connection: &mut Connection,
    decoy: u16,
    recovery_code: Option<&Digest>,
    entry: &SealedAuditRecord,
) -> Decided<Conclusion> {
    decoys::hold_account(connection, decoy).await?;
    decoys::take_logins(connection, decoy).await?;
    if let Some(code) = recovery_code {
        let nobody = (OrganizationId::from_bytes([0; 16]), AccountId::from_bytes([0; 16]));
        take_recovery_code(connection, nobody, code).await?;
    }
    decoys::write(connection, Part::Logins, decoy, entry.record.at).await?;
    decoys::record(connection, decoy, entry).await?;
    Ok(Verdict::RefusedOnRecord(Conclusion::Refused(LoginRefusal::UnknownAddress)))
}

pub(crate) async fn conclude(connection: &mut Connection, command: &ConcludeProof) -> Decided<Conclusion> {
    let grant = &command.reserved.grant;
    // None of them is known of a refusal, so none of its statements depends on them.
    require_active(connection, command.brought.instance_keys()).await?;
    let owner = judge_owner(connection, command).await?;
    let account = hold_account(connection, command).await?;
    let logins = take_logins(connection, grant).await?;
    let recovery_code_stored = match command.brought.recovery_code() {
        Some(code) => take_recovery_code(connection, (grant.organization, grant.account), &code).await?,
        None => false,
    };
    let (last_step, wrong_passcodes) = logins.unwrap_or((TimeStep(i64::MAX), WrongPasscodes::default()));
    let facts = ProofFacts { account, last_step, wrong_passcodes, recovery_code_stored };
    match conclude_proof(command, &facts, owner) {
        ProofOutcome::Done(proof) => {
            carry_out(connection, command, proof).await?;
            audit::record(connection, &proof.audit).await?;
            Ok(Verdict::Recorded(Conclusion::Completed))
        }
        ProofOutcome::Refused(refused) => {
            refuse(connection, command, &refused).await?;
            Ok(Verdict::RefusedOnRecord(refused.conclusion))
        }
    }
}

/// Judges who asks for a change of their own account, and takes the account.
async fn judge_owner(connection: &mut Connection, command: &ConcludeProof) -> Result<Result<(), Denial>, Failure> {
    let VerifiedFactors::Proof(proof) = &command.brought else { return Ok(Ok(())) };
    let ProofEffect::Own { principal, .. } = &proof.effect else { return Ok(Ok(())) };
    match authorize_and_lock_account(&connection.tx(), principal, command.now).await {
        Ok(()) => Ok(Ok(())),
        Err(Failure::Denied(denial)) => Ok(Err(denial)),
        Err(failure) => Err(failure),
    }
}

/// Holds organization and account. `None`: one of them is gone, or the organization is disabled.
async fn hold_account(connection: &mut Connection, command: &ConcludeProof) -> Result<Option<SignedAccount>, Failure> {
    let grant = &command.reserved.grant;
    let is_active = lock_organization(&connection.tx(), grant.organization).await?;
    let row = row_of!(grant).select(signed_columns!());
    let rehashed = matches!(&command.brought, VerifiedFactors::Proof(proof) if proof.rehashed.is_some());
    let row: Option<SignedRow> = match rehashed {
        true => for_update!(row).get_result(connection).await,
        false => for_share!(row).get_result(connection).await,
    }
    .optional()?;
    let account = row.map(SignedRow::decode).transpose()?;
    Ok(account.filter(|_| is_active))
}

/// Takes the latest step that was spent, and the wrong passcodes. `None`: the account is gone.
async fn take_logins(
    connection: &mut Connection,
    grant: &AccountGrant,
) -> Result<Option<(TimeStep, WrongPasscodes)>, Failure> {
    let row: Option<(i64, i64, Option<i64>)> = for_update!(logins_of!(grant).select((
        account_logins::last_step,
        account_logins::wrong_passcodes,
        account_logins::wrong_at
    )))
    .get_result(connection)
    .await
    .optional()?;
    let Some((last_step, wrong, wrong_at)) = row else { return Ok(None) };
    Ok(Some((TimeStep(last_step), wrong_passcodes(grant.account, wrong, wrong_at)?)))
}

/// Takes a recovery code. `false`: it is not stored.
async fn take_recovery_code(
    connection: &mut Connection,
    (organization, account): (OrganizationId, AccountId),
    code: &Digest,
) -> Result<bool, Failure> {
    let row = recovery_codes::table
        .filter(recovery_codes::organization_id.eq(organization.stored()))
        .filter(recovery_codes::account_id.eq(account.stored()))
        .filter(recovery_codes::code.eq(code.as_bytes().as_slice()));
    let there: Option<AnyId> =
        for_update!(row.select(recovery_codes::account_id)).get_result(connection).await.optional()?;
    Ok(there.is_some())
}

/// Records a refusal, also if the account is gone by now: the refusal happened.
async fn refuse(
    connection: &mut Connection,
    command: &ConcludeProof,
    refused: &RefusedProof<'_>,
) -> Result<(), Failure> {
    let ConcludeProof { reserved: SignedAccount { grant, .. }, now, .. } = command;
    let WrongPasscodes { count, latest } = refused.wrong_passcodes;
    update(logins_of!(grant))
        .set((
            account_logins::wrong_passcodes.eq(i64::from(count)),
            account_logins::wrong_at.eq(latest.map(Timestamp::as_millis)),
            account_logins::refused_at.eq(now.as_millis()),
        ))
        .execute(connection)
        .await?;
    for record in &refused.records {
        audit::record(connection, record).await?;
    }
    // Here, where the account is held, and not with the reservation, which holds the class: a notice holds its account, and
    // whoever lifts closed classes holds the account before them.
    for notice in &refused.notices {
        notices::leave(connection, grant.organization, grant.account, *notice, *now).await?;
    }
    Ok(())
}

async fn carry_out(connection: &mut Connection, command: &ConcludeProof, proof: &VerifiedProof) -> Result<(), Failure> {
    let ConcludeProof { reserved: SignedAccount { grant, .. }, network, now, .. } = command;
    let (organization, account) = (grant.organization, grant.account);
    spend(connection, command, proof).await?;
    Classes { organization, account }.note_login(connection, network, *now).await?;
    if let Some(SealedPassword(rehashed)) = &proof.rehashed {
        update(row_of!(grant)).set(accounts::password.eq(rehashed.as_bytes())).execute(connection).await?;
    }
    match &proof.effect {
        ProofEffect::Session(session) => sessions::insert(connection, organization, account, session).await,
        ProofEffect::Own { principal, change } => change_own(connection, principal, change).await,
    }
}

/// Spends the passcode; a login is noted as the account's last.
async fn spend(connection: &mut Connection, command: &ConcludeProof, proof: &VerifiedProof) -> Result<(), Failure> {
    let (grant, now) = (&command.reserved.grant, command.now);
    if let ProofEffect::Session(_) = proof.effect {
        update(logins_of!(grant)).set(account_logins::last_login_at.eq(now.as_millis())).execute(connection).await?;
    }
    match proof.passcode {
        PasscodeProof::Step(step) => {
            update(logins_of!(grant)).set(account_logins::last_step.eq(step.0)).execute(connection).await?;
        }
        PasscodeProof::RecoveryCode(code) => {
            diesel::delete(
                recovery_codes::table
                    .filter(recovery_codes::organization_id.eq(grant.organization.stored()))
                    .filter(recovery_codes::account_id.eq(grant.account.stored()))
                    .filter(recovery_codes::code.eq(code.as_bytes().as_slice())),
            )
            .execute(connection)
            .await?;
            notices::leave(connection, grant.organization, grant.account, NoticeCode::RecoveryCodeUsed, now).await?;
        }
    }
    Ok(())
}

async fn change_own(
    connection: &mut Connection,
    principal: &SessionPrincipal,
    change: &OwnChange,
) -> Result<(), Failure> {
    let SessionPrincipal { organization, account, .. } = *principal;
    match change {
        OwnChange::PendingSeed { seed, expires_at } => {
            return pending_seed::put(connection, organization, account, seed, *expires_at).await;
        }
        OwnChange::Password { password, after, digest } => {
            update(row_of!(principal)).set(accounts::password.eq(password.0.as_bytes())).execute(connection).await?;
            sign(connection, after, digest).await?;
        }
        OwnChange::RecoveryCodes(codes) => replace_recovery_codes(connection, organization, account, codes).await?,
    }
    sessions::end_others(connection, principal).await
}
