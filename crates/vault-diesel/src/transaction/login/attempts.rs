//! The throttle buckets that count the login attempts of an account, and the known networks.

use super::super::Read;
use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{attempt_classes, known_networks};
use crate::stored::{AnyId, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{BucketKey, LoginNetwork, ThrottleCounter, ThrottleCounters, network_is_known};
use vault_core::time::Timestamp;

const TABLE: &str = "attempt_classes";
/// The network of the bucket that all unknown networks share.
pub(crate) const SHARED_CLASS: &[u8] = &[];
/// How old the latest login of a known network may be before a newer one is written, in seconds: a day.
const NETWORK_NOTED_SECONDS: i64 = 24 * 3600;

/// The buckets of one account.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    pub(crate) organization: OrganizationId,
    pub(crate) account: AccountId,
}

/// One bucket.
#[derive(Queryable, Selectable)]
#[diesel(table_name = attempt_classes, check_for_backend(Db))]
pub(crate) struct ClassRow {
    network: Vec<u8>,
    attempts: i64,
    latest: Option<i64>,
    last_login_at: Option<i64>,
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

impl ClassRow {
    /// Adds the bucket to those of its account.
    pub(crate) fn add_to(self, account: AccountId, classes: &mut ThrottleCounters) -> Result<(), Failure> {
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

impl Classes {
    /// Locks the bucket of this network and the shared one. Returns `None` if the account has not even a shared one.
    pub(crate) async fn lock(self, tx: &Tx<'_>, network: &Digest) -> Result<Option<ThrottleCounters>, Failure> {
        // Not as a list of values, which SQLite would parse at every login.
        let shared_or_own =
            attempt_classes::network.eq(SHARED_CLASS).or(attempt_classes::network.eq(network.as_bytes().as_slice()));
        let buckets = classes_of(self.organization.stored(), self.account.stored())
            .filter(shared_or_own)
            .order(attempt_classes::network)
            .select(ClassRow::as_select());
        self.decode(tx.load(locked(buckets, Update)).await?)
    }

    /// Locks every bucket.
    async fn lock_all(self, tx: &Tx<'_>) -> Result<Option<ThrottleCounters>, Failure> {
        let buckets = classes_of(self.organization.stored(), self.account.stored())
            .order(attempt_classes::network)
            .select(ClassRow::as_select());
        self.decode(tx.load(locked(buckets, Update)).await?)
    }

    fn decode(self, rows: Vec<ClassRow>) -> Result<Option<ThrottleCounters>, Failure> {
        if !rows.iter().any(|row| row.network == SHARED_CLASS) {
            return Ok(None);
        }
        let mut classes = ThrottleCounters::default();
        for row in rows {
            row.add_to(self.account, &mut classes)?;
        }
        Ok(Some(classes))
    }

    /// Writes a bucket.
    pub(crate) fn set<'t>(self, tx: &'t Tx<'_>, key: &BucketKey, class: ThrottleCounter) -> Reply<'t, usize> {
        let network = match key {
            BucketKey::Shared => SHARED_CLASS,
            BucketKey::Network(network) => network.as_bytes().as_slice(),
        };
        tx.execute(diesel::update(class_of(self.organization.stored(), self.account.stored(), network)).set((
            attempt_classes::attempts.eq(i64::from(class.attempts)),
            attempt_classes::latest.eq(class.latest.map(Timestamp::as_millis)),
        )))
    }

    /// Records a successful login: the bucket of its network is emptied, and the network is known from now on.
    pub(crate) async fn record_login(self, tx: &Tx<'_>, network: &Digest, now: Timestamp) -> Result<(), Failure> {
        let (organization, account) = (self.organization.stored(), self.account.stored());
        let missing = || Failure::damaged(TABLE, self.account.to_string(), "the shared class is missing");
        let classes = self.lock_all(tx).await?.ok_or_else(missing)?;
        let after = classes.after_login(network, now);
        if after.resets_shared {
            self.set(tx, &BucketKey::Shared, ThrottleCounter::default()).await?;
        }
        for forgotten in &after.forgotten {
            tx.execute(diesel::delete(class_of(organization, account, forgotten.as_bytes()))).await?;
        }
        if classes.networks.iter().any(|kept| kept.network == *network) {
            self.set(tx, &BucketKey::Network(*network), ThrottleCounter::default()).await?;
            let own = diesel::update(class_of(organization, account, network.as_bytes()));
            tx.execute(own.set(attempt_classes::last_login_at.eq(now.as_millis()))).await?;
        } else {
            let new = diesel::insert_into(attempt_classes::table).values((
                attempt_classes::organization_id.eq(organization),
                attempt_classes::account_id.eq(account),
                attempt_classes::network.eq(network.as_bytes().as_slice()),
                attempt_classes::attempts.eq(0),
                attempt_classes::last_login_at.eq(now.as_millis()),
            ));
            tx.execute(new).await?;
        }
        record_network(tx, network, now).await
    }
}

/// Locks the buckets of an account before they are changed or removed together. Login attempts lock them in this order, and a
/// statement that changes several rows locks them in any order.
pub(crate) async fn lock_all(tx: &Tx<'_>, organization: OrganizationId, account: AccountId) -> Result<(), Failure> {
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
pub(crate) async fn reset_all(tx: &Tx<'_>, organization: OrganizationId, account: AccountId) -> Result<(), Failure> {
    let ThrottleCounter { attempts, latest } = ThrottleCounter::default();
    lock_all(tx, organization, account).await?;
    let emptied = diesel::update(classes_of(organization.stored(), account.stored())).set((
        attempt_classes::attempts.eq(i64::from(attempts)),
        attempt_classes::latest.eq(latest.map(Timestamp::as_millis)),
    ));
    tx.execute(emptied).await?;
    Ok(())
}

/// Records the network for all accounts. Writes at most once a day, because logins of many accounts share the row.
async fn record_network(tx: &Tx<'_>, network: &Digest, now: Timestamp) -> Result<(), Failure> {
    let network = network.as_bytes().as_slice();
    let new = diesel::insert_into(known_networks::table)
        .values((known_networks::network.eq(network), known_networks::last_login_at.eq(now.as_millis())))
        .on_conflict_do_nothing();
    tx.execute(new).await?;
    let stale = now.plus_seconds(-NETWORK_NOTED_SECONDS).as_millis();
    let stale = known_networks::table
        .filter(known_networks::network.eq(network))
        .filter(known_networks::last_login_at.le(stale));
    tx.execute(diesel::update(stale).set(known_networks::last_login_at.eq(now.as_millis()))).await?;
    Ok(())
}

/// Whether any account logged in from a network lately.
pub(crate) struct NetworkIsKnown {
    pub(crate) network: Digest,
    pub(crate) now: Timestamp,
}

impl Read for NetworkIsKnown {
    type Outcome = bool;

    async fn read(&self, tx: &Tx<'_>) -> Result<bool, Failure> {
        let last_login_at = known_networks::table
            .filter(known_networks::network.eq(self.network.as_bytes().as_slice()))
            .select(known_networks::last_login_at);
        let last_login_at: Option<i64> = tx.first(last_login_at).await?;
        Ok(last_login_at.is_some_and(|at| network_is_known(Timestamp::from_millis(at), self.now)))
    }
}
