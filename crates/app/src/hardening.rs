//! What the process gives up before it holds a secret.

use crate::failure::Failure;
use rustix::fs::Mode;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, getrlimit, set_dumpable_behavior, setrlimit, umask,
};

/// New files are closed to others, and memory does not reach a core file or another user's debugger.
pub(crate) fn apply() -> Result<(), Failure> {
    umask(Mode::from_raw_mode(0o077));
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Memory does not reach a core file or another user's debugger. All else stays as it is, since a command inherits it.
pub(crate) fn apply_beside_a_command() -> Result<(), Failure> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// As many connections as the operating system lets this process have.
pub(crate) fn raise_file_limit() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

/// Keeps the server's memory, where keys are, out of swap. `false`: the operating system does not let us.
pub(crate) fn lock_memory() -> bool {
    let unlimited = getrlimit(Resource::Memlock).current.is_none();
    // Under a limit, whatever is mapped past it would fail: then rather not at all.
    if !unlimited && !geteuid().is_root() {
        return false;
    }
    // Page by page as each is touched, so that nothing is resident that was not before.
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT).is_ok()
}
