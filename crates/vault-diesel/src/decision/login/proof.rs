//! Completing a proof that an account's owner is here, and what it is for.

use super::super::account::accounts::replace_recovery_codes;
use super::super::account::admins::{self, GrantRow};
use super::super::account::notices;
use super::super::account::pending_seed;
use super::super::authorize::{Judgement, hold_organization, judge_and_take_account};
use super::super::backend::{Connection, RunQuery, for_share, for_update};
use super::super::{Decided, Verdict, audit};
use super::attempts::Classes;
use super::sessions;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, recovery_codes};
use crate::stored::{Read, ToIdText as _};
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::id::SeedId;
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::notice::NoticeCode;
use vault_core::passcode::PasscodeProof;
use vault_core::port::{CompleteProof, CompleteProofOutcome, OwnChange, ProofEffect};
use vault_core::principal::{Denial, SessionPrincipal};
use vault_core::sealed::SealedPassword;

/// The account's own row.
macro_rules! row_of {
    ($owner:expr) => {
        accounts::table
            .filter(accounts::organization_id.eq($owner.organization.text()))
            .filter(accounts::id.eq($owner.account.text()))
    };
}

pub(crate) async fn complete(connection: &mut Connection, command: &CompleteProof) -> Decided<CompleteProofOutcome> {
    if let ProofEffect::Own { principal, .. } = &command.effect
        && let Err(refusal) = judge_owner(connection, command, principal).await?
    {
        return Ok(Verdict::Undo(CompleteProofOutcome::Refused(refusal)));
    }
    if !is_as_reserved(connection, command).await? {
        return Ok(Verdict::Undo(CompleteProofOutcome::Overtaken));
    }
    if !spend(connection, command).await? {
        return Ok(Verdict::Undo(CompleteProofOutcome::PasscodeSpent));
    }
    let AccountGrant { organization, account, .. } = command.grant;
    if matches!(command.proof, PasscodeProof::RecoveryCode(_)) {
        notices::leave(connection, organization, account, NoticeCode::RecoveryCodeUsed, command.now).await?;
    }
    Classes { organization, account }.forgive(connection, &command.network, command.now).await?;
    if let Some(SealedPassword(rehashed)) = &command.rehashed {
        diesel::update(row_of!(command.grant))
            .set(accounts::password.eq(rehashed.as_bytes()))
            .execute(connection)
            .await?;
    }
    match &command.effect {
        ProofEffect::Session(session) => sessions::insert(connection, organization, account, session).await?,
        ProofEffect::Own { principal, change } => change_own(connection, principal, change).await?,
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(CompleteProofOutcome::Completed))
}

/// Judges who asks for a change of their own account, and takes the account.
async fn judge_owner(
    connection: &mut Connection,
    command: &CompleteProof,
    principal: &SessionPrincipal,
) -> Result<Judgement, Failure> {
    let judgement = judge_and_take_account(connection, principal, command.now).await?;
    let same = principal.organization == command.grant.organization && principal.account == command.grant.account;
    Ok(judgement.and(if same { Ok(()) } else { Err(Denial::AccountChanged) }))
}

/// Whether organization and account still say what the proof was decided on. They then stay so.
async fn is_as_reserved(connection: &mut Connection, command: &CompleteProof) -> Result<bool, Failure> {
    if hold_organization(connection, command.grant.organization).await?.is_err() {
        return Ok(false);
    }
    let row = row_of!(command.grant).select((
        (accounts::id, accounts::email, accounts::role, accounts::state),
        accounts::password_version,
        accounts::seed_id,
    ));
    let row: Option<(GrantRow, i64, Read<SeedId>)> = match command.rehashed {
        Some(_) => for_update!(row).get_result(connection).await,
        None => for_share!(row).get_result(connection).await,
    }
    .optional()?;
    let Some((grant, password_version, seed)) = row else { return Ok(false) };
    let grant = admins::grant(command.grant.organization, grant)?;
    Ok(grant == command.grant
        && grant.state == AccountState::Active
        && password_version == command.password_version
        && seed.sound("accounts", &grant.account, "seed_id")? == command.seed)
}

/// Spends the proof. `false`: it was spent before, or time-based passcodes are disabled.
async fn spend(connection: &mut Connection, command: &CompleteProof) -> Result<bool, Failure> {
    let (organization, account) = (command.grant.organization.text(), command.grant.account.text());
    let login = account_logins::table
        .filter(account_logins::organization_id.eq(organization))
        .filter(account_logins::account_id.eq(account));
    let last_login = match command.effect {
        ProofEffect::Session(_) => Some(account_logins::last_login_at.eq(command.now.as_millis())),
        ProofEffect::Own { .. } => None,
    };
    let spent = match command.proof {
        PasscodeProof::Step(step) => {
            diesel::update(
                login
                    .filter(account_logins::last_step.lt(step.0))
                    .filter(account_logins::wrong_passcodes.lt(i64::from(WRONG_PASSCODES))),
            )
            .set((account_logins::last_step.eq(step.0), last_login))
            .execute(connection)
            .await?
        }
        PasscodeProof::RecoveryCode(code) => {
            if let Some(last_login) = last_login {
                diesel::update(login).set(last_login).execute(connection).await?;
            }
            diesel::delete(
                recovery_codes::table
                    .filter(recovery_codes::organization_id.eq(organization))
                    .filter(recovery_codes::account_id.eq(account))
                    .filter(recovery_codes::code.eq(code.as_bytes().as_slice())),
            )
            .execute(connection)
            .await?
        }
    };
    Ok(spent == 1)
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
        OwnChange::Password(password) => {
            diesel::update(row_of!(principal))
                .set((
                    accounts::password.eq(password.0.as_bytes()),
                    accounts::password_version.eq(accounts::password_version + 1),
                ))
                .execute(connection)
                .await?;
        }
        OwnChange::RecoveryCodes(codes) => replace_recovery_codes(connection, organization, account, codes).await?,
    }
    diesel::update(row_of!(principal)).set(accounts::version.eq(accounts::version + 1)).execute(connection).await?;
    sessions::end_others(connection, principal).await
}
