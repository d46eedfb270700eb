//! Hardening of the process before it reads a secret.

use crate::failure::Failure;
use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, getrlimit, set_dumpable_behavior, setrlimit, umask,
};

/// Sets a private umask, disables core files, and prevents other users' debuggers from reading the memory.
pub fn apply() -> Result<(), Failure> {
    umask(Mode::from_raw_mode(0o077));
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Prevents core files and other users' debuggers from reading the memory. Changes nothing that a command would
/// inherit.
pub(crate) fn apply_next_to_a_command() -> Result<(), Failure> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Raises the limit on open files, and thus on connections, to the maximum.
pub fn raise_file_limit() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

/// Locks the server's memory, so that keys are not swapped out. Returns `false` if the operating system denies it.
pub fn lock_memory() -> bool {
    let unlimited = getrlimit(Resource::Memlock).current.is_none();
    // With a limit, allocations beyond it would fail, so do not lock at all.
    if !unlimited && !geteuid().is_root() {
        return false;
    }
    // Lock each page at its first use, so that unused memory does not become resident.
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).is_ok()
}
