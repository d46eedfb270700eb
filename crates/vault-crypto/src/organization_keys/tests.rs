use super::*;
use crate::testing::{Bench, NOW, id};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

fn organization(number: u128) -> OrganizationId {
    OrganizationId::from_uuid(id(number))
}

fn keyring(bench: &Bench) -> OrganizationKeyring {
    OrganizationKeyring::new(crate::testing::instance_keys(1), bench.keys.clone(), Arc::new(crate::OsEntropy))
}

/// Returns a bench with one organization, and a keyring that can open its keys.
async fn with_organization() -> (Bench, OrganizationKeyring) {
    let bench = Bench::new().await;
    let keys = keyring(&bench);
    insert(&bench, &keys, organization(1));
    (bench, keys)
}

fn insert(bench: &Bench, keys: &OrganizationKeyring, organization: OrganizationId) -> KeyId {
    let made = keys.new_keys(organization, NOW).unwrap();
    let key = made.keys[0].id;
    bench.keys.rows.lock().unwrap().insert(organization, made);
    key
}

#[tokio::test]
async fn keys_are_loaded_once() {
    let (bench, keys) = with_organization().await;
    let key = bench.keys.rows.lock().unwrap()[&organization(1)].keys[0].id;
    for _ in 0..5 {
        assert!(keys.key(organization(1), key).await.unwrap().is_some());
        keys.entry(organization(1)).await.unwrap();
    }
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn unknown_key_is_read_again_once() {
    let (bench, keys) = with_organization().await;
    let first = bench.keys.rows.lock().unwrap()[&organization(1)].keys[0].id;
    keys.entry(organization(1)).await.unwrap();
    let next = keys.new_key(organization(1), NOW).unwrap();
    let next_id = next.id;
    let before = bench.keys.rows.lock().unwrap()[&organization(1)].clone();
    let after = before.with_next(&next);
    let bound = keys.bind(organization(1), &before, &after).await.unwrap();
    let after = OrganizationKeys { fingerprint_wrapped: bound.after, ..after };
    bench.keys.rows.lock().unwrap().insert(organization(1), after);
    assert!(keys.key(organization(1), next_id).await.unwrap().is_some());
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 2);
    for key in [first, next_id] {
        assert!(keys.key(organization(1), key).await.unwrap().is_some(), "both are kept");
    }
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 2);
    assert!(keys.key(organization(1), crate::testing::key_id(99)).await.unwrap().is_none());
    assert_eq!(bench.keys.reads.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn organization_that_does_not_exist_has_no_keys() {
    let (_bench, keys) = with_organization().await;
    assert!(matches!(keys.entry(organization(2)).await.err(), Some(SealError::NoKeys)));
    assert!(matches!(keys.key(organization(2), crate::testing::key_id(1)).await.err(), Some(SealError::NoKeys)));
}

#[tokio::test]
async fn memory_is_bounded() {
    let (bench, keys) = with_organization().await;
    let keys = OrganizationKeyring { cache: Cache::new(3), ..keys };
    for number in 1..=50 {
        insert(&bench, &keys, organization(number));
        keys.entry(organization(number)).await.unwrap();
        assert!(keys.cache.len() <= 3);
    }
}

#[tokio::test]
async fn damaged_rows_are_refused_by_table_and_id() {
    let bench = Bench::new().await;
    let first = keyring(&bench);
    insert(&bench, &first, organization(1));
    insert(&bench, &first, organization(2));
    let sound = bench.keys.organization_keys(organization(1)).await.unwrap().unwrap();
    let other = bench.keys.organization_keys(organization(2)).await.unwrap().unwrap();
    let refused = async |change: &dyn Fn(&mut OrganizationKeys)| -> (&'static str, String) {
        let mut rows = sound.clone();
        change(&mut rows);
        bench.keys.rows.lock().unwrap().insert(organization(1), rows);
        match keyring(&bench).entry(organization(1)).await.err() {
            Some(SealError::Integrity { table, object, .. }) => (table, object),
            other => panic!("{other:?}"),
        }
    };
    let (own, key) = (organization(1).to_string(), sound.keys[0].id);
    type Change<'a> = &'a dyn Fn(&mut OrganizationKeys);
    let changes: [(Change<'_>, &str, String); 7] = [
        (&|rows| rows.fingerprint_wrapped = other.fingerprint_wrapped.clone(), "organizations", own.clone()),
        (&|rows| rows.fingerprint_key = other.fingerprint_key, "organizations", own.clone()),
        (&|rows| rows.keys[0].wrapped = other.keys[0].wrapped.clone(), "organization_keys", key.to_string()),
        (&|rows| rows.keys[0].id = other.keys[0].id, "organizations", own.clone()),
        (&|rows| rows.keys = other.keys.clone(), "organizations", own.clone()),
        (&|rows| rows.keys[0].state = KeyState::Retiring, "organizations", own.clone()),
        (&|rows| rows.keys.extend(other.keys.clone()), "organizations", own),
    ];
    for (change, table, row) in changes {
        assert_eq!(refused(change).await, (table, row));
    }
    for place in 0..sound.keys[0].wrapped.as_bytes().len() {
        let flip = |rows: &mut OrganizationKeys| {
            let mut bytes = rows.keys[0].wrapped.as_bytes().to_vec();
            bytes[place] ^= 1;
            rows.keys[0].wrapped = Blob::from_bytes(bytes);
        };
        assert_eq!(refused(&flip).await.0, "organization_keys", "byte {place}");
    }
}

#[tokio::test]
async fn new_keys_have_unique_ids() {
    let bench = Bench::new().await;
    let keys = keyring(&bench);
    let mut ids = HashSet::new();
    for _ in 0..100 {
        let made = keys.new_keys(organization(1), NOW).unwrap();
        assert!(ids.insert(made.fingerprint_key) && ids.insert(made.keys[0].id));
        assert_eq!((made.keys.len(), made.keys[0].uses, made.keys[0].state), (1, 0, KeyState::Active));
    }
    let none = OrganizationKeyring { entropy: Arc::new(crate::testing::NoEntropyLeft), ..keys };
    assert!(none.new_keys(organization(1), NOW).is_err());
}
