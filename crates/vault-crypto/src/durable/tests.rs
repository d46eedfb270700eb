use super::*;
use std::os::unix::fs::{MetadataExt as _, symlink};

#[test]
fn new_file_is_private_and_never_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    create_new(&path, b"first").unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(create_new(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
}

#[test]
fn new_file_is_not_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (link, target) = (directory.path().join("link"), directory.path().join("target"));
    symlink(&target, &link).unwrap();
    assert!(create_new(&link, b"text").is_err());
    assert!(!target.exists());
}

#[test]
fn new_file_is_complete_after_earlier_crash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(directory.path().join("file.new"), b"half wri").unwrap();
    create_new(&path, b"whole").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(create_new(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn replaced_file_has_new_content_after_earlier_crash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    create_new(&path, b"first").unwrap();
    std::fs::write(directory.path().join("file.new"), b"half wri").unwrap();
    replace(&path, b"second").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"second");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
