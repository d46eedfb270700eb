//! Counting attempts, each in its class.

use super::super::account::accounts::SHARED_CLASS;
use super::super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::{attempt_classes, unknown_addresses};
use crate::stored::ToIdText as _;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::lockout::{AttemptClass, AttemptDecision, KNOWN_NETWORKS, network_is_known};
use vault_core::time::Timestamp;

/// The classes of one account.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    pub(crate) organization: OrganizationId,
    pub(crate) account: AccountId,
}

/// One class as stored.
struct StoredClass {
    class: AttemptClass,
    last_login_at: Option<Timestamp>,
}

macro_rules! class_of {
    ($classes:expr, $network:expr) => {
        attempt_classes::table
            .filter(attempt_classes::organization_id.eq($classes.organization.text()))
            .filter(attempt_classes::account_id.eq($classes.account.text()))
            .filter(attempt_classes::network.eq($network))
    };
}

impl Classes {
    /// Counts an attempt from this network in its class, if it may be evaluated at all: the attempts in a row of
    /// that class, this one included.
    pub(crate) async fn count(
        self,
        connection: &mut Connection,
        network: &Digest,
        now: Timestamp,
    ) -> Result<Option<u32>, Failure> {
        let known = self.hold(connection, network.as_bytes()).await?.filter(|stored| stored.is_known(now));
        let (network, stored) = match known {
            Some(stored) => (network.as_bytes().as_slice(), stored),
            None => (SHARED_CLASS, self.hold_shared(connection).await?),
        };
        match stored.class.decide(now) {
            AttemptDecision::Evaluate(class) => {
                self.set(connection, network, class).await?;
                Ok(Some(class.attempts))
            }
            AttemptDecision::Wait | AttemptDecision::Closed => Ok(None),
        }
    }

    /// After a proof: the class that it came in by begins anew, a closed shared class too, and the network is
    /// known from here on.
    pub(crate) async fn forgive(
        self,
        connection: &mut Connection,
        network: &Digest,
        now: Timestamp,
    ) -> Result<(), Failure> {
        // The shared class first: it serialises the logins of one account that come from different networks.
        let shared = self.hold_shared(connection).await?;
        let stored = self.hold(connection, network.as_bytes()).await?;
        let was_known = stored.as_ref().is_some_and(|stored| stored.is_known(now));
        if !was_known || shared.class.is_closed() {
            self.set(connection, SHARED_CLASS, AttemptClass::default()).await?;
        }
        if stored.is_some() {
            self.set(connection, network.as_bytes(), AttemptClass::default()).await?;
            diesel::update(class_of!(self, network.as_bytes().as_slice()))
                .set(attempt_classes::last_login_at.eq(now.as_millis()))
                .execute(connection)
                .await?;
            return Ok(());
        }
        self.forget_oldest(connection).await?;
        diesel::insert_into(attempt_classes::table)
            .values((
                attempt_classes::organization_id.eq(self.organization.text()),
                attempt_classes::account_id.eq(self.account.text()),
                attempt_classes::network.eq(network.as_bytes().as_slice()),
                attempt_classes::attempts.eq(0),
                attempt_classes::last_login_at.eq(now.as_millis()),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Makes room for one more known network.
    async fn forget_oldest(self, connection: &mut Connection) -> Result<(), Failure> {
        let newest_first: Vec<Vec<u8>> = attempt_classes::table
            .filter(attempt_classes::organization_id.eq(self.organization.text()))
            .filter(attempt_classes::account_id.eq(self.account.text()))
            .filter(attempt_classes::network.ne(SHARED_CLASS))
            .order((attempt_classes::last_login_at.desc(), attempt_classes::network))
            .select(attempt_classes::network)
            .load(connection)
            .await?;
        for network in newest_first.iter().skip(KNOWN_NETWORKS - 1) {
            diesel::delete(class_of!(self, network)).execute(connection).await?;
        }
        Ok(())
    }

    async fn hold(self, connection: &mut Connection, network: &[u8]) -> Result<Option<StoredClass>, Failure> {
        type Row = (i64, Option<i64>, Option<i64>);
        let row: Option<Row> = for_update!(class_of!(self, network).select((
            attempt_classes::attempts,
            attempt_classes::latest,
            attempt_classes::last_login_at
        )))
        .get_result(connection)
        .await
        .optional()?;
        let Some((attempts, latest, last_login_at)) = row else { return Ok(None) };
        let class = class("attempt_classes", &self.account, attempts, latest)?;
        Ok(Some(StoredClass { class, last_login_at: last_login_at.map(Timestamp::from_millis) }))
    }

    async fn hold_shared(self, connection: &mut Connection) -> Result<StoredClass, Failure> {
        let missing = || Failure::damaged("attempt_classes", self.account.to_string(), "the shared class is missing");
        self.hold(connection, SHARED_CLASS).await?.ok_or_else(missing)
    }

    async fn set(self, connection: &mut Connection, network: &[u8], class: AttemptClass) -> Result<(), Failure> {
        diesel::update(class_of!(self, network))
            .set((
                attempt_classes::attempts.eq(i64::from(class.attempts)),
                attempt_classes::latest.eq(class.latest.map(Timestamp::as_millis)),
            ))
            .execute(connection)
            .await?;
        Ok(())
    }
}

impl StoredClass {
    fn is_known(&self, now: Timestamp) -> bool {
        self.last_login_at.is_some_and(|last_login| network_is_known(last_login, now))
    }
}

/// Counts an attempt on an address that nobody has, if it would be evaluated at all.
pub(crate) async fn count_unknown(connection: &mut Connection, bucket: u16, now: Timestamp) -> Result<bool, Failure> {
    let bucket = i64::from(bucket);
    diesel::insert_into(unknown_addresses::table)
        .values((unknown_addresses::bucket.eq(bucket), unknown_addresses::attempts.eq(0)))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let (attempts, latest): (i64, Option<i64>) = for_update!(
        unknown_addresses::table
            .filter(unknown_addresses::bucket.eq(bucket))
            .select((unknown_addresses::attempts, unknown_addresses::latest))
    )
    .get_result(connection)
    .await?;
    let AttemptDecision::Evaluate(counted) = class("unknown_addresses", &bucket, attempts, latest)?.decide(now) else {
        return Ok(false);
    };
    diesel::update(unknown_addresses::table.filter(unknown_addresses::bucket.eq(bucket)))
        .set((
            unknown_addresses::attempts.eq(i64::from(counted.attempts)),
            unknown_addresses::latest.eq(counted.latest.map(Timestamp::as_millis)),
        ))
        .execute(connection)
        .await?;
    Ok(true)
}

/// Notes when an attempt was refused, so that a refusal writes a row whether anybody has the address or not. Nothing is
/// decided by it; a row written as it stands would not do, since SQLite writes no page that stays the same. It is read
/// before and after because the refusal of an account takes three statements.
pub(crate) async fn note_refusal_of_unknown(
    connection: &mut Connection,
    bucket: u16,
    now: Timestamp,
) -> Result<(), Failure> {
    let row = unknown_addresses::table.filter(unknown_addresses::bucket.eq(i64::from(bucket)));
    let refused_at = row.select(unknown_addresses::refused_at);
    let _: Option<Option<i64>> = for_update!(refused_at).get_result(connection).await.optional()?;
    diesel::update(row).set(unknown_addresses::refused_at.eq(now.as_millis())).execute(connection).await?;
    let _: Option<Option<i64>> = refused_at.get_result(connection).await.optional()?;
    Ok(())
}

fn class(table: &'static str, id: &dyn ToString, attempts: i64, latest: Option<i64>) -> Result<AttemptClass, Failure> {
    let attempts = u32::try_from(attempts).map_err(|_| Failure::damaged(table, id.to_string(), "attempts"))?;
    Ok(AttemptClass { attempts, latest: latest.map(Timestamp::from_millis) })
}
