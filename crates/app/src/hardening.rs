//! What the process gives up before it holds a secret.

use crate::failure::Failure;
use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit, umask};

/// New files are closed to others, and memory does not reach a core file or another user's debugger.
pub(crate) fn apply() -> Result<(), Failure> {
    umask(Mode::from_raw_mode(0o077));
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
