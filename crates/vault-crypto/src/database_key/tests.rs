use super::*;
use crate::testing::{entropy, root};
use std::os::unix::fs::MetadataExt as _;

fn hex(key: &DatabaseKey) -> String {
    hex::encode(*key.expose_bytes())
}

#[test]
fn created_key_file_is_read() {
    let (directory, root) = root();
    let file = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    let made = file.create(&root, &*entropy()).unwrap();
    let text = hex(&made);
    assert!(text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    assert_eq!(hex(&file.load(&root).unwrap()), text);
    assert_eq!(std::fs::metadata(directory.path().join("orgvault.db.key")).unwrap().mode() & 0o7777, 0o600);
    let again = file.create(&root, &*entropy()).unwrap_err();
    assert!(matches!(again.error_kind(), DatabaseKeyErrorKind::Exists));
    assert_eq!(hex(&file.load(&root).unwrap()), text);
    assert_eq!(format!("{made:?}"), "DatabaseKey(SymmetricKey(..))");
}

#[test]
fn missing_or_damaged_file_is_refused() {
    let (directory, root) = root();
    let file = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    assert!(matches!(file.load(&root).unwrap_err().error_kind(), DatabaseKeyErrorKind::Missing));
    file.create(&root, &*entropy()).unwrap();
    let sound = std::fs::read(&file.path).unwrap();
    for place in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[place] ^= 1;
        std::fs::write(&file.path, damaged).unwrap();
        assert!(file.load(&root).is_err(), "byte {place}");
        std::fs::write(&file.path, &sound[..place]).unwrap();
        assert!(matches!(file.load(&root).unwrap_err().error_kind(), DatabaseKeyErrorKind::Malformed), "{place} bytes");
    }
    std::fs::write(&file.path, [&sound[..], b"\n"].concat()).unwrap();
    assert!(matches!(file.load(&root).unwrap_err().error_kind(), DatabaseKeyErrorKind::Malformed));
}

#[test]
fn another_root_key_is_refused_by_its_id() {
    let (directory, first) = root();
    let file = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    file.create(&first, &*entropy()).unwrap();
    let (_directory, second) = other_root();
    let error = file.load(&second).unwrap_err();
    assert!(matches!(error.error_kind(), DatabaseKeyErrorKind::OtherRoot { .. }));
    let line = error.to_string();
    assert!(line.contains(&first.id().to_string()) && line.contains(&second.id().to_string()), "{line}");
}

#[test]
fn both_root_keys_open_file_during_replacement() {
    let (directory, first) = root();
    let (_second_directory, second) = other_root();
    let file = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    let text = hex(&file.create(&first, &*entropy()).unwrap());

    for _ in 0..2 {
        file.begin_root_rotation(&first, &second).unwrap();
        assert_eq!(file.root_keys().unwrap(), [first.id(), second.id()]);
        assert_eq!(hex(&file.load(&first).unwrap()), text);
        assert_eq!(hex(&file.load(&second).unwrap()), text);
    }
    for _ in 0..2 {
        file.finish_root_rotation(&second).unwrap();
        assert_eq!(file.root_keys().unwrap(), [second.id()]);
    }
    assert!(file.load(&first).is_err());
    assert_eq!(hex(&file.load(&second).unwrap()), text);
}

#[test]
fn wrapped_key_of_another_database_does_not_open() {
    let (directory, root) = root();
    let entropy = entropy();
    let [one, two] = ["one", "two"].map(|name| DatabaseKeyFile::at(directory.path().join(name)));
    one.create(&root, &*entropy).unwrap();
    two.create(&root, &*entropy).unwrap();
    let (one, mut bytes) = (std::fs::read(&one.path).unwrap(), std::fs::read(&two.path).unwrap());
    bytes[..22].copy_from_slice(&one[..22]);
    std::fs::write(&two.path, bytes).unwrap();
    let error = two.load(&root).unwrap_err();
    assert!(matches!(error.error_kind(), DatabaseKeyErrorKind::Unwrap(_)));
}

fn other_root() -> (tempfile::TempDir, crate::LoadedRootKey) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("root.key");
    (directory, crate::LoadedRootKey::generate(&path, std::sync::Arc::new(crate::OsEntropy)).unwrap())
}
