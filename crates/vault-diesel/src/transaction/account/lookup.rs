//! Finding and listing accounts and invitations.

use super::super::Read;
use super::super::authorize::authorize;
use super::directory;
use super::invitation_row::{self, InvitationRow};
use super::row::{SignedRow, TABLE};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::rows::logins::ClassRow;
use crate::schema::{account_logins, accounts, attempt_classes, invitations};
use crate::stored::{AFTER_ALL_IDS, BEFORE_ALL_IDS, CodeColumns, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    Queryable, Selectable, SelectableHelper as _,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use vault_core::account::{Account, AccountLogins, ListedAccount};
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{ThrottleCounters, WrongPasscodes};
use vault_core::port::{AccountKey, Find, FoundAccount, List};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::time::Timestamp;

/// An account with its logins, and with the expiry of its invitation to enrol again.
#[derive(Queryable, Selectable)]
#[diesel(table_name = accounts, check_for_backend(Db))]
struct AccountRow {
    #[diesel(embed)]
    signed: SignedRow,
    #[diesel(select_expression = (accounts::grant_digest, accounts::grant_key_id))]
    digest: CodeColumns,
    created_at: i64,
    #[diesel(select_expression = account_logins::last_login_at)]
    last_login_at: Option<i64>,
    #[diesel(select_expression = account_logins::wrong_passcodes)]
    wrong_passcodes: i64,
    #[diesel(select_expression = account_logins::wrong_at)]
    wrong_at: Option<i64>,
    #[diesel(select_expression = account_logins::refused_at)]
    refused_at: Option<i64>,
    #[diesel(select_expression = invitations::expires_at.nullable())]
    enrolment_until: Option<i64>,
}

#[auto_type(no_type_alias)]
fn accounts_with_logins() -> _ {
    let is_logins =
        account_logins::organization_id.eq(accounts::organization_id).and(account_logins::account_id.eq(accounts::id));
    let is_invitation =
        invitations::organization_id.eq(accounts::organization_id).and(invitations::account_id.eq(accounts::id));
    accounts::table.inner_join(account_logins::table.on(is_logins)).left_join(invitations::table.on(is_invitation))
}

/// The organization to which a query is confined. `None`: it reads the rows of all.
fn confine(principal: &Principal, scope: Scope) -> Result<Option<OrganizationId>, Denial> {
    match scope {
        Scope::One(organization) => Ok(Some(organization)),
        Scope::All if *principal == Principal::Operator => Ok(None),
        Scope::All => Err(Denial::InsufficientRole),
    }
}

impl Read for Find<AccountKey, Scope> {
    type Outcome = Option<FoundAccount>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Option<FoundAccount>, Failure> {
        authorize(tx, &self.principal, self.now).await?;
        let confined = confine(&self.principal, self.of)?;
        let sees = |organization: OrganizationId| {
            self.principal.reaches(organization) && confined.is_none_or(|only| only == organization)
        };
        match &self.key {
            AccountKey::Id(organization, account) if sees(*organization) => {
                find(tx, *organization, *account, self.now).await
            }
            AccountKey::Id(..) => Ok(None),
            AccountKey::Address(address) => {
                if let Some((organization, account)) = directory::account_of(tx, address).await?
                    && sees(organization)
                {
                    let found = find(tx, organization, account, self.now).await?;
                    let missing = || Failure::damaged("directory", account.to_string(), "leads nowhere");
                    return found.ok_or_else(missing).map(Some);
                }
                let invited = directory::invitations_of(tx, address).await?;
                let invited: Vec<_> = invited.into_iter().filter(|(organization, _)| sees(*organization)).collect();
                match invited[..] {
                    [] => Ok(None),
                    [(organization, account)] => find(tx, organization, account, self.now).await,
                    _ => Ok(Some(FoundAccount::Invitations(invited.len()))),
                }
            }
        }
    }
}

/// Finds the account or the invitation with these ids.
async fn find(
    tx: &Tx<'_>,
    organization: OrganizationId,
    account: AccountId,
    now: Timestamp,
) -> Result<Option<FoundAccount>, Failure> {
    let row = accounts_with_logins()
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select(AccountRow::as_select());
    if let Some(row) = tx.first(row).await? {
        let accounts = with_attempts(tx, vec![row], now).await?;
        return Ok(accounts.into_iter().next().map(|account| FoundAccount::Account(Box::new(account))));
    }
    let invitation = invitation_row::get(tx, organization, account).await?;
    Ok(invitation.map(|stored| FoundAccount::Invitation(Box::new(stored))))
}

impl Read for List<(OrganizationId, AccountId)> {
    type Outcome = Vec<ListedAccount>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<ListedAccount>, Failure> {
        authorize(tx, &self.principal, self.now).await?;
        let organization = confine(&self.principal, self.of)?;
        if organization.is_some_and(|organization| !self.principal.reaches(organization)) {
            return Err(Denial::InsufficientRole.into());
        }
        let accounts = list_accounts(tx, organization, self).await?;
        let mut listed: Vec<ListedAccount> = accounts.iter().map(Account::listed).collect();
        listed.extend(list_invitations(tx, organization, self).await?);
        listed.sort_by_key(|listed| (listed.grant.organization, Reverse(listed.grant.account)));
        listed.truncate(self.limit);
        Ok(listed)
    }
}

/// Start of a page: IDs after `after` in its organization, then all later organizations.
fn start(after: Option<(OrganizationId, AccountId)>) -> (IdBytes, IdBytes) {
    match after {
        Some((organization, account)) => (organization.stored(), account.stored()),
        None => (BEFORE_ALL_IDS, AFTER_ALL_IDS),
    }
}

async fn list_accounts(
    tx: &Tx<'_>,
    organization: Option<OrganizationId>,
    query: &List<(OrganizationId, AccountId)>,
) -> Result<Vec<Account>, Failure> {
    let (after, id) = start(query.after);
    let rows = match organization {
        Some(organization) => {
            let own = accounts_with_logins()
                .filter(accounts::organization_id.eq(organization.stored()))
                .filter(accounts::id.lt(id))
                .order(accounts::id.desc());
            tx.page(own.select(AccountRow::as_select()), query.limit).await?
        }
        None => {
            let same = accounts::organization_id.eq(after).and(accounts::id.lt(id));
            let all = accounts_with_logins()
                .filter(accounts::organization_id.gt(after).or(same))
                .order((accounts::organization_id, accounts::id.desc()));
            tx.page(all.select(AccountRow::as_select()), query.limit).await?
        }
    };
    with_attempts(tx, rows, query.now).await
}

async fn list_invitations(
    tx: &Tx<'_>,
    organization: Option<OrganizationId>,
    query: &List<(OrganizationId, AccountId)>,
) -> Result<Vec<ListedAccount>, Failure> {
    let (after, id) = start(query.after);
    let open = invitations::table
        .filter(invitations::expires_at.gt(query.now.as_millis()))
        .filter(invitations::state.is_null())
        .select(InvitationRow::as_select());
    let rows = match organization {
        Some(organization) => {
            let own = open
                .filter(invitations::organization_id.eq(organization.stored()))
                .filter(invitations::account_id.lt(id))
                .order(invitations::account_id.desc());
            tx.page(own, query.limit).await?
        }
        None => {
            let same = invitations::organization_id.eq(after).and(invitations::account_id.lt(id));
            let all = open
                .filter(invitations::organization_id.gt(after).or(same))
                .order((invitations::organization_id, invitations::account_id.desc()));
            tx.page(all, query.limit).await?
        }
    };
    rows.into_iter().map(|row: InvitationRow| Ok(row.decode()?.listed())).collect()
}

/// Adds the throttle buckets of accounts.
async fn with_attempts(tx: &Tx<'_>, rows: Vec<AccountRow>, now: Timestamp) -> Result<Vec<Account>, Failure> {
    let mut accounts: Vec<Account> = rows.into_iter().map(|row| row.decode(now)).collect::<Result<_, Failure>>()?;
    let mut counters = read_counters(tx, &accounts).await?;
    for account in &mut accounts {
        account.logins.attempts = counters.remove(&account.signed.grant.account).unwrap_or_default().lock(now);
    }
    Ok(accounts)
}

async fn read_counters(tx: &Tx<'_>, accounts: &[Account]) -> Result<HashMap<AccountId, ThrottleCounters>, Failure> {
    let grants = || accounts.iter().map(|account| &account.signed.grant);
    let mut organizations: Vec<OrganizationId> = grants().map(|grant| grant.organization).collect();
    organizations.dedup(); // they are sorted
    let mut found: HashMap<AccountId, ThrottleCounters> = HashMap::new();
    for organization in organizations {
        let own = grants().filter(|grant| grant.organization == organization);
        let ids: Vec<IdBytes> = own.map(|grant| grant.account.stored()).collect();
        let rows = attempt_classes::table
            .filter(attempt_classes::organization_id.eq(organization.stored()))
            .filter(attempt_classes::account_id.eq_any(ids))
            .select((attempt_classes::account_id, ClassRow::as_select()));
        for (account, row) in tx.load::<(Column<AccountId>, ClassRow), _>(rows).await? {
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
            wrong_passcode_at: self.wrong_at.map(Timestamp::from_millis),
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

/// Decodes the wrong passcodes of an account.
pub(crate) fn wrong_passcodes(account: AccountId, count: i64, latest: Option<i64>) -> Result<WrongPasscodes, Failure> {
    let damaged = |_| Failure::damaged("account_logins", account.to_string(), "wrong_passcodes");
    let count = u32::try_from(count).map_err(damaged)?;
    Ok(WrongPasscodes { count, latest: latest.map(Timestamp::from_millis) })
}
