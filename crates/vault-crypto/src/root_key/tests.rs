use super::RootKeyErrorKind::File;
use super::*;
use crate::blob::OpenError;
use crate::secret_file::SecretFileErrorKind;
use crate::testing::{NoEntropyLeft, entropy, id, key_id};
use rustix::fs::{Mode, mkfifoat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use tempfile::TempDir;
use vault_core::id::InstanceId;

/// Random key whose hexadecimal form is not text.
const RANDOM: [u8; 32] = hex_literal::hex!("d1f0c5a48e6b3972004fa7e69b1c83d2f85e60b7492ad31c7fe5804b96c2ad13");

/// Creates a directory that only the current user may write, with a valid key file.
fn sound() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("root.key");
    fs::write(&path, RANDOM).unwrap();
    set_mode(&path, 0o600);
    (directory, path)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn load(path: &Path) -> Result<LoadedRootKey, RootKeyError> {
    LoadedRootKey::load(path, entropy())
}

fn error_kind(path: &Path) -> RootKeyErrorKind {
    let error = load(path).unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n') && line.contains(path.file_name().unwrap().to_str().unwrap()), "{line}");
    error.error_kind
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn valid_file_is_accepted_under_any_name() {
    let (directory, path) = sound();
    let id = load(&path).unwrap().id();
    for mode in [0o600, 0o400] {
        set_mode(&path, mode);
        assert_eq!(load(&path).unwrap().id(), id);
    }
    let detour = directory.path().join("./.././").join(directory.path().file_name().unwrap()).join("root.key");
    assert_eq!(load(&detour).unwrap().id(), id);
}

#[test]
fn a66_missing() {
    let (directory, path) = sound();
    assert!(matches!(error_kind(&path.with_file_name("other.key")), File(SecretFileErrorKind::Missing)));
    assert!(matches!(error_kind(&directory.path().join("none/root.key")), File(SecretFileErrorKind::Missing)));
}

#[test]
fn a66_length() {
    let (_directory, path) = sound();
    for length in [0, 1, 31, 33, 64, 65, 1 << 20] {
        fs::write(&path, RANDOM.repeat(1 << 15).get(..length).unwrap()).unwrap();
        assert!(matches!(error_kind(&path), RootKeyErrorKind::Length(found) if found == length as u64), "{length}");
    }
    let text = "d1f0c5a48e6b3972004fa7e69b1c83d2f85e60b7492ad31c7fe5804b96c2ad13";
    fs::write(&path, format!("{text}\n")).unwrap();
    assert!(matches!(error_kind(&path), RootKeyErrorKind::Length(_)));
}

#[test]
fn a66_not_random() {
    let (_directory, path) = sound();
    let counting: Vec<u8> = (0..32).collect();
    let weak: [&[u8; 32]; 8] = [
        &[0; 32],
        &[0xff; 32],
        counting.as_slice().try_into().unwrap(),
        b"0123456789abcdef0123456789abcdef",
        b"this is an example, replace it!\n",
        b"change-me-change-me-change-me-32",
        b"d1f0c5a48e6b3972004fa7e69b1c83d2",
        &[RANDOM[..16].to_vec(), RANDOM[..16].to_vec()].concat().try_into().unwrap(),
    ];
    for content in weak {
        fs::write(&path, content).unwrap();
        let error = load(&path).unwrap_err();
        assert!(matches!(error.error_kind(), RootKeyErrorKind::Weak(_)));
        assert!(!error.to_string().contains("0123456789abcdef"));
    }
}

#[test]
fn output_of_command_is_decoded() {
    let id = LoadedRootKey::decode(&RANDOM, entropy()).unwrap().id();
    let (hexadecimal, base64) = (hex::encode(RANDOM), "0fDFpI5rOXIAT6fmmxyD0vheYLdJKtMcf+WAS5bCrRM=");
    for text in [&RANDOM[..], hexadecimal.as_bytes(), hexadecimal.to_uppercase().as_bytes(), base64.as_bytes()] {
        for output in [text.to_vec(), [text, b"\n"].concat()] {
            assert_eq!(LoadedRootKey::decode(&output, entropy()).unwrap().id(), id, "{} bytes", output.len());
        }
        for output in [[text, b"\n\n"].concat(), [text, b"a"].concat(), text[1..].to_vec(), [b" ", text].concat()] {
            let error = LoadedRootKey::decode(&output, entropy()).unwrap_err();
            assert!(matches!(error, RootKeyErrorKind::Encoding(length) if length == output.len()), "{error}");
        }
    }
    // The last byte of a key may be a line feed.
    let mut key = RANDOM;
    key[31] = b'\n';
    let id = LoadedRootKey::decode(&key, entropy()).unwrap().id();
    assert_eq!(LoadedRootKey::decode(&[&key[..], b"\n"].concat(), entropy()).unwrap().id(), id);
    for wrong in [&b"+".repeat(64)[..], &b"g".repeat(64), &b"!".repeat(44), &b"A".repeat(44), b""] {
        assert!(matches!(LoadedRootKey::decode(wrong, entropy()), Err(RootKeyErrorKind::Encoding(_))));
    }
    for weak in [&[0; 32][..], b"0123456789abcdef0123456789abcdef", &b"0".repeat(64)] {
        assert!(matches!(LoadedRootKey::decode(weak, entropy()), Err(RootKeyErrorKind::Weak(_))));
    }
}

#[test]
fn damaged_key_error_does_not_suggest_new_key() {
    let (_directory, path) = sound();
    let message = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        load(&path).unwrap_err().to_string()
    };
    let key = path.display();
    let keep = "Do not replace it: a new key cannot decrypt a vault that was created with this one";
    let line = message(b"0fDFpI5rOXIAT6fmmxyD0vheYLdJKtMcf+WAS5bCrRM=\n");
    assert_eq!(
        line,
        format!("root key {key} has 45 bytes; expected 32. If it is base64, decode it with `base64 -d`. {keep}")
    );
    let line = message(&[b'a'; 64]);
    assert_eq!(
        line,
        format!("root key {key} has 64 bytes; expected 32. If it is hexadecimal, decode it with `xxd -r -p`. {keep}")
    );
    assert_eq!(message(b""), format!("root key {key} has 0 bytes; expected 32. Restore it from your copy. {keep}"));
    for content in [&[0; 32][..], &[7; 31], b"0123456789abcdef0123456789abcdef"] {
        let line = message(content);
        for advice in ["init", "quickstart", "/dev/urandom", "generate", "chmod", "chown"] {
            assert!(!line.contains(advice), "{line}");
        }
    }
}

#[test]
fn a66_open_to_others() {
    let (_directory, path) = sound();
    for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777, 0o440] {
        set_mode(&path, mode);
        assert!(matches!(error_kind(&path), File(SecretFileErrorKind::Mode(found)) if found == mode), "{mode:o}");
    }
}

#[test]
fn a66_owned_by_another_user() {
    if !is_root() {
        return;
    }
    let (_directory, path) = sound();
    chown(&path, Some(12_345), None).unwrap();
    assert!(matches!(error_kind(&path), File(SecretFileErrorKind::Owner { owner: 12_345, .. })));
}

#[test]
fn a66_not_a_file() {
    let (directory, path) = sound();
    assert!(matches!(error_kind(directory.path()), File(SecretFileErrorKind::NotAFile)));
    assert!(matches!(load(Path::new("/")).unwrap_err().error_kind, File(SecretFileErrorKind::NotAFile)));
    assert!(matches!(load(Path::new("/dev/zero")).unwrap_err().error_kind, File(SecretFileErrorKind::NotAFile)));
    assert!(matches!(load(Path::new("")).unwrap_err().error_kind, File(SecretFileErrorKind::NotAFile)));
    let pipe = directory.path().join("pipe");
    mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR).unwrap();
    assert!(matches!(error_kind(&pipe), File(SecretFileErrorKind::NotAFile)));
    assert!(matches!(error_kind(&path.join("root.key")), File(SecretFileErrorKind::NotAFile)));
}

#[test]
fn a66_link_in_a_directory_that_others_may_write() {
    let (directory, path) = sound();
    let open = directory.path().join("open");
    fs::create_dir(&open).unwrap();
    let link = open.join("link.key");
    symlink(&path, &link).unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o775, 0o702] {
        set_mode(&open, mode);
        assert!(matches!(error_kind(&link), File(SecretFileErrorKind::UntrustedLink)), "{mode:o}");
    }
    for mode in [0o755, 0o700, 0o711] {
        set_mode(&open, mode);
        assert!(load(&link).is_ok(), "{mode:o}");
    }
    if is_root() {
        chown(&open, Some(12_345), None).unwrap();
        assert!(matches!(error_kind(&link), File(SecretFileErrorKind::UntrustedLink)));
    }
}

#[test]
fn a66_link_like_mounted_secrets() {
    let (directory, path) = sound();
    let mounted = directory.path().join("secret");
    fs::create_dir_all(mounted.join("..2026_11_20")).unwrap();
    set_mode(&mounted, 0o755);
    fs::rename(&path, mounted.join("..2026_11_20/root.key")).unwrap();
    symlink("..2026_11_20", mounted.join("..data")).unwrap();
    symlink("..data/root.key", mounted.join("root.key")).unwrap();
    assert!(load(&mounted.join("root.key")).is_ok());
    // A directory in the path is reached by a link that any user could have created.
    set_mode(&mounted, 0o1777);
    assert!(matches!(error_kind(&mounted.join("..data/root.key")), File(SecretFileErrorKind::UntrustedLink)));
    assert!(matches!(error_kind(&mounted.join("root.key")), File(SecretFileErrorKind::UntrustedLink)));
}

#[test]
fn cyclic_links_are_refused() {
    let (directory, _) = sound();
    let link = directory.path().join("circle");
    symlink("circle", &link).unwrap();
    assert!(matches!(error_kind(&link), File(SecretFileErrorKind::UntrustedLink)));
    let dangling = directory.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    assert!(matches!(error_kind(&dangling), File(SecretFileErrorKind::Missing)));
}

#[test]
fn key_is_created_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("root.key");
    let made = LoadedRootKey::generate(&path, entropy()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    let content = fs::read(&path).unwrap();
    assert_eq!(load(&path).unwrap().id(), made.id());
    let again = LoadedRootKey::generate(&path, Arc::new(crate::OsEntropy)).unwrap_err();
    assert!(matches!(again.error_kind(), RootKeyErrorKind::Exists));
    assert_eq!(fs::read(&path).unwrap(), content);
    let nothing = LoadedRootKey::generate(&directory.path().join("other"), Arc::new(NoEntropyLeft)).unwrap_err();
    assert!(matches!(nothing.error_kind(), RootKeyErrorKind::NoEntropy(_)));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn nothing_shows_the_key() {
    let (_directory, path) = sound();
    let root = load(&path).unwrap();
    assert_eq!(format!("{root:?}"), format!("LoadedRootKey({})", root.id()));
}

#[test]
fn another_root_key_has_different_id_and_opens_nothing() {
    let (_directory, path) = sound();
    let (_other_directory, other) = crate::testing::root();
    let root = load(&path).unwrap();
    assert_ne!(root.id(), other.id());
    let context = Context::instance_key(InstanceId::from_uuid(id(1)), key_id(2));
    let wrapped = root.wrap(&context, &crate::testing::key(3)).unwrap();
    assert!(root.unwrap(&context, &wrapped).is_ok());
    let refused = other.unwrap(&context, &wrapped);
    assert!(matches!(refused, Err(OpenError::OtherKey)));
}
