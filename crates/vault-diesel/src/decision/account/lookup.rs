//! Finding accounts and invitations.

use super::super::authorize::{judge, judge_holder};
use super::super::backend::{Connection, RunQuery};
use super::directory;
use super::invitation_row::{self, InvitationRow, columns};
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, invitations};
use crate::stored::{Read, ToIdText as _};
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, OptionalExtension as _, QueryDsl as _,
};
use vault_core::account::{Account, AccountGrant, AccountState};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::invitation::StoredInvitation;
use vault_core::port::{AccountKey, AccountScope, FindAccount, FoundAccount, ListAccounts};
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::time::Timestamp;

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

pub(crate) async fn find(
    connection: &mut Connection,
    query: &FindAccount,
) -> Result<Result<Option<FoundAccount>, Denial>, Failure> {
    if let Err(refusal) = judge(connection, &query.authority, query.now).await? {
        return Ok(Err(refusal));
    }
    let (place, listed) = match query.key {
        AccountKey::Address(address) => (directory::look_up(connection, &address).await?, true),
        AccountKey::Id(organization, account) => (Some((organization, account)), false),
    };
    let Some((organization, account)) = place.filter(|(organization, _)| query.authority.reaches(*organization)) else {
        return Ok(Ok(None));
    };
    let found = at(connection, organization, account).await?;
    if listed && found.is_none() {
        return Err(Failure::damaged("directory", account.to_string(), "leads nowhere"));
    }
    Ok(Ok(found))
}

/// What there is under these ids.
async fn at(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<Option<FoundAccount>, Failure> {
    let row: Option<AccountRow> = accounts_with_logins!()
        .filter(accounts::organization_id.eq(organization.text()))
        .filter(accounts::id.eq(account.text()))
        .get_result(connection)
        .await
        .optional()?;
    if let Some(row) = row {
        return Ok(Some(FoundAccount::Account(decode(row)?)));
    }
    let invitation = invitation_row::get(connection, organization, account).await?;
    Ok(invitation.map(FoundAccount::Invitation))
}

pub(crate) async fn list(
    connection: &mut Connection,
    query: &ListAccounts,
) -> Result<Result<Vec<Account>, Denial>, Failure> {
    let organization = match &query.scope {
        AccountScope::Everywhere => None,
        AccountScope::Organization(organization) => Some(*organization),
        AccountScope::Session(session) => match judge_holder(connection, session, query.now).await? {
            Ok(()) => Some(session.organization),
            Err(refusal) => return Ok(Err(refusal)),
        },
    };
    let mut listed = accounts_of(connection, organization).await?;
    let invitations = invitations_of(connection, organization).await?;
    let open = invitations.iter().filter(|stored| stored.invitation.is_open(query.now));
    listed.extend(open.map(StoredInvitation::listed));
    listed.sort_by(|a, b| (a.grant.organization, &a.grant.email).cmp(&(b.grant.organization, &b.grant.email)));
    Ok(Ok(listed))
}

async fn accounts_of(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
) -> Result<Vec<Account>, Failure> {
    let all = accounts_with_logins!();
    let rows: Vec<AccountRow> = match organization {
        Some(id) => all.filter(accounts::organization_id.eq(id.text())).load(connection).await?,
        None => all.load(connection).await?,
    };
    rows.into_iter().map(decode).collect()
}

async fn invitations_of(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
) -> Result<Vec<StoredInvitation>, Failure> {
    let all = invitations::table.select(columns!());
    let rows: Vec<InvitationRow> = match organization {
        Some(id) => all.filter(invitations::organization_id.eq(id.text())).load(connection).await?,
        None => all.load(connection).await?,
    };
    rows.into_iter().map(invitation_row::decode).collect()
}
