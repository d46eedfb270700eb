use super::*;
use crate::testing::{Bench, Keys, NOW, id};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use vault_core::port::KeyRepository as _;

const LIMITS: KeyUseLimits = KeyUseLimits { block: 10, replace_at: 100, stop_at: 200, organizations: 3 };

fn organization(number: u128) -> OrganizationId {
    OrganizationId::from_uuid(id(number))
}

fn keyring(bench: &Bench, limits: KeyUseLimits) -> OrganizationKeyring {
    let wrap = AeadKey::new(crate::testing::key_id(1), &crate::testing::key(1));
    // Ids must differ between the key rings of one test, as those of replicas do.
    let entropy = Arc::new(crate::OsEntropy);
    OrganizationKeyring::new(bench.keyring.instance(), wrap, bench.ports(), limits, entropy)
}

/// A bench with one organization, and a key ring that knows it.
async fn with_organization(limits: KeyUseLimits) -> (Bench, OrganizationKeyring) {
    let bench = Bench::new().await;
    let keys = keyring(&bench, limits);
    insert(&bench.keys, &keys, organization(1));
    (bench, keys)
}

fn insert(rows: &Keys, keys: &OrganizationKeyring, organization: OrganizationId) {
    rows.rows.lock().unwrap().insert(organization, keys.new_keys(organization, NOW).unwrap());
}

fn row_uses(bench: &Bench) -> Vec<(KeyState, i64)> {
    bench.keys.rows.lock().unwrap()[&organization(1)].keys.iter().map(|row| (row.state, row.uses)).collect()
}

#[tokio::test]
async fn uses_are_taken_ahead_in_blocks() {
    let (bench, keys) = with_organization(LIMITS).await;
    for uses in 1..=25 {
        keys.sealing_key(organization(1)).await.unwrap();
        assert_eq!(row_uses(&bench), [(KeyState::Active, (uses + 9) / 10 * 10)]);
    }
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_restart_begins_after_the_blocks_handed_out() {
    let (bench, keys) = with_organization(LIMITS).await;
    keys.sealing_key(organization(1)).await.unwrap();
    let restarted = keyring(&bench, LIMITS);
    restarted.sealing_key(organization(1)).await.unwrap();
    assert_eq!(row_uses(&bench), [(KeyState::Active, 20)]);
}

#[tokio::test]
async fn a_used_up_key_is_replaced_and_recorded() {
    let (bench, keys) = with_organization(LIMITS).await;
    let first = keys.sealing_key(organization(1)).await.unwrap().id();
    for _ in 1..100 {
        assert_eq!(keys.sealing_key(organization(1)).await.unwrap().id(), first);
    }
    let second = keys.sealing_key(organization(1)).await.unwrap().id();
    assert_ne!(second, first);
    assert_eq!(row_uses(&bench), [(KeyState::Retiring, 100), (KeyState::Active, 10)]);
    assert_eq!(*bench.events.0.lock().unwrap(), [Event::OrganizationKeyReplaced(first)]);
    let audits = bench.keys.audits.lock().unwrap().clone();
    assert!(audits.len() == 1 && bench.audit.verify(&audits[0]));
    assert_eq!(audits[0].record.action, AuditAction::OrganizationKeyReplaced);
    assert_eq!(audits[0].record.actor, Actor::System);
    assert_eq!(audits[0].record.subject, Subject::Organization(organization(1)));
    // The first still opens.
    assert!(keys.opening_key(organization(1), first).await.unwrap().is_some());
}

#[tokio::test]
async fn a_key_that_cannot_be_replaced_is_used_to_its_end_and_no_further() {
    let (bench, keys) = with_organization(LIMITS).await;
    bench.keys.refuses_to_replace.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        keys.sealing_key(organization(1)).await.unwrap();
    }
    assert!(keys.sealing_key(organization(1)).await.is_err());
    assert_eq!(row_uses(&bench), [(KeyState::Active, 200)]);
    bench.keys.refuses_to_replace.store(false, Ordering::Relaxed);
    keys.sealing_key(organization(1)).await.unwrap();
    assert_eq!(row_uses(&bench), [(KeyState::Retiring, 200), (KeyState::Active, 10)]);
}

#[tokio::test]
async fn an_exhausted_key_seals_no_more() {
    let limits = KeyUseLimits { replace_at: 200, stop_at: 95, ..LIMITS };
    let (bench, keys) = with_organization(limits).await;
    for _ in 0..90 {
        keys.sealing_key(organization(1)).await.unwrap();
    }
    let key = bench.keys.rows.lock().unwrap()[&organization(1)].keys[0].id;
    let refused = keys.sealing_key(organization(1)).await.err();
    assert!(matches!(refused, Some(SealError::Exhausted(found)) if found == key));
    assert_eq!(row_uses(&bench), [(KeyState::Active, 90)]);
}

/// A68: many threads and several replicas, with keys replaced under way, never use a key more often than was taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn caps_hold_under_threads_and_replicas() {
    const EACH: usize = 150;
    let limits = KeyUseLimits { block: 7, replace_at: 70, stop_at: 140, organizations: 3 };
    let (bench, first) = with_organization(limits).await;
    let replicas = [Arc::new(first), Arc::new(keyring(&bench, limits)), Arc::new(keyring(&bench, limits))];
    let mut tasks = Vec::new();
    for task in 0..12 {
        let replica = Arc::clone(&replicas[task % 3]);
        tasks.push(tokio::spawn(async move {
            let mut used = Vec::new();
            for _ in 0..EACH {
                used.push(replica.sealing_key(organization(1)).await.unwrap().id());
            }
            used
        }));
    }
    let mut used = std::collections::HashMap::new();
    for task in tasks {
        for key in task.await.unwrap() {
            *used.entry(key).or_insert(0_i64) += 1;
        }
    }
    assert_eq!(used.values().sum::<i64>(), 12 * EACH as i64);
    let rows = bench.keys.rows.lock().unwrap()[&organization(1)].keys.clone();
    for row in &rows {
        let used = used.get(&row.id).copied().unwrap_or(0);
        assert!(used <= row.uses && row.uses <= limits.replace_at + limits.block, "{used} of {}", row.uses);
    }
    assert_eq!(rows.iter().filter(|row| row.state == KeyState::Active).count(), 1);
    assert_eq!(bench.keys.audits.lock().unwrap().len(), rows.len() - 1);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_once_more() {
    let (bench, keys) = with_organization(LIMITS).await;
    keys.sealing_key(organization(1)).await.unwrap();
    let next = keys.new_key(organization(1), NOW).unwrap();
    let next_id = next.id;
    {
        let mut rows = bench.keys.rows.lock().unwrap();
        let keys = &mut rows.get_mut(&organization(1)).unwrap().keys;
        keys[0].state = KeyState::Retiring;
        keys.push(next);
    }
    assert!(keys.opening_key(organization(1), next_id).await.unwrap().is_some());
    assert_eq!(keys.sealing_key(organization(1)).await.unwrap().id(), next_id);
    let reads = bench.keys.reads.load(Ordering::Relaxed);
    // Rows that name no key of ours cost a read each, but no uses.
    for _ in 0..20 {
        assert!(keys.opening_key(organization(1), crate::testing::key_id(99)).await.unwrap().is_none());
        keys.sealing_key(organization(1)).await.unwrap();
    }
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), reads + 20);
    assert_eq!(row_uses(&bench)[1], (KeyState::Active, 30));
}

#[tokio::test]
async fn what_is_forgotten_is_read_again() {
    let (bench, keys) = with_organization(LIMITS).await;
    keys.sealing_key(organization(1)).await.unwrap();
    bench.keys.rows.lock().unwrap().clear();
    assert!(keys.entry(organization(1)).await.is_ok());
    keys.forget(organization(1));
    assert!(matches!(keys.entry(organization(1)).await.err(), Some(SealError::NoKeys)));
    assert!(matches!(keys.sealing_key(organization(1)).await.err(), Some(SealError::NoKeys)));
}

#[tokio::test]
async fn a_deleted_organization_seals_no_more_than_its_block() {
    let (bench, keys) = with_organization(LIMITS).await;
    keys.sealing_key(organization(1)).await.unwrap();
    bench.keys.rows.lock().unwrap().clear();
    for _ in 0..9 {
        keys.sealing_key(organization(1)).await.unwrap();
    }
    assert!(matches!(keys.sealing_key(organization(1)).await.err(), Some(SealError::NoKeys)));
}

#[tokio::test]
async fn memory_is_bounded_and_what_is_used_stays() {
    let (bench, keys) = with_organization(LIMITS).await;
    for number in 1..=50 {
        insert(&bench.keys, &keys, organization(number));
        keys.entry(organization(number)).await.unwrap();
        keys.entry(organization(1)).await.unwrap();
        assert!(keys.cache.len() <= 3);
    }
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 50);
}

#[tokio::test]
async fn damaged_rows_are_refused_by_column_and_id() {
    let (bench, keys) = with_organization(LIMITS).await;
    insert(&bench.keys, &keys, organization(2));
    let sound = bench.keys.organization_keys(organization(1)).await.unwrap().unwrap();
    let other = bench.keys.organization_keys(organization(2)).await.unwrap().unwrap();
    let extra = keys.new_key(organization(1), NOW).unwrap();
    let changes: [&dyn Fn(&mut OrganizationKeys); 8] = [
        &|rows| rows.fingerprint_wrapped = other.fingerprint_wrapped.clone(),
        &|rows| rows.fingerprint_key = other.fingerprint_key,
        &|rows| rows.keys[0].wrapped = other.keys[0].wrapped.clone(),
        &|rows| rows.keys[0].id = other.keys[0].id,
        &|rows| rows.keys = other.keys.clone(),
        &|rows| rows.keys.clear(),
        &|rows| rows.keys[0].state = KeyState::Retiring,
        &|rows| rows.keys.push(extra.clone()),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut rows = sound.clone();
        change(&mut rows);
        bench.keys.rows.lock().unwrap().insert(organization(1), rows);
        let refused = keys.entry(organization(1)).await.err();
        assert!(matches!(refused, Some(SealError::Integrity { .. })), "change {index}");
    }
    for place in 0..sound.keys[0].wrapped.as_bytes().len() {
        let mut rows = sound.clone();
        let mut bytes = rows.keys[0].wrapped.as_bytes().to_vec();
        bytes[place] ^= 1;
        rows.keys[0].wrapped = Blob::from_bytes(bytes);
        bench.keys.rows.lock().unwrap().insert(organization(1), rows);
        assert!(keys.entry(organization(1)).await.is_err(), "byte {place}");
    }
}

#[tokio::test]
async fn new_keys_have_ids_of_their_own() {
    let bench = Bench::new().await;
    let keys = keyring(&bench, LIMITS);
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let made = keys.new_keys(organization(1), NOW).unwrap();
        assert!(ids.insert(made.fingerprint_key) && ids.insert(made.keys[0].id));
        assert_eq!((made.keys.len(), made.keys[0].uses, made.keys[0].state), (1, 0, KeyState::Active));
    }
    let none = OrganizationKeyring::new(
        bench.keyring.instance(),
        AeadKey::new(crate::testing::key_id(1), &crate::testing::key(1)),
        bench.ports(),
        LIMITS,
        Arc::new(crate::testing::NoEntropyLeft),
    );
    assert!(none.new_keys(organization(1), NOW).is_err());
}

#[test]
fn limits_can_only_be_lowered() {
    let wild = KeyUseLimits { block: i64::MAX, replace_at: -1, stop_at: i64::MAX, organizations: 0 };
    let bounded = KeyUseLimits { block: 65_536, replace_at: 1, stop_at: 1 << 28, organizations: 1 };
    assert_eq!(wild.within_bounds(), bounded);
    assert_eq!(KeyUseLimits::default().within_bounds(), KeyUseLimits::default());
}
