//! The two decisions of a login.

use super::accounts::look_up;
use super::attempts::{Classes, count_unknown};
use super::backend::{Connection, RunQuery, Store, for_share, for_update};
use super::{Decided, Verdict, audit};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, organizations, recovery_codes, sessions};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::{AccountGrant, AccountState};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::organization::OrganizationState;
use vault_core::passcode::PasscodeProof;
use vault_core::port::{
    CompleteLogin, CompleteLoginOutcome, LoginGuard, RefuseAttempt, Reservation, ReserveAttempt, ReservedAccount,
    StoreError,
};
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};

#[async_trait]
impl LoginGuard for Store {
    async fn reserve_attempt(&self, command: ReserveAttempt) -> Result<Reservation, StoreError> {
        self.write(command, |connection, command| Box::pin(reserve(connection, command))).await
    }

    async fn refuse_attempt(&self, command: RefuseAttempt) -> Result<(), StoreError> {
        self.write(command, |connection, command| Box::pin(refuse(connection, command))).await
    }

    async fn complete_login(&self, command: CompleteLogin) -> Result<CompleteLoginOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(complete(connection, command))).await
    }
}

async fn reserve(connection: &mut Connection, command: &ReserveAttempt) -> Decided<Reservation> {
    let Some((organization, account)) = look_up(connection, &command.address).await? else {
        return Ok(match count_unknown(connection, command.bucket, command.now).await? {
            true => Verdict::Keep(Reservation::Unknown),
            false => Verdict::Undo(Reservation::TurnedAway { account: None }),
        });
    };
    if !(Classes { organization, account }).count(connection, &command.network, command.now).await? {
        return Ok(Verdict::Undo(Reservation::TurnedAway { account: Some((organization, account)) }));
    }
    let reserved = read_reserved(connection, organization, account).await?;
    Ok(Verdict::Keep(Reservation::Account(Box::new(reserved))))
}

async fn read_reserved(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
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
    })
}

async fn refuse(connection: &mut Connection, command: &RefuseAttempt) -> Decided<()> {
    if command.wrong_passcode {
        diesel::update(
            account_logins::table
                .filter(account_logins::organization_id.eq(command.organization.text()))
                .filter(account_logins::account_id.eq(command.account.text())),
        )
        .set(account_logins::wrong_passcodes.eq(account_logins::wrong_passcodes + 1))
        .execute(connection)
        .await?;
    }
    // Also if the account is gone by now: the refusal happened.
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Keep(()))
}

async fn complete(connection: &mut Connection, command: &CompleteLogin) -> Decided<CompleteLoginOutcome> {
    if !is_as_reserved(connection, command).await? {
        return Ok(Verdict::Undo(CompleteLoginOutcome::Overtaken));
    }
    if !spend(connection, command).await? {
        return Ok(Verdict::Undo(CompleteLoginOutcome::PasscodeSpent));
    }
    let AccountGrant { organization, account, .. } = command.grant;
    Classes { organization, account }.forgive(connection, &command.network, command.now).await?;
    if let Some(SealedPassword(rehashed)) = &command.rehashed {
        diesel::update(
            accounts::table
                .filter(accounts::organization_id.eq(organization.text()))
                .filter(accounts::id.eq(account.text())),
        )
        .set(accounts::password.eq(rehashed.as_bytes()))
        .execute(connection)
        .await?;
    }
    diesel::insert_into(sessions::table)
        .values((
            sessions::organization_id.eq(organization.text()),
            sessions::id.eq(command.session.id.text()),
            sessions::account_id.eq(account.text()),
            sessions::created_at.eq(command.session.created_at.as_millis()),
            sessions::expires_at.eq(command.session.expires_at.as_millis()),
            sessions::network.eq(command.session.network.as_str()),
        ))
        .execute(connection)
        .await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Keep(CompleteLoginOutcome::Completed))
}

/// Whether organization and account still say what the login was decided on. They then stay so.
async fn is_as_reserved(connection: &mut Connection, command: &CompleteLogin) -> Result<bool, Failure> {
    type Row = (Read<EmailAddress>, Read<Role>, Read<AccountState>, i64, Read<SeedId>);
    let AccountGrant { organization, account, .. } = command.grant;
    let state: Option<Read<OrganizationState>> =
        for_share!(organizations::table.filter(organizations::id.eq(organization.text())).select(organizations::state))
            .get_result(connection)
            .await
            .optional()?;
    let Some(state) = state else { return Ok(false) };
    if state.sound("organizations", &organization, "state")? != OrganizationState::Active {
        return Ok(false);
    }
    let row = accounts::table
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .select((accounts::email, accounts::role, accounts::state, accounts::password_version, accounts::seed_id));
    let row: Option<Row> = match command.rehashed {
        Some(_) => for_update!(row).get_result(connection).await,
        None => for_share!(row).get_result(connection).await,
    }
    .optional()?;
    let Some((email, role, state, password_version, seed)) = row else { return Ok(false) };
    let grant = AccountGrant {
        account,
        organization,
        email: email.sound("accounts", &account, "email")?,
        role: role.sound("accounts", &account, "role")?,
        state: state.sound("accounts", &account, "state")?,
    };
    Ok(grant == command.grant
        && grant.state == AccountState::Active
        && password_version == command.password_version
        && seed.sound("accounts", &account, "seed_id")? == command.seed)
}

/// Spends the proof. `false`: it was spent before, or time-based passcodes are disabled.
async fn spend(connection: &mut Connection, command: &CompleteLogin) -> Result<bool, Failure> {
    let (organization, account) = (command.grant.organization.text(), command.grant.account.text());
    let login = account_logins::table
        .filter(account_logins::organization_id.eq(organization))
        .filter(account_logins::account_id.eq(account));
    let last_login = account_logins::last_login_at.eq(command.now.as_millis());
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
            diesel::update(login).set(last_login).execute(connection).await?;
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
