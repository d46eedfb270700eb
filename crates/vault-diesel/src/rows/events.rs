//! Delivery status of receivers, and the reading of events.

use super::deliveries::WAITING;
use super::{TxRows, changed_one, lease, several, then};
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::Never;
use crate::schema::{
    account_notices, attempt_classes, credentials, event_deliveries, event_position, lookups, receiver_status,
};
use crate::stored::{AnyId, Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
};
use uuid::Uuid;
use vault_core::credential::CredentialType;
use vault_core::digest::Digest;
use vault_core::entity::Index;
use vault_core::id::{AccountId, CredentialId, OrganizationId, ReceiverId};
use vault_core::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS};
use vault_core::namespace::Namespace;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{EventRows, Reply};
use vault_core::receiver::{
    AccountNotice, DeliveryFailure, EventKind, EventLease, EventPosition, Expiring, ExpiringObject, FindExpiring,
    ReceiverKey, ReceiverStatus,
};
use vault_core::time::Timestamp;

/// The key of the one row of `event_position`.
const SINGLETON: i64 = 1;

#[auto_type(no_type_alias)]
pub(super) fn status_of(organization: IdBytes, receiver: IdBytes) -> _ {
    receiver_status::table
        .filter(receiver_status::organization_id.eq(organization))
        .filter(receiver_status::receiver_id.eq(receiver))
}

impl EventRows for TxRows<'_> {
    fn receiver_status(&self, key: ReceiverKey) -> Reply<'_, ReceiverStatus> {
        let row = status_of(key.organization().stored(), key.id.stored()).select((
            receiver_status::last_delivered_at,
            receiver_status::failing_since,
            receiver_status::last_failure,
            receiver_status::not_before,
        ));
        type Row = (Option<i64>, Option<i64>, Option<Column<DeliveryFailure>>, i64);
        then(self.tx.first(row), move |row: Option<Row>| {
            let Some((last_delivered_at, failing_since, failure, not_before)) = row else {
                return Ok(ReceiverStatus::NEW);
            };
            let failure = failure.map(|failure| failure.decode("receiver_status", &key.id, "last_failure"));
            Ok(ReceiverStatus {
                last_delivered_at: last_delivered_at.map(Timestamp::from_millis),
                failing_since: failing_since.map(Timestamp::from_millis),
                last_failure: failure.transpose()?,
                not_before: Timestamp::from_millis(not_before),
            })
        })
    }

    fn set_receiver_status(&self, key: ReceiverKey, status: &ReceiverStatus) -> Reply<'_, ()> {
        let set = (
            receiver_status::last_delivered_at.eq(status.last_delivered_at.map(Timestamp::as_millis)),
            receiver_status::failing_since.eq(status.failing_since.map(Timestamp::as_millis)),
            receiver_status::last_failure.eq(status.last_failure.map(DeliveryFailure::as_str)),
            receiver_status::not_before.eq(status.not_before.as_millis()),
        );
        let new = diesel::insert_into(receiver_status::table)
            .values((
                receiver_status::organization_id.eq(key.organization().stored()),
                receiver_status::receiver_id.eq(key.id.stored()),
                set,
            ))
            .on_conflict((receiver_status::organization_id, receiver_status::receiver_id))
            .do_update()
            .set(set);
        then(self.tx.execute(new), |_| Ok(()))
    }

    fn receivers_due(&self, now: Timestamp) -> Reply<'_, Vec<ReceiverKey>> {
        let is_its = event_deliveries::organization_id
            .eq(lookups::organization_id)
            .and(event_deliveries::receiver_id.eq(lookups::id));
        let of_it = receiver_status::organization_id
            .eq(lookups::organization_id)
            .and(receiver_status::receiver_id.eq(lookups::id));
        let not_before = receiver_status::not_before.nullable();
        let is_free = not_before.is_null().or(not_before.le(now.as_millis()));
        let is_test = event_deliveries::kind.eq(EventKind::ReceiverTest.as_str());
        let rows = lookups::table
            .inner_join(event_deliveries::table.on(is_its))
            .left_join(receiver_status::table.on(of_it))
            .filter(lookups::name.eq(Index::ActiveReceiver.as_str()))
            .filter(event_deliveries::state.eq(WAITING))
            .filter(event_deliveries::next_at.le(now.as_millis()))
            .filter(is_test.or(is_free.assume_not_null()))
            .select((lookups::organization_id, lookups::id))
            .distinct();
        then(self.tx.load(rows), |rows: Vec<(AnyId, AnyId)>| {
            let decode = |(organization, id): (AnyId, AnyId)| {
                let id: ReceiverId = id.decode("lookups")?;
                Ok(ReceiverKey::of_row(organization.decode("lookups")?, *id.as_uuid()))
            };
            rows.into_iter().map(decode).collect()
        })
    }

    fn take_event_lease(&self, lease: &EventLease) -> Reply<'_, Option<EventPosition>> {
        let lease = lease.clone();
        several(async move { take(&self.tx, &lease).await })
    }

    fn move_event_position(&self, holder: Uuid, from: &EventPosition, to: &EventPosition) -> Reply<'_, bool> {
        let row = event_position::table
            .filter(event_position::singleton.eq(SINGLETON))
            .filter(event_position::holder.eq(holder.hyphenated().to_string()))
            .filter(event_position::checkpoint.eq(from.checkpoint))
            .filter(event_position::scanned.eq(from.scanned.as_millis()));
        let position = (
            event_position::checkpoint.eq(to.checkpoint),
            event_position::scanned.eq(to.scanned.as_millis()),
            event_position::newest.eq(to.newest),
            event_position::code.eq(to.mac.as_bytes().as_slice()),
        );
        then(self.tx.execute(diesel::update(row).set(position)), changed_one)
    }

    fn expiring_credentials(&self, query: &FindExpiring) -> Reply<'_, Vec<Expiring>> {
        let query = *query;
        several(async move { expiring(&self.tx, query).await })
    }

    fn notices_between(&self, after: Timestamp, until: Timestamp) -> Reply<'_, Vec<AccountNotice>> {
        several(async move { notices(&self.tx, after, until).await })
    }
}

async fn take(tx: &Tx<'_>, lease: &EventLease) -> Result<Option<EventPosition>, Failure> {
    let EventLease { holder, now, until, first } = lease;
    let new = diesel::insert_into(event_position::table)
        .values((
            event_position::singleton.eq(SINGLETON),
            event_position::checkpoint.eq(first.checkpoint),
            event_position::scanned.eq(first.scanned.as_millis()),
            event_position::newest.eq(first.newest),
            event_position::code.eq(first.mac.as_bytes().as_slice()),
        ))
        .on_conflict_do_nothing();
    tx.execute(new).await?;
    let (table, longest_seconds) = ("event_position", EventLease::LONGEST_SECONDS);
    let request = lease::Request { table, holder, now: *now, until: *until, longest_seconds };
    if !lease::acquire(tx, request).await? {
        return Ok(None);
    }
    let row = event_position::table.filter(event_position::singleton.eq(SINGLETON));
    let position = (event_position::checkpoint, event_position::scanned, event_position::newest, event_position::code);
    let (checkpoint, scanned, newest, code): (i64, i64, i64, Column<Digest>) = tx.one(row.select(position)).await?;
    // A MAC that has not 32 bytes verifies nothing, like any other damaged one.
    let mac = code.decode("event_position", &checkpoint, "code").unwrap_or(Digest::from_bytes([0; 32]));
    Ok(Some(EventPosition { checkpoint, scanned: Timestamp::from_millis(scanned), newest, mac }))
}

async fn expiring(tx: &Tx<'_>, query: FindExpiring) -> Result<Vec<Expiring>, Failure> {
    let FindExpiring { organization, after, until, limit } = query;
    let rows = credentials::table
        .filter(credentials::organization_id.eq(organization.stored()))
        .filter(credentials::expires_at.gt(after.as_millis()))
        .filter(credentials::expires_at.le(until.as_millis()))
        .filter(credentials::expires_at.lt(Never))
        .order((credentials::expires_at, credentials::id))
        .select((
            credentials::id,
            credentials::kind,
            credentials::namespace,
            credentials::expires_at,
            credentials::created_at,
        ));
    type Row = (Column<CredentialId>, Column<CredentialType>, Column<Namespace>, i64, i64);
    let decode = |(id, kind, namespace, expires_at, known_since): Row| {
        let id = id.decode("credentials", &organization, "id")?;
        let kind = kind.decode("credentials", &id, "type")?.as_str().to_owned();
        let namespace = namespace.decode("credentials", &id, "namespace")?.as_str().to_owned();
        Ok(Expiring {
            organization,
            object: ExpiringObject::Credential(id, kind, namespace),
            expires_at: Timestamp::from_millis(expires_at),
            known_since: Timestamp::from_millis(known_since),
        })
    };
    tx.page(rows, limit).await?.into_iter().map(decode).collect()
}

/// The notices of all accounts in a period, and the lockouts.
async fn notices(tx: &Tx<'_>, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, Failure> {
    const TABLE: &str = "account_notices";
    let rows = account_notices::table
        .filter(account_notices::at.gt(after.as_millis()))
        .filter(account_notices::at.le(until.as_millis()))
        .select((
            account_notices::organization_id,
            account_notices::account_id,
            account_notices::at,
            account_notices::code,
        ));
    type Row = (Column<OrganizationId>, Column<AccountId>, i64, Column<NoticeCode>);
    let decode = |(organization, account, at, code): Row| {
        let organization = organization.decode(TABLE, &at, "organization_id")?;
        let account = account.decode(TABLE, &organization, "account_id")?;
        let code = code.decode(TABLE, &account, "code")?;
        Ok((organization, account, StoredNotice { code, at: Timestamp::from_millis(at) }))
    };
    let locked = attempt_classes::table
        .filter(attempt_classes::latest.gt(after.as_millis()))
        .filter(attempt_classes::latest.le(until.as_millis()))
        .filter(attempt_classes::attempts.ge(i64::from(FREE_ATTEMPTS)))
        .filter(attempt_classes::attempts.lt(i64::from(CLOSING_ATTEMPTS)))
        .select((attempt_classes::organization_id, attempt_classes::account_id, attempt_classes::latest));
    let decode_locked = |(organization, account, at): (Column<OrganizationId>, Column<AccountId>, Option<i64>)| {
        let at = at.unwrap_or_default();
        let organization = organization.decode("attempt_classes", &at, "organization_id")?;
        let account = account.decode("attempt_classes", &organization, "account_id")?;
        let notice = StoredNotice { code: NoticeCode::LockedOut, at: Timestamp::from_millis(at) };
        Ok((organization, account, notice))
    };
    let notices = tx.load(rows).await?.into_iter().map(decode);
    let notices = notices.chain(tx.load(locked).await?.into_iter().map(decode_locked));
    let mut notices = notices.collect::<Result<Vec<AccountNotice>, Failure>>()?;
    notices.sort_by_key(|(.., notice)| notice.at);
    Ok(notices)
}
