use super::*;
use crate::testing::{id, instance_keyring};
use std::os::unix::fs::MetadataExt as _;

fn file(directory: &Path, instance: u128, key_number: u8) -> AnchorFile {
    Anchors::new(Arc::new(instance_keyring(InstanceId::from_uuid(id(instance)), key_number)))
        .at(directory.join("orgvault.anchor"))
}

fn anchor(number: i64) -> Anchor {
    let checkpoint = CheckpointRef { number, hash: Digest::from_bytes([7; 32]) };
    Anchor { epoch: 3, checkpoint, keyring: KeyringRef { number: 2, hash: Digest::from_bytes([8; 32]) } }
}

#[test]
fn written_file_is_readable_only_by_owner() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(directory.path(), 1, 1);
    assert_eq!(file.load().unwrap(), None);
    for number in [0, 1, i64::MAX] {
        file.store(anchor(number)).unwrap();
        assert_eq!(file.load().unwrap(), Some(anchor(number)));
    }
    assert_eq!(std::fs::metadata(file.path()).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::read(file.path()).unwrap().len(), LENGTH);
}

#[test]
fn foreign_or_changed_anchor_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let own = file(directory.path(), 1, 1);
    own.store(anchor(5)).unwrap();
    let other = file(directory.path(), 2, 1).load().unwrap_err();
    assert!(
        matches!(other.error_kind(), AnchorErrorKind::OtherInstance(found) if *found == InstanceId::from_uuid(id(1)))
    );
    let first = KeyringRef { number: 1, hash: Digest::from_bytes([8; 32]) };
    own.store(Anchor { keyring: first, ..anchor(5) }).unwrap();
    assert!(matches!(file(directory.path(), 1, 2).load().unwrap_err().error_kind(), AnchorErrorKind::Changed));
    // A later document, whose keys the database does not have.
    let later = KeyringRef { number: i64::MAX, hash: Digest::from_bytes([8; 32]) };
    own.store(Anchor { keyring: later, ..anchor(5) }).unwrap();
    let newer = file(directory.path(), 1, 2).load().unwrap_err();
    assert!(matches!(newer.error_kind(), AnchorErrorKind::NewerKeyring { keyring: i64::MAX, checkpoint: 5 }));
    own.store(anchor(5)).unwrap();
    let written = std::fs::read(own.path()).unwrap();
    for position in 0..written.len() {
        let mut changed = written.clone();
        changed[position] ^= 1;
        std::fs::write(own.path(), changed).unwrap();
        assert!(own.load().is_err(), "byte {position}");
    }
    for length in [0, 4, 37, LENGTH - 1] {
        std::fs::write(own.path(), &written[..length]).unwrap();
        assert!(
            matches!(own.load().unwrap_err().error_kind(), AnchorErrorKind::Malformed | AnchorErrorKind::Changed),
            "{length}"
        );
    }
    std::fs::write(own.path(), [written.as_slice(), b"x"].concat()).unwrap();
    assert!(own.load().is_err());
}

#[test]
fn concurrent_writers_leave_one_complete_anchor() {
    let directory = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = file(directory.path(), 1, 1);
            scope.spawn(move || {
                for number in 0..8 {
                    file.store(anchor(writer * 8 + number)).unwrap();
                    assert!(file.load().unwrap().is_some());
                }
            });
        }
    });
    assert!(file(directory.path(), 1, 1).load().unwrap().is_some());
}

/// The format of version 1 must never change.
#[test]
fn anchor_format_is_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let file = file(directory.path(), 1, 1);
    file.store(anchor(258)).unwrap();
    let written = hex::encode(std::fs::read(file.path()).unwrap());
    let ids = hex::encode(id(1).as_bytes());
    let body = format!("4f56414e01{ids}{:016x}{:016x}{}{:016x}{}", 3, 258, "07".repeat(32), 2, "08".repeat(32));
    assert!(written.starts_with(&body), "{written}");
}
