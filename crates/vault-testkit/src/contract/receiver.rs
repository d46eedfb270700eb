//! Cases of receivers, of deliveries to them, and of their reading.

use super::ContractStore;
use super::tools::{Settled, address};
use super::world::{Holder, World};
use crate::crypto::FakeDigester;
use futures_util::future::join_all;
use secrecy::SecretString;
use std::slice::from_ref;
use uuid::Uuid;
use vault_core::Refusal;
use vault_core::account::AccountChange;
use vault_core::audit::AuditAction;
use vault_core::email::EmailAddress;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{AccountId, EventId, OrganizationId, ReceiverId};
use vault_core::lockout::FREE_ATTEMPTS;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::IdGenerator as _;
use vault_core::principal::Principal;
use vault_core::receiver::{
    ActiveReceivers, AddReceiver, ChangeReceiver, Channel, DeliveryFailure, DeliveryState, DisableReceiver,
    EventDelivery, EventKind, EventKinds, EventLease, EventPosition, FindReceivers, IsMember, ListDeliveries,
    MAX_RECEIVERS, NoticesBetween, Occurrence, Pending, PendingDeliveries, QueueDeliveries, Receiver, ReceiverChange,
    ReceiverKey, ReceiverOwner, ReceiverState, ReceiverStatus, ReceiversDue, RecordAttempts, RecordEvents,
    RemoveDeliveries, RemoveReceiver, ResendEvent, StoredReceiver, TestReceiver, decide_attempt,
};
use vault_core::role::Role;
use vault_core::time::Timestamp;

const OPERATOR: Principal = Principal::Operator;

/// The limit on receivers per owner is exact, also under concurrency; another organization can neither see nor change
/// them.
pub async fn receivers_are_scoped_to_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let stranger: Principal = other.log_in(&other.holder(Role::Admin).await).await.into();
    let owner = Some(world.organization);
    let additions: Vec<_> = (0..MAX_RECEIVERS + 2).map(|_| addition(&world, owner)).collect();
    let added = join_all(additions.iter().map(|one| world.operate(&admin, one.clone()))).await;
    let added: Vec<_> = added.into_iter().map(Settled::decided).collect();
    let reached = Err(Refusal::LimitReached { what: "receivers", limit: 10 });
    assert_eq!(added.iter().filter(|added| **added == reached).count(), 2);
    assert_eq!(world.audited(AuditAction::ReceiverAdded).await, MAX_RECEIVERS);
    let of_them = additions.iter().zip(&added).filter(|(_, added)| added.is_ok());
    let mut expected: Vec<_> = of_them.map(|(one, _)| as_added(one)).collect();
    expected.sort_by_key(|stored| stored.key.id);
    assert_eq!(list(&world, &admin, owner).await, expected);
    let first = &expected[0];
    assert_eq!(find(&world, &admin, first.key).await, Ok(first.clone()));
    assert_eq!(list(&other, &stranger, Some(other.organization)).await, []);
    assert_eq!(list(&other, &stranger, owner).await, []);
    assert_eq!(find(&other, &stranger, first.key).await, Err(Refusal::NotFound));
    let is_active = async || {
        let active = world.operate(&OPERATOR, ActiveReceivers).await.unwrap();
        active.into_iter().any(|(key, receiver)| key == first.key && receiver == first.receiver)
    };
    assert!(is_active().await);
    let disable = ReceiverChange::Edit { state: Some(ReceiverState::Disabled), events: None };
    let disable = ChangeReceiver { key: first.key, change: disable };
    assert_eq!(other.operate(&stranger, disable.clone()).await.decided(), Err(Refusal::NotFound));
    let changed = world.operate(&admin, disable).await.unwrap();
    assert_eq!((changed.version, changed.receiver.state), (2, ReceiverState::Disabled));
    assert_eq!(find(&world, &admin, first.key).await, Ok(changed));
    assert!(!is_active().await);
    let remove = RemoveReceiver(first.key);
    assert_eq!(other.operate(&stranger, remove.clone()).await.decided(), Err(Refusal::NotFound));
    world.operate(&admin, remove.clone()).await.unwrap();
    assert_eq!(list(&world, &admin, owner).await, expected[1..]);
    assert_eq!(world.operate(&admin, remove).await.decided(), Err(Refusal::NotFound));
}

/// E-mail is sent only to users: the address must belong to an active account of the organization.
pub async fn mail_is_sent_only_to_users(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (holder, colleague) = (world.holder(Role::Admin).await, world.holder(Role::Viewer).await);
    let stranger = other.holder(Role::Admin).await;
    let admin: Principal = world.log_in(&holder).await.into();
    let organization = world.organization;
    let nobody = address("nobody@contract.example");
    let add = async |member: &EmailAddress| {
        let member = Some(member.clone());
        world.operate(&admin, AddReceiver { member, ..addition(&world, Some(organization)) }).await.decided()
    };
    assert_eq!(add(&colleague.account.grant.email).await, Ok(()));
    for nonexistent in [&stranger.account.grant.email, &nobody] {
        assert_eq!(add(nonexistent).await, Err(Refusal::NoMember));
    }
    let is_member = async |address: &EmailAddress| {
        world.operate(&OPERATOR, IsMember { organization, address: address.clone() }).await.unwrap()
    };
    assert!(is_member(&colleague.account.grant.email).await);
    assert!(!is_member(&stranger.account.grant.email).await);
    world.change(&colleague, AccountChange::Disable).await;
    assert!(!is_member(&colleague.account.grant.email).await);
    assert_eq!(add(&colleague.account.grant.email).await, Err(Refusal::NoMember));
}

/// A delivery is stored once, listed newest first, attempted in order, and kept until long after its end.
pub async fn deliveries_are_stored_once_and_kept(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let key = added(&world, Some(world.organization)).await.key;
    let deliveries: Vec<_> = (1..=3).map(|position| delivery(&world, key, position)).collect();
    let queue = async |deliveries| world.operate(&OPERATOR, QueueDeliveries(deliveries)).await.unwrap();
    queue(deliveries.clone()).await;
    queue(vec![EventDelivery { position: 9, ..deliveries[0].clone() }]).await;
    assert_eq!(pending(&world, key, 10).await, deliveries);
    assert_eq!(pending(&world, key, 2).await, deliveries[..2]);
    assert!(is_due(&world, key).await);

    let page =
        async |before, limit| world.operate(&admin, ListDeliveries { key, before, limit }).await.decided().unwrap();
    assert_eq!(page(None, 2).await, [deliveries[2].clone(), deliveries[1].clone()]);
    assert_eq!(page(Some(2), 2).await, deliveries[..1]);

    let attempt = |delivery: &EventDelivery, outcome| {
        decide_attempt(Channel::Webhook, &ReceiverStatus::NEW, delivery, outcome, world.now())
    };
    let record = async |attempts| world.operate(&OPERATOR, RecordAttempts(attempts)).await.unwrap();
    let (done, refused) = (attempt(&deliveries[0], Ok(())), attempt(&deliveries[1], Err(DeliveryFailure::Unreachable)));
    record(vec![done.clone(), refused.clone()]).await;
    assert_eq!(pending(&world, key, 10).await, [refused.delivery.clone(), deliveries[2].clone()]);
    let noted = find(&world, &admin, key).await.unwrap();
    assert_eq!(noted.status, refused.receiver.status);
    assert!(!is_due(&world, key).await, "nothing is attempted before {:?}", noted.status.not_before);

    // A test is sent at any time.
    let id = || EventId::from_uuid(world.ids.ordered(world.now()));
    let test = Occurrence::test(id(), key, world.now());
    let test = test.to_delivery(key, 4, world.now(), &FakeDigester::default());
    world.operate(&admin, TestReceiver(test.clone())).await.unwrap();
    assert!(is_due(&world, key).await);
    record(vec![attempt(&test, Ok(()))]).await;

    for _ in 1..HourlyLimit::TESTS {
        let again = EventDelivery { id: id(), ..test.clone() };
        world.operate(&admin, TestReceiver(again.clone())).await.unwrap();
        record(vec![attempt(&again, Ok(()))]).await;
    }
    let limited = world.operate(&admin, TestReceiver(test.clone())).await.decided();
    assert!(matches!(limited, Err(Refusal::TooOften(1..=3_601))), "{limited:?}");

    let resend = async |event| world.operate(&admin, ResendEvent { key, event }).await.decided();
    assert_eq!(resend(EventId::from_bytes([7; 16])).await, Err(Refusal::NotFound));
    let again = resend(done.delivery.id).await.unwrap();
    assert_eq!((again.state, again.since, again.next_at), (DeliveryState::Waiting, world.now(), world.now()));
    assert_eq!(pending(&world, key, 1).await, *from_ref(&again));
    record(vec![attempt(&again, Ok(()))]).await;

    let remove =
        async |before| world.operate(&OPERATOR, RemoveDeliveries(world.now().plus_seconds(before))).await.unwrap();
    remove(0).await;
    assert_eq!(page(None, 100).await.len(), 3 + HourlyLimit::TESTS as usize);
    remove(1).await;
    assert_eq!(page(None, 10).await, [deliveries[2].clone(), refused.delivery]);
}

/// A receiver that no longer exists is disabled, and its pending deliveries are abandoned, unless it was changed in
/// between. Enabled again, it is attempted immediately.
pub async fn receiver_that_returns_gone_is_disabled(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let admin: Principal = world.log_in(&world.holder(Role::Admin).await).await.into();
    let stored = added(&world, Some(world.organization)).await;
    let key = stored.key;
    let failed = decide_attempt(
        Channel::Webhook,
        &ReceiverStatus::NEW,
        &delivery(&world, key, 1),
        Err(DeliveryFailure::Gone),
        world.now(),
    );
    world.operate(&OPERATOR, QueueDeliveries(vec![delivery(&world, key, 2)])).await.unwrap();
    world.operate(&OPERATOR, RecordAttempts(vec![failed.clone()])).await.unwrap();
    world.operate(&OPERATOR, DisableReceiver { key, version: 4 }).await.unwrap();
    assert_eq!(find(&world, &admin, key).await.unwrap().receiver, stored.receiver);
    world.operate(&OPERATOR, DisableReceiver { key, version: 1 }).await.unwrap();
    let disabled = find(&world, &admin, key).await.unwrap();
    assert_eq!((disabled.version, disabled.receiver.state), (2, ReceiverState::Disabled));
    assert_eq!(disabled.status, failed.receiver.status);
    assert_eq!(world.audited(AuditAction::ReceiverDisabled).await, 1);
    assert_eq!(pending(&world, key, 10).await, []);
    assert!(!is_due(&world, key).await);
    let change = ReceiverChange::Edit { state: Some(ReceiverState::Active), events: None };
    let enabled = world.operate(&admin, ChangeReceiver { key, change }).await.unwrap();
    assert_eq!((enabled.version, enabled.receiver, enabled.status), (3, stored.receiver, ReceiverStatus::NEW));
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
        world.operate(&OPERATOR, lease)
    };
    let from = take(one, now, 30).await.unwrap().unwrap();
    assert_eq!(take(two, now, 30).await.unwrap(), None);
    assert_eq!(take(one, now, 30).await.unwrap(), Some(from));
    let note = |holder, from, to| world.operate(&OPERATOR, RecordEvents { holder, from, to, deliveries: Vec::new() });
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
    let account = |holder: &Holder| (world.organization, holder.account.grant.account);
    let since = world.now();
    world.clock.advance_seconds(1);
    for attempt in 1..=FREE_ATTEMPTS {
        world.reserve(&locked, network).await;
        if attempt < FREE_ATTEMPTS {
            world.reserve(&free, network).await;
        }
    }
    let between = |after, until| world.operate(&OPERATOR, NoticesBetween { after, until });
    let found = between(since, world.now()).await.unwrap();
    let later = between(world.now(), world.now().plus_seconds(1)).await.unwrap();
    // Other cases add notices to the same store.
    let of = |found: &[(OrganizationId, AccountId, StoredNotice)], holder: &Holder| {
        let of = found.iter().filter(|(organization, id, _)| (*organization, *id) == account(holder));
        of.map(|(.., notice)| (notice.code, notice.at)).collect::<Vec<_>>()
    };
    assert_eq!(of(&found, &locked), [(NoticeCode::LockedOut, world.now())]);
    assert_eq!(of(&found, &free), []);
    assert_eq!(of(&later, &locked), []);
}

async fn is_due(world: &World<'_>, key: ReceiverKey) -> bool {
    world.operate(&OPERATOR, ReceiversDue(world.now())).await.unwrap().contains(&key)
}

async fn pending(world: &World<'_>, key: ReceiverKey, limit: usize) -> Vec<EventDelivery> {
    let found = world.operate(&OPERATOR, PendingDeliveries { key, limit }).await.unwrap();
    let Some(Pending { receiver: Ok(_), deliveries }) = found else { panic!("{found:?}") };
    deliveries
}

async fn list(world: &World<'_>, principal: &Principal, owner: ReceiverOwner) -> Vec<StoredReceiver> {
    world.operate(principal, FindReceivers { owner, only: None }).await.unwrap()
}

async fn find(world: &World<'_>, principal: &Principal, key: ReceiverKey) -> Result<StoredReceiver, Refusal> {
    let found = world.operate(principal, FindReceivers { owner: key.owner, only: Some(key.id) }).await.decided()?;
    Ok(found.into_iter().next().unwrap())
}

pub(super) async fn added(world: &World<'_>, owner: ReceiverOwner) -> StoredReceiver {
    let addition = addition(world, owner);
    world.operate(&OPERATOR, addition.clone()).await.unwrap();
    as_added(&addition)
}

fn as_added(addition: &AddReceiver) -> StoredReceiver {
    let receiver = addition.receiver.clone();
    StoredReceiver { key: addition.key, version: 1, receiver, status: ReceiverStatus::NEW }
}

fn addition(world: &World<'_>, owner: ReceiverOwner) -> AddReceiver {
    let receiver = Receiver {
        channel: Channel::Webhook,
        address: SecretString::from("https://hooks.example/x").into(),
        shown: "https://hooks.example/…".to_owned(),
        events: EventKinds::all(owner.is_some()),
        state: ReceiverState::Active,
        secret: Some(SecretString::from("whsec_c2VjcmV0").into()),
        previous: None,
        created_at: world.now(),
    };
    let id = ReceiverId::from_uuid(world.ids.ordered(world.now()));
    AddReceiver { key: ReceiverKey { owner, id }, receiver, member: None }
}

fn delivery(world: &World<'_>, key: ReceiverKey, position: i64) -> EventDelivery {
    let id = EventId::from_uuid(world.ids.ordered(world.now()));
    let occurrence = Occurrence {
        kind: EventKind::NamespaceFrozen,
        subject: "namespace:imports".to_owned(),
        ..Occurrence::test(id, key, world.now())
    };
    occurrence.to_delivery(key, position, world.now(), &FakeDigester::default())
}
