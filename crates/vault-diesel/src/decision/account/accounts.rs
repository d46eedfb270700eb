//! Accounts.

use super::super::backend::{Connection, RunQuery, Store};
use super::super::organization::keys::require_active;
use super::super::{Answer, Decided, Decision, Verdict, decide};
use super::invitations::hold_presence;
use super::row::row_of;
use super::{directory, invitation_row, lookup};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, attempt_classes, invitations, recovery_codes};
use crate::stored::{Column, StoredId as _};
use crate::transaction::authorize::authorize_and_lock;
use async_trait::async_trait;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::account::{ACCOUNT_LIMIT_REACHED, ListedAccount, MAX_ACCOUNTS, SignedAccount};
use vault_core::digest::{Digest, RowMac};
use vault_core::id::{AccountId, OrganizationId, SeedId};
use vault_core::passcode::TimeStep;
use vault_core::port::{
    AccountKey, AccountRepository, ChangeAccount, CreateAccount, Find, FoundAccount, List, ReadPasscode, StoreError,
    StoredPasscode,
};
use vault_core::principal::Scope;
use vault_core::sealed::{Blob, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

/// The latest used step of a seed that was never used.
pub(crate) const NO_STEP: TimeStep = TimeStep(0);
/// The network of the class that all unknown networks share.
pub(crate) const SHARED_CLASS: &[u8] = &[];

#[async_trait]
impl AccountRepository for Store {
    async fn create_account(&self, command: Command<CreateAccount>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn find_account(&self, query: Find<AccountKey, Scope>) -> Result<Option<FoundAccount>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(lookup::find(connection, query))
        })
        .await
    }

    async fn list_accounts(&self, query: List<(OrganizationId, AccountId)>) -> Result<Vec<ListedAccount>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(lookup::list(connection, query))
        })
        .await
    }

    async fn change_account(&self, command: Command<ChangeAccount>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn read_passcode(&self, command: Command<ReadPasscode>) -> Result<Option<StoredPasscode>, StoreError> {
        self.write(command, |connection, command| Box::pin(decide(connection, command))).await
    }
}

impl Decision for CreateAccount {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let Command { principal, now, act, .. } = command;
        let grant = &act.signed.grant;
        let blobs = [&act.password.0, &act.seed.blob];
        require_active(connection, blobs.into_iter().filter_map(Blob::key).chain([act.digest.key])).await?;
        if !principal.reaches(grant.organization) || !hold_presence(connection, grant.organization).await? {
            return Ok(Verdict::Refused(Err(Refusal::NoOrganization)));
        }
        let invited = invitation_row::hold_by_address(connection, &act.address, grant.organization).await?;
        if invited.as_ref().is_some_and(|held| held.invitation.is_open(*now)) {
            return Ok(Verdict::Refused(Err(Refusal::AddressTaken)));
        }
        if !has_room(connection, grant.organization).await? {
            return Ok(Verdict::Refused(Err(ACCOUNT_LIMIT_REACHED)));
        }
        if !directory::enter(connection, &act.address, grant.organization, grant.account).await? {
            return Ok(Verdict::Refused(Err(Refusal::AddressTaken)));
        }
        // An invitation that was made meanwhile has claimed the address before this one could enter it.
        let entered = directory::invitation_of(connection, &act.address, grant.organization).await?;
        if entered != invited.as_ref().map(|held| held.invitation.grant.account) {
            return Ok(Verdict::Undo(Err(Refusal::AddressTaken)));
        }
        if let Some(over) = invited {
            invitation_row::remove(connection, &over).await?;
        }
        let account = NewAccount {
            signed: &act.signed,
            digest: &act.digest,
            password: &act.password,
            seed: &act.seed,
            recovery_codes: &act.recovery_codes,
            last_step: NO_STEP,
            created_at: *now,
        };
        insert_account(connection, account).await?;
        Ok(Verdict::Done(Ok(())))
    }
}

/// Whether the organization may have one more account or invitation.
pub(crate) async fn has_room(connection: &mut Connection, organization: OrganizationId) -> Result<bool, Failure> {
    let there: i64 = accounts::table
        .filter(accounts::organization_id.eq(organization.stored()))
        .count()
        .get_result(connection)
        .await?;
    let invited: i64 = invitations::table
        .filter(invitations::organization_id.eq(organization.stored()))
        .filter(invitations::state.is_null())
        .count()
        .get_result(connection)
        .await?;
    Ok(there + invited < MAX_ACCOUNTS)
}

/// An account to be stored, whose address is in the directory already.
pub(crate) struct NewAccount<'command> {
    pub(crate) signed: &'command SignedAccount,
    pub(crate) digest: &'command RowMac,
    pub(crate) password: &'command SealedPassword,
    pub(crate) seed: &'command SealedSeed,
    pub(crate) recovery_codes: &'command [Digest],
    /// The latest step that is spent.
    pub(crate) last_step: TimeStep,
    pub(crate) created_at: Timestamp,
}

/// Stores an account with all that every account has; part of the decision that makes it.
pub(crate) async fn insert_account(connection: &mut Connection, new: NewAccount<'_>) -> Result<(), Failure> {
    let SignedAccount { grant, version, password_version, .. } = new.signed;
    let (organization, account) = (grant.organization.stored(), grant.account.stored());
    diesel::insert_into(accounts::table)
        .values((
            accounts::organization_id.eq(organization),
            accounts::id.eq(account),
            accounts::email.eq(grant.email.as_str()),
            accounts::role.eq(grant.role.as_str()),
            accounts::state.eq(grant.state.as_str()),
            accounts::grant_digest.eq(new.digest.code.as_bytes().as_slice()),
            accounts::grant_key_id.eq(new.digest.key.stored()),
            accounts::version.eq(version),
            accounts::password.eq(new.password.0.as_bytes()),
            accounts::password_version.eq(password_version),
            accounts::seed_id.eq(new.seed.id.stored()),
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
    insert_recovery_codes(connection, grant.organization, grant.account, new.recovery_codes).await
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
            .filter(recovery_codes::organization_id.eq(organization.stored()))
            .filter(recovery_codes::account_id.eq(account.stored())),
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
                recovery_codes::organization_id.eq(organization.stored()),
                recovery_codes::account_id.eq(account.stored()),
                recovery_codes::code.eq(code.as_bytes().as_slice()),
            ))
            .execute(connection)
            .await?;
    }
    Ok(())
}

impl Decision for ReadPasscode {
    type Held = ();
    type Outcome = Option<StoredPasscode>;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Option<StoredPasscode>> {
        let ReadPasscode { organization, account } = command.act;
        if !command.principal.reaches(organization) {
            return Ok(Verdict::Refused(None));
        }
        let row: Option<(Column<SeedId>, Column<Blob>, i64)> = row_of!(command.act)
            .inner_join(
                account_logins::table.on(account_logins::organization_id
                    .eq(accounts::organization_id)
                    .and(account_logins::account_id.eq(accounts::id))),
            )
            .select((accounts::seed_id, accounts::seed, account_logins::last_step))
            .get_result(connection)
            .await
            .optional()?;
        let Some((seed_id, seed, last_step)) = row else { return Ok(Verdict::Refused(None)) };
        let seed = SealedSeed {
            id: seed_id.decode("accounts", &account, "seed_id")?,
            blob: seed.decode("accounts", &account, "seed")?,
        };
        Ok(Verdict::Done(Some(StoredPasscode { seed, last_step: TimeStep(last_step) })))
    }
}
