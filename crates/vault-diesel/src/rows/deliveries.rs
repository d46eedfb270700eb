//! The rows of deliveries.

use super::events::status_of;
use super::{TxRows, several, then};
use crate::db::Db;
use crate::failure::Failure;
use crate::schema::event_deliveries;
use crate::stored::{Column, IdBytes, StoredId as _};
use diesel::dsl::auto_type;
use diesel::{
    AsChangeset, ExpressionMethods as _, Insertable, QueryDsl as _, Queryable, Selectable, SelectableHelper as _,
};
use futures_util::try_join;
use vault_core::digest::Digest;
use vault_core::id::{EventId, OrganizationId, ReceiverId};
use vault_core::port::{DeliveryRows, Reply};
use vault_core::receiver::{DeliveryFailure, DeliveryState, EventDelivery, EventKind, ReceiverKey};
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
            organization: ReceiverKey::of_row(organization, *receiver.as_uuid()).owner,
            receiver,
            position: self.position,
            kind: self.kind.decode(TABLE, &id, "kind")?,
            subject: self.subject,
            body: self.body,
            at: Timestamp::from_millis(self.at),
            mac: self.code.decode(TABLE, &id, "code")?,
            state: self.state.decode(TABLE, &id, "state")?,
            since: Timestamp::from_millis(self.since),
            attempts: self.attempts,
            attempted_at: self.attempted_at.map(Timestamp::from_millis),
            next_at: Timestamp::from_millis(self.next_at),
            failure: self.failure.map(|failure| failure.decode(TABLE, &id, "failure")).transpose()?,
        })
    }
}

fn columns(key: ReceiverKey) -> (IdBytes, IdBytes) {
    (key.organization().stored(), key.id.stored())
}

fn decode(rows: Vec<DeliveryRow>) -> Result<Vec<EventDelivery>, Failure> {
    rows.into_iter().map(DeliveryRow::decode).collect()
}

impl DeliveryRows for TxRows<'_> {
    fn insert_delivery(&self, delivery: &EventDelivery) -> Reply<'_, ()> {
        let (organization, receiver) = columns(delivery.to());
        let new = diesel::insert_into(event_deliveries::table).values((
            event_deliveries::organization_id.eq(organization),
            event_deliveries::receiver_id.eq(receiver),
            event_deliveries::id.eq(delivery.id.stored()),
            event_deliveries::position.eq(delivery.position),
            event_deliveries::kind.eq(delivery.kind.as_str()),
            event_deliveries::subject.eq(&delivery.subject),
            event_deliveries::body.eq(&delivery.body),
            event_deliveries::at.eq(delivery.at.as_millis()),
            event_deliveries::code.eq(delivery.mac.as_bytes().as_slice()),
            Progress::from(delivery),
        ));
        then(self.tx.execute(new.on_conflict_do_nothing()), |_| Ok(()))
    }

    fn set_progress(&self, delivery: &EventDelivery) -> Reply<'_, ()> {
        let (organization, receiver) = columns(delivery.to());
        let row = deliveries_of(organization, receiver).filter(event_deliveries::id.eq(delivery.id.stored()));
        then(self.tx.execute(diesel::update(row).set(Progress::from(delivery))), |_| Ok(()))
    }

    fn delivery(&self, key: ReceiverKey, event: EventId) -> Reply<'_, Option<EventDelivery>> {
        let (organization, receiver) = columns(key);
        let row = deliveries_of(organization, receiver).filter(event_deliveries::id.eq(event.stored()));
        let row = self.tx.first(row.select(DeliveryRow::as_select()));
        then(row, |row: Option<DeliveryRow>| row.map(DeliveryRow::decode).transpose())
    }

    fn deliveries(&self, key: ReceiverKey, before: i64, limit: usize) -> Reply<'_, Vec<EventDelivery>> {
        let (organization, receiver) = columns(key);
        let rows = deliveries_of(organization, receiver)
            .filter(event_deliveries::position.lt(before))
            .order(event_deliveries::position.desc())
            .select(DeliveryRow::as_select());
        then(self.tx.page(rows, limit), decode)
    }

    fn waiting_deliveries(&self, key: ReceiverKey, limit: usize) -> Reply<'_, Vec<EventDelivery>> {
        let (organization, receiver) = columns(key);
        let rows = deliveries_of(organization, receiver)
            .filter(event_deliveries::state.eq(WAITING))
            .order(event_deliveries::position)
            .select(DeliveryRow::as_select());
        then(self.tx.page(rows, limit), decode)
    }

    fn give_up_deliveries(&self, key: ReceiverKey, at: Timestamp) -> Reply<'_, ()> {
        let (organization, receiver) = columns(key);
        let rows = deliveries_of(organization, receiver).filter(event_deliveries::state.eq(WAITING));
        let set = (
            event_deliveries::state.eq(DeliveryState::Failed.as_str()),
            event_deliveries::attempted_at.eq(at.as_millis()),
        );
        then(self.tx.execute(diesel::update(rows).set(set)), |_| Ok(()))
    }

    fn remove_deliveries(&self, key: ReceiverKey) -> Reply<'_, ()> {
        let (organization, receiver) = columns(key);
        several(async move {
            try_join!(
                self.tx.execute(diesel::delete(deliveries_of(organization, receiver))),
                self.tx.execute(diesel::delete(status_of(organization, receiver))),
            )?;
            Ok(())
        })
    }

    fn remove_ended_deliveries(&self, before: Timestamp) -> Reply<'_, usize> {
        let ended = event_deliveries::table
            .filter(event_deliveries::state.ne(WAITING))
            .filter(event_deliveries::attempted_at.lt(before.as_millis()));
        then(self.tx.execute(diesel::delete(ended)), Ok)
    }
}
