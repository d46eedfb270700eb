//! Threads that only hash passwords: one per core, each with its own memory, behind a short queue.

use super::huge_pages;
use argon2::Block;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};
use tokio::sync::oneshot;
use tracing::Instrument as _;
use vault_core::hash_slots::{HashSlot, HashSlots, Requester};
use vault_core::port::{HashError, HashPermit};
use vault_core::trace::TARGET;

/// Number of slots per thread, including the running hash: about half a second of work. With fewer, concurrent logins
/// would be refused.
const SLOTS_PER_THREAD: usize = 32;

/// The lowest priority, so that hashing does not delay vault operations.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 19;

type Job = Box<dyn FnOnce(&mut Memory) + Send>;

/// A pool of hashing threads, which stop when the pool is dropped.
pub struct HashingPool {
    jobs: Sender<Job>,
    hash_slots: Arc<Mutex<HashSlots>>,
}

/// Content of a permit.
struct Permit {
    hash_slots: Arc<Mutex<HashSlots>>,
    /// Present until it is dropped.
    hash_slot: Option<HashSlot>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(hash_slot) = self.hash_slot.take() {
            lock(&self.hash_slots).release(hash_slot);
        }
    }
}

impl HashingPool {
    /// Creates a pool with a thread per core and 32 slots for each.
    ///
    /// # Errors
    /// The operating system cannot start threads.
    pub fn new() -> io::Result<Arc<Self>> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_size(cores, cores.saturating_mul(SLOTS_PER_THREAD))
    }

    /// Creates a pool of `threads` (at least one) with this number of `hash_slots` (at least one per thread).
    ///
    /// # Errors
    /// The operating system cannot start threads.
    pub fn with_size(threads: usize, hash_slots: usize) -> io::Result<Arc<Self>> {
        let threads = threads.max(1);
        let (jobs, queued) = channel();
        let queued = Arc::new(Mutex::new(queued));
        for number in 0..threads {
            let queued = Arc::clone(&queued);
            thread::Builder::new().name(format!("hash-{number}")).spawn(move || work(&queued))?;
        }
        Ok(Arc::new(Self { jobs, hash_slots: Arc::new(Mutex::new(HashSlots::new(hash_slots.max(threads)))) }))
    }

    /// Returns the number of occupied slots, and the number of slots.
    pub fn hash_slots(&self) -> (usize, usize) {
        let hash_slots = lock(&self.hash_slots);
        (hash_slots.taken(), hash_slots.total())
    }

    /// Acquires a slot, on a thread or in the queue. There are more slots than threads, so that no thread is idle while
    /// the next login looks up its account.
    pub(super) fn permit(&self, requester: Requester) -> Result<HashPermit, HashError> {
        let hash_slot = lock(&self.hash_slots).take(requester).ok_or(HashError::Busy)?;
        Ok(HashPermit(Box::new(Permit { hash_slots: Arc::clone(&self.hash_slots), hash_slot: Some(hash_slot) })))
    }

    /// Runs a job on a thread of the pool. The permit is dropped when the job has finished, even if its caller was
    /// cancelled.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        permit: HashPermit,
        job: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Result<T, HashError> {
        if !self.issued(&permit.0) {
            return Err(HashError::Fault("not a permit of this pool".into()));
        }
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |memory| {
            let result = job(memory);
            drop(permit);
            // The caller may have been cancelled.
            let _ = answer.send(result);
        });
        self.jobs.send(job).map_err(|_| HashError::Fault("the hashing threads have ended".into()))?;
        let span = tracing::trace_span!(target: TARGET, "password.hash");
        answered.instrument(span).await.map_err(|_| HashError::Fault("a hash was broken off".into()))
    }

    fn issued(&self, permit: &Box<dyn Any + Send>) -> bool {
        permit.downcast_ref::<Permit>().is_some_and(|permit| Arc::ptr_eq(&permit.hash_slots, &self.hash_slots))
    }
}

// No code panics in the middle of a change while it has one of the locks, so a poisoned lock contains a consistent
// value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(queued: &Mutex<Receiver<Job>>) {
    lower_priority();
    let mut memory = Memory::default();
    loop {
        let next = lock(queued).recv();
        let Ok(job) = next else { return };
        if catch_unwind(AssertUnwindSafe(|| job(&mut memory))).is_err() {
            tracing::error!("a password hash panicked");
        }
    }
}

fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS) {
        tracing::debug!(%error, "a hashing thread keeps its priority");
    }
}

/// Working memory of one thread, allocated at its first hash and kept. Its size is that of the largest hash so far, at
/// most [`Argon2Parameters::MOST`](super::Argon2Parameters::MOST).
#[derive(Default)]
pub(super) struct Memory {
    kept: Vec<Block>,
    /// Size of each hash so far, in blocks.
    #[cfg(test)]
    pub(super) hashes: Vec<usize>,
}

impl Memory {
    /// Runs `hash` in `blocks` blocks, if the operating system provides the memory.
    pub(super) fn with<T>(&mut self, blocks: usize, hash: impl FnOnce(&mut [Block]) -> T) -> Result<T, HashError> {
        if self.kept.len() < blocks {
            // Free it first, because growing the vector would copy its content.
            self.kept = Vec::new();
            self.kept = zeroed(blocks)?;
        }
        #[cfg(test)]
        self.hashes.push(blocks);
        Ok(hash(&mut self.kept[..blocks]))
    }
}

/// Allocates blocks of zeros, on huge pages if the kernel has them. A hash reads its memory in random order, and with
/// small pages the address translation takes a tenth of its time.
fn zeroed(blocks: usize) -> Result<Vec<Block>, HashError> {
    let mut memory: Vec<Block> = Vec::new();
    // This is by far the largest allocation of a login. If memory is scarce, the process continues without it.
    let none = |_| HashError::NoMemory { bytes: blocks.saturating_mul(size_of::<Block>()) };
    memory.try_reserve_exact(blocks).map_err(none)?;
    huge_pages::request(memory.spare_capacity_mut()); // before the first write creates small pages
    memory.resize(blocks, Block::new());
    Ok(memory)
}
