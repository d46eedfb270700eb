//! Cases of access tokens that require cryptography.

use super::crypto::CryptoSubject;
use super::token::{NOW, claims, issue};
use vault_core::role::Role;

/// The start of one token and the end of another of the same length do not form a valid token.
pub async fn tokens_cannot_be_spliced<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    let issuer = subject.issuer();
    let [one, two] = [(); 2].map(|()| issue(&*issuer, &claims(subject.instance(), Role::Editor)));
    assert_eq!(one.len(), two.len());
    let (mut mixed, mut whole) = (0, 0);
    for place in 0..one.len() {
        let text = format!("{}{}", &one[..place], &two[place..]);
        if text == one || text == two {
            whole += 1;
        } else {
            mixed += 1;
            assert!(issuer.verify(&text, NOW).is_err(), "{place}");
        }
    }
    assert!(mixed > 40 && whole < one.len(), "{mixed} were put together");
}

/// A token does not disclose its claims.
pub async fn debug_of_tokens_shows_no_content<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    let claims = claims(subject.instance(), Role::Editor);
    let token = issue(&*subject.issuer(), &claims);
    for said in [claims.account.to_string(), claims.session.to_string(), claims.role.to_string()] {
        assert!(!token.contains(&said), "{said}");
    }
}
