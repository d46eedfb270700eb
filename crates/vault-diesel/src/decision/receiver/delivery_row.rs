//! The rows of deliveries.

use super::super::backend::{Connection, RunQuery, load_page};
use super::{organization_of, owner_of};
use crate::failure::Failure;
use crate::schema::event_deliveries;
use crate::stored::{Column, StoredId as _};
use crate::update::update;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _, Queryable};
use vault_core::digest::Digest;
use vault_core::id::{EventId, OrganizationId, ReceiverId};
use vault_core::port::ReceiverOwner;
use vault_core::receiver::{DeliveryFailure, DeliveryState, EventDelivery, EventKind};
use vault_core::time::Timestamp;

const TABLE: &str = "event_deliveries";

#[derive(Queryable)]
pub(super) struct DeliveryRow {
    organization: Column<OrganizationId>,
    receiver: Column<ReceiverId>,
    id: Column<EventId>,
    position: i64,
    kind: Column<EventKind>,
    subject: String,
    body: String,
    at: i64,
    code: Column<Digest>,
    state: Column<DeliveryState>,
    since: i64,
    attempts: i64,
    attempted_at: Option<i64>,
    next_at: i64,
    failure: Option<Column<DeliveryFailure>>,
}

macro_rules! columns {
    () => {{
        use crate::schema::event_deliveries as d;
        (
            d::organization_id,
            d::receiver_id,
            d::id,
            d::position,
            d::kind,
            d::subject,
            d::body,
            d::at,
            d::code,
            d::state,
            d::since,
            d::attempts,
            d::attempted_at,
            d::next_at,
            d::failure,
        )
    }};
}

/// The deliveries to a receiver.
macro_rules! of_receiver {
    ($owner:expr, $receiver:expr) => {{
        use crate::schema::event_deliveries as d;
        d::table
            .filter(d::organization_id.eq(organization_of($owner).stored()))
            .filter(d::receiver_id.eq($receiver.stored()))
    }};
}

impl DeliveryRow {
    fn decode(self) -> Result<EventDelivery, Failure> {
        let organization = self.organization.decode(TABLE, &"unknown", "organization_id")?;
        let receiver = self.receiver.decode(TABLE, &organization, "receiver_id")?;
        let id = self.id.decode(TABLE, &receiver, "id")?;
        Ok(EventDelivery {
            id,
            organization: owner_of(organization),
            receiver,
            position: self.position,
            kind: self.kind.decode(TABLE, &id, "kind")?,
            subject: self.subject,
            body: self.body,
            at: Timestamp::from_millis(self.at),
            code: self.code.decode(TABLE, &id, "code")?,
            state: self.state.decode(TABLE, &id, "state")?,
            since: Timestamp::from_millis(self.since),
            attempts: self.attempts,
            attempted_at: self.attempted_at.map(Timestamp::from_millis),
            next_at: Timestamp::from_millis(self.next_at),
            failure: self.failure.map(|failure| failure.decode(TABLE, &id, "failure")).transpose()?,
        })
    }
}

/// Stores a delivery, unless it is stored already.
pub(super) async fn insert(connection: &mut Connection, delivery: &EventDelivery) -> Result<bool, Failure> {
    let inserted = diesel::insert_into(event_deliveries::table)
        .values((
            event_deliveries::organization_id.eq(organization_of(delivery.organization).stored()),
            event_deliveries::receiver_id.eq(delivery.receiver.stored()),
            event_deliveries::id.eq(delivery.id.stored()),
            event_deliveries::position.eq(delivery.position),
            event_deliveries::kind.eq(delivery.kind.as_str()),
            event_deliveries::subject.eq(&delivery.subject),
            event_deliveries::body.eq(&delivery.body),
            event_deliveries::at.eq(delivery.at.as_millis()),
            event_deliveries::code.eq(delivery.code.as_bytes().as_slice()),
            event_deliveries::state.eq(delivery.state.as_str()),
            event_deliveries::since.eq(delivery.since.as_millis()),
            event_deliveries::attempts.eq(delivery.attempts),
            event_deliveries::attempted_at.eq(delivery.attempted_at.map(Timestamp::as_millis)),
            event_deliveries::next_at.eq(delivery.next_at.as_millis()),
            event_deliveries::failure.eq(delivery.failure.map(DeliveryFailure::as_str)),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    Ok(inserted == 1)
}

/// Notes how far a delivery is, if it is there.
pub(super) async fn set_progress(connection: &mut Connection, delivery: &EventDelivery) -> Result<(), Failure> {
    let row =
        of_receiver!(delivery.organization, delivery.receiver).filter(event_deliveries::id.eq(delivery.id.stored()));
    update(row)
        .set((
            event_deliveries::state.eq(delivery.state.as_str()),
            event_deliveries::since.eq(delivery.since.as_millis()),
            event_deliveries::attempts.eq(delivery.attempts),
            event_deliveries::attempted_at.eq(delivery.attempted_at.map(Timestamp::as_millis)),
            event_deliveries::next_at.eq(delivery.next_at.as_millis()),
            event_deliveries::failure.eq(delivery.failure.map(DeliveryFailure::as_str)),
        ))
        .execute(connection)
        .await?;
    Ok(())
}

/// The delivery of an event to a receiver.
pub(super) async fn find(
    connection: &mut Connection,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    id: EventId,
) -> Result<Option<EventDelivery>, Failure> {
    let row = of_receiver!(owner, receiver).filter(event_deliveries::id.eq(id.stored())).select(columns!());
    let row: Option<DeliveryRow> = row.get_result(connection).await.optional()?;
    row.map(DeliveryRow::decode).transpose()
}

/// Deliveries to a receiver before a position, the newest first.
pub(super) async fn list(
    connection: &mut Connection,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    before: i64,
    limit: usize,
) -> Result<Vec<EventDelivery>, Failure> {
    let rows = of_receiver!(owner, receiver)
        .filter(event_deliveries::position.lt(before))
        .order(event_deliveries::position.desc())
        .select(columns!());
    let rows: Vec<DeliveryRow> = load_page!(rows, connection, limit).await?;
    rows.into_iter().map(DeliveryRow::decode).collect()
}

/// What waits for a receiver, the oldest first.
pub(super) async fn waiting(
    connection: &mut Connection,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    limit: usize,
) -> Result<Vec<EventDelivery>, Failure> {
    let rows = of_receiver!(owner, receiver)
        .filter(event_deliveries::state.eq("waiting"))
        .order(event_deliveries::position)
        .select(columns!());
    let rows: Vec<DeliveryRow> = load_page!(rows, connection, limit).await?;
    rows.into_iter().map(DeliveryRow::decode).collect()
}

/// Gives up what waits for a receiver.
pub(super) async fn give_up(
    connection: &mut Connection,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    at: Timestamp,
) -> Result<(), Failure> {
    let rows = of_receiver!(owner, receiver).filter(event_deliveries::state.eq("waiting"));
    update(rows)
        .set((
            event_deliveries::state.eq(DeliveryState::Failed.as_str()),
            event_deliveries::attempted_at.eq(at.as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
