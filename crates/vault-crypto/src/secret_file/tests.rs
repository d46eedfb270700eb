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

fn content(path: &Path, limit: usize) -> Result<Vec<u8>, SecretFileFlaw> {
    let read = SecretFile::open(path).and_then(|file| file.read(limit));
    read.map(|bytes| bytes.to_vec()).map_err(|error| error.into_parts().1)
}

#[test]
fn content_is_read_up_to_the_limit() {
    let (_directory, path) = secret(b"content", 0o600);
    assert_eq!(content(&path, 7).unwrap(), b"content");
    assert_eq!(content(&path, 100).unwrap(), b"content");
    assert!(matches!(content(&path, 6), Err(SecretFileFlaw::TooLong { found: 7, limit: 6 })));
}

#[test]
fn what_was_opened_is_judged_and_not_what_has_the_name_later() {
    let (_directory, path) = secret(b"opened", 0o600);
    let opened = SecretFile::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"other").unwrap();
    assert_eq!(**opened.read(100).unwrap(), *b"opened");

    let (_directory, path) = secret(b"opened", 0o600);
    let opened = SecretFile::open(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(opened.read(100).unwrap_err().flaw(), SecretFileFlaw::Mode(0o644)));
}

/// As `LoadCredential=` of systemd hands files over: 0440 or 0640, root and the service's group.
#[test]
fn root_takes_what_it_handed_to_a_services_group() {
    if !geteuid().is_root() {
        return; // only root can give a file a group that is not its own
    }
    for mode in [0o440, 0o640, 0o400, 0o600] {
        let (_directory, path) = secret(b"secret", mode);
        chown(&path, Some(0), Some(12_345)).unwrap();
        assert_eq!(content(&path, 100).unwrap(), b"secret", "{mode:o}");
    }
    for (mode, user, group) in [(0o444, 0, 12_345), (0o460, 0, 12_345), (0o450, 0, 12_345), (0o440, 0, 0)] {
        let (_directory, path) = secret(b"secret", mode);
        chown(&path, Some(user), Some(group)).unwrap();
        assert!(matches!(content(&path, 100), Err(SecretFileFlaw::Mode(found)) if found == mode), "{mode:o}");
    }
    let (_directory, path) = secret(b"secret", 0o400);
    chown(&path, Some(12_345), Some(12_345)).unwrap();
    assert!(matches!(content(&path, 100), Err(SecretFileFlaw::Owner { owner: 12_345, user: 0 })));
}
