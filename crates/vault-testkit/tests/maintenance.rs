//! Maintenance: expired rows are deleted, and counters are recorded.

use futures_util::FutureExt as _;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::credential::HealthState;
use vault_core::credential_counts::{Checked, CountedCredentials, ExpiryWindow};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::organization::CountKeyUses;
use vault_core::port::*;
use vault_core::time::Timestamp;
use vault_core::usecase::Operator;
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};

/// Responses of the store to maintenance.
#[derive(Default)]
struct Heap {
    /// The number of expired rows of each kind.
    expired: Mutex<HashMap<Expired, usize>>,
    /// The kind of the latest deletion.
    deleting: Mutex<Option<Expired>>,
    /// The results of counting credentials.
    slices: Mutex<VecDeque<CountedSlice>>,
    counts: Mutex<Vec<CountCredentials>>,
    /// The difference of its clock.
    skew: Mutex<Option<i64>>,
}

impl Heap {
    fn delete(&self, failing: Option<Expired>) -> Result<usize, StoreError> {
        let kind = self.deleting.lock().unwrap().unwrap();
        if failing == Some(kind) {
            return Err(StoreError::Unavailable("no".into()));
        }
        let mut left = self.expired.lock().unwrap();
        let left = left.entry(kind).or_default();
        let slice = (*left).min(EXPIRED_SLICE);
        *left -= slice;
        Ok(slice)
    }
}

struct Setting {
    fake: FakeVault,
    heap: Arc<Heap>,
    operator: Operator,
}

/// Deletions of one kind can fail. Deletions and counts take this number of milliseconds.
fn setting(expired: &[(Expired, usize)], failing: Option<Expired>, takes: i64) -> Setting {
    let fake = FakeVault::new();
    let heap = Arc::new(Heap { expired: Mutex::new(expired.iter().copied().collect()), ..Heap::default() });
    let [kinds, queries, deletes, skews, counts] = [(); 5].map(|()| heap.clone());
    let (clock, counts_clock) = (fake.clock.clone(), fake.clock.clone());
    let store = Faulty::new(fake.store.clone())
        .altered::<Expired>(move |kind| *kinds.deleting.lock().unwrap() = Some(*kind))
        .altered::<CountCredentials>(move |query| queries.counts.lock().unwrap().push(*query))
        .answering::<usize>("delete_expired", move |answer| {
            clock.advance_millis(takes);
            *answer = deletes.delete(failing);
        })
        .answering::<Option<i64>>("check", move |skew| *skew = Ok(*skews.skew.lock().unwrap()))
        .answering::<CountedSlice>("count_credentials", move |slice| {
            counts_clock.advance_millis(takes);
            *slice = Ok(counts.slices.lock().unwrap().pop_front().unwrap_or_default());
        });
    let (environment, tally) = (fake.environment.clone(), fake.tally.clone());
    let operator = Operator::new(environment, tally, Arc::new(store), fake.operations());
    Setting { operator, fake, heap }
}

#[tokio::test]
async fn expired_rows_are_deleted_despite_failure_of_one_kind() {
    let many = 5 * EXPIRED_SLICE + 7;
    let setting = setting(&[(Expired::Sessions, many), (Expired::Activations, 3)], Some(Expired::IdempotencyKeys), 0);
    let tidied = setting.operator.maintain(1).await;
    assert_eq!((tidied.deleted, tidied.more), (many + 3, false));
    assert!(matches!(&tidied.failed[..], [(Expired::IdempotencyKeys, StoreError::Unavailable(_))]));
    assert!(setting.heap.expired.lock().unwrap().values().all(|left| *left == 0));
}

#[tokio::test]
async fn wrong_clock_deletes_nothing() {
    let setting = setting(&[(Expired::Sessions, 3)], None, 0);
    for skew in [2_001, -3_600_000] {
        *setting.heap.skew.lock().unwrap() = Some(skew);
        let tidied = setting.operator.maintain(1_000).await;
        assert_eq!((tidied.deleted, tidied.skew), (0, Some(skew)));
        setting.operator.cut_audit(Timestamp::from_millis(i64::MAX), None, 1_000).await.unwrap_err();
    }
    *setting.heap.skew.lock().unwrap() = Some(-2_000);
    let tidied = setting.operator.maintain(1_000).await;
    assert_eq!((tidied.deleted, tidied.skew), (3, None));
}

#[tokio::test]
async fn round_stops_at_time_limit_and_reports_remaining_work() {
    let setting = setting(&[(Expired::Sessions, 100 * EXPIRED_SLICE)], None, 10);
    let tidied = setting.operator.maintain(200).await;
    assert!(tidied.more && tidied.failed.is_empty());
    // The kinds are served round-robin, so none starves behind the one with the most rows.
    assert!(tidied.deleted >= EXPIRED_SLICE && tidied.deleted < 100 * EXPIRED_SLICE, "{}", tidied.deleted);
    assert!(setting.operator.maintain(10_000).await.deleted > 0);
}

/// With 200 logins per second and a lifetime of 60 s for ten minutes, the number of remaining rows after each round
/// does not grow.
#[tokio::test]
async fn upkeep_keeps_up_with_two_hundred_logins_per_second() {
    const A_MINUTES_LOGINS: usize = 200 * 60;
    // A slice needs 100 ms here, and a round is limited to 6 s.
    let setting = setting(&[], None, 100);
    for _ in 0..10 {
        *setting.heap.expired.lock().unwrap().entry(Expired::Sessions).or_default() += A_MINUTES_LOGINS;
        setting.operator.maintain(6_000).await;
        assert_eq!(setting.heap.expired.lock().unwrap()[&Expired::Sessions], 0);
    }
}

/// Returns a slice of `credentials` credentials that have not been checked and expire within a day.
fn slice(credentials: usize, last: u8) -> CountedSlice {
    let credentials = credentials as u64;
    CountedSlice {
        groups: vec![CountedCredentials { checked: Checked::Never, bounds_before: 1, credentials }],
        last: Some((OrganizationId::from_bytes([1; 16]), CredentialId::from_bytes([last; 16]))),
    }
}

#[tokio::test]
async fn credentials_are_counted_in_slices_at_one_instant() {
    let setting = setting(&[], None, 10);
    *setting.heap.slices.lock().unwrap() = [slice(COUNT_SLICE, 1), slice(COUNT_SLICE, 2), slice(7, 3)].into();
    let credential_counts = setting.operator.count_by_state().await.unwrap();
    let all = 2 * COUNT_SLICE as u64 + 7;
    for (state, count) in credential_counts.by_health() {
        assert_eq!(count, if state == HealthState::Expiring { all } else { 0 }, "{state:?}");
    }
    assert_eq!(credential_counts.by_expiry().collect::<Vec<_>>(), ExpiryWindow::ALL.map(|window| (window, all)));
    let counts = setting.heap.counts.lock().unwrap();
    let after: Vec<_> = counts.iter().map(|count| count.after.map(|(_, id)| id.as_bytes()[0])).collect();
    assert_eq!(after, [None, Some(1), Some(2)]);
    assert!(counts.iter().all(|count| count.bounds == counts[0].bounds), "time passed between the slices");
}

#[tokio::test]
async fn empty_vault_has_no_key_usage() {
    let key_usage = setting(&[], None, 0).operator.key_usage().await.unwrap();
    assert_eq!((key_usage.organization_key, key_usage.unsealed_millis), (0.0, 0));
}

#[tokio::test]
async fn key_usage_reports_most_used_key_and_oldest_unsealed_entry() {
    let setting = setting(&[], None, 0);
    let organization = setting.operator.create_organization("Acme").await.unwrap();
    let (organization, key) = (organization.id, organization.keys.active.id);
    let count = CountKeyUses { organization, key, uses: 1 << 26, replaced_at: i64::MAX };
    setting
        .fake
        .operations()
        .run(&setting.fake.environment, &vault_core::principal::Principal::Operator, count)
        .await
        .unwrap();
    setting.fake.clock.advance_millis(90_000);
    let key_usage = setting.operator.key_usage().await.unwrap();
    assert_eq!((key_usage.organization_key, key_usage.unsealed_millis), (0.25, 90_000));
    setting.operator.seal_audit(1_000).await.unwrap();
    assert_eq!(setting.operator.key_usage().await.unwrap().unsealed_millis, 0);
}

/// Actions that are counted by the minute are recorded after it, with the time of recording.
#[tokio::test]
async fn counts_are_recorded_after_their_minute() {
    let fake = FakeVault::new();
    let minute = fake.environment.now().floor_to_minute();
    let count = || {
        fake.tally.count(fake.environment.now(), None, Actor::Operator, AuditAction::CredentialShown, Subject::Vault);
    };
    let recorded = || fake.store.audit().into_iter().map(|record| (record.at, record.count)).collect::<Vec<_>>();
    fake.clock.set(minute.plus_seconds(59));
    (0..3).for_each(|_| count());
    fake.tally.flush(false).await.unwrap();
    assert_eq!(recorded(), [], "the minute lasts");
    let next = minute.plus_seconds(60);
    fake.clock.set(next);
    count();
    fake.tally.flush(false).await.unwrap();
    assert_eq!(recorded(), [(next, 3)]);
    fake.tally.flush(true).await.unwrap();
    assert_eq!(recorded(), [(next, 3), (next, 1)]);
}

#[tokio::test]
async fn flush_that_is_cancelled_loses_no_count() {
    let is_slow = AtomicBool::new(true);
    let delayed = move |_| is_slow.swap(false, Ordering::Relaxed).then_some(Fault::Delayed(1));
    let fake = FakeVault::through(|store| Arc::new(Faulty::new(store).faults(delayed)));
    let FakeVault { tally, environment, store, .. } = &fake;
    for _ in 0..3 {
        tally.count(environment.now(), None, Actor::Unknown, AuditAction::CredentialsListed, Subject::Vault);
    }
    assert!(tally.flush(true).now_or_never().is_none(), "cancelled while the store waits");
    assert_eq!(store.audit().len(), 0);
    tally.flush(true).await.unwrap();
    let recorded = store.audit();
    assert_eq!(recorded.iter().map(|record| record.count).sum::<i64>(), 3);
}
