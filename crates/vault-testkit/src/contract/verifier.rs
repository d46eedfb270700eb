//! Cases of stored passwords that require hashing and encryption.

use super::crypto::CryptoSubject;
use super::password::{ACCOUNT, ANOTHER, hash, verify};
use vault_core::port::PasswordVerdict;
use vault_core::sealed::{Blob, SealedPassword};

const PASSWORD: &str = "correct horse battery";

/// A change of any byte or of the length is detected. Such a row accepts no login.
pub async fn every_damaged_row_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    let stored = hash(&*hasher, ACCOUNT, PASSWORD).await;
    let sound = stored.blob.as_bytes();
    let flipped = (0..sound.len()).step_by(23).map(|place| {
        let mut bytes = sound.to_vec();
        bytes[place] ^= 1;
        bytes
    });
    let cut = (0..sound.len()).step_by(23).map(|end| sound[..end].to_vec());
    for (number, bytes) in flipped.chain(cut).chain([[sound, &[0]].concat()]).enumerate() {
        let damaged = SealedPassword { id: stored.id, blob: Blob::from_bytes(bytes) };
        let verdict = verify(&*hasher, Some(ACCOUNT), PASSWORD, Some(&damaged)).await;
        assert!(matches!(verdict, PasswordVerdict::Damaged), "damage {number}");
    }
}

/// The stored verifier contains no part of the password.
pub async fn no_password_is_stored<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let stored = hash(&*make().await.hasher(), ACCOUNT, PASSWORD).await;
    for piece in PASSWORD.as_bytes().windows(6) {
        assert!(!stored.blob.as_bytes().windows(6).any(|bytes| bytes == piece));
    }
}

/// Equal passwords of two accounts, or of one account before and after a change, cannot be recognized.
pub async fn equal_passwords_are_stored_differently<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    let (one, two) = (hash(&*hasher, ACCOUNT, PASSWORD).await, hash(&*hasher, ACCOUNT, PASSWORD).await);
    let tail = |stored: &SealedPassword| stored.blob.as_bytes()[stored.blob.as_bytes().len() - 16..].to_vec();
    assert_ne!(tail(&one), tail(&two));
    assert_ne!(tail(&one), tail(&hash(&*hasher, ANOTHER, PASSWORD).await));
}

/// A verifier of another deployment accepts no password.
pub async fn verifier_of_another_deployment_does_not_open<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let stored = hash(&*make().await.hasher(), ACCOUNT, PASSWORD).await;
    let verdict = verify(&*make().await.hasher(), Some(ACCOUNT), PASSWORD, Some(&stored)).await;
    assert!(matches!(verdict, PasswordVerdict::Damaged));
}
