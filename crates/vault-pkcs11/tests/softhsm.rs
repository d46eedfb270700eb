//! Root keys in SoftHSM: wrapping and unwrapping, lookup by id, and error messages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::credential::SecretBytes;
use vault_core::port::{Entropy, KeyService as _, KeyServiceError, NoEntropy};
use vault_pkcs11::{Pin, TokenKey};
use vault_testkit::stores::SoftHsm;
use zeroize::Zeroizing;

const ID: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "ffeeddccbbaa99887766554433221100";

struct Counting(AtomicUsize);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed) as u8);
        Ok(())
    }
}

fn pin(pin: &'static str) -> Pin {
    Arc::new(move || Ok(Zeroizing::new(pin.as_bytes().to_vec())))
}

fn key_with(uri: &str, pin: Pin) -> TokenKey {
    TokenKey::new(uri.parse().unwrap(), pin, Arc::new(Counting(AtomicUsize::new(0))))
}

fn key(token: &str, id: &str) -> TokenKey {
    key_with(&SoftHsm::uri(token, id, "/nowhere".as_ref()), pin(SoftHsm::PIN))
}

fn secret(text: &str) -> SecretBytes {
    SecretBytes::from(text.as_bytes().to_vec())
}

#[track_caller]
fn refusal<T>(result: Result<T, KeyServiceError>) -> String {
    match result.err().unwrap() {
        KeyServiceError::Refused(cause) => cause.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Runs the test `name` of this file in a process whose environment contains these tokens.
fn run(name: &str, tokens: &SoftHsm) {
    let (variable, value) = tokens.variable();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let done = command.args([name, "--exact", "--ignored"]).env(variable, value).output().unwrap();
    let message = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(done.status.success() && message.contains("1 passed"), "{message}");
    assert!(!message.contains(SoftHsm::PIN), "{message}");
}

#[test]
fn key_in_a_token_seals_and_opens() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = SoftHsm::at(directory.path().join("softhsm"));
    tokens.create_token("vault");
    tokens.import_key("vault", "root", ID, &[7; 32]);
    tokens.import_key("vault", "other", OTHER, &[8; 32]);
    // A copy of the key in a second token, as on a second host.
    tokens.create_token("second");
    tokens.import_key("second", "copy", ID, &[7; 32]);
    tokens.create_token("twin");
    tokens.create_token("twin");
    tokens.import_key("second", "double", "0102030405060708", &[1; 32]);
    tokens.import_key("second", "double again", "0102030405060708", &[2; 32]);
    run("inside_seals_and_opens", &tokens);
    run("inside_refuses", &tokens);
    // The token is removed.
    fs::rename(tokens.tokens(), tokens.tokens().with_extension("away")).unwrap();
    fs::create_dir(tokens.tokens()).unwrap();
    run("inside_has_no_token", &tokens);
}

#[tokio::test]
#[ignore = "run by key_in_a_token_seals_and_opens"]
async fn inside_seals_and_opens() {
    let root = key("vault", ID);
    assert_eq!(root.key(), format!("pkcs11:{ID}"));
    let text = "thirty-two bytes of a key, exact";
    let sealed = root.seal(&secret(text), b"here").await.unwrap();
    assert_eq!(sealed.len(), 12 + 32 + 16);
    assert_eq!(root.open(&sealed, b"here").await.unwrap().expose(), text.as_bytes());
    assert_ne!(root.seal(&secret(text), b"here").await.unwrap(), sealed, "each has a nonce of its own");
    assert_eq!(key("second", ID).open(&sealed, b"here").await.unwrap().expose(), text.as_bytes());

    for (other, sealed, context) in [
        (&root, sealed.clone(), &b"there"[..]),
        (&key("vault", OTHER), sealed.clone(), b"here"),
        (&root, sealed[..20].to_vec(), b"here"),
        (&root, Vec::new(), b"here"),
    ] {
        let refused = other.open(&sealed, context).await;
        assert!(matches!(refused, Err(KeyServiceError::DoesNotOpen)), "{:?}", refused.err());
    }
    for place in [0, 11, 12, 43, 44, 59] {
        let mut changed = sealed.clone();
        changed[place] ^= 1;
        let refused = root.open(&changed, b"here").await;
        assert!(matches!(refused, Err(KeyServiceError::DoesNotOpen)), "byte {place}: {:?}", refused.err());
    }
    // The nonce is the first one of the test's entropy.
    let old = b"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01";
    assert!(sealed.starts_with(&[0; 12]) && !sealed.starts_with(old));
}

#[tokio::test]
#[ignore = "run by key_in_a_token_seals_and_opens"]
async fn inside_refuses() {
    let wrong = key_with(&SoftHsm::uri("vault", ID, "/nowhere".as_ref()), pin("wrong"));
    let message = refusal(wrong.seal(&secret("x"), b"").await);
    assert!(message.contains("rejects the PIN"), "{message}");
    assert!(!message.contains("wrong-") && !format!("{wrong:?}").contains("nowhere"), "{message}");
    let unread = key_with(&SoftHsm::uri("vault", ID, "/nowhere".as_ref()), Arc::new(|| Err("no such file".into())));
    assert_eq!(refusal(unread.seal(&secret("x"), b"").await), "PIN: no such file");
    let message = refusal(key("vault", "0000000000000000").seal(&secret("x"), b"").await);
    assert!(message.contains("no AES key that matches pkcs11:token=vault;id=%00%00"), "{message}");
    let message = refusal(key("second", "0102030405060708").seal(&secret("x"), b"").await);
    assert!(message.contains("has 2 AES keys"), "{message}");
    let message = refusal(key("twin", ID).seal(&secret("x"), b"").await);
    assert!(message.contains("2 tokens match"), "{message}");

    let module = std::env::temp_dir().join(format!("module-{}", std::process::id()));
    let with = |path: &std::path::Path| {
        let uri = SoftHsm::uri("vault", ID, "/nowhere".as_ref());
        key_with(&uri.replace(SoftHsm::module().to_str().unwrap(), path.to_str().unwrap()), pin(SoftHsm::PIN))
    };
    let message = refusal(with(&module).seal(&secret("x"), b"").await);
    assert!(message.contains("cannot be read"), "{message}");
    fs::write(&module, "no module").unwrap();
    let mode = |mode| fs::set_permissions(&module, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    mode(0o666);
    let message = refusal(with(&module).seal(&secret("x"), b"").await);
    assert!(message.contains("other users can change it"), "{message}");
    mode(0o644);
    let message = refusal(with(&module).seal(&secret("x"), b"").await);
    assert!(message.contains("cannot be loaded"), "{message}");
    fs::remove_file(&module).unwrap();
}

#[tokio::test]
#[ignore = "run by key_in_a_token_seals_and_opens"]
async fn inside_has_no_token() {
    let refused = key("vault", ID).seal(&secret("x"), b"").await.unwrap_err();
    assert!(matches!(&refused, KeyServiceError::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().contains("no token matches pkcs11:token=vault"), "{refused}");
}
