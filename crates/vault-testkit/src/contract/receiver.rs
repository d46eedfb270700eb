//! Cases of [`ReceiverRepository`](vault_core::port::ReceiverRepository) and
//! [`EventRepository`](vault_core::port::EventRepository).

use super::ContractStore;
use super::tools::{Settled as _, blob, race};
use super::world::{Holder, Wanted, World};
use crate::crypto::FakeDigester;
use std::slice::from_ref;
use std::sync::Arc;
use uuid::Uuid;
use vault_core::account::AccountState;
use vault_core::audit::AuditAction;
use vault_core::digest::{Digest, LookupDigests};
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AccountId, EventId, OrganizationId, ReceiverId};
use vault_core::lockout::FREE_ATTEMPTS;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{
    AccountChange, AddReceiver, ChangeReceiver, EventLease, Find, IdGenerator as _, List, ReceiverOwner, RecordEvents,
    ResendEvent, StoreError,
};
use vault_core::principal::Principal;
use vault_core::receiver::{
    Channel, DeliveryFailure, DeliveryState, EventDelivery, EventKind, EventKinds, EventPosition, Occurrence, Receiver,
    ReceiverState, ReceiverStatus, SealedTarget, StoredReceiver, decide_attempt,
};
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const OPERATOR: Principal = Principal::Operator;

/// The limit on receivers per organization is exact, also under concurrency; another organization can neither see nor
/// change them.
pub async fn receivers_are_scoped_to_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let stranger: Principal = other.log_in(&other.holder(Role::Admin).await).await.into();
    let rows: Vec<_> = (0..6).map(|_| receiver(&world, Some(world.organization))).collect();
    let added = race(rows.iter().map(|row| {
        let (store, command) = (Arc::clone(&world.store), addition(&world, &admin, row, 4));
        async move { store.add_receiver(command).await }
    }))
    .await;
    let refused = |added: &Result<(), StoreError>| {
        matches!(added, Err(StoreError::Refused(Refusal::LimitReached { what: "receivers", limit: 4 })))
    };
    assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 4);
    assert_eq!(added.iter().filter(|added| refused(added)).count(), 2);
    assert_eq!(world.audited(AuditAction::ReceiverAdded).await, 4);
    let mut expected: Vec<_> =
        rows.into_iter().zip(&added).filter(|(_, added)| added.is_ok()).map(|(row, _)| row).collect();
    expected.sort_by_key(|row| row.receiver.id);
    assert_eq!(list(&world, &admin, Some(world.organization), None).await, expected);
    let first = &expected[0];
    assert_eq!(list(&world, &admin, Some(world.organization), Some(first.receiver.id)).await, *from_ref(first));
    assert_eq!(list(&other, &stranger, Some(world.organization), None).await, []);
    let removal = other.command(&stranger, AuditAction::ReceiverRemoved, change(first, None));
    assert_refused(other.store.change_receiver(removal).await, &Refusal::NotFound);

    let next = StoredReceiver::sign(
        Receiver { state: ReceiverState::Disabled, version: 2, ..first.receiver.clone() },
        first.target.clone(),
        first.status,
        &FakeDigester::default(),
    );
    let payload = |version| ChangeReceiver { version, ..change(first, Some(next.clone())) };
    let stale = world.command(&admin, AuditAction::ReceiverChanged, payload(7));
    assert_refused(world.store.change_receiver(stale).await, &Refusal::Contended);
    world.store.change_receiver(world.command(&admin, AuditAction::ReceiverChanged, payload(1))).await.unwrap();
    assert_eq!(list(&world, &admin, Some(world.organization), Some(first.receiver.id)).await, *from_ref(&next));
    world
        .store
        .change_receiver(world.command(
            &admin,
            AuditAction::ReceiverRemoved,
            ChangeReceiver { version: 2, ..change(first, None) },
        ))
        .await
        .unwrap();
    assert_eq!(list(&world, &admin, Some(world.organization), None).await.len(), 3);
    let again =
        world.command(&admin, AuditAction::ReceiverRemoved, ChangeReceiver { version: 2, ..change(first, None) });
    assert_refused(world.store.change_receiver(again).await, &Refusal::NotFound);
}

/// E-mail is sent only to users: the address must belong to an active account of the organization.
pub async fn mail_is_sent_only_to_users(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Viewer).await);
    let stranger = other.holder(Role::Admin).await;
    let admin: Principal = world.log_in(&holder).await.into();
    let add = |member: Option<Digest>| {
        let member = member.map(LookupDigests::from);
        let payload = AddReceiver { receiver: receiver(&world, Some(world.organization)), member, limit: 10 };
        world.store.add_receiver(world.command(&admin, AuditAction::ReceiverAdded, payload))
    };
    add(Some(colleague.address)).await.unwrap();
    for nonexistent in [stranger.address, Digest::from_bytes([9; 32])] {
        assert_refused(add(Some(nonexistent)).await, &Refusal::NoMember);
    }
    let is_member = |address: Digest| world.store.is_member(world.organization, address.into());
    assert!(is_member(colleague.address).await.unwrap());
    assert!(!is_member(stranger.address).await.unwrap());
    let disabled = Wanted { change: AccountChange::Grant, grant: Some((Role::Viewer, AccountState::Disabled)) };
    world.change(&colleague, disabled).await;
    assert!(!is_member(colleague.address).await.unwrap());
    assert_refused(add(Some(colleague.address)).await, &Refusal::NoMember);
}

/// A delivery is stored once, listed newest first, attempted in order, and kept until long after its end.
pub async fn deliveries_are_stored_once_and_kept(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let stored = receiver(&world, Some(world.organization));
    world.store.add_receiver(addition(&world, &admin, &stored, 10)).await.unwrap();
    let (owner, id) = (stored.receiver.organization, stored.receiver.id);
    let deliveries: Vec<_> = (1..=3).map(|position| delivery(&world, &stored.receiver, position)).collect();
    world.store.add_deliveries(deliveries.clone()).await.unwrap();
    let twice = EventDelivery { position: 9, ..deliveries[0].clone() };
    world.store.add_deliveries(vec![twice]).await.unwrap();
    assert_eq!(world.store.waiting_deliveries(owner, id, 10).await.unwrap(), deliveries);
    assert_eq!(world.store.waiting_deliveries(owner, id, 2).await.unwrap(), deliveries[..2]);
    assert!(is_due(&world, &stored).await);

    let page = |after, limit| {
        let (principal, now) = (admin.clone(), world.now());
        world.store.list_deliveries(List { principal, of: (owner, id), after, limit, now })
    };
    assert_eq!(page(None, 2).await.unwrap(), [deliveries[2].clone(), deliveries[1].clone()]);
    assert_eq!(page(Some(2), 2).await.unwrap(), deliveries[..1]);

    let attempt = |delivery: &EventDelivery, outcome| {
        decide_attempt(Channel::Webhook, &ReceiverStatus::NEW, delivery, outcome, world.now())
    };
    let (done, refused) = (attempt(&deliveries[0], Ok(())), attempt(&deliveries[1], Err(DeliveryFailure::Unreachable)));
    world.store.note_attempts(vec![done.clone(), refused.clone()]).await.unwrap();
    let waiting = world.store.waiting_deliveries(owner, id, 10).await.unwrap();
    assert_eq!(waiting, [refused.delivery.clone(), deliveries[2].clone()]);
    let [noted] = list(&world, &admin, owner, Some(id)).await.try_into().unwrap();
    assert_eq!(noted.status, refused.receiver.status);
    assert!(!is_due(&world, &stored).await, "nothing is attempted before {:?}", noted.status.not_before);

    // A test is sent at any time.
    let occurrence =
        Occurrence::test(EventId::from_uuid(world.ids.ordered(world.now())), &stored.receiver, world.now());
    let test = occurrence.to_delivery(&stored.receiver, 4, world.now(), &FakeDigester::default());
    world.store.add_delivery(world.command(&admin, AuditAction::ReceiverTested, test.clone())).await.unwrap();
    assert!(is_due(&world, &stored).await);
    world.store.note_attempts(vec![attempt(&test, Ok(()))]).await.unwrap();

    for _ in 1..HourlyLimit::TESTS {
        let again = EventDelivery { id: EventId::from_uuid(world.ids.ordered(world.now())), ..test.clone() };
        world.store.add_delivery(world.command(&admin, AuditAction::ReceiverTested, again.clone())).await.unwrap();
        world.store.note_attempts(vec![attempt(&again, Ok(()))]).await.unwrap();
    }
    let one_more = world.command(&admin, AuditAction::ReceiverTested, test.clone());
    let limited = world.store.add_delivery(one_more).await.decided();
    assert!(matches!(limited, Err(Refusal::TooOften(1..=3_601))), "{limited:?}");

    let resend = |event| {
        let payload = ResendEvent { owner, receiver: id, event };
        world.store.resend_event(world.command(&admin, AuditAction::ReceiverResent, payload))
    };
    assert_eq!(resend(EventId::from_bytes([7; 16])).await.unwrap(), None);
    let again = resend(done.delivery.id).await.unwrap().unwrap();
    assert_eq!((again.state, again.since, again.next_at), (DeliveryState::Waiting, world.now(), world.now()));
    assert_eq!(world.store.waiting_deliveries(owner, id, 1).await.unwrap(), *from_ref(&again));
    world.store.note_attempts(vec![attempt(&again, Ok(()))]).await.unwrap();

    let left = |before: i64| world.store.remove_deliveries(world.now().plus_seconds(before));
    left(0).await.unwrap();
    assert_eq!(page(None, 100).await.unwrap().len(), 3 + HourlyLimit::TESTS as usize);
    left(1).await.unwrap();
    assert_eq!(page(None, 10).await.unwrap(), [deliveries[2].clone(), refused.delivery]);
}

/// A receiver that no longer exists is disabled, and its pending deliveries are abandoned, unless it was changed in
/// between.
pub async fn receiver_that_returns_gone_is_disabled(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let stored = receiver(&world, Some(world.organization));
    world.store.add_receiver(addition(&world, &admin, &stored, 10)).await.unwrap();
    let (owner, id) = (stored.receiver.organization, stored.receiver.id);
    world.store.add_deliveries(vec![delivery(&world, &stored.receiver, 1)]).await.unwrap();
    let disabled = |version| {
        let next = Receiver { state: ReceiverState::Disabled, version, ..stored.receiver.clone() };
        let next = StoredReceiver::sign(next, stored.target.clone(), stored.status, &FakeDigester::default());
        let audit = world.command(&OPERATOR, AuditAction::ReceiverDisabled, ()).audit;
        (next, audit)
    };
    let (next, audit) = disabled(5);
    world.store.disable_receiver(next, audit).await.unwrap();
    assert_eq!(list(&world, &admin, owner, Some(id)).await, *from_ref(&stored));
    let (next, audit) = disabled(2);
    world.store.disable_receiver(next.clone(), audit).await.unwrap();
    assert_eq!(list(&world, &admin, owner, Some(id)).await, [next]);
    assert_eq!(world.audited(AuditAction::ReceiverDisabled).await, 1);
    assert_eq!(world.store.waiting_deliveries(owner, id, 10).await.unwrap(), []);
    assert!(!is_due(&world, &stored).await);
}

/// Only one of several processes reads events, until its lease ends; it can only record progress from the position that
/// it read.
pub async fn one_process_reads_events(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let digester = FakeDigester::default();
    let position = |checkpoint, scanned| EventPosition::sign(checkpoint, scanned, 1, &digester);
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    // Other cases may run on the same store; this one starts long after their leases have ended.
    let now = world.now().plus_seconds(10_000_000);
    let take = |holder, now: Timestamp, seconds| {
        let lease = EventLease { holder, now, until: now.plus_seconds(seconds), first: position(3, now) };
        world.store.acquire_event_lease(lease)
    };
    let from = take(one, now, 30).await.unwrap().unwrap();
    assert_eq!(take(two, now, 30).await.unwrap(), None);
    assert_eq!(take(one, now, 30).await.unwrap(), Some(from));
    let note = |holder, from, to| world.store.record_events(RecordEvents { holder, from, to, deliveries: Vec::new() });
    let to = position(from.checkpoint + 1, now.plus_seconds(1));
    assert!(!note(two, from, to).await.unwrap());
    assert!(note(one, from, to).await.unwrap());
    assert!(!note(one, from, to).await.unwrap(), "it was noted already");
    let later = now.plus_seconds(31);
    assert_eq!(take(two, later, 30).await.unwrap(), Some(to));
    assert_eq!(take(one, later, 30).await.unwrap(), None);
    // A lease is never longer than the maximum.
    take(two, later, EventLease::LONGEST_SECONDS * 10).await.unwrap().unwrap();
    assert_eq!(take(one, later, 0).await.unwrap(), Some(to));
}

/// A lockout after failed attempts is found as a notice, without one being stored.
pub async fn lockout_is_listed_in_notices(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (locked, free, network) = (world.holder(Role::Viewer).await, world.holder(Role::Viewer).await, world.network());
    let account = |holder: &Holder| (world.organization, holder.signed.grant.account);
    let since = world.now();
    world.clock.advance_seconds(1);
    for attempt in 1..=FREE_ATTEMPTS {
        world.reserve(&locked, network).await;
        if attempt < FREE_ATTEMPTS {
            world.reserve(&free, network).await;
        }
    }
    let found = world.store.notices_between(since, world.now()).await.unwrap();
    let later = world.store.notices_between(world.now(), world.now().plus_seconds(1)).await.unwrap();
    // Other cases add notices to the same store.
    let of = |found: &[(OrganizationId, AccountId, StoredNotice)], holder: &Holder| {
        let of = found.iter().filter(|(organization, id, _)| (*organization, *id) == account(holder));
        of.map(|(.., notice)| (notice.code, notice.at)).collect::<Vec<_>>()
    };
    assert_eq!(of(&found, &locked), [(NoticeCode::LockedOut, world.now())]);
    assert_eq!(of(&found, &free), []);
    assert_eq!(of(&later, &locked), []);
}

async fn is_due(world: &World<'_>, stored: &StoredReceiver) -> bool {
    let due = world.store.receivers_due(world.now()).await.unwrap();
    due.contains(&(stored.receiver.organization, stored.receiver.id))
}

async fn list(
    world: &World<'_>,
    principal: &Principal,
    of: ReceiverOwner,
    key: Option<ReceiverId>,
) -> Vec<StoredReceiver> {
    let query = Find { principal: principal.clone(), of, key, now: world.now() };
    world.store.list_receivers(query).await.unwrap()
}

fn addition(world: &World<'_>, principal: &Principal, row: &StoredReceiver, limit: i64) -> Command<AddReceiver> {
    let payload = AddReceiver { receiver: row.clone(), member: None, limit };
    world.command(principal, AuditAction::ReceiverAdded, payload)
}

/// Stores a receiver of this owner.
pub(super) async fn added(world: &World<'_>, owner: ReceiverOwner) -> StoredReceiver {
    let stored = receiver(world, owner);
    world.store.add_receiver(addition(world, &OPERATOR, &stored, 10)).await.unwrap();
    stored
}

fn change(row: &StoredReceiver, next: Option<StoredReceiver>) -> ChangeReceiver {
    let Receiver { organization: owner, id: receiver, version, .. } = row.receiver;
    ChangeReceiver { owner, receiver, version, next: next.map(Box::new) }
}

pub(super) fn receiver(world: &World<'_>, organization: ReceiverOwner) -> StoredReceiver {
    let receiver = Receiver {
        id: ReceiverId::from_uuid(world.ids.ordered(world.now())),
        organization,
        channel: Channel::Webhook,
        shown: "https://hooks.example/…".to_owned(),
        events: EventKinds::all(organization.is_some()),
        state: ReceiverState::Active,
        version: Receiver::FIRST_VERSION,
        created_at: world.now(),
    };
    let target = SealedTarget {
        address: blob("https://hooks.example/x"),
        secret_number: 2,
        secret: blob("secret"),
        previous_secret: blob("previous"),
        previous_until: world.now().plus_seconds(60),
    };
    StoredReceiver::sign(receiver, target, ReceiverStatus::NEW, &FakeDigester::default())
}

fn delivery(world: &World<'_>, receiver: &Receiver, position: i64) -> EventDelivery {
    let id = EventId::from_uuid(world.ids.ordered(world.now()));
    let occurrence = Occurrence {
        kind: EventKind::NamespaceFrozen,
        subject: "namespace:imports".to_owned(),
        ..Occurrence::test(id, receiver, world.now())
    };
    occurrence.to_delivery(receiver, position, world.now(), &FakeDigester::default())
}

fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, StoreError>, expected: &Refusal) {
    let refused = matches!(&outcome, Err(StoreError::Refused(refusal)) if refusal == expected);
    assert!(refused, "{outcome:?} is not {expected:?}");
}
