//! Locks on a file and on the memory that its connections share. They do not survive the process.

use rusqlite::ffi;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The lock level of each handle of a file (see `sqlite3_io_methods`).
#[derive(Debug, Default)]
pub(crate) struct FileLocks(BTreeMap<u64, i32>);

impl FileLocks {
    /// Returns `true` if the handle has acquired the lock.
    pub(crate) fn lock(&mut self, handle: u64, level: i32) -> bool {
        let others = self.0.iter().filter(|(other, _)| **other != handle).map(|(_, level)| *level).max();
        let others = others.unwrap_or(ffi::SQLITE_LOCK_NONE);
        let most = match level {
            ffi::SQLITE_LOCK_SHARED => ffi::SQLITE_LOCK_RESERVED,
            ffi::SQLITE_LOCK_RESERVED => ffi::SQLITE_LOCK_SHARED,
            _ => {
                // A handle that waits for the others blocks new ones.
                if others < ffi::SQLITE_LOCK_RESERVED {
                    self.0.insert(handle, ffi::SQLITE_LOCK_PENDING);
                }
                ffi::SQLITE_LOCK_NONE
            }
        };
        let granted = others <= most;
        if granted {
            self.0.insert(handle, level);
        }
        granted
    }

    /// Downgrades the lock of the handle to `level`.
    pub(crate) fn unlock(&mut self, handle: u64, level: i32) {
        if level == ffi::SQLITE_LOCK_NONE {
            self.0.remove(&handle);
        } else {
            self.0.insert(handle, level);
        }
    }

    /// Returns `true` if a handle has a reserved lock.
    pub(crate) fn is_reserved(&self) -> bool {
        self.0.values().any(|level| *level >= ffi::SQLITE_LOCK_RESERVED)
    }
}

/// Number of locks on shared memory.
const SLOTS: usize = ffi::SQLITE_SHM_NLOCK as usize;

/// The memory that the connections of a database share, and its locks.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    regions: Vec<Arc<[AtomicU64]>>,
    users: BTreeSet<u64>,
    readers: [BTreeSet<u64>; SLOTS],
    writers: [Option<u64>; SLOTS],
}

impl SharedMemory {
    /// Returns a region of `bytes` bytes. Creates it if it does not exist and `extend` is `true`.
    pub(crate) fn map(&mut self, handle: u64, index: usize, bytes: usize, extend: bool) -> Option<Arc<[AtomicU64]>> {
        self.users.insert(handle);
        while extend && self.regions.len() <= index {
            self.regions.push((0..bytes / 8).map(|_| AtomicU64::new(0)).collect());
        }
        self.regions.get(index).cloned()
    }

    /// Unmaps the memory of the handle. The last handle deletes it.
    pub(crate) fn unmap(&mut self, handle: u64) {
        self.users.remove(&handle);
        self.unlock(handle, 0..SLOTS);
        if self.users.is_empty() {
            self.regions.clear();
        }
    }

    /// Returns `true` if the handle has acquired these locks.
    pub(crate) fn lock(&mut self, handle: u64, slots: Range<usize>, exclusive: bool) -> bool {
        let foreign = |holder: &u64| *holder != handle;
        let is_taken = |slot: usize| {
            let others_read = || self.readers[slot].iter().any(foreign);
            self.writers[slot].as_ref().is_some_and(foreign) || exclusive && others_read()
        };
        if slots.clone().any(is_taken) {
            return false;
        }
        for slot in slots {
            if exclusive {
                self.writers[slot] = Some(handle);
            } else {
                self.readers[slot].insert(handle);
            }
        }
        true
    }

    /// Releases these locks of the handle.
    pub(crate) fn unlock(&mut self, handle: u64, slots: Range<usize>) {
        for slot in slots {
            self.readers[slot].remove(&handle);
            self.writers[slot] = self.writers[slot].filter(|holder| *holder != handle);
        }
    }
}
