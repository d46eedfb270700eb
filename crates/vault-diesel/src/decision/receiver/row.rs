//! The rows of receivers.

use super::super::backend::{Connection, RunQuery, for_update};
use super::{organization_of, owner_of};
use crate::failure::Failure;
use crate::schema::{event_deliveries, receivers};
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::digest::Digest;
use vault_core::id::{OrganizationId, ReceiverId};
use vault_core::port::ReceiverOwner;
use vault_core::receiver::{
    Channel, DeliveryFailure, EventKinds, Receiver, ReceiverState, ReceiverStatus, SealedTarget, StoredReceiver,
};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

const TABLE: &str = "receivers";

/// A row, its columns in the order of [`columns`].
#[derive(Queryable)]
pub(in super::super) struct ReceiverRow {
    organization: Column<OrganizationId>,
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

macro_rules! columns {
    () => {{
        use crate::schema::receivers as r;
        (
            r::organization_id,
            r::id,
            r::channel,
            r::shown,
            r::events,
            r::state,
            r::version,
            r::created_at,
            r::address,
            r::secret_number,
            r::secret,
            r::previous_secret,
            r::previous_until,
            r::code,
            r::last_delivered_at,
            r::failing_since,
            r::last_failure,
            r::not_before,
        )
    }};
}

pub(in super::super) use columns;

impl ReceiverRow {
    pub(in super::super) fn decode(self) -> Result<StoredReceiver, Failure> {
        let organization = self.organization.decode(TABLE, &"unknown", "organization_id")?;
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

/// How many receivers an owner has.
pub(super) async fn count(connection: &mut Connection, owner: ReceiverOwner) -> Result<i64, Failure> {
    let of = receivers::table.filter(receivers::organization_id.eq(organization_of(owner).stored()));
    Ok(of.count().get_result(connection).await?)
}

pub(super) async fn insert(connection: &mut Connection, stored: &StoredReceiver) -> Result<(), Failure> {
    let StoredReceiver { receiver, target, code, .. } = stored;
    diesel::insert_into(receivers::table)
        .values((
            receivers::organization_id.eq(organization_of(receiver.organization).stored()),
            receivers::id.eq(receiver.id.stored()),
            receivers::channel.eq(receiver.channel.as_str()),
            receivers::shown.eq(&receiver.shown),
            receivers::events.eq(receiver.events.to_stored()),
            receivers::state.eq(receiver.state.as_str()),
            receivers::version.eq(receiver.version),
            receivers::created_at.eq(receiver.created_at.as_millis()),
            receivers::address.eq(target.address.as_bytes()),
            receivers::secret_number.eq(target.secret_number),
            receivers::secret.eq(target.secret.as_bytes()),
            receivers::previous_secret.eq(target.previous_secret.as_bytes()),
            receivers::previous_until.eq(target.previous_until.as_millis()),
            receivers::code.eq(code.as_bytes().as_slice()),
            receivers::not_before.eq(stored.status.not_before.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes a receiver, to change it. Its version.
pub(super) async fn take(
    connection: &mut Connection,
    owner: ReceiverOwner,
    id: ReceiverId,
) -> Result<Option<i64>, Failure> {
    let row = receivers::table
        .filter(receivers::organization_id.eq(organization_of(owner).stored()))
        .filter(receivers::id.eq(id.stored()))
        .select(receivers::version);
    Ok(for_update!(row).get_result(connection).await.optional()?)
}

/// Puts a row in the place of the one that was taken.
pub(super) async fn replace(connection: &mut Connection, stored: &StoredReceiver) -> Result<(), Failure> {
    let StoredReceiver { receiver, target, code, .. } = stored;
    let row = receivers::table
        .filter(receivers::organization_id.eq(organization_of(receiver.organization).stored()))
        .filter(receivers::id.eq(receiver.id.stored()));
    update(row)
        .set((
            receivers::events.eq(receiver.events.to_stored()),
            receivers::state.eq(receiver.state.as_str()),
            receivers::version.eq(receiver.version),
            receivers::secret_number.eq(target.secret_number),
            receivers::secret.eq(target.secret.as_bytes()),
            receivers::previous_secret.eq(target.previous_secret.as_bytes()),
            receivers::previous_until.eq(target.previous_until.as_millis()),
            receivers::code.eq(code.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    set_status(connection, receiver.organization, receiver.id, &stored.status).await
}

/// Notes how telling a receiver goes, if it is there.
pub(super) async fn set_status(
    connection: &mut Connection,
    owner: ReceiverOwner,
    id: ReceiverId,
    status: &ReceiverStatus,
) -> Result<(), Failure> {
    let row = receivers::table
        .filter(receivers::organization_id.eq(organization_of(owner).stored()))
        .filter(receivers::id.eq(id.stored()));
    update(row)
        .set((
            receivers::last_delivered_at.eq(status.last_delivered_at.map(Timestamp::as_millis)),
            receivers::failing_since.eq(status.failing_since.map(Timestamp::as_millis)),
            receivers::last_failure.eq(status.last_failure.map(DeliveryFailure::as_str)),
            receivers::not_before.eq(status.not_before.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes a receiver, with all that was and is to be delivered to it.
pub(super) async fn remove(connection: &mut Connection, owner: ReceiverOwner, id: ReceiverId) -> Result<(), Failure> {
    let organization = organization_of(owner).stored();
    let deliveries = event_deliveries::table
        .filter(event_deliveries::organization_id.eq(organization))
        .filter(event_deliveries::receiver_id.eq(id.stored()));
    diesel::delete(deliveries).execute(connection).await?;
    let row =
        receivers::table.filter(receivers::organization_id.eq(organization)).filter(receivers::id.eq(id.stored()));
    diesel::delete(row).execute(connection).await?;
    Ok(())
}
