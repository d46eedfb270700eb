//! The rows of deliveries.

use super::{organization_of, owner_of};
use crate::db::{Db, Reply, Tx};
use crate::failure::Failure;
use crate::schema::event_deliveries;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    AsChangeset, ExpressionMethods as _, Insertable, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use vault_core::digest::Digest;
use vault_core::id::{EventId, OrganizationId, ReceiverId};
use vault_core::port::ReceiverOwner;
use vault_core::receiver::{DeliveryFailure, DeliveryState, EventDelivery, EventKind};
use vault_core::time::Timestamp;

const TABLE: &str = "event_deliveries";
pub(super) const WAITING: &str = "waiting";

#[derive(Queryable, Selectable)]
#[diesel(table_name = event_deliveries, check_for_backend(Db))]
struct DeliveryRow {
    organization_id: Column<OrganizationId>,
    receiver_id: Column<ReceiverId>,
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

/// The progress of a delivery.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = event_deliveries, treat_none_as_null = true, treat_none_as_default_value = false)]
struct Progress {
    state: &'static str,
    since: i64,
    attempts: i64,
    attempted_at: Option<i64>,
    next_at: i64,
    failure: Option<&'static str>,
}

impl From<&EventDelivery> for Progress {
    fn from(delivery: &EventDelivery) -> Self {
        Self {
            state: delivery.state.as_str(),
            since: delivery.since.as_millis(),
            attempts: delivery.attempts,
            attempted_at: delivery.attempted_at.map(Timestamp::as_millis),
            next_at: delivery.next_at.as_millis(),
            failure: delivery.failure.map(DeliveryFailure::as_str),
        }
    }
}

#[auto_type(no_type_alias)]
fn deliveries_of(organization: IdBytes, receiver: IdBytes) -> _ {
    event_deliveries::table
        .filter(event_deliveries::organization_id.eq(organization))
        .filter(event_deliveries::receiver_id.eq(receiver))
}

impl DeliveryRow {
    fn decode(self) -> Result<EventDelivery, Failure> {
        let organization = self.organization_id.decode(TABLE, &"unknown", "organization_id")?;
        let receiver = self.receiver_id.decode(TABLE, &organization, "receiver_id")?;
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
pub(super) fn insert<'t>(tx: &'t Tx<'_>, delivery: &EventDelivery) -> Reply<'t, usize> {
    let new = diesel::insert_into(event_deliveries::table).values((
        event_deliveries::organization_id.eq(organization_of(delivery.organization).stored()),
        event_deliveries::receiver_id.eq(delivery.receiver.stored()),
        event_deliveries::id.eq(delivery.id.stored()),
        event_deliveries::position.eq(delivery.position),
        event_deliveries::kind.eq(delivery.kind.as_str()),
        event_deliveries::subject.eq(&delivery.subject),
        event_deliveries::body.eq(&delivery.body),
        event_deliveries::at.eq(delivery.at.as_millis()),
        event_deliveries::code.eq(delivery.code.as_bytes().as_slice()),
        Progress::from(delivery),
    ));
    tx.execute(new.on_conflict_do_nothing())
}

/// Records the progress of a delivery, if it exists.
pub(super) fn set_progress<'t>(tx: &'t Tx<'_>, delivery: &EventDelivery) -> Reply<'t, usize> {
    let row = deliveries_of(organization_of(delivery.organization).stored(), delivery.receiver.stored());
    let row = row.filter(event_deliveries::id.eq(delivery.id.stored()));
    tx.execute(diesel::update(row).set(Progress::from(delivery)))
}

/// Finds the delivery of an event to a receiver.
pub(super) async fn find(
    tx: &Tx<'_>,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    id: EventId,
) -> Result<Option<EventDelivery>, Failure> {
    let row = deliveries_of(organization_of(owner).stored(), receiver.stored())
        .filter(event_deliveries::id.eq(id.stored()))
        .select(DeliveryRow::as_select());
    tx.first(row).await?.map(DeliveryRow::decode).transpose()
}

/// Lists deliveries to a receiver before a position, the newest first.
pub(super) async fn list(
    tx: &Tx<'_>,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    before: i64,
    limit: usize,
) -> Result<Vec<EventDelivery>, Failure> {
    let rows = deliveries_of(organization_of(owner).stored(), receiver.stored())
        .filter(event_deliveries::position.lt(before))
        .order(event_deliveries::position.desc())
        .select(DeliveryRow::as_select());
    tx.page(rows, limit).await?.into_iter().map(DeliveryRow::decode).collect()
}

/// Lists the queued deliveries to a receiver, the oldest first.
pub(super) async fn waiting(
    tx: &Tx<'_>,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    limit: usize,
) -> Result<Vec<EventDelivery>, Failure> {
    let rows = deliveries_of(organization_of(owner).stored(), receiver.stored())
        .filter(event_deliveries::state.eq(WAITING))
        .order(event_deliveries::position)
        .select(DeliveryRow::as_select());
    tx.page(rows, limit).await?.into_iter().map(DeliveryRow::decode).collect()
}

/// Fails the queued deliveries to a receiver.
pub(super) fn give_up<'t>(
    tx: &'t Tx<'_>,
    owner: ReceiverOwner,
    receiver: ReceiverId,
    at: Timestamp,
) -> Reply<'t, usize> {
    let rows = deliveries_of(organization_of(owner).stored(), receiver.stored());
    tx.execute(diesel::update(rows.filter(event_deliveries::state.eq(WAITING))).set((
        event_deliveries::state.eq(DeliveryState::Failed.as_str()),
        event_deliveries::attempted_at.eq(at.as_millis()),
    )))
}
