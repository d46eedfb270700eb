//! Receivers of events, and pending deliveries.

use super::{Decided, MemoryStore, State, leads};
use async_trait::async_trait;
use uuid::Uuid;
use vault_core::account::AccountState;
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::LookupDigests;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{EventId, OrganizationId, ReceiverId};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{
    AccountNotice, AddReceiver, ChangeReceiver, EventLease, EventRepository, Find, FindExpiring, List, ReceiverOwner,
    ReceiverRepository, RecordEvents, ResendEvent, StoreError,
};
use vault_core::principal::Principal;
use vault_core::receiver::{
    Attempted, DeliveryState, EventDelivery, EventKind, EventPosition, Expiring, ExpiringObject, ReceiverState,
    StoredReceiver,
};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

/// The position of the event reader, and its lease.
#[derive(Clone)]
pub(super) struct PositionRow {
    pub(super) position: EventPosition,
    holder: Uuid,
    until: Timestamp,
}

/// The key of a stored delivery.
pub(super) type DeliveryKey = (ReceiverOwner, ReceiverId, EventId);

fn key(delivery: &EventDelivery) -> DeliveryKey {
    (delivery.organization, delivery.receiver, delivery.id)
}

fn reaches(principal: &Principal, owner: ReceiverOwner) -> bool {
    principal.organization().is_none_or(|own| owner == Some(own))
}

impl State {
    fn deliveries_of(&self, owner: ReceiverOwner, receiver: ReceiverId) -> Vec<EventDelivery> {
        let of = self.deliveries.values().filter(|one| (one.organization, one.receiver) == (owner, receiver));
        let mut deliveries: Vec<_> = of.cloned().collect();
        deliveries.sort_by_key(|delivery| delivery.position);
        deliveries
    }

    fn is_member(&self, organization: OrganizationId, address: &LookupDigests) -> bool {
        self.accounts.values().any(|row| {
            let grant = &row.signed.grant;
            leads(address, &row.address) && grant.organization == organization && grant.state == AccountState::Active
        })
    }
}

#[async_trait]
impl ReceiverRepository for MemoryStore {
    async fn add_receiver(&self, command: Command<AddReceiver>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, _, payload| {
            let owner = payload.receiver.receiver.organization;
            if !reaches(principal, owner) {
                return Decided::Refused(Err(Refusal::NotFound));
            }
            let there = state.receivers.keys().filter(|(of, _)| *of == owner).count();
            if i64::try_from(there).is_ok_and(|there| there >= payload.limit) {
                return Decided::Refused(Err(payload.limit_reached()));
            }
            if let (Some(member), Some(organization)) = (&payload.member, owner)
                && !state.is_member(organization, member)
            {
                return Decided::Refused(Err(Refusal::NoMember));
            }
            state.receivers.insert((owner, payload.receiver.receiver.id), payload.receiver);
            Decided::Done(Ok(()))
        })??)
    }

    async fn list_receivers(
        &self,
        query: Find<Option<ReceiverId>, ReceiverOwner>,
    ) -> Result<Vec<StoredReceiver>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            if !reaches(&query.principal, query.of) {
                return Ok(Vec::new());
            }
            let wanted = |(owner, id): &(ReceiverOwner, ReceiverId)| {
                *owner == query.of && query.key.is_none_or(|wanted| wanted == *id)
            };
            Ok(state.receivers.iter().filter(|(key, _)| wanted(key)).map(|(_, row)| row.clone()).collect())
        })?
    }

    async fn change_receiver(&self, command: Command<ChangeReceiver>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, _, payload| {
            let key = (payload.owner, payload.receiver);
            let row = state.receivers.get(&key).filter(|_| reaches(principal, payload.owner));
            let Some(row) = row else { return Decided::Refused(Err(Refusal::NotFound)) };
            if row.receiver.version != payload.version {
                return Decided::Refused(Err(Refusal::Contended));
            }
            match payload.next {
                Some(next) => drop(state.receivers.insert(key, *next)),
                None => {
                    state.receivers.remove(&key);
                    state.deliveries.retain(|(owner, receiver, _), _| (*owner, *receiver) != key);
                }
            }
            Decided::Done(Ok(()))
        })??)
    }

    async fn add_delivery(&self, command: Command<EventDelivery>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, now, payload| {
            let there = state.receivers.contains_key(&(payload.organization, payload.receiver));
            if !there || !reaches(principal, payload.organization) {
                return Decided::Refused(Err(Refusal::NotFound));
            }
            if let Some(organization) = payload.organization {
                let subject = format!("test:{}", payload.receiver);
                if let Err(refusal) = state.take(organization, &subject, HourlyLimit::TESTS, now) {
                    return Decided::Refused(Err(refusal));
                }
            }
            state.deliveries.entry(key(&payload)).or_insert(payload);
            Decided::Done(Ok(()))
        })??)
    }

    async fn resend_event(&self, command: Command<ResendEvent>) -> Result<Option<EventDelivery>, StoreError> {
        self.carry_out(command, |state, principal, now, payload| {
            let key = (payload.owner, payload.receiver, payload.event);
            let row = state.deliveries.get_mut(&key).filter(|_| reaches(principal, payload.owner));
            let Some(row) = row else { return Decided::Refused(None) };
            (row.state, row.since, row.next_at) = (DeliveryState::Waiting, now, now);
            Decided::Done(Some(row.clone()))
        })
    }

    async fn list_deliveries(
        &self,
        query: List<i64, (ReceiverOwner, ReceiverId)>,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            let (owner, receiver) = query.of;
            if !reaches(&query.principal, owner) {
                return Ok(Vec::new());
            }
            let before = query.after.unwrap_or(i64::MAX);
            let deliveries = state.deliveries_of(owner, receiver).into_iter().rev();
            Ok(deliveries.filter(|delivery| delivery.position < before).take(query.limit).collect())
        })?
    }
}

#[async_trait]
impl EventRepository for MemoryStore {
    async fn acquire_event_lease(&self, lease: EventLease) -> Result<Option<EventPosition>, StoreError> {
        self.decide(|state| {
            let EventLease { holder, now, until, first } = lease;
            let longest = now.plus_seconds(EventLease::LONGEST_SECONDS);
            let row = state.event_position.get_or_insert(PositionRow { position: first, holder, until });
            if row.holder != holder && row.until > now && row.until <= longest {
                return None;
            }
            (row.holder, row.until) = (holder, until);
            Some(row.position)
        })
    }

    async fn all_receivers(&self) -> Result<Vec<(String, Option<StoredReceiver>)>, StoreError> {
        self.decide(|state| {
            state.receivers.values().map(|row| (row.receiver.id.to_string(), Some(row.clone()))).collect()
        })
    }

    async fn find_expiring(&self, query: FindExpiring) -> Result<Vec<Expiring>, StoreError> {
        self.decide(|state| {
            let FindExpiring { organization, after, until, limit } = query;
            let within = |at: Timestamp| at > after && at <= until;
            let credentials = state.credentials.iter().filter_map(|((of, id), row)| {
                let stored = &row.stored;
                let expires_at = stored.expires_at?;
                let (kind, namespace) = (stored.kind.as_str().to_owned(), stored.namespace.as_str().to_owned());
                (*of == organization && within(expires_at)).then_some(Expiring {
                    organization,
                    object: ExpiringObject::Credential(*id, kind, namespace),
                    expires_at,
                    known_since: stored.created_at,
                })
            });
            let mut credentials: Vec<_> = credentials.collect();
            credentials.sort_by_key(|one| one.expires_at);
            credentials.truncate(limit);
            credentials
        })
    }

    async fn notices_between(&self, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, StoreError> {
        self.decide(|state| {
            let of = |row: &super::row::AccountRow| {
                let (organization, account) = (row.signed.grant.organization, row.signed.grant.account);
                let in_period = |notice: &StoredNotice| notice.at > after && notice.at <= until;
                let classes = row.classes.networks.iter().map(|network| network.class).chain([row.classes.shared]);
                let locked = classes.filter(|class| class.is_locked_out()).filter_map(|class| class.latest);
                let locked = locked.map(|at| StoredNotice { code: NoticeCode::LockedOut, at });
                let notices = row.notices.iter().copied().chain(locked).filter(in_period);
                notices.map(move |notice| (organization, account, notice)).collect::<Vec<_>>()
            };
            let mut found: Vec<AccountNotice> = state.accounts.values().flat_map(of).collect();
            found.sort_by_key(|(.., notice)| notice.at);
            found
        })
    }

    async fn record_events(&self, command: RecordEvents) -> Result<bool, StoreError> {
        self.decide(|state| {
            let RecordEvents { holder, from, to, deliveries } = command;
            let there = |row: &&mut PositionRow| {
                row.holder == holder
                    && (row.position.checkpoint, row.position.scanned) == (from.checkpoint, from.scanned)
            };
            let Some(row) = state.event_position.as_mut().filter(there) else { return false };
            row.position = to;
            for delivery in deliveries {
                state.deliveries.entry(key(&delivery)).or_insert(delivery);
            }
            true
        })
    }

    async fn add_deliveries(&self, deliveries: Vec<EventDelivery>) -> Result<(), StoreError> {
        self.decide(|state| {
            for delivery in deliveries {
                state.deliveries.entry(key(&delivery)).or_insert(delivery);
            }
        })
    }

    async fn receivers_due(&self, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, StoreError> {
        self.decide(|state| {
            let is_due = |(place, row): &(&(ReceiverOwner, ReceiverId), &StoredReceiver)| {
                let free = row.status.not_before <= now;
                let waits = |one: &EventDelivery| {
                    one.state == DeliveryState::Waiting
                        && one.next_at <= now
                        && (free || one.kind == EventKind::ReceiverTest)
                };
                row.receiver.state == ReceiverState::Active && state.deliveries_of(place.0, place.1).iter().any(waits)
            };
            state.receivers.iter().filter(is_due).map(|(place, _)| *place).collect()
        })
    }

    async fn waiting_deliveries(
        &self,
        owner: ReceiverOwner,
        receiver: ReceiverId,
        limit: usize,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.decide(|state| {
            let waiting = |one: &EventDelivery| one.state == DeliveryState::Waiting;
            state.deliveries_of(owner, receiver).into_iter().filter(waiting).take(limit).collect()
        })
    }

    async fn is_member(&self, organization: OrganizationId, address: LookupDigests) -> Result<bool, StoreError> {
        self.decide(|state| state.is_member(organization, &address))
    }

    async fn note_attempts(&self, attempts: Vec<Attempted>) -> Result<(), StoreError> {
        self.decide(|state| {
            for Attempted { delivery, receiver, .. } in attempts {
                if let Some(row) = state.receivers.get_mut(&(delivery.organization, delivery.receiver)) {
                    row.status = receiver.status;
                }
                if let Some(row) = state.deliveries.get_mut(&key(&delivery)) {
                    *row = delivery;
                }
            }
        })
    }

    async fn disable_receiver(&self, next: StoredReceiver, audit: SealedAuditRecord) -> Result<(), StoreError> {
        self.decide(|state| {
            let place = (next.receiver.organization, next.receiver.id);
            let before = next.receiver.version - 1;
            let Some(row) = state.receivers.get_mut(&place).filter(|row| row.receiver.version == before) else {
                return;
            };
            *row = next;
            for delivery in state.deliveries.values_mut() {
                if (delivery.organization, delivery.receiver) == place && delivery.state == DeliveryState::Waiting {
                    (delivery.state, delivery.attempted_at) = (DeliveryState::Failed, Some(audit.record.at));
                }
            }
            state.audit.push(audit);
        })
    }

    async fn remove_deliveries(&self, ended_before: Timestamp) -> Result<usize, StoreError> {
        self.decide(|state| {
            let before = state.deliveries.len();
            state.deliveries.retain(|_, one| {
                one.state == DeliveryState::Waiting || one.attempted_at.is_none_or(|at| at >= ended_before)
            });
            before - state.deliveries.len()
        })
    }
}
