//! Finishing a login attempt in one transaction, based on the current rows. A refusal executes the same number of
//! statements and locks, whether an account has the address or not, and whatever the reason.

use super::super::Transaction;
use super::super::account::lookup::wrong_passcodes;
use super::super::account::recovery_codes::{self, recovery_codes_of};
use super::super::account::row::{SignedRow, account_of, sign};
use super::super::account::{notices, pending_seed};
use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize_and_lock_account, lock_organization};
use super::super::instance_key::require_active;
use super::attempts::Classes;
use super::decoys::{self, Part};
use crate::db::{Share, Tx, Update, locked};
use crate::failure::Failure;
use crate::rows::sessions;
use crate::schema::{account_logins, accounts, recovery_codes as codes};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::{AccountRights, SignedAccount};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::WrongPasscodes;
use vault_core::notice::NoticeCode;
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    AttemptOutcome, FinishAccountAttempt, FinishAttempt, LoginRefusal, OwnChange, ProofEffect, VerifiedFactors,
    VerifiedProof,
};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::proof::{ProofFacts, ProofOutcome, RefusedProof, conclude_proof};
use vault_core::sealed::SealedPassword;
use vault_core::time::Timestamp;

#[auto_type(no_type_alias)]
pub(crate) fn logins_of(organization: IdBytes, account: IdBytes) -> _ {
    account_logins::table
        .filter(account_logins::organization_id.eq(organization))
        .filter(account_logins::account_id.eq(account))
}

impl Transaction for FinishAttempt {
    type Outcome = AttemptOutcome;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<AttemptOutcome, Failure> {
        match self {
            Self::Account(proof) => conclude(tx, proof, audit).await,
            // Repeats on decoys what a refusal does on an account.
            Self::Decoy { decoy, recovery_code, entry } => {
                decoys::lock_account(tx, *decoy).await?;
                decoys::lock_logins(tx, *decoy).await?;
                if let Some(code) = recovery_code {
                    let nonexistent = (OrganizationId::from_bytes([0; 16]), AccountId::from_bytes([0; 16]));
                    lock_recovery_code(tx, nonexistent, code).await?;
                }
                decoys::write(tx, Part::Logins, *decoy, entry.record.at).await?;
                decoys::record(tx, *decoy, entry).await?;
                audit.commit_without_entry();
                Ok(AttemptOutcome::Refused(LoginRefusal::UnknownAddress))
            }
        }
    }
}

async fn conclude(
    tx: &Tx<'_>,
    command: &FinishAccountAttempt,
    audit: &mut AuditRecorder,
) -> Result<AttemptOutcome, Failure> {
    let grant = &command.reserved.grant;
    // A refusal discloses none of these facts, so none of its statements depends on them.
    require_active(tx, command.presented.instance_keys()).await?;
    let owner = authorize_owner(tx, command).await?;
    let account = lock_account(tx, command).await?;
    let logins = lock_logins(tx, grant).await?;
    let recovery_code_stored = match command.presented.recovery_code() {
        Some(code) => lock_recovery_code(tx, (grant.organization, grant.account), &code).await?,
        None => false,
    };
    let (last_step, wrong_passcodes) = logins.unwrap_or((TimeStep(i64::MAX), WrongPasscodes::default()));
    let facts = ProofFacts { account, last_step, wrong_passcodes, recovery_code_stored };
    match conclude_proof(command, &facts, owner) {
        ProofOutcome::Done(proof) => {
            complete(tx, command, proof).await?;
            audit.record(tx, &proof.audit).await?;
            Ok(AttemptOutcome::Completed)
        }
        ProofOutcome::Refused(refused) => {
            refuse(tx, command, &refused, audit).await?;
            Ok(refused.conclusion)
        }
    }
}

/// Authorizes a change of the principal's own account, and locks the account.
async fn authorize_owner(tx: &Tx<'_>, command: &FinishAccountAttempt) -> Result<Result<(), Denial>, Failure> {
    let VerifiedFactors::Proof(proof) = &command.presented else { return Ok(Ok(())) };
    let ProofEffect::Own { principal, .. } = &proof.effect else { return Ok(Ok(())) };
    match authorize_and_lock_account(tx, principal, command.now).await {
        Ok(()) => Ok(Ok(())),
        Err(Failure::Denied(denial)) => Ok(Err(denial)),
        Err(failure) => Err(failure),
    }
}

/// Locks organization and account. Returns `None` if one of them does not exist, or the organization is disabled.
async fn lock_account(tx: &Tx<'_>, command: &FinishAccountAttempt) -> Result<Option<SignedAccount>, Failure> {
    let grant = &command.reserved.grant;
    let is_active = lock_organization(tx, grant.organization).await?;
    let row = account_of(grant.organization.stored(), grant.account.stored()).select(SignedRow::as_select());
    let rehashed = matches!(&command.presented, VerifiedFactors::Proof(proof) if proof.rehashed.is_some());
    let row = match rehashed {
        true => tx.first(locked(row, Update)),
        false => tx.first(locked(row, Share)),
    };
    let account = row.await?.map(SignedRow::decode).transpose()?;
    Ok(account.filter(|_| is_active))
}

/// Locks the latest step that was used, and the wrong passcodes. Returns `None` if the account does not exist.
async fn lock_logins(tx: &Tx<'_>, grant: &AccountRights) -> Result<Option<(TimeStep, WrongPasscodes)>, Failure> {
    let row = logins_of(grant.organization.stored(), grant.account.stored()).select((
        account_logins::last_step,
        account_logins::wrong_passcodes,
        account_logins::wrong_at,
    ));
    let row: Option<(i64, i64, Option<i64>)> = tx.first(locked(row, Update)).await?;
    let Some((last_step, wrong, wrong_at)) = row else { return Ok(None) };
    Ok(Some((TimeStep(last_step), wrong_passcodes(grant.account, wrong, wrong_at)?)))
}

/// Locks a recovery code. Returns whether it is stored.
async fn lock_recovery_code(
    tx: &Tx<'_>,
    (organization, account): (OrganizationId, AccountId),
    code: &Digest,
) -> Result<bool, Failure> {
    let row = recovery_codes_of(organization.stored(), account.stored())
        .filter(codes::code.eq(code.as_bytes().as_slice()))
        .select(codes::account_id);
    Ok(tx.first::<AnyId, _>(locked(row, Update)).await?.is_some())
}

/// Records a refusal, also if the account no longer exists: the refusal happened.
async fn refuse(
    tx: &Tx<'_>,
    command: &FinishAccountAttempt,
    refused: &RefusedProof<'_>,
    audit: &mut AuditRecorder,
) -> Result<(), Failure> {
    let FinishAccountAttempt { reserved: SignedAccount { grant, .. }, now, .. } = command;
    let WrongPasscodes { count, latest } = refused.wrong_passcodes;
    let logins = diesel::update(logins_of(grant.organization.stored(), grant.account.stored())).set((
        account_logins::wrong_passcodes.eq(i64::from(count)),
        account_logins::wrong_at.eq(latest.map(Timestamp::as_millis)),
        account_logins::refused_at.eq(now.as_millis()),
    ));
    tx.execute(logins).await?;
    for record in &refused.records {
        audit.record(tx, record).await?;
    }
    // Here, where the account is locked, and not with the reservation, which locks the bucket. A notice locks its
    // account, and a transaction that unlocks buckets locks the account before them.
    for notice in &refused.notices {
        notices::leave(tx, grant.organization, grant.account, *notice, *now).await?;
    }
    audit.commit_without_entry();
    Ok(())
}

async fn complete(tx: &Tx<'_>, command: &FinishAccountAttempt, proof: &VerifiedProof) -> Result<(), Failure> {
    let FinishAccountAttempt { reserved: SignedAccount { grant, .. }, network, now, .. } = command;
    let (organization, account) = (grant.organization, grant.account);
    spend(tx, command, proof).await?;
    Classes { organization, account }.record_login(tx, network, *now).await?;
    if let Some(SealedPassword { blob: rehashed, .. }) = &proof.rehashed {
        let row = diesel::update(account_of(organization.stored(), account.stored()));
        tx.execute(row.set(accounts::password.eq(rehashed.as_bytes()))).await?;
    }
    match &proof.effect {
        ProofEffect::Session(session) => sessions::insert(tx, organization, account, session).await?,
        ProofEffect::Own { principal, change } => return change_own(tx, principal, change).await,
    };
    Ok(())
}

/// Spends the passcode or the recovery code, and records a login as the account's last.
async fn spend(tx: &Tx<'_>, command: &FinishAccountAttempt, proof: &VerifiedProof) -> Result<(), Failure> {
    let (grant, now) = (&command.reserved.grant, command.now);
    let (organization, account) = (grant.organization.stored(), grant.account.stored());
    if let ProofEffect::Session(_) = proof.effect {
        let logins = diesel::update(logins_of(organization, account));
        tx.execute(logins.set(account_logins::last_login_at.eq(now.as_millis()))).await?;
    }
    match proof.passcode {
        PasscodeProof::Step(step) => {
            let logins = diesel::update(logins_of(organization, account));
            tx.execute(logins.set(account_logins::last_step.eq(step.0))).await?;
        }
        PasscodeProof::RecoveryCode(code) => {
            let spent = recovery_codes_of(organization, account).filter(codes::code.eq(code.as_bytes().as_slice()));
            tx.execute(diesel::delete(spent)).await?;
            notices::leave(tx, grant.organization, grant.account, NoticeCode::RecoveryCodeUsed, now).await?;
        }
    }
    Ok(())
}

async fn change_own(tx: &Tx<'_>, principal: &SessionPrincipal, change: &OwnChange) -> Result<(), Failure> {
    let SessionPrincipal { organization, account, .. } = *principal;
    match change {
        OwnChange::PendingSeed(pending) => return pending_seed::put(tx, organization, account, pending).await,
        OwnChange::Password { password, after, digest } => {
            let row = diesel::update(account_of(organization.stored(), account.stored()));
            tx.execute(row.set(accounts::password.eq(password.blob.as_bytes()))).await?;
            sign(tx, after, digest).await?;
        }
        OwnChange::RecoveryCodes { seed, codes, after, digest } => {
            let row = diesel::update(account_of(organization.stored(), account.stored()));
            tx.execute(row.set(accounts::seed.eq(seed.blob.as_bytes()))).await?;
            recovery_codes::replace(tx, organization, account, codes).await?;
            // It has the previous key of the recovery codes.
            pending_seed::delete(tx, organization, account).await?;
            sign(tx, after, digest).await?;
        }
    }
    sessions::end_others(tx, principal).await?;
    Ok(())
}
