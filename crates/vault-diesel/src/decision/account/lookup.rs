//! Finding and listing accounts and invitations.

use super::super::backend::{Connection, RunQuery, load_page};
use super::super::login::attempts::{self, ClassRow};
use super::directory;
use super::invitation_row::{self, InvitationRow, columns};
use super::row::{SignedRow, TABLE, signed_columns};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{account_logins, accounts, attempt_classes, invitations};
use crate::stored::{AFTER_ALL_IDS, BEFORE_ALL_IDS, CodeColumns, Column, IdBytes, StoredId as _};
use crate::transaction::authorize::authorize;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _,
    OptionalExtension as _, QueryDsl as _, Queryable,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use vault_core::account::{Account, AccountLogins, ListedAccount};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{ThrottleCounters, WrongPasscodes};
use vault_core::port::{AccountKey, Find, FoundAccount, List};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::time::Timestamp;

#[derive(Queryable)]
struct AccountRow {
    signed: SignedRow,
    digest: CodeColumns,
    created_at: i64,
    last_login_at: Option<i64>,
    wrong_passcodes: i64,
    wrong_at: Option<i64>,
    refused_at: Option<i64>,
    enrolment_until: Option<i64>,
}

macro_rules! accounts_with_logins {
    () => {
        accounts::table
            .inner_join(
                account_logins::table.on(account_logins::organization_id
                    .eq(accounts::organization_id)
                    .and(account_logins::account_id.eq(accounts::id))),
            )
            .left_join(
                invitations::table.on(invitations::organization_id
                    .eq(accounts::organization_id)
                    .and(invitations::account_id.eq(accounts::id))),
            )
            .select((
                signed_columns!(),
                (accounts::grant_digest, accounts::grant_key_id),
                accounts::created_at,
                account_logins::last_login_at,
                account_logins::wrong_passcodes,
                account_logins::wrong_at,
                account_logins::refused_at,
                invitations::expires_at.nullable(),
            ))
    };
}

/// Whose rows a query may see; `Ok(None)`: those of every organization.
fn confine(principal: &Principal, scope: Scope) -> Result<Option<OrganizationId>, Denial> {
    match scope {
        Scope::One(organization) => Ok(Some(organization)),
        Scope::All if *principal == Principal::Operator => Ok(None),
        Scope::All => Err(Denial::InsufficientRole),
    }
}

pub(crate) async fn find(
    connection: &mut Connection,
    query: &Find<AccountKey, Scope>,
) -> Result<Option<FoundAccount>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let confined = confine(&query.principal, query.of)?;
    let sees = |organization: OrganizationId| {
        query.principal.reaches(organization) && confined.is_none_or(|only| only == organization)
    };
    match &query.key {
        AccountKey::Id(organization, account) if sees(*organization) => {
            at(connection, *organization, *account, query).await
        }
        AccountKey::Id(..) => Ok(None),
        AccountKey::Address(address) => {
            if let Some((organization, account)) = directory::account_of(connection, address).await?
                && sees(organization)
            {
                let found = at(connection, organization, account, query).await?;
                let missing = || Failure::damaged("directory", account.to_string(), "leads nowhere");
                return found.ok_or_else(missing).map(Some);
            }
            let invited = directory::invitations_of(connection, address).await?;
            let invited: Vec<_> = invited.into_iter().filter(|(organization, _)| sees(*organization)).collect();
            match invited[..] {
                [] => Ok(None),
                [(organization, account)] => at(connection, organization, account, query).await,
                _ => Ok(Some(FoundAccount::Invitations(invited.len()))),
            }
        }
    }
}

/// What there is under these ids.
async fn at(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
    query: &Find<AccountKey, Scope>,
) -> Result<Option<FoundAccount>, Failure> {
    let row: Option<AccountRow> = accounts_with_logins!()
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .get_result(connection)
        .await
        .optional()?;
    if let Some(row) = row {
        let accounts = complete(connection, vec![row], query.now).await?;
        return Ok(accounts.into_iter().next().map(|account| FoundAccount::Account(Box::new(account))));
    }
    let invitation = invitation_row::get(connection, organization, account).await?;
    Ok(invitation.map(|stored| FoundAccount::Invitation(Box::new(stored))))
}

pub(crate) async fn list(
    connection: &mut Connection,
    query: &List<(OrganizationId, AccountId)>,
) -> Result<Vec<ListedAccount>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let organization = confine(&query.principal, query.of)?;
    if organization.is_some_and(|organization| !query.principal.reaches(organization)) {
        return Err(Denial::InsufficientRole.into());
    }
    let accounts = accounts_of(connection, organization, query).await?;
    let mut listed: Vec<ListedAccount> = accounts.iter().map(Account::listed).collect();
    listed.extend(invitations_of(connection, organization, query).await?);
    listed.sort_by_key(|listed| (listed.grant.organization, Reverse(listed.grant.account)));
    listed.truncate(query.limit);
    Ok(listed)
}

/// Where a page begins, in columns: after this id of this organization, and in organizations after it.
fn start(after: Option<(OrganizationId, AccountId)>) -> (IdBytes, IdBytes) {
    match after {
        Some((organization, account)) => (organization.stored(), account.stored()),
        None => (BEFORE_ALL_IDS, AFTER_ALL_IDS),
    }
}

async fn accounts_of(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
    query: &List<(OrganizationId, AccountId)>,
) -> Result<Vec<Account>, Failure> {
    let (after, id) = start(query.after);
    let rows: Vec<AccountRow> = match organization {
        Some(organization) => {
            let own = accounts_with_logins!()
                .filter(accounts::organization_id.eq(organization.stored()))
                .filter(accounts::id.lt(id))
                .order(accounts::id.desc());
            load_page!(own, connection, query.limit).await?
        }
        None => {
            let later = accounts::organization_id.gt(after);
            let same = accounts::organization_id.eq(after).and(accounts::id.lt(id));
            let all =
                accounts_with_logins!().filter(later.or(same)).order((accounts::organization_id, accounts::id.desc()));
            load_page!(all, connection, query.limit).await?
        }
    };
    complete(connection, rows, query.now).await
}

async fn invitations_of(
    connection: &mut Connection,
    organization: Option<OrganizationId>,
    query: &List<(OrganizationId, AccountId)>,
) -> Result<Vec<ListedAccount>, Failure> {
    let (after, id) = start(query.after);
    let open = invitations::table
        .filter(invitations::expires_at.gt(query.now.as_millis()))
        .filter(invitations::state.is_null())
        .select(columns!());
    let rows: Vec<InvitationRow> = match organization {
        Some(organization) => {
            let own = open
                .filter(invitations::organization_id.eq(organization.stored()))
                .filter(invitations::account_id.lt(id))
                .order(invitations::account_id.desc());
            load_page!(own, connection, query.limit).await?
        }
        None => {
            let later = invitations::organization_id.gt(after);
            let same = invitations::organization_id.eq(after).and(invitations::account_id.lt(id));
            let all = open.filter(later.or(same)).order((invitations::organization_id, invitations::account_id.desc()));
            load_page!(all, connection, query.limit).await?
        }
    };
    rows.into_iter().map(|row| Ok(row.decode()?.listed())).collect()
}

/// Adds what is known of the accounts' attempts.
async fn complete(connection: &mut Connection, rows: Vec<AccountRow>, now: Timestamp) -> Result<Vec<Account>, Failure> {
    let accounts: Vec<Account> = rows.into_iter().map(|row| row.decode(now)).collect::<Result<_, Failure>>()?;
    let mut classes = classes_of(connection, &accounts).await?;
    let with_classes = |mut account: Account| {
        let classes = classes.remove(&account.signed.grant.account).unwrap_or_default();
        account.logins.attempts = classes.lock(now);
        account
    };
    Ok(accounts.into_iter().map(with_classes).collect())
}

async fn classes_of(
    connection: &mut Connection,
    accounts: &[Account],
) -> Result<HashMap<AccountId, ThrottleCounters>, Failure> {
    let mut organizations: Vec<OrganizationId> =
        accounts.iter().map(|account| account.signed.grant.organization).collect();
    organizations.dedup(); // they come in order
    let mut found = HashMap::new();
    for organization in organizations {
        let own = accounts.iter().map(|account| &account.signed.grant);
        let ids: Vec<IdBytes> =
            own.filter(|grant| grant.organization == organization).map(|grant| grant.account.stored()).collect();
        let rows: Vec<(Column<AccountId>, ClassRow)> = attempt_classes::table
            .filter(attempt_classes::organization_id.eq(organization.stored()))
            .filter(attempt_classes::account_id.eq_any(ids))
            .select((attempt_classes::account_id, attempts::columns!()))
            .load(connection)
            .await?;
        for (account, row) in rows {
            let account = account.decode("attempt_classes", &"unknown", "account_id")?;
            row.add_to(account, found.entry(account).or_default())?;
        }
    }
    Ok(found)
}

impl AccountRow {
    fn decode(self, now: Timestamp) -> Result<Account, Failure> {
        let signed = self.signed.decode()?;
        let account = signed.grant.account;
        let logins = AccountLogins {
            last_login_at: self.last_login_at.map(Timestamp::from_millis),
            last_refused_at: self.refused_at.map(Timestamp::from_millis),
            wrong_passcodes: wrong_passcodes(account, self.wrong_passcodes, self.wrong_at)?.at(now),
            ..AccountLogins::default()
        };
        Ok(Account {
            digest: self.digest.decode(TABLE, &account, "grant_digest")?,
            signed,
            created_at: Timestamp::from_millis(self.created_at),
            logins,
            enrolment_until: self.enrolment_until.map(Timestamp::from_millis).filter(|until| now < *until),
        })
    }
}

/// The wrong passcodes in an account's columns.
pub(crate) fn wrong_passcodes(account: AccountId, count: i64, latest: Option<i64>) -> Result<WrongPasscodes, Failure> {
    let damaged = |_| Failure::damaged("account_logins", account.to_string(), "wrong_passcodes");
    let count = u32::try_from(count).map_err(damaged)?;
    Ok(WrongPasscodes { count, latest: latest.map(Timestamp::from_millis) })
}
