//! Accounts.

use super::account_change::change;
use super::backend::{Connection, RunQuery, Store, for_share};
use super::{Decided, Verdict, audit};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, attempt_classes, directory, organizations, recovery_codes};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::account::{Account, AccountGrant, AccountState};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::passcode::TimeStep;
use vault_core::port::{
    AccountRepository, ChangeAccount, ChangeAccountOutcome, CreateAccount, CreateAccountOutcome, StoreError,
    StoredPasscode,
};
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

/// The version of an account, and of its password, when it is made.
const FIRST_VERSION: i64 = 1;
/// The latest used step of a seed that was never used.
pub(super) const NO_STEP: i64 = 0;
/// The network of the class that all unknown networks share.
pub(super) const SHARED_CLASS: &[u8] = &[];

#[async_trait]
impl AccountRepository for Store {
    async fn create_account(&self, command: CreateAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(create(connection, command))).await
    }

    async fn find_account(&self, address: Digest) -> Result<Option<Account>, StoreError> {
        self.read(address, |connection, address| Box::pin(find(connection, address))).await
    }

    async fn list_accounts(&self, organization: Option<OrganizationId>) -> Result<Vec<Account>, StoreError> {
        self.read(organization, |connection, organization| Box::pin(list(connection, *organization))).await
    }

    async fn change_account(&self, command: ChangeAccount) -> Result<ChangeAccountOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(change(connection, command))).await
    }

    async fn read_passcode(
        &self,
        organization: OrganizationId,
        account: AccountId,
        audit: SealedAuditRecord,
    ) -> Result<Option<StoredPasscode>, StoreError> {
        self.write((organization, account, audit), |connection, (organization, account, audit)| {
            Box::pin(read_passcode(connection, *organization, *account, audit))
        })
        .await
    }
}

async fn create(connection: &mut Connection, command: &CreateAccount) -> Decided<CreateAccountOutcome> {
    let (organization, account) = (command.grant.organization.text(), command.grant.account.text());
    let there: Option<String> =
        for_share!(organizations::table.filter(organizations::id.eq(organization)).select(organizations::id))
            .get_result(connection)
            .await
            .optional()?;
    if there.is_none() {
        return Ok(Verdict::Undo(CreateAccountOutcome::NoOrganization));
    }
    let listed = diesel::insert_into(directory::table)
        .values((
            directory::address.eq(command.address.as_bytes().as_slice()),
            directory::organization_id.eq(organization),
            directory::account_id.eq(account),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    if listed == 0 {
        return Ok(Verdict::Undo(CreateAccountOutcome::AddressTaken));
    }
    diesel::insert_into(accounts::table)
        .values((
            accounts::organization_id.eq(organization),
            accounts::id.eq(account),
            accounts::address.eq(command.address.as_bytes().as_slice()),
            accounts::email.eq(command.grant.email.as_str()),
            accounts::role.eq(command.grant.role.as_str()),
            accounts::state.eq(command.grant.state.as_str()),
            accounts::grant_digest.eq(command.grant_digest.as_bytes().as_slice()),
            accounts::version.eq(FIRST_VERSION),
            accounts::password.eq(command.password.0.as_bytes()),
            accounts::password_version.eq(FIRST_VERSION),
            accounts::seed_id.eq(command.seed.id.text()),
            accounts::seed.eq(command.seed.blob.as_bytes()),
            accounts::created_at.eq(command.created_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    diesel::insert_into(account_logins::table)
        .values((
            account_logins::organization_id.eq(organization),
            account_logins::account_id.eq(account),
            account_logins::last_step.eq(NO_STEP),
            account_logins::wrong_passcodes.eq(0),
        ))
        .execute(connection)
        .await?;
    diesel::insert_into(attempt_classes::table)
        .values((
            attempt_classes::organization_id.eq(organization),
            attempt_classes::account_id.eq(account),
            attempt_classes::network.eq(SHARED_CLASS),
            attempt_classes::attempts.eq(0),
        ))
        .execute(connection)
        .await?;
    insert_recovery_codes(connection, command.grant.organization, command.grant.account, &command.recovery_codes)
        .await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Keep(CreateAccountOutcome::Created))
}

/// Stores recovery codes; part of the decision that brings them.
pub(super) async fn insert_recovery_codes(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    codes: &[Digest],
) -> Result<(), Failure> {
    for code in codes {
        diesel::insert_into(recovery_codes::table)
            .values((
                recovery_codes::organization_id.eq(organization.text()),
                recovery_codes::account_id.eq(account.text()),
                recovery_codes::code.eq(code.as_bytes().as_slice()),
            ))
            .execute(connection)
            .await?;
    }
    Ok(())
}

type AccountRow = (
    Read<OrganizationId>,
    Read<AccountId>,
    Read<EmailAddress>,
    Read<Role>,
    Read<AccountState>,
    Read<Digest>,
    i64,
    i64,
    Option<i64>,
);

macro_rules! accounts_with_logins {
    () => {
        accounts::table
            .inner_join(
                account_logins::table.on(account_logins::organization_id
                    .eq(accounts::organization_id)
                    .and(account_logins::account_id.eq(accounts::id))),
            )
            .select((
                accounts::organization_id,
                accounts::id,
                accounts::email,
                accounts::role,
                accounts::state,
                accounts::grant_digest,
                accounts::version,
                accounts::created_at,
                account_logins::last_login_at,
            ))
    };
}

fn decode(row: AccountRow) -> Result<Account, Failure> {
    const TABLE: &str = "accounts";
    let (organization, account, email, role, state, digest, version, created_at, last_login_at) = row;
    let account = account.sound(TABLE, &"unknown", "id")?;
    let grant = AccountGrant {
        account,
        organization: organization.sound(TABLE, &account, "organization_id")?,
        email: email.sound(TABLE, &account, "email")?,
        role: role.sound(TABLE, &account, "role")?,
        state: state.sound(TABLE, &account, "state")?,
    };
    Ok(Account {
        grant,
        grant_digest: digest.sound(TABLE, &account, "grant_digest")?,
        version,
        created_at: Timestamp::from_millis(created_at),
        last_login_at: last_login_at.map(Timestamp::from_millis),
    })
}

/// Where an address leads.
pub(super) async fn look_up(
    connection: &mut Connection,
    address: &Digest,
) -> Result<Option<(OrganizationId, AccountId)>, Failure> {
    let entry: Option<(Read<OrganizationId>, Read<AccountId>)> = directory::table
        .filter(directory::address.eq(address.as_bytes().as_slice()))
        .select((directory::organization_id, directory::account_id))
        .get_result(connection)
        .await
        .optional()?;
    let Some((organization, account)) = entry else { return Ok(None) };
    let account = account.sound("directory", &"unknown", "account_id")?;
    Ok(Some((organization.sound("directory", &account, "organization_id")?, account)))
}

async fn find(connection: &mut Connection, address: &Digest) -> Result<Option<Account>, Failure> {
    let Some((organization, account)) = look_up(connection, address).await? else { return Ok(None) };
    let row: Option<AccountRow> = accounts_with_logins!()
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .get_result(connection)
        .await
        .optional()?;
    let row = row.ok_or_else(|| Failure::damaged("directory", account.to_string(), "leads to no account"))?;
    Ok(Some(decode(row)?))
}

async fn list(connection: &mut Connection, organization: Option<OrganizationId>) -> Result<Vec<Account>, Failure> {
    let all = accounts_with_logins!().order((accounts::organization_id, accounts::email));
    let rows: Vec<AccountRow> = match organization {
        Some(id) => all.filter(accounts::organization_id.eq(id.text())).load(connection).await?,
        None => all.load(connection).await?,
    };
    rows.into_iter().map(decode).collect()
}

async fn read_passcode(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    entry: &SealedAuditRecord,
) -> Decided<Option<StoredPasscode>> {
    let row: Option<(Read<SeedId>, Read<Blob>, i64)> = accounts::table
        .inner_join(
            account_logins::table.on(account_logins::organization_id
                .eq(accounts::organization_id)
                .and(account_logins::account_id.eq(accounts::id))),
        )
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .select((accounts::seed_id, accounts::seed, account_logins::last_step))
        .get_result(connection)
        .await
        .optional()?;
    let Some((seed_id, seed, last_step)) = row else { return Ok(Verdict::Undo(None)) };
    let seed = SealedSeed {
        id: seed_id.sound("accounts", &account, "seed_id")?,
        blob: seed.sound("accounts", &account, "seed")?,
    };
    audit::record(connection, entry).await?;
    Ok(Verdict::Keep(Some(StoredPasscode { seed, last_step: TimeStep(last_step) })))
}
