//! Files below a directory, read without leaving it: documents come from repositories that others can write to.

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use secrecy::zeroize::Zeroizing;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

/// Reads the regular file at `relative` below `directory`, which may itself be behind a link. No other link is followed,
/// and at most `limit` bytes are read, whatever size the file claims to have.
pub(crate) fn read(directory: &Path, relative: &Path, limit: usize) -> Result<Zeroizing<String>, String> {
    let is_name = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !relative.components().all(is_name) {
        return Err(format!("{} must be a path below the directory of the document, without ..", relative.display()));
    }
    let path = directory.join(relative);
    let failed = |reason: &dyn std::fmt::Display| format!("cannot read {}: {reason}", path.display());
    let file = open(directory, relative).map_err(|error| match error {
        // Of a link, O_NOFOLLOW reports LOOP, or NOTDIR where a directory is expected.
        Errno::LOOP => failed(&"links are not followed"),
        Errno::NOTDIR => failed(&"part of the path is a link or not a directory. Links are not followed"),
        error => failed(&std::io::Error::from(error)),
    })?;
    if FileType::from_raw_mode(fstat(&file).map_err(|error| failed(&std::io::Error::from(error)))?.st_mode)
        != FileType::RegularFile
    {
        return Err(failed(&"it is not a regular file"));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit.min(64 * 1024) + 1));
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() > limit {
        return Err(format!("{} has more than {limit} bytes", path.display()));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| failed(&"it is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn open(directory: &Path, relative: &Path) -> Result<File, Errno> {
    let step = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut at = openat(CWD, directory, step | OFlags::PATH, Mode::empty())?;
    let mut names = relative.components().filter(|part| *part != Component::CurDir).peekable();
    while let Some(name) = names.next() {
        if names.peek().is_some() {
            at = openat(&at, name.as_os_str(), step | OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
            continue;
        }
        // NONBLOCK: the opening of a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        return Ok(openat(&at, name.as_os_str(), flags, Mode::empty())?.into());
    }
    Err(Errno::ISDIR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_below_the_directory_are_read() {
        let outside = tempfile::tempdir().expect("a directory");
        let base = outside.path().join("documents");
        std::fs::create_dir_all(base.join("secrets")).expect("a directory");
        std::fs::write(outside.path().join("other"), "7sGh").expect("a file");
        std::fs::write(base.join("secrets/one"), "text").expect("a file");
        std::fs::write(base.join("long"), "x".repeat(9)).expect("a file");
        std::fs::write(base.join("bytes"), b"\xff").expect("a file");
        symlink(outside.path().join("other"), base.join("link")).expect("a link");
        symlink("secrets/one", base.join("inside")).expect("a link");
        symlink(outside.path(), base.join("up")).expect("a link");
        let pipe = base.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let said = |path: &str| read(&base, Path::new(path), 8).map(|text| text.to_string());
        assert_eq!(said("secrets/one").expect("text"), "text");
        assert_eq!(said("./secrets/./one").expect("text"), "text");
        for (path, reason) in [
            ("link", "links are not followed"),
            ("inside", "links are not followed"),
            ("up/other", "Links are not followed"),
            ("secrets/one/more", "not a directory"),
            ("pipe", "it is not a regular file"),
            ("secrets", "it is not a regular file"),
            (".", "directory"),
            ("", "directory"),
            ("../other", "without .."),
            ("/dev/zero", "without .."),
            ("long", "has more than 8 bytes"),
            ("bytes", "it is not UTF-8"),
            ("gone", "No such file"),
        ] {
            let refused = said(path).expect_err(path);
            assert!(refused.contains(reason) && !refused.contains("7sGh"), "{path}: {refused}");
        }
        // A device claims to be empty.
        assert!(read(Path::new("/dev"), Path::new("zero"), 8).expect_err("a device").contains("regular"));
        // The named directory may be behind a link.
        symlink(&base, outside.path().join("behind")).expect("a link");
        assert!(read(&outside.path().join("behind"), Path::new("secrets/one"), 8).is_ok());
    }
}
