//! The directory of a vault, opened component by component, to find out which users could redirect its path.

use super::account::name_of;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use vault_cli::failure::Failure;

/// Same limit as Linux (path_resolution(7)).
const MAX_LINKS: usize = 40;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An opened directory and its path without symbolic links.
pub(super) struct Directory {
    path: PathBuf,
    opened: OwnedFd,
    /// Set if this is the requested directory. Otherwise, it is the nearest existing parent.
    complete: bool,
    /// All directories from the root to this one, with their owners.
    trail: Vec<(PathBuf, u32)>,
    /// All followed symbolic links, with their owners.
    links: Vec<(PathBuf, u32)>,
}

impl Directory {
    /// Opens the directory at the absolute `path`, or its nearest existing parent.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        walk(path).map_err(|error| Failure::new(format!("cannot open the directory {}: {error}", path.display())))
    }

    /// Returns the path without symbolic links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the requested directory exists.
    pub(super) fn exists(&self) -> bool {
        self.complete
    }

    /// Returns owner and group.
    pub(super) fn owner(&self) -> Result<(u32, u32), Failure> {
        let found = fstat(&self.opened)?;
        Ok((found.st_uid, found.st_gid))
    }

    /// Returns the owner of the file `name` without following links. `None` if it does not exist.
    pub(super) fn owner_of(&self, name: &OsStr) -> Result<Option<u32>, Failure> {
        match statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found.st_uid)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Rejects a path that a user other than root and `owner` could redirect, or that `owner` could redirect to a
    /// directory of root.
    pub(super) fn validate(&self, owner: u32) -> Result<(), Failure> {
        let mut below_owner = None;
        for (path, uid) in self.trail.iter().chain(&self.links) {
            if *uid != 0 && *uid != owner {
                let path = path.display();
                return Err(Failure::new(format!(
                    "root does not use {}: {path} on the way to it belongs to user {1}, who could replace it with another \
                     directory. Run the command as user {1}, or move the directory",
                    self.path.display(),
                    name_of(*uid),
                )));
            }
        }
        for (path, uid) in &self.trail {
            match below_owner {
                Some(above) if *uid == 0 => {
                    return Err(Failure::new(format!(
                        "root does not use {}: user {} could replace {}, which belongs to \
                         root, through {}. Move the directory",
                        self.path.display(),
                        name_of(owner),
                        path.display(),
                        Path::display(above),
                    )));
                }
                None if *uid != 0 => below_owner = Some(path.as_path()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether this process, after switching the user, reaches the same directory by its path.
    pub(super) fn is_reached(&self) -> io::Result<bool> {
        let again = openat(CWD, &self.path, DIRECTORY, Mode::empty())?;
        let (now, before) = (fstat(&again)?, fstat(&self.opened)?);
        Ok((now.st_dev, now.st_ino) == (before.st_dev, before.st_ino))
    }
}

fn walk(path: &Path) -> io::Result<Directory> {
    let mut directory = openat(CWD, "/", DIRECTORY, Mode::empty())?;
    let mut trail = vec![(PathBuf::from("/"), uid(&directory)?)];
    let (mut links, mut steps) = (Vec::new(), VecDeque::new());
    prepend(&mut steps, path);
    let mut complete = true;
    while let Some(step) = steps.pop_front() {
        if step == "/" {
            directory = openat(CWD, "/", DIRECTORY, Mode::empty())?;
            trail.truncate(1);
            continue;
        }
        if step == ".." {
            if trail.len() > 1 {
                trail.pop();
                directory = openat(&directory, "..", DIRECTORY, Mode::empty())?;
            }
            continue;
        }
        let found: Stat = match statat(&directory, &step, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {
                complete = false;
                break;
            }
            found => found?,
        };
        let here = trail.last().map_or_else(PathBuf::new, |(path, _)| path.join(&step));
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            if links.len() == MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = readlinkat(&directory, &step, Vec::new())?;
            links.push((here, found.st_uid));
            prepend(&mut steps, Path::new(&OsString::from_vec(target.into_bytes())));
        } else {
            directory = openat(&directory, &step, DIRECTORY, Mode::empty())?;
            trail.push((here, uid(&directory)?));
        }
    }
    let path = trail.last().map_or_else(PathBuf::new, |(path, _)| path.clone());
    Ok(Directory { path, opened: directory, complete, trail, links })
}

fn uid(directory: impl AsFd) -> io::Result<u32> {
    Ok(fstat(directory)?.st_uid)
}

fn prepend(steps: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::CurDir | Component::Prefix(_) => {}
            Component::RootDir => steps.push_front("/".into()),
            Component::ParentDir => steps.push_front("..".into()),
            Component::Normal(name) => steps.push_front(name.to_owned()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::fs::create_dir_all;
    use std::os::unix::fs::{chown, lchown, symlink};
    use tempfile::TempDir;

    const OWNER: u32 = 12_345;
    const OTHER: u32 = 23_456;

    /// Creates a directory owned by root. Returns `None` if the test does not run as root, which changing owners
    /// requires.
    fn place() -> Option<(TempDir, PathBuf)> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        geteuid().is_root().then_some((place, path))
    }

    fn make(path: &Path, owner: u32) -> PathBuf {
        create_dir_all(path).unwrap();
        chown(path, Some(owner), Some(owner)).unwrap();
        path.to_owned()
    }

    #[test]
    fn links_are_resolved_and_missing_target_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        create_dir_all(path.join("a/b")).unwrap();
        symlink("a", path.join("relative")).unwrap();
        symlink(path.join("relative/b/.."), path.join("absolute")).unwrap();
        symlink("circle", path.join("circle")).unwrap();
        let open = |name: &str| Directory::open(&path.join(name)).unwrap();
        for name in ["a/b", "./a/../a/b", "relative/b", "absolute/b", "absolute/./b/../b"] {
            let directory = open(name);
            assert_eq!((directory.path(), directory.exists()), (&*path.join("a/b"), true), "{name}");
            assert!(directory.is_reached().unwrap());
        }
        let missing = open("relative/none/further");
        assert_eq!((missing.path(), missing.exists()), (&*path.join("a"), false));
        assert!(Directory::open(&path.join("circle")).is_err());
        std::fs::write(path.join("file"), "").unwrap();
        assert!(Directory::open(&path.join("file")).is_err());
    }

    #[test]
    fn only_root_and_owner_may_own_parent_directories() {
        let Some((_place, path)) = place() else { return };
        let good = make(&path.join("srv/vault"), OWNER);
        Directory::open(&good).unwrap().validate(OWNER).unwrap();

        make(&path.join("home"), OTHER);
        let bad = make(&path.join("home/vault"), OWNER);
        let refused = Directory::open(&bad).unwrap().validate(OWNER).unwrap_err().to_string();
        assert!(refused.contains("23456") && refused.contains(path.join("home").to_str().unwrap()), "{refused}");
        let of_roots = make(&path.join("home/of-root"), 0);
        assert!(Directory::open(&of_roots).unwrap().validate(0).is_err());
        assert!(Directory::open(&path.join("home/missing")).unwrap().validate(0).is_err(), "it would be created there");
    }

    #[test]
    fn owner_may_not_redirect_to_directory_of_root() {
        let Some((_place, path)) = place() else { return };
        make(&path.join("home"), OWNER);
        make(&path.join("home/between"), 0);
        let vault = make(&path.join("home/between/vault"), OWNER);
        let refused = Directory::open(&vault).unwrap().validate(OWNER).unwrap_err().to_string();
        assert!(refused.contains(path.join("home/between").to_str().unwrap()), "{refused}");
    }

    #[test]
    fn link_must_belong_to_root_or_the_owner() {
        let Some((_place, path)) = place() else { return };
        let vault = make(&path.join("vault"), OWNER);
        let link = path.join("link");
        for (uid, good) in [(0, true), (OWNER, true), (OTHER, false)] {
            let _ = std::fs::remove_file(&link);
            symlink(&vault, &link).unwrap();
            lchown(&link, Some(uid), None).unwrap();
            assert_eq!(Directory::open(&link).unwrap().validate(OWNER).is_ok(), good, "{uid}");
        }
    }
}
