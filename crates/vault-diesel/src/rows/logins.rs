//! Throttle buckets, known networks, and results of logins.

use super::{TxRows, several, then};
use crate::db::{Db, Reply as SqlReply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{account_logins, attempt_classes, known_networks};
use crate::stored::{AnyId, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use futures_util::try_join;
use std::collections::HashMap;
use vault_core::account::AccountLogins;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{BucketKey, LoginNetwork, ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::passcode::TimeStep;
use vault_core::port::{AccountPlace, LoginRows, Reply};
use vault_core::time::Timestamp;

const TABLE: &str = "attempt_classes";
/// The network of the bucket that all unknown networks share.
pub(crate) const SHARED_CLASS: &[u8] = &[];

#[auto_type(no_type_alias)]
pub(crate) fn logins_of(organization: IdBytes, account: IdBytes) -> _ {
    account_logins::table
        .filter(account_logins::organization_id.eq(organization))
        .filter(account_logins::account_id.eq(account))
}

#[auto_type(no_type_alias)]
pub(crate) fn classes_of(organization: IdBytes, account: IdBytes) -> _ {
    attempt_classes::table
        .filter(attempt_classes::organization_id.eq(organization))
        .filter(attempt_classes::account_id.eq(account))
}

#[auto_type(no_type_alias)]
fn class_of<'a>(organization: IdBytes, account: IdBytes, network: &'a [u8]) -> _ {
    attempt_classes::table
        .filter(attempt_classes::organization_id.eq(organization))
        .filter(attempt_classes::account_id.eq(account))
        .filter(attempt_classes::network.eq(network))
}

/// One bucket.
#[derive(Queryable, Selectable)]
#[diesel(table_name = attempt_classes, check_for_backend(Db))]
struct ClassRow {
    network: Vec<u8>,
    attempts: i64,
    latest: Option<i64>,
    last_login_at: Option<i64>,
}

impl ClassRow {
    /// Adds the bucket to those of its account.
    fn add_to(self, account: AccountId, classes: &mut ThrottleCounters) -> Result<(), Failure> {
        let damaged = |reason| Failure::damaged(TABLE, account.to_string(), reason);
        let attempts = u32::try_from(self.attempts).map_err(|_| damaged("attempts"))?;
        let class = ThrottleCounter { attempts, latest: self.latest.map(Timestamp::from_millis) };
        if self.network == SHARED_CLASS {
            classes.shared = class;
            return Ok(());
        }
        let network: [u8; 32] = self.network.try_into().map_err(|_| damaged("network"))?;
        let last_login_at = self.last_login_at.ok_or_else(|| damaged("last_login_at"))?;
        let last_login_at = Timestamp::from_millis(last_login_at);
        classes.networks.push(LoginNetwork { network: Digest::from_bytes(network), last_login_at, class });
        Ok(())
    }
}

/// Results of the logins of an account, without its buckets.
#[derive(Queryable, Selectable)]
#[diesel(table_name = account_logins, check_for_backend(Db))]
struct LoginsRow {
    account_id: Column<AccountId>,
    last_login_at: Option<i64>,
    wrong_passcodes: i64,
    wrong_at: Option<i64>,
    refused_at: Option<i64>,
}

impl LoginsRow {
    fn decode(self, now: Timestamp) -> Result<(AccountId, AccountLogins), Failure> {
        let account = self.account_id.decode("account_logins", &"unknown", "account_id")?;
        let logins = AccountLogins {
            last_login_at: self.last_login_at.map(Timestamp::from_millis),
            last_refused_at: self.refused_at.map(Timestamp::from_millis),
            wrong_passcodes: wrong_passcodes(account, self.wrong_passcodes, self.wrong_at)?.at(now),
            wrong_passcode_at: self.wrong_at.map(Timestamp::from_millis),
            ..AccountLogins::default()
        };
        Ok((account, logins))
    }
}

/// Decodes the wrong passcodes of an account.
fn wrong_passcodes(account: AccountId, count: i64, latest: Option<i64>) -> Result<WrongPasscodes, Failure> {
    let damaged = |_| Failure::damaged("account_logins", account.to_string(), "wrong_passcodes");
    let count = u32::try_from(count).map_err(damaged)?;
    Ok(WrongPasscodes { count, latest: latest.map(Timestamp::from_millis) })
}

/// Reads the results of the logins of accounts.
async fn read_logins(
    tx: &Tx<'_>,
    organization: OrganizationId,
    accounts: &[AccountId],
    now: Timestamp,
) -> Result<Vec<(AccountId, AccountLogins)>, Failure> {
    let ids = || accounts.iter().map(|account| account.stored()).collect::<Vec<IdBytes>>();
    let rows = account_logins::table
        .filter(account_logins::organization_id.eq(organization.stored()))
        .filter(account_logins::account_id.eq_any(ids()))
        .select(LoginsRow::as_select());
    let buckets = attempt_classes::table
        .filter(attempt_classes::organization_id.eq(organization.stored()))
        .filter(attempt_classes::account_id.eq_any(ids()))
        .select((attempt_classes::account_id, ClassRow::as_select()));
    let (rows, buckets) = try_join!(tx.load(rows), tx.load::<(Column<AccountId>, ClassRow), _>(buckets))?;
    let mut counters: HashMap<AccountId, ThrottleCounters> = HashMap::new();
    for (account, row) in buckets {
        let account = account.decode(TABLE, &"unknown", "account_id")?;
        row.add_to(account, counters.entry(account).or_default())?;
    }
    let mut logins = rows.into_iter().map(|row: LoginsRow| row.decode(now)).collect::<Result<Vec<_>, Failure>>()?;
    for (account, logins) in &mut logins {
        logins.attempts = counters.remove(account).unwrap_or_default().lock(now);
    }
    Ok(logins)
}

/// Locks the buckets of an account before they are changed or removed together. Login attempts lock them in this order, and a
/// statement that changes several rows locks them in any order.
pub(super) async fn lock_all(tx: &Tx<'_>, organization: OrganizationId, account: AccountId) -> Result<(), Failure> {
    let buckets = classes_of(organization.stored(), account.stored())
        .order(attempt_classes::network)
        .select(attempt_classes::account_id);
    let _locked: Vec<AnyId> = tx.load(locked(buckets, Update)).await?;
    Ok(())
}

/// Locks the buckets of all accounts of an organization, like [`lock_all`].
pub(crate) async fn lock_all_of_organization(tx: &Tx<'_>, organization: OrganizationId) -> Result<(), Failure> {
    let buckets = attempt_classes::table
        .filter(attempt_classes::organization_id.eq(organization.stored()))
        .order((attempt_classes::account_id, attempt_classes::network))
        .select(attempt_classes::account_id);
    let _locked: Vec<AnyId> = tx.load(locked(buckets, Update)).await?;
    Ok(())
}

/// Empties the buckets of an account, which ends its lockouts.
async fn reset_all(tx: &Tx<'_>, organization: OrganizationId, account: AccountId) -> Result<(), Failure> {
    lock_all(tx, organization, account).await?;
    let emptied = diesel::update(classes_of(organization.stored(), account.stored()))
        .set((attempt_classes::attempts.eq(0), attempt_classes::latest.eq(None::<i64>)));
    tx.execute(emptied).await?;
    Ok(())
}

fn set_class<'t>(
    tx: &'t Tx<'_>,
    (organization, account): AccountPlace,
    network: &[u8],
    counter: ThrottleCounter,
) -> SqlReply<'t, usize> {
    tx.execute(diesel::update(class_of(organization.stored(), account.stored(), network)).set((
        attempt_classes::attempts.eq(i64::from(counter.attempts)),
        attempt_classes::latest.eq(counter.latest.map(Timestamp::as_millis)),
    )))
}

/// Locks the bucket of a network and the shared one, or all buckets.
async fn lock_buckets(
    tx: &Tx<'_>,
    (organization, account): AccountPlace,
    network: Option<Digest>,
) -> Result<Option<ThrottleCounters>, Failure> {
    let of = || classes_of(organization.stored(), account.stored());
    let rows = match &network {
        // Not as a list of values, which SQLite would parse at every login.
        Some(network) => {
            let own = attempt_classes::network.eq(network.as_bytes().as_slice());
            let buckets = of().filter(attempt_classes::network.eq(SHARED_CLASS).or(own));
            let buckets = buckets.order(attempt_classes::network).select(ClassRow::as_select());
            tx.load(locked(buckets, Update)).await?
        }
        None => {
            let buckets = of().order(attempt_classes::network).select(ClassRow::as_select());
            tx.load(locked(buckets, Update)).await?
        }
    };
    if !rows.iter().any(|row: &ClassRow| row.network == SHARED_CLASS) {
        return Ok(None);
    }
    let mut counters = ThrottleCounters::default();
    for row in rows {
        row.add_to(account, &mut counters)?;
    }
    Ok(Some(counters))
}

impl LoginRows for TxRows<'_> {
    fn logins(
        &self,
        organization: OrganizationId,
        accounts: &[AccountId],
        now: Timestamp,
    ) -> Reply<'_, Vec<(AccountId, AccountLogins)>> {
        let accounts = accounts.to_vec();
        several(async move { read_logins(&self.tx, organization, &accounts, now).await })
    }

    fn lock_buckets(&self, place: AccountPlace, network: Option<&Digest>) -> Reply<'_, Option<ThrottleCounters>> {
        let network = network.copied();
        several(async move { lock_buckets(&self.tx, place, network).await })
    }

    fn reset_buckets(&self, (organization, account): AccountPlace) -> Reply<'_, ()> {
        several(async move { reset_all(&self.tx, organization, account).await })
    }

    fn set_bucket(&self, place: AccountPlace, key: &BucketKey, counter: ThrottleCounter) -> Reply<'_, ()> {
        let network = match key {
            BucketKey::Shared => SHARED_CLASS,
            BucketKey::Network(network) => network.as_bytes().as_slice(),
        };
        then(set_class(&self.tx, place, network, counter), |_| Ok(()))
    }

    fn forget_network(&self, (organization, account): AccountPlace, network: &Digest) -> Reply<'_, ()> {
        let own = class_of(organization.stored(), account.stored(), network.as_bytes());
        then(self.tx.execute(diesel::delete(own)), |_| Ok(()))
    }

    fn put_network(&self, place: AccountPlace, network: &Digest, last_login_at: Timestamp) -> Reply<'_, ()> {
        let ((organization, account), network) = (place, *network);
        several(async move {
            let (organization, account, at) = (organization.stored(), account.stored(), last_login_at.as_millis());
            let (network, empty) = (network.as_bytes().as_slice(), ThrottleCounter::default());
            let own = diesel::update(class_of(organization, account, network)).set((
                attempt_classes::attempts.eq(i64::from(empty.attempts)),
                attempt_classes::latest.eq(empty.latest.map(Timestamp::as_millis)),
                attempt_classes::last_login_at.eq(at),
            ));
            if self.tx.execute(own).await? == 0 {
                let new = diesel::insert_into(attempt_classes::table).values((
                    attempt_classes::organization_id.eq(organization),
                    attempt_classes::account_id.eq(account),
                    attempt_classes::network.eq(network),
                    attempt_classes::attempts.eq(0),
                    attempt_classes::last_login_at.eq(at),
                ));
                self.tx.execute(new).await?;
            }
            Ok(())
        })
    }

    fn known_network(&self, network: &Digest) -> Reply<'_, Option<Timestamp>> {
        let last_login_at = known_networks::table
            .filter(known_networks::network.eq(network.as_bytes().as_slice()))
            .select(known_networks::last_login_at);
        then(self.tx.first(last_login_at), |at: Option<i64>| Ok(at.map(Timestamp::from_millis)))
    }

    fn note_network(&self, network: &Digest, last_login_at: Timestamp, stale: Timestamp) -> Reply<'_, ()> {
        let network = *network;
        several(async move {
            let (network, at) = (network.as_bytes().as_slice(), last_login_at.as_millis());
            let new = diesel::insert_into(known_networks::table)
                .values((known_networks::network.eq(network), known_networks::last_login_at.eq(at)))
                .on_conflict_do_nothing();
            self.tx.execute(new).await?;
            let old = known_networks::table
                .filter(known_networks::network.eq(network))
                .filter(known_networks::last_login_at.le(stale.as_millis()));
            self.tx.execute(diesel::update(old).set(known_networks::last_login_at.eq(at))).await?;
            Ok(())
        })
    }

    fn lock_logins(&self, (organization, account): AccountPlace) -> Reply<'_, (TimeStep, WrongPasscodes)> {
        let row = logins_of(organization.stored(), account.stored()).select((
            account_logins::last_step,
            account_logins::wrong_passcodes,
            account_logins::wrong_at,
        ));
        then(self.tx.first(locked(row, Update)), move |row: Option<(i64, i64, Option<i64>)>| match row {
            Some((last_step, wrong, at)) => Ok((TimeStep(last_step), wrong_passcodes(account, wrong, at)?)),
            None => Ok((TimeStep(i64::MAX), WrongPasscodes::default())),
        })
    }

    fn set_last_step(&self, (organization, account): AccountPlace, step: TimeStep) -> Reply<'_, ()> {
        let logins = diesel::update(logins_of(organization.stored(), account.stored()));
        then(self.tx.execute(logins.set(account_logins::last_step.eq(step.0))), |_| Ok(()))
    }

    fn set_last_login(&self, (organization, account): AccountPlace, at: Timestamp) -> Reply<'_, ()> {
        let logins = diesel::update(logins_of(organization.stored(), account.stored()));
        then(self.tx.execute(logins.set(account_logins::last_login_at.eq(at.as_millis()))), |_| Ok(()))
    }

    fn set_refused(
        &self,
        (organization, account): AccountPlace,
        WrongPasscodes { count, latest }: WrongPasscodes,
        at: Timestamp,
    ) -> Reply<'_, ()> {
        let logins = diesel::update(logins_of(organization.stored(), account.stored())).set((
            account_logins::wrong_passcodes.eq(i64::from(count)),
            account_logins::wrong_at.eq(latest.map(Timestamp::as_millis)),
            account_logins::refused_at.eq(at.as_millis()),
        ));
        then(self.tx.execute(logins), |_| Ok(()))
    }
}
