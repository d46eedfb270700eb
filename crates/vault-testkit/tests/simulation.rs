//! Use cases at once under a scheduler with a seed: at every await it decides who goes on, who waits, whose request is lost,
//! carried out without an answer, or dropped. The same seed gives the same run.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use vault_core::Command;
use vault_core::Error;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::{AccountId, CredentialId};
use vault_core::port::{SaveCredential, StoreError};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{IdempotencyKey, SaveRequest};
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};

const KEYS: usize = 4;

/// Numbers that follow from a seed.
struct Chance(AtomicU64);

impl Chance {
    fn below(&self, limit: u64) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Polls to the end, alone.
fn alone<T>(future: impl Future<Output = T>) -> T {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
    }
}

type Saving = Pin<Box<dyn Future<Output = Result<CredentialId, Error>>>>;

/// Plays one seed on a store that may forget requests; what happened, in order.
fn play_on(forgets: bool, seed: u64) -> Vec<String> {
    let chance = Arc::new(Chance(AtomicU64::new(seed)));
    let stormy = Arc::new(AtomicBool::new(false));
    let (of, storm) = (Arc::clone(&chance), Arc::clone(&stormy));
    let fault = move |_| {
        if !storm.load(Ordering::SeqCst) {
            return None;
        }
        let lost = || StoreError::Unavailable("the storm".into());
        match of.below(10) {
            0 => Some(Fault::Before(lost())),
            1 => Some(Fault::After(lost())),
            2..6 => Some(Fault::Delayed(usize::try_from(of.below(4)).unwrap())),
            _ => None,
        }
    };
    let forget = move |command: &mut Command<SaveCredential>| {
        if forgets {
            command.act.idempotency = None;
        }
    };
    let fake = FakeVault::through(|memory| Arc::new(Faulty::new(memory).faults(fault).altered(forget)));
    let acme = alone(fake.operator().ensure_organization("acme")).unwrap();
    let who = Principal::embedder(acme.id, AccountId::from_bytes([7; 16]), Role::Editor);

    // Each request comes four times.
    let mut running: Vec<(usize, Saving)> = Vec::new();
    for number in 0..4 * KEYS {
        let (vault, who, key) = (fake.vault(), who.clone(), number % KEYS);
        running.push((
            key,
            Box::pin(async move {
                let json = format!(r#"{{"url":"https://files.example/{key}"}}"#);
                let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
                let mut request = SaveRequest::new("imports".parse().unwrap(), data);
                request.idempotency = Some(IdempotencyKey::parse(&format!("key-{key}")).unwrap());
                vault.save(&who, request).await
            }),
        ));
    }
    stormy.store(true, Ordering::SeqCst);
    let (mut trace, mut saved) = (Vec::new(), HashMap::new());
    while !running.is_empty() {
        let index = usize::try_from(chance.below(running.len() as u64)).unwrap();
        if chance.below(24) == 0 {
            trace.push(format!("{} crashed", running.swap_remove(index).0));
            continue;
        }
        let (key, saving) = &mut running[index];
        let key = *key;
        let Poll::Ready(outcome) = saving.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            trace.push(format!("{key} waits"));
            continue;
        };
        drop(running.swap_remove(index));
        trace.push(format!("{key}: {outcome:?}"));
        if let Ok(id) = outcome {
            assert_eq!(*saved.entry(key).or_insert(id), id, "seed {seed}: {trace:#?}");
        }
    }
    stormy.store(false, Ordering::SeqCst);

    let listed = alone(fake.vault().list(&who, Default::default(), Default::default())).unwrap().items;
    let recorded = fake.store.audit().iter().filter(|entry| entry.action == AuditAction::CredentialSaved).count();
    assert!(listed.len() <= KEYS && recorded == listed.len(), "seed {seed}: {trace:#?}");
    assert!(saved.values().all(|id| listed.iter().any(|item| item.id == *id)), "seed {seed}: {trace:#?}");
    trace
}

fn play(seed: u64) -> Vec<String> {
    play_on(false, seed)
}

#[test]
fn a_store_that_forgets_requests_is_found() {
    assert!(std::panic::catch_unwind(|| (0..20).for_each(|seed| drop(play_on(true, seed)))).is_err());
}

#[test]
fn a_request_has_one_effect_in_every_storm() {
    let traces: Vec<_> = (0..500).map(play).collect();
    assert!(traces.iter().flatten().any(|line| line.ends_with("crashed")));
    assert!(traces.iter().flatten().any(|line| line.contains("Err(")));
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [0, 7, 4_711] {
        assert_eq!(play(seed), play(seed));
    }
}
