//! Reading events, and recording how they were delivered.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction, lease};
use super::delivery_row::{self, WAITING};
use super::owner_of;
use super::row::{self, ReceiverRow};
use crate::db::Tx;
use crate::failure::Failure;
use crate::new_row::Never;
use crate::schema::{account_notices, attempt_classes, credentials, event_deliveries, event_position, receivers};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::audit::SealedAuditRecord;
use vault_core::credential::CredentialType;
use vault_core::digest::Digest;
use vault_core::id::{AccountId, CredentialId, OrganizationId, ReceiverId};
use vault_core::lockout::{CLOSING_ATTEMPTS, FREE_ATTEMPTS};
use vault_core::namespace::Namespace;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{AccountNotice, EventLease, FindExpiring, ReceiverOwner, RecordEvents};
use vault_core::receiver::{
    Attempted, EventDelivery, EventKind, EventPosition, Expiring, ExpiringObject, ReceiverState, StoredReceiver,
};
use vault_core::time::Timestamp;

/// The key of the one row of `event_position`.
const SINGLETON: i64 = 1;

/// Acquires the lease of the events.
impl Transaction for EventLease {
    /// The position. `None` if another process has the lease.
    type Outcome = Option<EventPosition>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<EventPosition>, Failure> {
        let Self { holder, now, until, first } = self;
        let new = diesel::insert_into(event_position::table)
            .values((
                event_position::singleton.eq(SINGLETON),
                event_position::checkpoint.eq(first.checkpoint),
                event_position::scanned.eq(first.scanned.as_millis()),
                event_position::newest.eq(first.newest),
                event_position::code.eq(first.code.as_bytes().as_slice()),
            ))
            .on_conflict_do_nothing();
        tx.execute(new).await?;
        let (table, longest_seconds) = ("event_position", Self::LONGEST_SECONDS);
        let request = lease::Request { table, holder, now: *now, until: *until, longest_seconds };
        if !lease::acquire(tx, request).await? {
            return Ok(None);
        }
        let row = event_position::table.filter(event_position::singleton.eq(SINGLETON));
        let position =
            (event_position::checkpoint, event_position::scanned, event_position::newest, event_position::code);
        let (checkpoint, scanned, newest, code): (i64, i64, i64, Column<Digest>) = tx.one(row.select(position)).await?;
        // A code that has not 32 bytes verifies nothing, like any other damaged one.
        let code = code.decode("event_position", &checkpoint, "code").unwrap_or(Digest::from_bytes([0; 32]));
        audit.commit_without_entry();
        Ok(Some(EventPosition { checkpoint, scanned: Timestamp::from_millis(scanned), newest, code }))
    }
}

/// Moves the position and stores deliveries, if the holder still has the lease and the position is the expected one.
impl Transaction for RecordEvents {
    /// Whether the position was moved.
    type Outcome = bool;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<bool, Failure> {
        let Self { holder, from, to, deliveries } = self;
        let row = event_position::table
            .filter(event_position::singleton.eq(SINGLETON))
            .filter(event_position::holder.eq(holder.hyphenated().to_string()))
            .filter(event_position::checkpoint.eq(from.checkpoint))
            .filter(event_position::scanned.eq(from.scanned.as_millis()));
        let position = (
            event_position::checkpoint.eq(to.checkpoint),
            event_position::scanned.eq(to.scanned.as_millis()),
            event_position::newest.eq(to.newest),
            event_position::code.eq(to.code.as_bytes().as_slice()),
        );
        if tx.execute(diesel::update(row).set(position)).await? == 0 {
            return Ok(false);
        }
        for delivery in deliveries {
            delivery_row::insert(tx, delivery).await?;
        }
        audit.commit_without_entry();
        Ok(true)
    }
}

/// Stores deliveries.
pub(crate) struct AddDeliveries(pub(crate) Vec<EventDelivery>);

impl Transaction for AddDeliveries {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        for delivery in &self.0 {
            delivery_row::insert(tx, delivery).await?;
        }
        audit.commit_without_entry();
        Ok(())
    }
}

/// The queued deliveries to a receiver, the oldest first.
pub(crate) struct WaitingDeliveries {
    pub(crate) owner: ReceiverOwner,
    pub(crate) receiver: ReceiverId,
    pub(crate) limit: usize,
}

impl Read for WaitingDeliveries {
    type Outcome = Vec<EventDelivery>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<EventDelivery>, Failure> {
        delivery_row::waiting(tx, self.owner, self.receiver, self.limit).await
    }
}

/// All receivers with their ids. A receiver whose row is damaged is `None`.
pub(crate) struct AllReceivers;

impl Read for AllReceivers {
    type Outcome = Vec<(String, Option<StoredReceiver>)>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<(String, Option<StoredReceiver>)>, Failure> {
        let rows = tx.load(receivers::table.select((receivers::id, ReceiverRow::as_select()))).await?;
        let decode = |(id, row): (AnyId, ReceiverRow)| (id.to_string(), row.decode().ok());
        Ok(rows.into_iter().map(decode).collect())
    }
}

/// Credentials of an organization that expire in a period.
impl Read for FindExpiring {
    type Outcome = Vec<Expiring>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<Expiring>, Failure> {
        let FindExpiring { organization, after, until, limit } = *self;
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
}

/// Notices of all accounts in a period.
pub(crate) struct NoticesBetween {
    pub(crate) after: Timestamp,
    pub(crate) until: Timestamp,
}

impl Read for NoticesBetween {
    type Outcome = Vec<AccountNotice>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<AccountNotice>, Failure> {
        const TABLE: &str = "account_notices";
        let rows = account_notices::table
            .filter(account_notices::at.gt(self.after.as_millis()))
            .filter(account_notices::at.le(self.until.as_millis()))
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
            .filter(attempt_classes::latest.gt(self.after.as_millis()))
            .filter(attempt_classes::latest.le(self.until.as_millis()))
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
}

/// Receivers with a delivery that is due.
pub(crate) struct ReceiversDue(pub(crate) Timestamp);

impl Read for ReceiversDue {
    type Outcome = Vec<(ReceiverOwner, ReceiverId)>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<(ReceiverOwner, ReceiverId)>, Failure> {
        let now = self.0.as_millis();
        let waits = event_deliveries::table
            .filter(event_deliveries::organization_id.eq(receivers::organization_id))
            .filter(event_deliveries::receiver_id.eq(receivers::id))
            .filter(event_deliveries::state.eq(WAITING))
            .filter(event_deliveries::next_at.le(now));
        let is_free = receivers::not_before.le(now);
        let is_test = event_deliveries::kind.eq(EventKind::ReceiverTest.as_str());
        let rows = receivers::table
            .filter(receivers::state.eq(ReceiverState::Active.as_str()))
            .filter(exists(waits.filter(is_free.or(is_test))))
            .select((receivers::organization_id, receivers::id));
        let decode = |(organization, id): (Column<OrganizationId>, Column<ReceiverId>)| {
            let organization = organization.decode("receivers", &"unknown", "organization_id")?;
            Ok((owner_of(organization), id.decode("receivers", &organization, "id")?))
        };
        tx.load(rows).await?.into_iter().map(decode).collect()
    }
}

/// Records attempts to deliver to one receiver.
pub(crate) struct RecordAttempts(pub(crate) Vec<Attempted>);

impl Transaction for RecordAttempts {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        for attempted in &self.0 {
            delivery_row::set_progress(tx, &attempted.delivery).await?;
        }
        if let Some(Attempted { delivery, receiver, .. }) = self.0.last() {
            row::set_status(tx, delivery.organization, delivery.receiver, &receiver.status).await?;
        }
        audit.commit_without_entry();
        Ok(())
    }
}

/// Disables a receiver, unless it was changed, and fails its queued deliveries.
pub(crate) struct DisableReceiver {
    pub(crate) next: StoredReceiver,
    pub(crate) audit: SealedAuditRecord,
}

impl Transaction for DisableReceiver {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let (owner, id) = (self.next.receiver.organization, self.next.receiver.id);
        if row::lock(tx, owner, id).await? != Some(self.next.receiver.version - 1) {
            return Ok(());
        }
        row::replace(tx, &self.next).await?;
        delivery_row::give_up(tx, owner, id, self.audit.record.at).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Removes deliveries that ended before a moment. Returns their number.
pub(crate) struct RemoveDeliveries(pub(crate) Timestamp);

impl Transaction for RemoveDeliveries {
    type Outcome = usize;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<usize, Failure> {
        let ended = event_deliveries::table
            .filter(event_deliveries::state.ne(WAITING))
            .filter(event_deliveries::attempted_at.lt(self.0.as_millis()));
        audit.commit_without_entry();
        Ok(tx.execute(diesel::delete(ended)).await?)
    }
}
