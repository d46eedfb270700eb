//! Attempts: reserved before anything is hashed, and what their refusal leaves.

use super::super::account::directory::look_up_account;
use super::super::account::notices;
use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::{Decided, Verdict, audit};
use super::attempts::{Classes, count_unknown, note_refusal_of_unknown};
use super::proof::complete;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, organizations};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::lockout::{CLOSING_ATTEMPTS, WRONG_PASSCODES};
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    CompleteProof, CompleteProofOutcome, LoginGuard, RefuseAttempt, RefusedAccount, Reservation, ReserveAttempt,
    ReservedAccount, StoreError,
};
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};

/// The wrong passcode that disables the time-based ones.
const DISABLING: i64 = WRONG_PASSCODES as i64;

#[async_trait]
impl LoginGuard for Store {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.write(command, |connection, command| Box::pin(reserve(connection, command))).await
    }

    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError> {
        self.write(command, |connection, command| Box::pin(refuse(connection, command))).await
    }

    async fn complete_proof(&self, command: CompleteProof) -> Result<CompleteProofOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(complete(connection, command))).await
    }
}

async fn reserve(connection: &mut Connection, command: &ReserveAttempt) -> Decided<Reservation> {
    let Some((organization, account)) = look_up_account(connection, &command.address).await? else {
        return Ok(match count_unknown(connection, command.bucket, command.now).await? {
            true => Verdict::Recorded(Reservation::Unknown),
            false => Verdict::Undo(Reservation::TurnedAway { account: None }),
        });
    };
    let classes = Classes { organization, account };
    let Some(attempts) = classes.count(connection, &command.network, command.now).await? else {
        return Ok(Verdict::Undo(Reservation::TurnedAway { account: Some((organization, account)) }));
    };
    let reserved = read_reserved(connection, organization, account, attempts).await?;
    if attempts == CLOSING_ATTEMPTS {
        notices::leave(connection, organization, account, NoticeCode::AttemptsClosed, command.now).await?;
    }
    Ok(Verdict::Recorded(Reservation::Account(Box::new(reserved))))
}

async fn read_reserved(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    attempts: u32,
) -> Result<ReservedAccount, Failure> {
    type Row = (
        Read<OrganizationState>,
        Read<EmailAddress>,
        Read<Role>,
        Read<AccountState>,
        Read<Digest>,
        Read<Blob>,
        i64,
        Read<SeedId>,
        Read<Blob>,
    );
    const TABLE: &str = "accounts";
    let row: Option<Row> = accounts::table
        .inner_join(organizations::table.on(organizations::id.eq(accounts::organization_id)))
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .select((
            organizations::state,
            accounts::email,
            accounts::role,
            accounts::state,
            accounts::grant_digest,
            accounts::password,
            accounts::password_version,
            accounts::seed_id,
            accounts::seed,
        ))
        .get_result(connection)
        .await
        .optional()?;
    let (organization_state, email, role, state, digest, password, password_version, seed_id, seed) =
        row.ok_or_else(|| Failure::damaged("directory", account.to_string(), "leads to no account"))?;
    Ok(ReservedAccount {
        grant: AccountGrant {
            account,
            organization,
            email: email.sound(TABLE, &account, "email")?,
            role: role.sound(TABLE, &account, "role")?,
            state: state.sound(TABLE, &account, "state")?,
        },
        grant_digest: digest.sound(TABLE, &account, "grant_digest")?,
        organization_state: organization_state.sound("organizations", &organization, "state")?,
        password: SealedPassword(password.sound(TABLE, &account, "password")?),
        password_version,
        seed: SealedSeed { id: seed_id.sound(TABLE, &account, "seed_id")?, blob: seed.sound(TABLE, &account, "seed")? },
        attempts,
    })
}

async fn refuse(connection: &mut Connection, command: &RefuseAttempt) -> Decided<()> {
    match command {
        RefuseAttempt::Unknown { bucket, now } => note_refusal_of_unknown(connection, *bucket, *now).await?,
        RefuseAttempt::Account(refused) => refuse_account(connection, refused).await?,
    }
    Ok(Verdict::Recorded(()))
}

async fn refuse_account(connection: &mut Connection, refused: &RefusedAccount) -> Result<(), Failure> {
    let RefusedAccount { organization, account, now, audit: entry, class_closed, wrong_passcode } = refused;
    let wrong = i64::from(wrong_passcode.is_some());
    let counted = count_wrong_passcodes(connection, *organization, *account, wrong).await?;
    let disabled = wrong_passcode.as_ref().filter(|_| counted == Some(DISABLING));
    // Also if the account is gone by now: the refusal happened.
    audit::record(connection, entry).await?;
    if let Some(entry) = class_closed {
        audit::record(connection, entry).await?;
    }
    if let Some(entry) = disabled {
        notices::leave(connection, *organization, *account, NoticeCode::PasscodeDisabled, *now).await?;
        audit::record(connection, entry).await?;
    }
    Ok(())
}

/// How many passcodes were wrong, `more` included. Where there are none to count the row is written as it stands: a
/// wrong password takes the database as many statements as a wrong passcode does.
async fn count_wrong_passcodes(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    more: i64,
) -> Result<Option<i64>, Failure> {
    let login = account_logins::table
        .filter(account_logins::organization_id.eq(organization.text()))
        .filter(account_logins::account_id.eq(account.text()));
    let before: Option<i64> =
        for_update!(login.select(account_logins::wrong_passcodes)).get_result(connection).await.optional()?;
    let Some(before) = before else { return Ok(None) };
    let counted = before.saturating_add(more);
    diesel::update(login).set(account_logins::wrong_passcodes.eq(counted)).execute(connection).await?;
    Ok(Some(counted))
}
