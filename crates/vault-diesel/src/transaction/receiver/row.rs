//! The rows of receivers.

use super::{organization_of, owner_of};
use crate::db::{Db, Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{event_deliveries, receivers};
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{AsChangeset, ExpressionMethods as _, Insertable, QueryDsl as _, Queryable, Selectable};
use vault_core::digest::Digest;
use vault_core::id::{OrganizationId, ReceiverId};
use vault_core::port::ReceiverOwner;
use vault_core::receiver::{
    Channel, DeliveryFailure, EventKinds, Receiver, ReceiverState, ReceiverStatus, SealedTarget, StoredReceiver,
};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "receivers";

#[derive(Queryable, Selectable)]
#[diesel(table_name = receivers, check_for_backend(Db))]
pub(crate) struct ReceiverRow {
    organization_id: Column<OrganizationId>,
    id: Column<ReceiverId>,
    channel: Column<Channel>,
    shown: String,
    events: Column<EventKinds>,
    state: Column<ReceiverState>,
    version: i64,
    created_at: i64,
    address: Column<Blob>,
    secret_number: i64,
    secret: Column<Blob>,
    previous_secret: Column<Blob>,
    previous_until: i64,
    code: Column<Digest>,
    last_delivered_at: Option<i64>,
    failing_since: Option<i64>,
    last_failure: Option<Column<DeliveryFailure>>,
    not_before: i64,
}

/// What a change of a receiver replaces.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = receivers, treat_none_as_default_value = false)]
struct Replaced<'a> {
    events: String,
    state: &'a str,
    version: i64,
    secret_number: i64,
    secret: &'a [u8],
    previous_secret: &'a [u8],
    previous_until: i64,
    code: &'a [u8],
}

impl<'a> Replaced<'a> {
    fn of(StoredReceiver { receiver, target, code, .. }: &'a StoredReceiver) -> Self {
        Self {
            events: receiver.events.to_stored(),
            state: receiver.state.as_str(),
            version: receiver.version,
            secret_number: target.secret_number,
            secret: target.secret.as_bytes(),
            previous_secret: target.previous_secret.as_bytes(),
            previous_until: target.previous_until.as_millis(),
            code: code.as_bytes(),
        }
    }
}

#[auto_type(no_type_alias)]
fn receiver_of(organization: IdBytes, id: IdBytes) -> _ {
    receivers::table.filter(receivers::organization_id.eq(organization)).filter(receivers::id.eq(id))
}

impl ReceiverRow {
    pub(crate) fn decode(self) -> Result<StoredReceiver, Failure> {
        let organization = self.organization_id.decode(TABLE, &"unknown", "organization_id")?;
        let id = self.id.decode(TABLE, &organization, "id")?;
        let failure = self.last_failure.map(|failure| failure.decode(TABLE, &id, "last_failure")).transpose()?;
        Ok(StoredReceiver {
            receiver: Receiver {
                id,
                organization: owner_of(organization),
                channel: self.channel.decode(TABLE, &id, "channel")?,
                shown: self.shown,
                events: self.events.decode(TABLE, &id, "events")?,
                state: self.state.decode(TABLE, &id, "state")?,
                version: self.version,
                created_at: Timestamp::from_millis(self.created_at),
            },
            target: SealedTarget {
                address: self.address.decode(TABLE, &id, "address")?,
                secret_number: self.secret_number,
                secret: self.secret.decode(TABLE, &id, "secret")?,
                previous_secret: self.previous_secret.decode(TABLE, &id, "previous_secret")?,
                previous_until: Timestamp::from_millis(self.previous_until),
            },
            code: self.code.decode(TABLE, &id, "code")?,
            status: ReceiverStatus {
                last_delivered_at: self.last_delivered_at.map(Timestamp::from_millis),
                failing_since: self.failing_since.map(Timestamp::from_millis),
                last_failure: failure,
                not_before: Timestamp::from_millis(self.not_before),
            },
        })
    }
}

/// Counts the receivers of an owner.
pub(super) fn count<'t>(tx: &'t Tx<'_>, owner: ReceiverOwner) -> Reply<'t, i64> {
    tx.one(receivers::table.filter(receivers::organization_id.eq(organization_of(owner).stored())).count())
}

pub(super) fn insert<'t>(tx: &'t Tx<'_>, stored: &StoredReceiver) -> Reply<'t, usize> {
    let receiver = &stored.receiver;
    tx.execute(diesel::insert_into(receivers::table).values((
        receivers::organization_id.eq(organization_of(receiver.organization).stored()),
        receivers::id.eq(receiver.id.stored()),
        receivers::channel.eq(receiver.channel.as_str()),
        receivers::shown.eq(&receiver.shown),
        receivers::created_at.eq(receiver.created_at.as_millis()),
        receivers::address.eq(stored.target.address.as_bytes()),
        receivers::not_before.eq(stored.status.not_before.as_millis()),
        Replaced::of(stored),
    )))
}

/// Locks a receiver for a change. Returns its version, if it exists.
pub(super) fn lock<'t>(tx: &'t Tx<'_>, owner: ReceiverOwner, id: ReceiverId) -> Reply<'t, Option<i64>> {
    let row = receiver_of(organization_of(owner).stored(), id.stored()).select(receivers::version);
    tx.first(locked(row, Update))
}

/// Replaces a receiver that was locked.
pub(super) async fn replace(tx: &Tx<'_>, stored: &StoredReceiver) -> Result<(), Failure> {
    let receiver = &stored.receiver;
    let row = receiver_of(organization_of(receiver.organization).stored(), receiver.id.stored());
    tx.execute(diesel::update(row).set(Replaced::of(stored))).await?;
    set_status(tx, receiver.organization, receiver.id, &stored.status).await?;
    Ok(())
}

/// Records the delivery status of a receiver, if it exists.
pub(super) fn set_status<'t>(
    tx: &'t Tx<'_>,
    owner: ReceiverOwner,
    id: ReceiverId,
    status: &ReceiverStatus,
) -> Reply<'t, usize> {
    tx.execute(diesel::update(receiver_of(organization_of(owner).stored(), id.stored())).set((
        receivers::last_delivered_at.eq(status.last_delivered_at.map(Timestamp::as_millis)),
        receivers::failing_since.eq(status.failing_since.map(Timestamp::as_millis)),
        receivers::last_failure.eq(status.last_failure.map(DeliveryFailure::as_str)),
        receivers::not_before.eq(status.not_before.as_millis()),
    )))
}

/// Removes a receiver with its deliveries.
pub(super) async fn remove(tx: &Tx<'_>, owner: ReceiverOwner, id: ReceiverId) -> Result<(), Failure> {
    let organization = organization_of(owner).stored();
    let deliveries = event_deliveries::table
        .filter(event_deliveries::organization_id.eq(organization))
        .filter(event_deliveries::receiver_id.eq(id.stored()));
    tx.execute(diesel::delete(deliveries)).await?;
    tx.execute(diesel::delete(receiver_of(organization, id.stored()))).await?;
    Ok(())
}
