//! A disk in memory with the files of one database. Synced data survives a power cut. Whether unsynced data survives is
//! random.

use crate::content::{Content, Fate};
use crate::locks::{FileLocks, SharedMemory};
use crate::random::Random;
use rusqlite::ffi;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A result code of SQLite.
pub type Code = std::ffi::c_int;

/// Suffix of the name of the write-ahead log.
pub const LOG: &str = "-wal";

/// A planted fault of the disk, to check that the simulation finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    /// No fault.
    #[default]
    None,
    /// No sync keeps anything.
    Syncs,
    /// Syncs of the log keep nothing.
    SyncsOfTheLog,
    /// Syncs of the database file keep nothing.
    SyncsOfTheDatabase,
    /// SQLite is set to `synchronous = OFF` but reports `FULL`.
    Synchronous,
}

/// The way in which calls fail.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the variants describe their fields")]
pub enum Failure {
    /// Calls that write or sync, from the first number to before the second, fail with an I/O error. With `reread`, the
    /// data of a failed sync is also lost from the kernel's cache.
    Calls { numbers: (u64, u64), reread: bool },
    /// Writes from the first number to before the second fail because the disk is full.
    Full { numbers: (u64, u64) },
    /// Reads from the first number to before the second fail with an I/O error.
    Reads { numbers: (u64, u64) },
}

impl Failure {
    fn hits((from, to): (u64, u64), number: u64) -> bool {
        (from..to).contains(&number)
    }
}

/// A disk.
pub struct Disk {
    state: Mutex<State>,
    let_go: Condvar,
    reported: Notify,
    lie: Lie,
}

#[derive(Default)]
struct State {
    /// The files by number. A file without a name exists until its last handle is closed.
    files: BTreeMap<u64, File>,
    /// The files by name, as processes see them. A name is the suffix after the name of the database.
    names: BTreeMap<String, u64>,
    /// The files by name, as they certainly survive a power cut.
    kept_names: BTreeMap<String, u64>,
    /// Changes of names since the last sync of the directory, by call.
    name_changes: Vec<(u64, (String, Option<u64>))>,
    last_number: u64,
    /// Number of calls that write, sync, create or delete.
    calls: u64,
    reads: u64,
    syncs: u64,
    stop_at: Option<u64>,
    failure: Option<Failure>,
    failed: u64,
    /// `true` while the call at which the power is cut is blocked.
    stopped: bool,
    /// Whether the next writer of a transaction is to be blocked, and whether one is.
    hold: bool,
    held: bool,
}

#[derive(Default)]
struct File {
    content: Content,
    locks: FileLocks,
    shared: SharedMemory,
}

/// An open file.
pub struct Handle {
    file: u64,
    number: u64,
    suffix: String,
    /// `true` if the first sync also syncs the directory.
    syncs_directory: bool,
}

impl Disk {
    /// Creates a disk with an empty database file.
    pub fn empty(lie: Lie) -> Self {
        Self::of(lie, BTreeMap::from([(String::new(), Content::default())]))
    }

    fn of(lie: Lie, files: BTreeMap<String, Content>) -> Self {
        let mut state = State::default();
        for (name, content) in files {
            state.last_number += 1;
            state.files.insert(state.last_number, File { content, ..File::default() });
            state.names.insert(name, state.last_number);
        }
        state.kept_names.clone_from(&state.names);
        Self { state: Mutex::new(state), let_go: Condvar::new(), reported: Notify::new(), lie }
    }

    /// Returns the disk as it is after a power cut at this moment.
    pub fn cut(&self, random: Random) -> Self {
        let state = self.state();
        let mut fate = Fate::of(random, state.calls);
        let mut names = state.kept_names.clone();
        let mut changes: BTreeMap<&String, Vec<(u64, Option<u64>)>> = BTreeMap::new();
        for (call, (name, file)) in &state.name_changes {
            changes.entry(name).or_default().push((*call, *file));
        }
        for (name, versions) in changes {
            match fate.choose(&versions) {
                Some((_, Some(file))) => drop(names.insert(name.clone(), *file)),
                Some((_, None)) => drop(names.remove(name)),
                None => {}
            }
        }
        let left = names.into_iter().filter_map(|(name, file)| {
            let content = &state.files.get(&file)?.content;
            Some((name, Content::kept(content.survive(&mut fate))))
        });
        Self::of(self.lie, left.collect())
    }

    /// Returns the disk as the next process finds it if the current process is killed at this moment: everything that
    /// was written is present, synced or not. The new disk has the fault `lie`.
    pub fn after_process(&self, lie: Lie) -> Self {
        let state = self.state();
        let file = |file: &File| File { content: file.content.clone(), ..File::default() };
        let next = State {
            files: state.files.iter().map(|(number, of)| (*number, file(of))).collect(),
            names: state.names.clone(),
            kept_names: state.kept_names.clone(),
            name_changes: state.name_changes.clone(),
            last_number: state.last_number,
            calls: state.calls,
            ..State::default()
        };
        Self { state: Mutex::new(next), let_go: Condvar::new(), reported: Notify::new(), lie }
    }

    /// Returns the number of calls that write, sync, create or delete.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Returns the number of syncs.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Returns the number of calls that failed on purpose.
    pub fn failed(&self) -> u64 {
        self.state().failed
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Sets the failure of the following calls.
    pub fn fail(&self, failure: Option<Failure>) {
        self.state().failure = failure;
    }

    /// Blocks the call of this number, so that the power can be cut at it.
    pub fn stop_at(&self, call: u64) {
        self.state().stop_at = Some(call);
    }

    /// Waits until a call is blocked.
    pub async fn stopped(&self) {
        self.wait(|state| state.stopped).await;
    }

    /// Unblocks all calls.
    pub fn resume(&self) {
        let mut state = self.state();
        (state.stopped, state.hold, state.stop_at, state.failure) = (false, false, None, None);
        self.let_go.notify_all();
    }

    /// Drops the content. Only connections that the store never closes after a failure of the disk may still use it.
    pub fn discard(&self) {
        self.state().files.clear();
    }

    /// Blocks writers before they write a transaction.
    pub fn hold(&self) {
        self.state().hold = true;
    }

    /// Waits until a writer is blocked.
    pub async fn held(&self) {
        self.wait(|state| state.held).await;
    }

    /// Unblocks writers.
    pub fn release(&self) {
        self.state().hold = false;
        self.let_go.notify_all();
    }

    async fn wait(&self, until: impl Fn(&State) -> bool) {
        loop {
            let reported = self.reported.notified();
            tokio::pin!(reported);
            reported.as_mut().enable();
            if until(&self.state()) {
                return;
            }
            reported.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and blocks it if it is the one to stop.
    fn stop<'a>(&'a self, mut state: MutexGuard<'a, State>, call: u64) -> MutexGuard<'a, State> {
        if state.stop_at == Some(call) {
            state.stopped = true;
            self.reported.notify_waiters();
            while state.stopped {
                state = self.let_go.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state
    }
}

/// Calls of SQLite.
impl Disk {
    /// Opens the file with this suffix, or a file without a name.
    pub fn open(&self, suffix: Option<&str>, create: bool, syncs_directory: bool) -> Result<Handle, Code> {
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        let found = suffix.and_then(|suffix| state.names.get(suffix).copied());
        let file = match found {
            Some(file) => file,
            None if create || suffix.is_none() => {
                state.files.insert(number, File::default());
                if let Some(suffix) = suffix {
                    state.calls += 1;
                    let call = state.calls;
                    state.names.insert(suffix.to_owned(), number);
                    state.name_changes.push((call, (suffix.to_owned(), Some(number))));
                    state = self.stop(state, call);
                }
                number
            }
            None => return Err(ffi::SQLITE_CANTOPEN),
        };
        drop(state);
        Ok(Handle { file, number, suffix: suffix.unwrap_or("(none)").to_owned(), syncs_directory })
    }

    /// Returns `true` if a file with this suffix exists.
    pub fn exists(&self, suffix: &str) -> bool {
        self.state().names.contains_key(suffix)
    }

    /// Deletes a name.
    pub fn delete(&self, suffix: &str, sync_directory: bool) -> Result<(), Code> {
        let mut state = self.state();
        if state.names.remove(suffix).is_none() {
            return Err(ffi::SQLITE_IOERR_DELETE_NOENT);
        }
        state.calls += 1;
        let call = state.calls;
        state.name_changes.push((call, (suffix.to_owned(), None)));
        let mut state = self.stop(state, call);
        if sync_directory {
            state.keep_names();
        }
        Ok(())
    }

    /// Reads bytes and returns their number.
    pub fn read(&self, handle: &Handle, offset: usize, into: &mut [u8]) -> Result<usize, Code> {
        let mut state = self.state();
        state.reads += 1;
        if let Some(Failure::Reads { numbers }) = state.failure
            && Failure::hits(numbers, state.reads)
        {
            state.failed += 1;
            return Err(ffi::SQLITE_IOERR_READ);
        }
        let seen = state.file(handle)?.content.seen();
        let seen = seen.get(offset..).unwrap_or_default();
        let length = seen.len().min(into.len());
        into[..length].copy_from_slice(&seen[..length]);
        Ok(length)
    }

    /// Writes bytes. A write that fails has written some of them.
    pub fn write(&self, handle: &Handle, offset: usize, bytes: &[u8]) -> Result<(), Code> {
        let mut state = self.state();
        state.calls += 1;
        let call = state.calls;
        let failure = match state.failure {
            Some(Failure::Calls { numbers, .. }) if Failure::hits(numbers, call) => Some(ffi::SQLITE_IOERR_WRITE),
            Some(Failure::Full { numbers }) if Failure::hits(numbers, call) => Some(ffi::SQLITE_FULL),
            _ => None,
        };
        let length = if failure.is_some() { bytes.len() / 2 } else { bytes.len() };
        state.failed += u64::from(failure.is_some());
        state.file(handle)?.content.write(call, offset, &bytes[..length]);
        let _state = self.stop(state, call);
        failure.map_or(Ok(()), Err)
    }

    /// Sets the size.
    pub fn resize(&self, handle: &Handle, size: usize) -> Result<(), Code> {
        let mut state = self.state();
        state.calls += 1;
        let call = state.calls;
        if let Some(Failure::Calls { numbers, .. }) = state.failure
            && Failure::hits(numbers, call)
        {
            state.failed += 1;
            return Err(ffi::SQLITE_IOERR_TRUNCATE);
        }
        state.file(handle)?.content.resize(call, size);
        let _state = self.stop(state, call);
        Ok(())
    }

    /// Syncs the file. A call that is blocked here has not synced yet.
    pub fn sync(&self, handle: &mut Handle) -> Result<(), Code> {
        let mut state = self.state();
        state.calls += 1;
        state.syncs += 1;
        let call = state.calls;
        let mut state = self.stop(state, call);
        let of_log = handle.suffix == LOG;
        match (self.lie, state.failure) {
            (_, Some(Failure::Calls { numbers, reread })) if Failure::hits(numbers, call) => {
                state.failed += 1;
                let mut fate = Fate::of(Random::of(call, numbers.0), call);
                state.file(handle)?.content.fail_sync(&mut fate, reread);
                return Err(ffi::SQLITE_IOERR_FSYNC);
            }
            (Lie::Syncs, _) => return Ok(()),
            (Lie::SyncsOfTheLog, _) if of_log => return Ok(()),
            (Lie::SyncsOfTheDatabase, _) if !of_log => return Ok(()),
            _ => {}
        }
        state.file(handle)?.content.sync();
        if std::mem::take(&mut handle.syncs_directory) {
            state.keep_names();
        }
        Ok(())
    }

    /// Returns the size.
    pub fn size(&self, handle: &Handle) -> Result<usize, Code> {
        Ok(self.state().file(handle)?.content.seen().len())
    }

    /// Acquires a lock.
    pub fn lock(&self, handle: &Handle, level: Code) -> Result<(), Code> {
        let granted = self.state().file(handle)?.locks.lock(handle.number, level);
        if granted { Ok(()) } else { Err(ffi::SQLITE_BUSY) }
    }

    /// Downgrades a lock to `level`.
    pub fn unlock(&self, handle: &Handle, level: Code) -> Result<(), Code> {
        self.state().file(handle)?.locks.unlock(handle.number, level);
        Ok(())
    }

    /// Returns `true` if a handle has a reserved lock.
    pub fn is_reserved(&self, handle: &Handle) -> Result<bool, Code> {
        Ok(self.state().file(handle)?.locks.is_reserved())
    }

    /// Returns a region of shared memory.
    pub fn map(
        &self,
        handle: &Handle,
        index: usize,
        bytes: usize,
        extend: bool,
    ) -> Result<Option<Arc<[AtomicU64]>>, Code> {
        Ok(self.state().file(handle)?.shared.map(handle.number, index, bytes, extend))
    }

    /// Acquires locks on shared memory.
    pub fn lock_shared(&self, handle: &Handle, slots: Range<usize>, exclusive: bool) -> Result<(), Code> {
        let mut state = self.state();
        // The first lock serializes write transactions.
        if exclusive && slots.start == 0 && state.hold {
            state.held = true;
            self.reported.notify_waiters();
            while state.hold {
                state = self.let_go.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.held = false;
        }
        let granted = state.file(handle)?.shared.lock(handle.number, slots, exclusive);
        if granted { Ok(()) } else { Err(ffi::SQLITE_BUSY) }
    }

    /// Releases locks on shared memory.
    pub fn unlock_shared(&self, handle: &Handle, slots: Range<usize>) -> Result<(), Code> {
        self.state().file(handle)?.shared.unlock(handle.number, slots);
        Ok(())
    }

    /// Unmaps shared memory.
    pub fn unmap(&self, handle: &Handle) -> Result<(), Code> {
        self.state().file(handle)?.shared.unmap(handle.number);
        Ok(())
    }

    /// Returns the planted fault.
    pub fn lie(&self) -> Lie {
        self.lie
    }
}

impl State {
    fn file(&mut self, handle: &Handle) -> Result<&mut File, Code> {
        self.files.get_mut(&handle.file).ok_or(ffi::SQLITE_INTERNAL)
    }

    fn keep_names(&mut self) {
        self.kept_names.clone_from(&self.names);
        self.name_changes.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Returns how many of 100 power cuts the log survives.
    fn logs(disk: &Disk) -> usize {
        (0..100).filter(|seed| disk.cut(Random::of(*seed, 1)).exists(LOG)).count()
    }

    #[test]
    fn name_is_persisted_by_directory_sync() {
        let disk = Disk::empty(Lie::None);
        let mut log = disk.open(Some(LOG), true, true).unwrap();
        disk.write(&log, 0, &[1; 700]).unwrap();
        assert!((10..90).contains(&logs(&disk)));
        disk.sync(&mut log).unwrap();
        assert_eq!(logs(&disk), 100);
        disk.delete(LOG, false).unwrap();
        assert!(!disk.exists(LOG) && (10..90).contains(&logs(&disk)));
        disk.open(Some(LOG), true, true).unwrap();
        assert!(logs(&disk) > 10);
        disk.delete(LOG, true).unwrap();
        assert_eq!(logs(&disk), 0);
    }

    #[test]
    fn process_exit_loses_no_writes() {
        let disk = Disk::empty(Lie::None);
        let database = disk.open(Some(""), false, false).unwrap();
        disk.write(&database, 0, &[1; 700]).unwrap();
        let next = disk.after_process(Lie::None);
        let database = next.open(Some(""), false, false).unwrap();
        let mut bytes = [0; 700];
        assert_eq!(next.read(&database, 0, &mut bytes), Ok(700));
        assert_eq!(bytes, [1; 700]);
        let cut = next.cut(Random::of(0, 1));
        let database = cut.open(Some(""), false, false).unwrap();
        assert!(cut.size(&database).unwrap() <= 700);
    }

    #[test]
    fn calls_fail_as_configured() {
        let disk = Disk::empty(Lie::None);
        let mut database = disk.open(Some(""), false, false).unwrap();
        disk.fail(Some(Failure::Full { numbers: (1, 2) }));
        assert_eq!(disk.write(&database, 0, &[1; 700]), Err(ffi::SQLITE_FULL));
        disk.write(&database, 0, &[1; 700]).unwrap();
        disk.fail(Some(Failure::Calls { numbers: (3, 4), reread: true }));
        assert_eq!(disk.sync(&mut database), Err(ffi::SQLITE_IOERR_FSYNC));
        disk.sync(&mut database).unwrap();
        disk.fail(Some(Failure::Reads { numbers: (1, 2) }));
        assert_eq!(disk.read(&database, 0, &mut [0; 9]), Err(ffi::SQLITE_IOERR_READ));
        assert_eq!(disk.failed(), 3);
    }
}
