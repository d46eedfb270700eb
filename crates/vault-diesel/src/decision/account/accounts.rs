//! Accounts.

use super::super::backend::{Connection, RunQuery, Store};
use super::super::{Decided, Verdict, audit};
use super::change::change;
use super::directory;
use super::invitations::hold_presence;
use super::lookup::{find, list};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, attempt_classes, recovery_codes};
use crate::stored::{Read, ToIdText as _};
use async_trait::async_trait;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::account::{Account, AccountGrant};
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::passcode::TimeStep;
use vault_core::port::{
    AccountRepository, ChangeAccount, ChangeAccountOutcome, CreateAccount, CreateAccountOutcome, FindAccount,
    FoundAccount, ListAccounts, StoreError, StoredPasscode,
};
use vault_core::principal::Denial;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

/// The version of an account, and of its password, when it is made.
const FIRST_VERSION: i64 = 1;
/// The latest used step of a seed that was never used.
pub(crate) const NO_STEP: TimeStep = TimeStep(0);
/// The network of the class that all unknown networks share.
pub(crate) const SHARED_CLASS: &[u8] = &[];

#[async_trait]
impl AccountRepository for Store {
    async fn create_account(&self, command: CreateAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.write(command, |connection, command| Box::pin(create(connection, command))).await
    }

    async fn find_account(&self, query: FindAccount) -> Result<Result<Option<FoundAccount>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(find(connection, query))).await
    }

    async fn list_accounts(&self, query: ListAccounts) -> Result<Result<Vec<Account>, Denial>, StoreError> {
        self.read(query, |connection, query| Box::pin(list(connection, query))).await
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
    let CreateAccount { grant, address, created_at, .. } = command;
    if !hold_presence(connection, grant.organization).await? {
        return Ok(Verdict::Undo(CreateAccountOutcome::NoOrganization));
    }
    if !directory::enter(connection, address, grant.organization, grant.account, *created_at).await? {
        return Ok(Verdict::Undo(CreateAccountOutcome::AddressTaken));
    }
    let account = NewAccount {
        grant,
        grant_digest: &command.grant_digest,
        address,
        password: &command.password,
        seed: &command.seed,
        recovery_codes: &command.recovery_codes,
        last_step: NO_STEP,
        created_at: *created_at,
    };
    insert_account(connection, account).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(CreateAccountOutcome::Created))
}

/// An account to be stored, whose address stands in the directory already.
pub(crate) struct NewAccount<'command> {
    pub(crate) grant: &'command AccountGrant,
    pub(crate) grant_digest: &'command Digest,
    pub(crate) address: &'command Digest,
    pub(crate) password: &'command SealedPassword,
    pub(crate) seed: &'command SealedSeed,
    pub(crate) recovery_codes: &'command [Digest],
    /// The latest step that is spent.
    pub(crate) last_step: TimeStep,
    pub(crate) created_at: Timestamp,
}

/// Stores an account with all that every account has; part of the decision that makes it.
pub(crate) async fn insert_account(connection: &mut Connection, new: NewAccount<'_>) -> Result<(), Failure> {
    let (organization, account) = (new.grant.organization.text(), new.grant.account.text());
    diesel::insert_into(accounts::table)
        .values((
            accounts::organization_id.eq(organization),
            accounts::id.eq(account),
            accounts::address.eq(new.address.as_bytes().as_slice()),
            accounts::email.eq(new.grant.email.as_str()),
            accounts::role.eq(new.grant.role.as_str()),
            accounts::state.eq(new.grant.state.as_str()),
            accounts::grant_digest.eq(new.grant_digest.as_bytes().as_slice()),
            accounts::version.eq(FIRST_VERSION),
            accounts::password.eq(new.password.0.as_bytes()),
            accounts::password_version.eq(FIRST_VERSION),
            accounts::seed_id.eq(new.seed.id.text()),
            accounts::seed.eq(new.seed.blob.as_bytes()),
            accounts::created_at.eq(new.created_at.as_millis()),
            accounts::passcode_enrolled_at.eq(new.created_at.as_millis()),
        ))
        .execute(connection)
        .await?;
    diesel::insert_into(account_logins::table)
        .values((
            account_logins::organization_id.eq(organization),
            account_logins::account_id.eq(account),
            account_logins::last_step.eq(new.last_step.0),
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
    insert_recovery_codes(connection, new.grant.organization, new.grant.account, new.recovery_codes).await
}

/// Stores recovery codes in the place of those before; part of the decision that brings them.
pub(crate) async fn replace_recovery_codes(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    codes: &[Digest],
) -> Result<(), Failure> {
    diesel::delete(
        recovery_codes::table
            .filter(recovery_codes::organization_id.eq(organization.text()))
            .filter(recovery_codes::account_id.eq(account.text())),
    )
    .execute(connection)
    .await?;
    insert_recovery_codes(connection, organization, account, codes).await
}

async fn insert_recovery_codes(
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
    Ok(Verdict::Recorded(Some(StoredPasscode { seed, last_step: TimeStep(last_step) })))
}
