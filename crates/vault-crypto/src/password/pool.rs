//! Threads that hash, and nothing else: as many as cores, each with its memory, behind a short queue.

use super::huge_pages;
use argon2::Block;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vault_core::port::{HashError, HashPermit};

/// How many wait for each thread at most, where nothing else is configured: about half a second's work. A shorter
/// queue would turn people away who only came at the same moment.
const QUEUE_PER_THREAD: usize = 24;

/// The least urgent there is: hashing never takes time from vault operations.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 19;

type Job = Box<dyn FnOnce(&mut Memory) + Send>;

/// A pool of hashing threads. They end when the pool is dropped.
pub struct HashingPool {
    jobs: Sender<Job>,
    seats: Arc<Semaphore>,
}

/// What a permit is inside.
struct Permit {
    pool: Arc<Semaphore>,
    _seat: OwnedSemaphorePermit,
}

impl HashingPool {
    /// A pool with a thread per core and a short queue for each.
    ///
    /// # Errors
    /// The operating system starts no threads.
    pub fn new() -> io::Result<Arc<Self>> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_size(cores, cores.saturating_mul(QUEUE_PER_THREAD))
    }

    /// A pool of `threads` (at least one) with room for `queue` callers more.
    ///
    /// # Errors
    /// The operating system starts no threads.
    pub fn with_size(threads: usize, queue: usize) -> io::Result<Arc<Self>> {
        let threads = threads.max(1);
        let (jobs, queued) = channel();
        let queued = Arc::new(Mutex::new(queued));
        for number in 0..threads {
            let queued = Arc::clone(&queued);
            thread::Builder::new().name(format!("hash-{number}")).spawn(move || work(&queued))?;
        }
        let seats = threads.saturating_add(queue).min(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self { jobs, seats: Arc::new(Semaphore::new(seats)) }))
    }

    /// A seat: on a thread or in the queue. There are more seats than threads, so that a thread does not
    /// stand idle while the one who comes next still looks its account up.
    pub(super) fn permit(&self) -> Result<HashPermit, HashError> {
        let seats = Arc::clone(&self.seats);
        let seat = Arc::clone(&seats).try_acquire_owned().map_err(|_| HashError::Busy)?;
        Ok(HashPermit(Box::new(Permit { pool: seats, _seat: seat })))
    }

    /// Runs a job on a thread of the pool. The permit is given back when the job has ended, even if nobody waits
    /// for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        permit: HashPermit,
        job: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Result<T, HashError> {
        if !self.gave(&permit.0) {
            return Err(HashError::Fault("not a permit of this pool".into()));
        }
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |memory| {
            let result = job(memory);
            drop(permit);
            // Nobody may be waiting any more.
            let _ = answer.send(result);
        });
        self.jobs.send(job).map_err(|_| HashError::Fault("the hashing threads have ended".into()))?;
        answered.await.map_err(|_| HashError::Fault("a hash was broken off".into()))
    }

    fn gave(&self, permit: &Box<dyn Any + Send>) -> bool {
        permit.downcast_ref::<Permit>().is_some_and(|permit| Arc::ptr_eq(&permit.pool, &self.seats))
    }
}

fn work(queued: &Mutex<Receiver<Job>>) {
    lower_priority();
    let mut memory = Memory::default();
    loop {
        let next = queued.lock().unwrap_or_else(PoisonError::into_inner).recv();
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

/// The working memory of one thread: set aside at its first hash and kept.
#[derive(Default)]
pub(super) struct Memory {
    kept: Vec<Block>,
    /// How many blocks each hash so far was made in.
    #[cfg(test)]
    pub(super) hashes: Vec<usize>,
}

impl Memory {
    /// Runs `hash` in `blocks` blocks. More than `keep` are given back afterwards.
    pub(super) fn with<T>(&mut self, blocks: usize, keep: usize, hash: impl FnOnce(&mut [Block]) -> T) -> T {
        if self.kept.len() < blocks {
            // No copying of what a longer vector would take along.
            self.kept = Vec::new();
            self.kept = zeroed(blocks);
        }
        #[cfg(test)]
        self.hashes.push(blocks);
        let result = hash(&mut self.kept[..blocks]);
        if self.kept.len() > keep {
            self.kept.truncate(keep);
            self.kept.shrink_to_fit();
        }
        result
    }
}

/// Blocks of zeros, on huge pages where the kernel has them: a hash reads its memory in random order, and with small
/// pages the address translation takes a tenth of its time.
fn zeroed(blocks: usize) -> Vec<Block> {
    let mut memory: Vec<Block> = Vec::with_capacity(blocks);
    huge_pages::request(memory.spare_capacity_mut()); // before the first write creates small pages
    memory.resize(blocks, Block::new());
    memory
}
