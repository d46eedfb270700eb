//! Threads that hash, and nothing else: as many as cores, each with its memory, behind a short queue.

use argon2::Block;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use vault_core::port::{HashError, HashPermit};

/// How many wait for each permit at most, where nothing else is configured.
const QUEUE_PER_PERMIT: usize = 8;

/// The least urgent there is: hashing never takes time from vault operations.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 19;

type Job = Box<dyn FnOnce(&mut Memory) + Send>;

/// A pool of hashing threads. They end when the pool is dropped.
pub struct HashingPool {
    jobs: Sender<Job>,
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
}

/// What a permit is inside.
struct Permit {
    pool: Arc<Semaphore>,
    _permit: OwnedSemaphorePermit,
}

/// One place in the queue; left when dropped, however the wait ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl HashingPool {
    /// A pool with a thread per core and eight places in the queue for each.
    ///
    /// # Errors
    /// The operating system starts no threads.
    pub fn new() -> io::Result<Arc<Self>> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_size(cores, cores.saturating_mul(QUEUE_PER_PERMIT))
    }

    /// A pool of `permits` threads (at least one) for which at most `queue` callers wait.
    ///
    /// # Errors
    /// The operating system starts no threads.
    pub fn with_size(permits: usize, queue: usize) -> io::Result<Arc<Self>> {
        let permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        let (jobs, queued) = channel();
        let queued = Arc::new(Mutex::new(queued));
        for number in 0..permits {
            let queued = Arc::clone(&queued);
            thread::Builder::new().name(format!("hash-{number}")).spawn(move || work(&queued))?;
        }
        let pool = Self { jobs, permits: Arc::new(Semaphore::new(permits)), waiting: Arc::default(), queue };
        Ok(Arc::new(pool))
    }

    /// Waits for a permit, if there is a place in the queue.
    pub(super) async fn permit(&self) -> Result<HashPermit, HashError> {
        let pool = Arc::clone(&self.permits);
        if let Ok(permit) = Arc::clone(&pool).try_acquire_owned() {
            return Ok(HashPermit(Box::new(Permit { pool, _permit: permit })));
        }
        let place = Place(Arc::clone(&self.waiting));
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= self.queue {
            return Err(HashError::Busy);
        }
        let permit = Arc::clone(&pool).acquire_owned().await.map_err(|error| HashError::Fault(error.into()))?;
        drop(place);
        Ok(HashPermit(Box::new(Permit { pool, _permit: permit })))
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
        permit.downcast_ref::<Permit>().is_some_and(|permit| Arc::ptr_eq(&permit.pool, &self.permits))
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
            self.kept = vec![Block::new(); blocks];
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
