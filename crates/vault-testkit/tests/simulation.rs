//! Concurrent use cases under a scheduler with a seed. At every await, it decides which task continues, and which
//! request is lost, executed without a response, or dropped. The same seed produces the same run.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use vault_core::port::StoreError;
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};
use vault_testkit::memory::{Defect, MemoryStore};

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
