//! Users of the system: their names, and becoming one for good.

use crate::failure::Failure;
use nix::unistd::{Gid, Uid, User, getgrouplist, getresgid, getresuid, setgid, setgroups, setuid};
use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::capabilities;
use std::ffi::CString;

/// The name of a user, or the number of one without an account.
pub(crate) fn name_of(uid: u32) -> String {
    account(uid).map_or_else(|| uid.to_string(), |user| user.name)
}

/// How a shell runs a command as this user.
pub(crate) fn sudo(uid: u32) -> String {
    match account(uid) {
        Some(user) => format!("sudo -u {}", user.name),
        None => format!("sudo -u '#{uid}'"),
    }
}

fn account(uid: u32) -> Option<User> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten()
}

/// Makes this process, which root runs, one of user `uid` for good: its groups, or `directory_group` alone for a user
/// without an account. Must be called before any thread is started and any secret is read.
///
/// The calls are the C library's, which change every thread; the kernel's own change one.
pub(super) fn become_user(uid: u32, directory_group: u32) -> Result<(), Failure> {
    let (uid, directory_group) = (Uid::from_raw(uid), Gid::from_raw(directory_group));
    let (gid, groups) = match User::from_uid(uid)? {
        Some(user) => (user.gid, getgrouplist(&CString::new(user.name)?, user.gid)?),
        None => (directory_group, vec![directory_group]),
    };
    setgroups(&groups)?;
    setgid(gid)?;
    setuid(uid)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?; // which a change of user resets
    let (users, group) = (getresuid()?, getresgid()?);
    let became = [users.real, users.effective, users.saved].iter().all(|found| *found == uid)
        && [group.real, group.effective, group.saved].iter().all(|found| *found == gid)
        && capabilities(None)?.permitted.is_empty()
        && dumpable_behavior()? == DumpableBehavior::NotDumpable;
    if became { Ok(()) } else { Err(Failure::new("the process still has rights of root")) }
}
