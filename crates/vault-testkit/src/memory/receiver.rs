//! Deliveries of events, and their reading.

use super::State;
use super::rows::{MemoryRows, done};
use uuid::Uuid;
use vault_core::entity::Index;
use vault_core::id::EventId;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{AccountPlace, DeliveryRows, EventRows, Reply};
use vault_core::receiver::{
    AccountNotice, DeliveryState, EventDelivery, EventKind, EventLease, EventPosition, Expiring, ExpiringObject,
    FindExpiring, ReceiverKey, ReceiverStatus,
};
use vault_core::time::Timestamp;

/// The position of the event reader, and its lease.
#[derive(Clone)]
pub(super) struct PositionRow {
    pub(super) position: EventPosition,
    holder: Uuid,
    until: Timestamp,
}

impl State {
    fn deliveries_of(&self, to: ReceiverKey) -> Vec<EventDelivery> {
        let of = self.deliveries.iter().filter(|((key, _), _)| *key == to);
        let mut deliveries: Vec<_> = of.map(|(_, delivery)| delivery.clone()).collect();
        deliveries.sort_by_key(|delivery| delivery.position);
        deliveries
    }
}

impl DeliveryRows for MemoryRows<'_> {
    fn insert_delivery(&self, delivery: &EventDelivery) -> Reply<'_, ()> {
        self.state().deliveries.entry((delivery.to(), delivery.id)).or_insert_with(|| delivery.clone());
        done(())
    }

    fn set_progress(&self, delivery: &EventDelivery) -> Reply<'_, ()> {
        if let Some(row) = self.state().deliveries.get_mut(&(delivery.to(), delivery.id)) {
            *row = delivery.clone();
        }
        done(())
    }

    fn delivery(&self, key: ReceiverKey, event: EventId) -> Reply<'_, Option<EventDelivery>> {
        done(self.state().deliveries.get(&(key, event)).cloned())
    }

    fn deliveries(&self, key: ReceiverKey, before: i64, limit: usize) -> Reply<'_, Vec<EventDelivery>> {
        let deliveries = self.state().deliveries_of(key).into_iter().rev();
        done(deliveries.filter(|delivery| delivery.position < before).take(limit).collect())
    }

    fn waiting_deliveries(&self, key: ReceiverKey, limit: usize) -> Reply<'_, Vec<EventDelivery>> {
        let waiting = |one: &EventDelivery| one.state == DeliveryState::Waiting;
        done(self.state().deliveries_of(key).into_iter().filter(waiting).take(limit).collect())
    }

    fn give_up_deliveries(&self, key: ReceiverKey, at: Timestamp) -> Reply<'_, ()> {
        for delivery in self.state().deliveries.values_mut() {
            if delivery.to() == key && delivery.state == DeliveryState::Waiting {
                (delivery.state, delivery.attempted_at) = (DeliveryState::Failed, Some(at));
            }
        }
        done(())
    }

    fn remove_deliveries(&self, key: ReceiverKey) -> Reply<'_, ()> {
        let mut state = self.state();
        state.deliveries.retain(|(to, _), _| *to != key);
        state.receiver_status.remove(&key);
        done(())
    }

    fn remove_ended_deliveries(&self, before: Timestamp) -> Reply<'_, usize> {
        let mut state = self.state();
        let there = state.deliveries.len();
        state
            .deliveries
            .retain(|_, one| one.state == DeliveryState::Waiting || one.attempted_at.is_none_or(|at| at >= before));
        done(there - state.deliveries.len())
    }
}

impl EventRows for MemoryRows<'_> {
    fn receiver_status(&self, key: ReceiverKey) -> Reply<'_, ReceiverStatus> {
        done(self.state().receiver_status.get(&key).copied().unwrap_or(ReceiverStatus::NEW))
    }

    fn set_receiver_status(&self, key: ReceiverKey, status: &ReceiverStatus) -> Reply<'_, ()> {
        self.state().receiver_status.insert(key, *status);
        done(())
    }

    fn receivers_due(&self, now: Timestamp) -> Reply<'_, Vec<ReceiverKey>> {
        let state = self.state();
        let active = state.lookups.iter().filter(|((_, index, _), _)| *index == Index::ActiveReceiver.as_str());
        let active = active.map(|((organization, ..), id)| ReceiverKey::of_row(*organization, *id));
        let is_due = |key: &ReceiverKey| {
            let is_free = state.receiver_status.get(key).is_none_or(|status| status.not_before <= now);
            state.deliveries_of(*key).iter().any(|one| {
                one.state == DeliveryState::Waiting
                    && one.next_at <= now
                    && (is_free || one.kind == EventKind::ReceiverTest)
            })
        };
        done(active.filter(is_due).collect())
    }

    fn take_event_lease(&self, lease: &EventLease) -> Reply<'_, Option<EventPosition>> {
        let EventLease { holder, now, until, first } = *lease;
        let longest = now.plus_seconds(EventLease::LONGEST_SECONDS);
        let mut state = self.state();
        let row = state.event_position.get_or_insert(PositionRow { position: first, holder, until });
        if row.holder != holder && row.until > now && row.until <= longest {
            return done(None);
        }
        (row.holder, row.until) = (holder, until);
        done(Some(row.position))
    }

    fn move_event_position(&self, holder: Uuid, from: &EventPosition, to: &EventPosition) -> Reply<'_, bool> {
        let is_it = |row: &&mut PositionRow| {
            row.holder == holder && (row.position.checkpoint, row.position.scanned) == (from.checkpoint, from.scanned)
        };
        done(self.state().event_position.as_mut().filter(is_it).map(|row| row.position = *to).is_some())
    }

    fn expiring_credentials(&self, query: &FindExpiring) -> Reply<'_, Vec<Expiring>> {
        let FindExpiring { organization, after, until, limit } = *query;
        let state = self.state();
        let credentials = state.credentials.iter().filter_map(|((of, id), row)| {
            let stored = &row.stored;
            let expires_at = stored.expires_at.filter(|at| *at > after && *at <= until)?;
            let (kind, namespace) = (stored.kind.as_str().to_owned(), stored.namespace.as_str().to_owned());
            (*of == organization).then_some(Expiring {
                organization,
                object: ExpiringObject::Credential(*id, kind, namespace),
                expires_at,
                known_since: stored.created_at,
            })
        });
        let mut credentials: Vec<_> = credentials.collect();
        credentials.sort_by_key(|one| one.expires_at);
        credentials.truncate(limit);
        done(credentials)
    }

    fn notices_between(&self, after: Timestamp, until: Timestamp) -> Reply<'_, Vec<AccountNotice>> {
        let of = |(&(organization, account), row): (&AccountPlace, &super::row::AccountRow)| {
            let in_period = |notice: &StoredNotice| notice.at > after && notice.at <= until;
            let classes = row.classes.networks.iter().map(|network| network.class).chain([row.classes.shared]);
            let locked = classes.filter(|class| class.is_locked_out()).filter_map(|class| class.latest);
            let locked = locked.map(|at| StoredNotice { code: NoticeCode::LockedOut, at });
            let notices = row.notices.iter().copied().chain(locked).filter(in_period);
            notices.map(move |notice| (organization, account, notice)).collect::<Vec<_>>()
        };
        let mut found: Vec<AccountNotice> = self.state().accounts.iter().flat_map(of).collect();
        found.sort_by_key(|(.., notice)| notice.at);
        done(found)
    }
}
