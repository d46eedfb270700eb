//! Cases of [`PasswordHasher`] that fakes also pass.

use super::crypto::CryptoSubject;
use vault_core::hash_slots::Requester;
use vault_core::id::AccountId;
use vault_core::port::{PasswordHasher, PasswordVerdict};
use vault_core::sealed::SealedPassword;

pub(super) const ACCOUNT: AccountId = AccountId::from_bytes([1; 16]);
pub(super) const ANOTHER: AccountId = AccountId::from_bytes([2; 16]);

pub(super) async fn hash(hasher: &dyn PasswordHasher, of: AccountId, password: &str) -> SealedPassword {
    let permit = hasher.permit(Requester::Trusted).unwrap();
    hasher.hash(permit, of, password.into()).await.unwrap()
}

pub(super) async fn verify(
    hasher: &dyn PasswordHasher,
    of: Option<AccountId>,
    password: &str,
    stored: Option<&SealedPassword>,
) -> PasswordVerdict {
    let permit = hasher.permit(Requester::Trusted).unwrap();
    hasher.verify(permit, of, password.into(), stored.cloned()).await.unwrap()
}

/// Every byte counts, and nothing is trimmed or normalized.
pub async fn only_correct_password_verifies<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    for password in ["correct horse", "correct horse ", "pass\0word", "\u{1f511}\u{1f511}", &"x".repeat(1024)] {
        let stored = hash(&*hasher, ACCOUNT, password).await;
        let right = verify(&*hasher, Some(ACCOUNT), password, Some(&stored)).await;
        assert!(matches!(right, PasswordVerdict::Right { rehashed: None }), "{password}");
        let wrongs = [
            format!("{password}x"),
            format!(" {password}"),
            format!("{password} "),
            password.trim().to_owned(),
            password.chars().skip(1).collect(),
            password.to_uppercase(),
            String::new(),
        ];
        for wrong in wrongs {
            if wrong != password {
                let verdict = verify(&*hasher, Some(ACCOUNT), &wrong, Some(&stored)).await;
                assert!(matches!(verdict, PasswordVerdict::Wrong), "{wrong}");
            }
        }
    }
}

/// Passwords are not truncated, neither after 72 bytes as by bcrypt nor later.
pub async fn passwords_are_not_truncated<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    for length in [73, 129, 1024] {
        let password = "p".repeat(length);
        let stored = hash(&*hasher, ACCOUNT, &password).await;
        let verdict = verify(&*hasher, Some(ACCOUNT), &password[..length - 1], Some(&stored)).await;
        assert!(matches!(verdict, PasswordVerdict::Wrong), "{length}");
    }
}

/// No password is right for an unknown account or for an account without a password.
pub async fn missing_password_rejects_every_password<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    for of in [None, Some(ACCOUNT)] {
        for password in ["", "correct horse"] {
            assert!(matches!(verify(&*hasher, of, password, None).await, PasswordVerdict::Wrong));
        }
    }
}

/// A verifier that is copied to another account does not verify any password there.
pub async fn row_copied_to_another_account_refuses_both_passwords<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    let attackers = hash(&*hasher, ACCOUNT, "the attacker's").await;
    hash(&*hasher, ANOTHER, "the victim's").await;
    for password in ["the attacker's", "the victim's"] {
        let verdict = verify(&*hasher, Some(ANOTHER), password, Some(&attackers)).await;
        assert!(matches!(verdict, PasswordVerdict::Damaged));
    }
}

/// An earlier verifier of the account, stored next to the ID of the current password, permits no login.
pub async fn verifier_is_bound_to_the_password<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let hasher = make().await.hasher();
    let (earlier, now) =
        (hash(&*hasher, ACCOUNT, "an earlier password").await, hash(&*hasher, ACCOUNT, "the password").await);
    let restored = SealedPassword { id: now.id, blob: earlier.blob };
    let verdict = verify(&*hasher, Some(ACCOUNT), "an earlier password", Some(&restored)).await;
    assert!(matches!(verdict, PasswordVerdict::Damaged));
}
