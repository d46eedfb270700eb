//! Cases of [`TokenIssuer`] that fakes also pass.

use super::crypto::CryptoSubject;
use crate::clock::ManualClock;
use secrecy::ExposeSecret as _;
use vault_core::id::{AccountId, InstanceId, OrganizationId, SessionId};
use vault_core::port::{TokenIssuer, TokenRefusal};
use vault_core::role::Role;
use vault_core::session::SessionClaims;
use vault_core::time::Timestamp;

pub(super) const NOW: Timestamp = ManualClock::START;
const SECONDS: i64 = 3_600;

pub(super) fn claims(instance: InstanceId, role: Role) -> SessionClaims {
    SessionClaims {
        instance,
        session: SessionId::from_bytes([4; 16]),
        account: AccountId::from_bytes([2; 16]),
        organization: OrganizationId::from_bytes([3; 16]),
        role,
        version: 3,
        issued_at: NOW,
        expires_at: NOW.plus_seconds(SECONDS),
    }
}

pub(super) fn issue(issuer: &dyn TokenIssuer, claims: &SessionClaims) -> String {
    issuer.issue(claims).unwrap().0.expose_secret().to_owned()
}

/// Returns a token of an editor, and its claims.
async fn token<S: CryptoSubject>(make: impl AsyncFn() -> S) -> (S, SessionClaims, String) {
    let subject = make().await;
    let claims = claims(subject.instance(), Role::Editor);
    let token = issue(&*subject.issuer(), &claims);
    (subject, claims, token)
}

/// A token has the claims with which it was issued, for every role, also after a restart.
pub async fn issued_tokens_verify<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    for role in [Role::Viewer, Role::Editor, Role::Admin] {
        let claims = claims(subject.instance(), role);
        let token = issue(&*subject.issuer(), &claims);
        assert_eq!(subject.issuer().verify(&token, NOW), Ok(claims));
    }
}

/// A change of any bit is detected.
pub async fn every_flipped_bit_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (subject, _, token) = token(make).await;
    let issuer = subject.issuer();
    for place in 0..token.len() {
        for bit in 0..8 {
            let mut bytes = token.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            if let Ok(text) = String::from_utf8(bytes) {
                assert!(issuer.verify(&text, NOW).is_err(), "byte {place}, bit {bit}");
            }
        }
    }
}

/// A truncated, extended or wrapped token is rejected.
pub async fn other_lengths_are_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (subject, _, token) = token(make).await;
    let issuer = subject.issuer();
    for end in 0..token.len() {
        assert!(issuer.verify(&token[..end], NOW).is_err(), "{end}");
        assert!(issuer.verify(&token[end + 1..], NOW).is_err(), "{end}");
    }
    for end in ["=", "==", ".", " ", "\n", "\0", "0", ".e30"] {
        assert!(issuer.verify(&format!("{token}{end}"), NOW).is_err(), "{end:?}");
        assert!(issuer.verify(&format!("{end}{token}"), NOW).is_err(), "{end:?}");
    }
    assert!(issuer.verify(&format!("{token}{}", "A".repeat(100_000)), NOW).is_err());
}

/// A token is valid until its expiry time, exclusive.
pub async fn token_works_until_it_expires<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (subject, claims, token) = token(make).await;
    let (issuer, end) = (subject.issuer(), claims.expires_at.as_millis());
    assert_eq!(issuer.verify(&token, Timestamp::from_millis(end - 1)), Ok(claims));
    for late in [0, 1, 1_000, 1_000_000_000] {
        assert_eq!(issuer.verify(&token, Timestamp::from_millis(end + late)), Err(TokenRefusal::Expired));
    }
}

/// A token from a few seconds in the future is accepted, because clocks may differ; a later one is rejected.
pub async fn token_from_the_future_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (subject, _, token) = token(make).await;
    for early in [60, SECONDS, 365 * 86_400] {
        let refused = subject.issuer().verify(&token, NOW.plus_seconds(-early));
        assert_eq!(refused, Err(TokenRefusal::NotYetValid));
    }
}

/// A token is invalid in another instance.
pub async fn token_of_another_deployment_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let (_, _, token) = token(&make).await;
    assert!(make().await.issuer().verify(&token, NOW).is_err());
}
