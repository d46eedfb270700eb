//! Cases of TOTP secrets that require encryption.

use super::crypto::CryptoSubject;
use super::passcode::{ACCOUNT, new_seed, refused};
use secrecy::ExposeSecret as _;

/// The sealed value does not contain the secret as text, as bytes or in hexadecimal digits.
pub async fn sealed_seed_contains_no_plaintext<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let new = new_seed(&*make().await.passcodes());
    let secret = new.secret.secret.expose_secret();
    let bit = |index: usize| {
        let letter = secret.as_bytes()[index / 5];
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|known| *known == letter).unwrap();
        value >> (4 - index % 5) & 1
    };
    let byte = |start: usize| (start..start + 8).fold(0, |value, index| value << 1 | bit(index)) as u8;
    let bytes: Vec<_> = (0..secret.len() * 5 / 8).map(|index| byte(index * 8)).collect();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let sealed = new.sealed.blob.as_bytes();
    for plain in [secret.as_bytes(), &bytes, digits.as_bytes()] {
        assert!(plain.len() >= 16);
        for piece in plain.windows(6) {
            assert!(!sealed.windows(6).any(|bytes| bytes == piece));
        }
    }
}

/// A row of another deployment has no valid codes.
pub async fn seed_of_another_deployment_does_not_open<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let seed = new_seed(&*make().await.passcodes()).sealed;
    assert!(refused(&*make().await.passcodes(), ACCOUNT, &seed));
}
