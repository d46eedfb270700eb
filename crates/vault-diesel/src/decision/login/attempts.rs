//! The classes that count the attempts on an account, and the networks that are known.

use super::super::account::accounts::SHARED_CLASS;
use super::super::backend::{Connection, RunQuery, for_update, hold_rows};
use crate::failure::Failure;
use crate::schema::{attempt_classes, known_networks};
use crate::stored::StoredId as _;
use crate::update::update;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{ClassKey, LoginNetwork, ThrottleCounter, ThrottleCounters, network_is_known};
use vault_core::time::Timestamp;

const TABLE: &str = "attempt_classes";
/// How old the latest login of a known network may be before a newer one is written, in seconds: a day.
const NETWORK_NOTED_SECONDS: i64 = 24 * 3600;

/// The classes of one account.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    pub(crate) organization: OrganizationId,
    pub(crate) account: AccountId,
}

/// One class.
#[derive(Queryable)]
pub(crate) struct ClassRow {
    network: Vec<u8>,
    attempts: i64,
    latest: Option<i64>,
    last_login_at: Option<i64>,
}

/// The columns of [`ClassRow`].
macro_rules! columns {
    () => {
        (attempt_classes::network, attempt_classes::attempts, attempt_classes::latest, attempt_classes::last_login_at)
    };
}

pub(crate) use columns;

macro_rules! classes_of {
    ($classes:expr) => {
        attempt_classes::table
            .filter(attempt_classes::organization_id.eq($classes.organization.stored()))
            .filter(attempt_classes::account_id.eq($classes.account.stored()))
    };
}

impl ClassRow {
    /// Adds the class to those of its account.
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
    /// Takes the class of this network and the shared one. `None`: the account has none, not even a shared one.
    pub(crate) async fn hold(
        self,
        connection: &mut Connection,
        network: &Digest,
    ) -> Result<Option<ThrottleCounters>, Failure> {
        // Not as a list of values: SQLite would be given the statement to parse at every login.
        let shared_or_own =
            attempt_classes::network.eq(SHARED_CLASS).or(attempt_classes::network.eq(network.as_bytes().as_slice()));
        let rows: Vec<ClassRow> =
            for_update!(classes_of!(self).filter(shared_or_own).order(attempt_classes::network).select(columns!()))
                .load(connection)
                .await?;
        self.decode(rows)
    }

    /// Takes every class.
    async fn hold_all(self, connection: &mut Connection) -> Result<Option<ThrottleCounters>, Failure> {
        let rows: Vec<ClassRow> =
            for_update!(classes_of!(self).order(attempt_classes::network).select(columns!())).load(connection).await?;
        self.decode(rows)
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

    /// Writes a class.
    pub(crate) async fn set(
        self,
        connection: &mut Connection,
        key: ClassKey,
        class: ThrottleCounter,
    ) -> Result<(), Failure> {
        let network = match &key {
            ClassKey::Shared => SHARED_CLASS,
            ClassKey::Network(network) => network.as_bytes().as_slice(),
        };
        update(classes_of!(self).filter(attempt_classes::network.eq(network)))
            .set((
                attempt_classes::attempts.eq(i64::from(class.attempts)),
                attempt_classes::latest.eq(class.latest.map(Timestamp::as_millis)),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// After a proof from this network: its class begins anew, and it is known from here on.
    pub(crate) async fn note_login(
        self,
        connection: &mut Connection,
        network: &Digest,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let missing = || Failure::damaged(TABLE, self.account.to_string(), "the shared class is missing");
        let classes = self.hold_all(connection).await?.ok_or_else(missing)?;
        let after = classes.after_login(network, now);
        if after.resets_shared {
            self.set(connection, ClassKey::Shared, ThrottleCounter::default()).await?;
        }
        for forgotten in &after.forgotten {
            let network = forgotten.as_bytes().as_slice();
            diesel::delete(classes_of!(self).filter(attempt_classes::network.eq(network))).execute(connection).await?;
        }
        if classes.networks.iter().any(|kept| kept.network == *network) {
            self.set(connection, ClassKey::Network(*network), ThrottleCounter::default()).await?;
            update(classes_of!(self).filter(attempt_classes::network.eq(network.as_bytes().as_slice())))
                .set(attempt_classes::last_login_at.eq(now.as_millis()))
                .execute(connection)
                .await?;
        } else {
            diesel::insert_into(attempt_classes::table)
                .values((
                    attempt_classes::organization_id.eq(self.organization.stored()),
                    attempt_classes::account_id.eq(self.account.stored()),
                    attempt_classes::network.eq(network.as_bytes().as_slice()),
                    attempt_classes::attempts.eq(0),
                    attempt_classes::last_login_at.eq(now.as_millis()),
                ))
                .execute(connection)
                .await?;
        }
        note_network(connection, network, now).await
    }
}

/// Takes the classes of an account, or of all, before they are changed or removed together: attempts take them in this
/// order, and a statement that changes several rows takes them in any.
pub(crate) async fn take_all(
    connection: &mut Connection,
    organization: OrganizationId,
    account: Option<AccountId>,
) -> Result<(), Failure> {
    let order = (attempt_classes::account_id, attempt_classes::network);
    match account {
        Some(account) => {
            let classes = classes_of!(Classes { organization, account });
            hold_rows!(classes.order(order).select(attempt_classes::account_id), connection)?;
        }
        None => {
            let classes = attempt_classes::table.filter(attempt_classes::organization_id.eq(organization.stored()));
            hold_rows!(classes.order(order).select(attempt_classes::account_id), connection)?;
        }
    }
    Ok(())
}

/// Lifts waits and closed classes of an account.
pub(crate) async fn reset_all(
    connection: &mut Connection,
    organization: OrganizationId,
    account: AccountId,
) -> Result<(), Failure> {
    let ThrottleCounter { attempts, latest } = ThrottleCounter::default();
    take_all(connection, organization, Some(account)).await?;
    update(classes_of!(Classes { organization, account }))
        .set((
            attempt_classes::attempts.eq(i64::from(attempts)),
            attempt_classes::latest.eq(latest.map(Timestamp::as_millis)),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Remembers the network for all accounts. Written once a day at most: logins of many accounts share the row.
async fn note_network(connection: &mut Connection, network: &Digest, now: Timestamp) -> Result<(), Failure> {
    let network = network.as_bytes().as_slice();
    diesel::insert_into(known_networks::table)
        .values((known_networks::network.eq(network), known_networks::last_login_at.eq(now.as_millis())))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let stale = now.plus_seconds(-NETWORK_NOTED_SECONDS).as_millis();
    update(
        known_networks::table
            .filter(known_networks::network.eq(network))
            .filter(known_networks::last_login_at.le(stale)),
    )
    .set(known_networks::last_login_at.eq(now.as_millis()))
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether any account logged in from the network lately.
pub(crate) async fn is_known(
    connection: &mut Connection,
    (network, now): &(Digest, Timestamp),
) -> Result<bool, Failure> {
    let last_login_at: Option<i64> = known_networks::table
        .filter(known_networks::network.eq(network.as_bytes().as_slice()))
        .select(known_networks::last_login_at)
        .get_result(connection)
        .await
        .optional()?;
    Ok(last_login_at.is_some_and(|at| network_is_known(Timestamp::from_millis(at), *now)))
}
