//! Users of the operating system: their names, and the permanent switch to another user.

use nix::unistd::{Gid, Uid, User, getgrouplist, getresgid, getresuid, setgid, setgroups, setuid};
use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::capabilities;
use std::ffi::CString;
use vault_cli::failure::Failure;

/// Returns the name of a user, or the ID if there is no account.
pub(crate) fn name_of(uid: u32) -> String {
    account(uid).map_or_else(|| uid.to_string(), |user| user.name)
}

/// Returns the shell prefix that runs a command as this user.
pub(crate) fn sudo(uid: u32) -> String {
    match account(uid) {
        Some(user) => format!("sudo -u {}", user.name),
        None => format!("sudo -u '#{uid}'"),
    }
}

fn account(uid: u32) -> Option<User> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten()
}

/// Permanently switches this root process to user `uid` and its groups. A user without an account gets only
/// `directory_group`. Must be called before any thread is started and any secret is read.
///
/// Uses the C library's functions, which affect all threads. The system calls affect only one.
pub(super) fn become_user(uid: u32, directory_group: u32) -> Result<(), Failure> {
    let (uid, directory_group) = (Uid::from_raw(uid), Gid::from_raw(directory_group));
    let (gid, groups) = match User::from_uid(uid)? {
        Some(user) => (user.gid, getgrouplist(&CString::new(user.name)?, user.gid)?),
        None => (directory_group, vec![directory_group]),
    };
    setgroups(&groups)?;
    setgid(gid)?;
    setuid(uid)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?; // the switch resets this flag
    let (users, group) = (getresuid()?, getresgid()?);
    let became = [users.real, users.effective, users.saved].iter().all(|found| *found == uid)
        && [group.real, group.effective, group.saved].iter().all(|found| *found == gid)
        && capabilities(None)?.permitted.is_empty()
        && dumpable_behavior()? == DumpableBehavior::NotDumpable;
    if became { Ok(()) } else { Err(Failure::new("the process still has rights of root")) }
}
