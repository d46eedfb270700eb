//! Accounts with their logins.

use super::row::{SignedRow, TABLE};
use crate::db::{Db, Tx};
use crate::failure::Failure;
use crate::rows::logins::ClassRow;
use crate::schema::{account_logins, accounts, attempt_classes, entities};
use crate::stored::{AFTER_ALL_IDS, BEFORE_ALL_IDS, CodeColumns, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    Queryable, Selectable, SelectableHelper as _,
};
use std::collections::HashMap;
use vault_core::account::{Account, AccountLogins};
use vault_core::entity::Kind;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{ThrottleCounters, WrongPasscodes};
use vault_core::port::AccountPlace;
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
    #[diesel(select_expression = entities::due_at.nullable())]
    enrolment_until: Option<i64>,
}

#[auto_type(no_type_alias)]
fn accounts_with_logins() -> _ {
    let is_logins =
        account_logins::organization_id.eq(accounts::organization_id).and(account_logins::account_id.eq(accounts::id));
    let kind: &'static str = Kind::Invitation.as_str();
    let is_invitation = entities::organization_id
        .eq(accounts::organization_id)
        .and(entities::kind.eq(kind))
        .and(entities::id.eq(accounts::id));
    accounts::table.inner_join(account_logins::table.on(is_logins)).left_join(entities::table.on(is_invitation))
}

/// Finds an account.
pub(super) async fn find(
    tx: &Tx<'_>,
    (organization, account): AccountPlace,
    now: Timestamp,
) -> Result<Option<Account>, Failure> {
    let row = accounts_with_logins()
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select(AccountRow::as_select());
    let Some(row) = tx.first(row).await? else { return Ok(None) };
    Ok(with_attempts(tx, vec![row], now).await?.pop())
}

/// Start of a page: IDs after `after` in its organization, then all later organizations.
fn start(after: Option<AccountPlace>) -> (IdBytes, IdBytes) {
    match after {
        Some((organization, account)) => (organization.stored(), account.stored()),
        None => (BEFORE_ALL_IDS, AFTER_ALL_IDS),
    }
}

/// Lists accounts.
pub(super) async fn list(
    tx: &Tx<'_>,
    organization: Option<OrganizationId>,
    after: Option<AccountPlace>,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Account>, Failure> {
    let (after, id) = start(after);
    let rows = match organization {
        Some(organization) => {
            let own = accounts_with_logins()
                .filter(accounts::organization_id.eq(organization.stored()))
                .filter(accounts::id.lt(id))
                .order(accounts::id.desc());
            tx.page(own.select(AccountRow::as_select()), limit).await?
        }
        None => {
            let same = accounts::organization_id.eq(after).and(accounts::id.lt(id));
            let all = accounts_with_logins()
                .filter(accounts::organization_id.gt(after).or(same))
                .order((accounts::organization_id, accounts::id.desc()));
            tx.page(all.select(AccountRow::as_select()), limit).await?
        }
    };
    with_attempts(tx, rows, now).await
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
