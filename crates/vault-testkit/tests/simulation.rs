//! Concurrent use cases under a scheduler with a seed. At every await, it decides which task continues, and which
//! request is lost, executed without a response, or dropped. The same seed produces the same run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::AccountId;
use vault_core::port::StoreError;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{IdempotencyKey, NewCredential};
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};
use vault_testkit::memory::{Defect, MemoryStore};

const KEYS: usize = 4;

/// Numbers that are derived from a seed.
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) fn below(&self, limit: u64) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Runs a future to its end without other tasks.
pub(crate) fn alone<T>(future: impl Future<Output = T>) -> T {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
    }
}

/// One request in flight, which returns the result that its caller sees.
pub(crate) type Task = Pin<Box<dyn Future<Output = String>>>;

/// The failures of a store, which can be disabled.
pub(crate) struct Storm {
    pub(crate) random: Arc<Random>,
    raging: Arc<AtomicBool>,
}

impl Storm {
    pub(crate) fn of(seed: u64) -> Self {
        Self { random: Arc::new(Random(AtomicU64::new(seed))), raging: Arc::default() }
    }

    /// Returns a vault whose store has these failures and this defect.
    pub(crate) fn vault(&self, defect: Option<Defect>) -> FakeVault {
        let (random, raging) = (Arc::clone(&self.random), Arc::clone(&self.raging));
        let fault = move |_| {
            if !raging.load(Ordering::SeqCst) {
                return None;
            }
            let lost = || StoreError::Unavailable("the storm".into());
            match random.below(10) {
                0 => Some(Fault::Before(lost())),
                1 => Some(Fault::After(lost())),
                2..6 => Some(Fault::Delayed(usize::try_from(random.below(4)).unwrap())),
                _ => None,
            }
        };
        FakeVault::through(|sound| {
            let memory = defect.map_or(sound, |defect| Arc::new(MemoryStore::flawed(defect)));
            Arc::new(Faulty::new(memory).faults(fault))
        })
    }

    /// Runs the tasks concurrently, in an order that the seed determines. Some of them crash. Returns the events in
    /// order.
    pub(crate) fn play(&self, mut running: Vec<(String, Task)>) -> Vec<String> {
        let mut trace = Vec::new();
        self.raging.store(true, Ordering::SeqCst);
        while !running.is_empty() {
            let index = usize::try_from(self.random.below(running.len() as u64)).unwrap();
            if self.random.below(24) == 0 {
                trace.push(format!("{} crashed", running.swap_remove(index).0));
                continue;
            }
            let (name, task) = &mut running[index];
            let Poll::Ready(outcome) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
                trace.push(format!("{name} waits"));
                continue;
            };
            trace.push(format!("{name}: {outcome}"));
            drop(running.swap_remove(index));
        }
        self.raging.store(false, Ordering::SeqCst);
        trace
    }
}

/// Plays one seed on a store that may lose requests. Returns the events in order.
fn play_on(forgets: bool, seed: u64) -> Vec<String> {
    let storm = Storm::of(seed);
    let fake = storm.vault(forgets.then_some(Defect::ForgetsRequests));
    let acme = alone(fake.operator().ensure_organization("acme")).unwrap();
    let who = Principal::embedder(acme.id, AccountId::from_bytes([7; 16]), Role::Editor);

    // Each request is sent four times.
    let answers = Rc::new(RefCell::new(Vec::new()));
    let request = |number: usize| -> (String, Task) {
        let (vault, who, key, answers) = (fake.vault(), who.clone(), number % KEYS, Rc::clone(&answers));
        let saving = async move {
            let json = format!(r#"{{"url":"https://files.example/{key}"}}"#);
            let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
            let mut request = NewCredential::new("imports".parse().unwrap(), data);
            request.idempotency = Some(IdempotencyKey::parse(&format!("key-{key}")).unwrap());
            let outcome = vault.save(&who, request).await;
            answers.borrow_mut().extend(outcome.as_ref().ok().map(|id| (key, *id)));
            format!("{outcome:?}")
        };
        (key.to_string(), Box::pin(saving))
    };
    let trace = storm.play((0..4 * KEYS).map(request).collect());

    let mut saved = HashMap::new();
    for (key, id) in answers.borrow().iter() {
        assert_eq!(saved.entry(*key).or_insert(*id), id, "seed {seed}: {trace:#?}");
    }
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
fn store_that_forgets_requests_is_found() {
    assert!(std::panic::catch_unwind(|| (0..20).for_each(|seed| drop(play_on(true, seed)))).is_err());
}

#[test]
fn request_has_one_effect_in_every_storm() {
    let traces: Vec<_> = (0..500).map(play).collect();
    assert!(traces.iter().flatten().any(|line| line.ends_with("crashed")));
    assert!(traces.iter().flatten().any(|line| line.contains("Err(")));
}

#[test]
fn same_seed_repeats_the_run() {
    for seed in [0, 7, 4_711] {
        assert_eq!(play(seed), play(seed));
    }
}
