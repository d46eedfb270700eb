use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use tempfile::TempDir;

fn secret(content: &[u8], mode: u32) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

fn content(path: &Path, limit: usize) -> Result<Vec<u8>, SecretFileErrorKind> {
    let read = SecretFile::open(path).and_then(|file| file.read(limit));
    read.map(|bytes| bytes.to_vec()).map_err(|error| error.into_parts().1)
}

#[test]
fn content_is_read_up_to_the_limit() {
    let (_directory, path) = secret(b"content", 0o600);
    assert_eq!(content(&path, 7).unwrap(), b"content");
    assert_eq!(content(&path, 100).unwrap(), b"content");
    assert!(matches!(content(&path, 6), Err(SecretFileErrorKind::TooLong { found: 7, limit: 6 })));
}

#[test]
fn opened_file_is_checked_instead_of_its_path() {
    let (_directory, path) = secret(b"opened", 0o600);
    let opened = SecretFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"other").unwrap();
    assert_eq!(**opened.read(100).unwrap(), *b"opened");

    let (_directory, path) = secret(b"opened", 0o600);
    let opened = SecretFile::open(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(opened.read(100).unwrap_err().error_kind(), SecretFileErrorKind::Mode(0o644)));
}

/// A file owned by root may be readable by a service's group; for commands run as root itself the group does not
/// justify access.
#[test]
fn root_refuses_group_readable_file() {
    if !geteuid().is_root() {
        return; // only root can give a file a group that is not its own
    }
    for group in [0, 12_345] {
        for mode in [0o400, 0o600] {
            let (_directory, path) = secret(b"secret", mode);
            chown(&path, Some(0), Some(group)).unwrap();
            assert_eq!(content(&path, 100).unwrap(), b"secret", "{mode:o}");
        }
        for mode in [0o440, 0o640, 0o444, 0o460, 0o450] {
            let (_directory, path) = secret(b"secret", mode);
            chown(&path, Some(0), Some(group)).unwrap();
            assert!(matches!(content(&path, 100), Err(SecretFileErrorKind::Mode(found)) if found == mode), "{mode:o}");
        }
    }
    let (_directory, path) = secret(b"secret", 0o400);
    chown(&path, Some(12_345), Some(12_345)).unwrap();
    assert!(matches!(content(&path, 100), Err(SecretFileErrorKind::Owner { owner: 12_345, user: 0 })));
}
