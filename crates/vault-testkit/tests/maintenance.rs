//! Maintenance: expired rows are deleted, and counters are recorded.

use async_trait::async_trait;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use uuid::Uuid;
use vault_core::Command;
use vault_core::audit::{
    Actor, AuditAction, AuditEntry, DeliveryPosition, DeliveryState, Origin, SealedAuditRecord, SealedCheckpoint,
    StoredCheckpoint, Subject, UnsealedEntry,
};
use vault_core::credential::{EXPIRING_SECONDS, HealthState};
use vault_core::credential_counts::{Checked, CountedCredentials, ExpiryWindow};
use vault_core::id::{AuditId, CredentialId, IssuerId, OrganizationId};
use vault_core::identity::{IssuerName, StoredIssuer};
use vault_core::key_use::KeyUseLimits;
use vault_core::organization::{Organization, OrganizationName};
use vault_core::port::*;
use vault_core::sealed::{InstanceKeyRecord, InstanceRecord, OrganizationKeys, RetiringInstanceKey};
use vault_core::time::Timestamp;
use vault_core::usecase::{AuditTally, Environment, Operator};
use vault_testkit::clock::{ManualClock, RecordingEvents, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, PlainSealer};
use vault_testkit::memory::MemoryStore;

/// A store for maintenance with a number of expired rows of each kind. One kind fails.
struct Heap {
    rest: Arc<MemoryStore>,
    expired: Mutex<HashMap<Expired, usize>>,
    failing: Option<Expired>,
    clock: Arc<ManualClock>,
    /// Duration of a delete_expired, in milliseconds.
    takes: i64,
    /// The results of counting credentials.
    slices: Mutex<VecDeque<CountedSlice>>,
    counts: Mutex<Vec<CountCredentials>>,
    /// The difference of its clock.
    skew: Mutex<Option<i64>>,
}

#[async_trait]
impl Maintenance for Heap {
    async fn delete_expired(&self, expired: Expired, _now: Timestamp) -> Result<usize, StoreError> {
        self.clock.advance_millis(self.takes);
        if self.failing == Some(expired) {
            return Err(StoreError::Unavailable("no".into()));
        }
        let mut left = self.expired.lock().unwrap();
        let left = left.entry(expired).or_default();
        let slice = (*left).min(EXPIRED_SLICE);
        *left -= slice;
        Ok(slice)
    }

    async fn check(&self, _now: Timestamp) -> Result<Option<i64>, StoreError> {
        Ok(*self.skew.lock().unwrap())
    }

    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError> {
        self.clock.advance_millis(self.takes);
        self.counts.lock().unwrap().push(query);
        Ok(self.slices.lock().unwrap().pop_front().unwrap_or_default())
    }

    async fn most_key_uses(&self) -> Result<i64, StoreError> {
        self.rest.most_key_uses().await
    }
}

#[async_trait]
impl AuditLog for Heap {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.rest.append(records).await
    }
}

#[async_trait]
impl AuditTrail for Heap {
    async fn list_entries(&self, query: List<String, AuditRange>) -> Result<Vec<AuditEntry>, StoreError> {
        self.rest.list_entries(query).await
    }

    async fn entries(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, StoreError> {
        self.rest.entries(ids).await
    }

    async fn unsealed_entries(&self, after: Option<String>, limit: usize) -> Result<Vec<UnsealedEntry>, StoreError> {
        self.rest.unsealed_entries(after, limit).await
    }

    async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.rest.newest_checkpoint().await
    }

    async fn checkpoints(&self, after: i64, limit: usize) -> Result<Vec<StoredCheckpoint>, StoreError> {
        self.rest.checkpoints(after, limit).await
    }

    async fn add_checkpoint(&self, sealed: SealedCheckpoint) -> Result<bool, StoreError> {
        self.rest.add_checkpoint(sealed).await
    }

    async fn cut_audit(&self, command: CutAudit) -> Result<bool, StoreError> {
        self.rest.cut_audit(command).await
    }

    async fn acquire_delivery_lease(&self, delivery: Delivery) -> Result<Option<DeliveryPosition>, StoreError> {
        self.rest.acquire_delivery_lease(delivery).await
    }

    async fn note_delivered(&self, holder: Uuid, from: i64, to: DeliveryPosition) -> Result<bool, StoreError> {
        self.rest.note_delivered(holder, from, to).await
    }

    async fn delivery(&self) -> Result<Option<DeliveryState>, StoreError> {
        self.rest.delivery().await
    }
}

#[async_trait]
impl OrganizationRepository for Heap {
    async fn create_organization(&self, command: CreateOrganization) -> Result<bool, StoreError> {
        self.rest.create_organization(command).await
    }
    async fn find_organization(&self, name: &OrganizationName) -> Result<Option<Organization>, StoreError> {
        self.rest.find_organization(name).await
    }
    async fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
        self.rest.organization(id).await
    }
    async fn list_organizations(&self) -> Result<Vec<Organization>, StoreError> {
        self.rest.list_organizations().await
    }
    async fn set_organization_state(&self, command: SetOrganizationState) -> Result<bool, StoreError> {
        self.rest.set_organization_state(command).await
    }
    async fn delete_organization(&self, command: DeleteOrganization) -> Result<bool, StoreError> {
        self.rest.delete_organization(command).await
    }
}

#[async_trait]
impl KeyRepository for Heap {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        self.rest.instance().await
    }
    async fn create_instance(&self, command: CreateInstance) -> Result<bool, StoreError> {
        self.rest.create_instance(command).await
    }
    async fn replace_root_key(&self, command: ReplaceRootKey) -> Result<bool, StoreError> {
        self.rest.replace_root_key(command).await
    }
    async fn retiring_instance_keys(&self) -> Result<Vec<RetiringInstanceKey>, StoreError> {
        self.rest.retiring_instance_keys().await
    }

    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError> {
        self.rest.instance_keys().await
    }
    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.rest.organization_keys(organization).await
    }
    async fn reserve_key_uses(&self, command: ReserveKeyUses) -> Result<bool, StoreError> {
        self.rest.reserve_key_uses(command).await
    }
    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        self.rest.replace_organization_key(command).await
    }
}

struct Setting {
    heap: Arc<Heap>,
    operator: Operator,
}

fn setting(expired: &[(Expired, usize)], failing: Option<Expired>, takes: i64) -> Setting {
    let (rest, clock, ids) =
        (Arc::new(MemoryStore::new()), Arc::new(ManualClock::default()), Arc::new(SequentialIds::default()));
    let environment = environment(&clock, &ids);
    let tally = Arc::new(AuditTally::new(environment.clone(), rest.clone()));
    let sealer = Arc::new(PlainSealer::new(rest.clone(), ids));
    let expired = Mutex::new(expired.iter().copied().collect());
    let (slices, counts) = (Mutex::default(), Mutex::default());
    let heap = Arc::new(Heap { rest, expired, failing, clock, takes, slices, counts, skew: Mutex::default() });
    Setting { operator: Operator::new(environment, tally, heap.clone(), sealer), heap }
}

fn environment(clock: &Arc<ManualClock>, ids: &Arc<SequentialIds>) -> Environment {
    Environment {
        clock: clock.clone(),
        ids: ids.clone(),
        events: Arc::new(RecordingEvents::default()),
        audit: Arc::new(FakeAuditSealer),
        origin: Origin::default(),
    }
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
    let credential_counts = setting.operator.count_by_state(EXPIRING_SECONDS).await.unwrap();
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
    let keys = setting.heap.organization_keys(organization.id).await.unwrap().unwrap();
    let uses = KeyUseLimits::MOST.stop_at() / 4;
    let take = ReserveKeyUses { organization: organization.id, key: keys.keys[0].id, from: 0, block: uses };
    assert!(setting.heap.reserve_key_uses(take).await.unwrap());
    setting.heap.clock.advance_millis(90_000);
    let key_usage = setting.operator.key_usage().await.unwrap();
    assert_eq!((key_usage.organization_key, key_usage.unsealed_millis), (0.25, 90_000));
    setting.operator.seal_audit(1_000).await.unwrap();
    assert_eq!(setting.operator.key_usage().await.unwrap().unsealed_millis, 0);
}

/// A log whose appends are blocked until the test continues them.
struct SlowLog {
    rest: Arc<MemoryStore>,
    gate: tokio::sync::Semaphore,
}

#[async_trait]
impl AuditLog for SlowLog {
    async fn append(&self, records: Vec<SealedAuditRecord>) -> Result<(), StoreError> {
        self.gate.acquire().await.unwrap().forget();
        self.rest.append(records).await
    }
}

#[tokio::test]
async fn flush_that_is_cancelled_loses_no_count() {
    let (clock, ids) = (Arc::new(ManualClock::default()), Arc::new(SequentialIds::default()));
    let log = Arc::new(SlowLog { rest: Arc::new(MemoryStore::new()), gate: tokio::sync::Semaphore::new(0) });
    let tally = AuditTally::new(environment(&clock, &ids), log.clone());
    for _ in 0..3 {
        tally.count(clock.now(), None, Actor::Unknown, AuditAction::CredentialsListed, Subject::Vault);
    }
    let cancelled = tokio::time::timeout(std::time::Duration::ZERO, tally.flush(true)).await;
    assert!(cancelled.is_err(), "the log let nothing through");
    log.gate.add_permits(1);
    tally.flush(true).await.unwrap();
    let recorded = log.rest.audit();
    assert_eq!(recorded.iter().map(|record| record.count).sum::<i64>(), 3);
}

#[async_trait]
impl IssuerRepository for Heap {
    async fn add_issuer(&self, command: Command<StoredIssuer>) -> Result<(), StoreError> {
        self.rest.add_issuer(command).await
    }
    async fn list_issuers(&self) -> Result<Vec<StoredIssuer>, StoreError> {
        self.rest.list_issuers().await
    }
    async fn find_issuers(&self, names: Vec<IssuerName>) -> Result<Vec<StoredIssuer>, StoreError> {
        self.rest.find_issuers(names).await
    }
    async fn remove_issuer(&self, command: Command<IssuerId>) -> Result<bool, StoreError> {
        self.rest.remove_issuer(command).await
    }
    async fn record_keys(&self, seen: StoredIssuer, next: StoredIssuer) -> Result<bool, StoreError> {
        self.rest.record_keys(seen, next).await
    }
}

#[async_trait]
impl RestoreRepository for Heap {
    async fn restore_epoch(&self) -> Result<u64, StoreError> {
        self.rest.restore_epoch().await
    }
    async fn finish_restore(&self, command: Command<FinishRestore>) -> Result<Option<Settled>, StoreError> {
        self.rest.finish_restore(command).await
    }
}
