//! Maintenance: expired rows are deleted, and counters are recorded.

use futures_util::FutureExt as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vault_core::Error;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::credential_counts::ExpiryWindow;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::maintenance::{EXPIRED_SLICE, Expired};
use vault_core::operation::{Access, Failure, Operation, Operations, Unit};
use vault_core::organization::CountKeyUses;
use vault_core::port::StoreError;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::session::NewSession;
use vault_core::time::Timestamp;
use vault_core::usecase::{NewCredential, Operator};
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};

/// Stores sessions that have expired, with these numbers.
#[derive(PartialEq)]
struct Expire(Range<usize>);

impl Operation for Expire {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let place = (OrganizationId::from_bytes([1; 16]), AccountId::from_bytes([1; 16]));
        for number in self.0.clone() {
            let id = SessionId::from_bytes((number as u128).to_be_bytes());
            let (created_at, expires_at, network) = (unit.now(), unit.now(), String::new());
            let session = NewSession { id, created_at, expires_at, network, client: None };
            unit.rows().insert_session(place, &session).await?;
        }
        unit.commit_without_entry();
        Ok(())
    }
}

struct Setting {
    fake: FakeVault,
    operator: Operator,
}

/// There are `expired` sessions. Each deletion and each count takes this number of milliseconds, and one deletion fails.
async fn setting(expired: usize, failing: Option<usize>, takes: i64) -> Setting {
    let (fake, deletions) = (FakeVault::new(), AtomicUsize::new(0));
    let clock = fake.clock.clone();
    let store = Faulty::new(fake.store.clone()).faults(move |name| {
        if ["DeleteExpired", "CountCredentials"].contains(&name) {
            clock.advance_millis(takes);
        }
        let fails = name == "DeleteExpired" && Some(deletions.fetch_add(1, Ordering::Relaxed)) == failing;
        fails.then(|| Fault::Before(StoreError::Unavailable("no".into())))
    });
    let (documents, credentials) = (fake.digester.clone(), fake.sealer.clone());
    let operations = Operations::new(Arc::new(store), documents, credentials, fake.digester.clone());
    fake.operate(Expire(0..expired)).await.unwrap();
    let operator = Operator::new(fake.environment.clone(), fake.tally.clone(), operations);
    Setting { fake, operator }
}

#[tokio::test]
async fn expired_rows_are_deleted_despite_failure_of_one_kind() {
    let many = 5 * EXPIRED_SLICE + 7;
    let setting = setting(many, Some(1), 0).await;
    let tidied = setting.operator.maintain(1).await;
    assert_eq!((tidied.deleted, tidied.more), (many, false));
    assert!(matches!(&tidied.failed[..], [(Expired::IdempotencyKeys, Error::Store(StoreError::Unavailable(_)))]));
}

#[tokio::test]
async fn wrong_clock_deletes_nothing() {
    let setting = setting(3, None, 0).await;
    let differ = |skew| {
        let now = setting.fake.environment.now().as_millis();
        setting.fake.store.set_server_time(Some(Timestamp::from_millis(now + skew)));
    };
    for skew in [2_001, -3_600_000] {
        differ(skew);
        let tidied = setting.operator.maintain(1_000).await;
        assert_eq!((tidied.deleted, tidied.skew), (0, Some(skew)));
        setting.operator.cut_audit(Timestamp::from_millis(i64::MAX), None, 1_000).await.unwrap_err();
    }
    differ(-2_000);
    let tidied = setting.operator.maintain(1_000).await;
    assert_eq!((tidied.deleted, tidied.skew), (3, None));
}

#[tokio::test]
async fn round_stops_at_time_limit_and_reports_remaining_work() {
    let setting = setting(20 * EXPIRED_SLICE, None, 10).await;
    let tidied = setting.operator.maintain(200).await;
    assert!(tidied.more && tidied.failed.is_empty());
    // The kinds are served round-robin, so none starves behind the one with the most rows.
    assert!(tidied.deleted >= EXPIRED_SLICE && tidied.deleted < 20 * EXPIRED_SLICE, "{}", tidied.deleted);
    assert_eq!(setting.operator.maintain(10_000).await.deleted, 20 * EXPIRED_SLICE - tidied.deleted);
}

/// With 200 logins per second and a lifetime of 60 s, no rows remain after a round.
#[tokio::test]
async fn upkeep_keeps_up_with_two_hundred_logins_per_second() {
    const A_MINUTES_LOGINS: usize = 200 * 60;
    // A slice needs 100 ms here, and a round is limited to 6 s.
    let setting = setting(0, None, 100).await;
    for _ in 0..3 {
        setting.fake.operate(Expire(0..A_MINUTES_LOGINS)).await.unwrap();
        let tidied = setting.operator.maintain(6_000).await;
        assert_eq!((tidied.deleted, tidied.more), (A_MINUTES_LOGINS, false));
    }
}

/// After the disk was full, the store is not healthy before it was written to.
#[tokio::test]
async fn full_disk_is_tested_until_it_has_space() {
    let setting = setting(0, None, 0).await;
    for _ in 0..2 {
        setting.fake.store.fail_next(StoreError::Full);
        let full = setting.operator.create_organization("Acme").await;
        assert!(matches!(full, Err(Error::Store(StoreError::Full))));
    }
    setting.fake.store.fail_next(StoreError::Full);
    assert!(setting.operator.check_store().await.is_err());
    setting.operator.check_store().await.unwrap();
}

#[tokio::test]
async fn credentials_are_counted_in_slices_at_one_instant() {
    let setting = setting(0, None, 10).await;
    let organization = setting.operator.create_organization("Acme").await.unwrap().id;
    let editor = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
    let [day, ..] = ExpiryWindow::ALL;
    // Within a day as soon as a slice was counted.
    let now = setting.fake.environment.now();
    let expires_at = Some(Timestamp::from_millis(now.plus_seconds(day.seconds()).as_millis() + 1));
    for number in 0..5 {
        let data = format!(r#"{{"url":"https://files.example/{number}"}}"#);
        let data = CredentialData::from_canonical_json(CredentialType::DirectLink, data.as_bytes()).unwrap();
        let new = NewCredential { expires_at, ..NewCredential::new("imports".parse().unwrap(), data) };
        setting.fake.vault().save(&editor, new).await.unwrap();
    }
    for limit in [1, 2, 5, 10] {
        setting.fake.clock.set(now);
        let counts = setting.operator.count_by_state(limit).await.unwrap();
        let expected = ExpiryWindow::ALL.map(|window| (window, if window == day { 0 } else { 5 }));
        assert_eq!(counts.by_expiry().collect::<Vec<_>>(), expected, "{limit}");
    }
}

#[tokio::test]
async fn empty_vault_has_no_key_usage() {
    let key_usage = setting(0, None, 0).await.operator.key_usage().await.unwrap();
    assert_eq!((key_usage.organization_key, key_usage.unsealed_millis), (0.0, 0));
}

#[tokio::test]
async fn key_usage_reports_most_used_key_and_oldest_unsealed_entry() {
    let setting = setting(0, None, 0).await;
    let organization = setting.operator.create_organization("Acme").await.unwrap();
    let (organization, key) = (organization.id, organization.keys.active.id);
    let count = CountKeyUses { organization, key, uses: 1 << 26, replaced_at: i64::MAX };
    setting.fake.operate(count).await.unwrap();
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
