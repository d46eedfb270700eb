//! Cases of [`PasscodeVerifier`] that fakes also pass.

use super::crypto::CryptoSubject;
use crate::clock::ManualClock;
use secrecy::ExposeSecret as _;
use std::collections::HashSet;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, SeedId};
use vault_core::passcode::{Digits, Passcode, TimeStep};
use vault_core::port::{NewSeed, PasscodeVerifier, SealError};
use vault_core::sealed::{Blob, SealedSeed};
use vault_core::time::Timestamp;

const NOW: Timestamp = ManualClock::START;
pub(super) const ACCOUNT: AccountId = AccountId::from_bytes([1; 16]);
const ANOTHER: AccountId = AccountId::from_bytes([2; 16]);

pub(super) fn new_seed(passcodes: &dyn PasscodeVerifier) -> NewSeed {
    passcodes.new_seed(ACCOUNT, &email()).unwrap()
}

fn email() -> EmailAddress {
    EmailAddress::parse("first+last@example.com").unwrap()
}

fn digits(text: &str) -> Digits {
    match Passcode::read(&text.into()) {
        Passcode::TimeBased(digits) | Passcode::Recovery(digits) => digits,
        Passcode::Impossible => panic!("{text}"),
    }
}

fn code(passcodes: &dyn PasscodeVerifier, seed: &SealedSeed, step: TimeStep) -> String {
    passcodes.code_at(ACCOUNT, seed, step).unwrap().expose_secret().to_owned()
}

/// Returns whether a TOTP secret is rejected as one of `account`, for any code.
pub(super) fn refused(passcodes: &dyn PasscodeVerifier, account: AccountId, seed: &SealedSeed) -> bool {
    let found = passcodes.matching_step(account, seed, &digits("755224"), NOW);
    matches!(found, Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }))
        && passcodes.code_at(account, seed, TimeStep::at(NOW)).is_err()
}

/// Only the codes of the current and the previous time step are accepted, also after a restart.
pub async fn current_and_previous_step_are_accepted<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    let passcodes = subject.passcodes();
    let seed = new_seed(&*passcodes).sealed;
    let current = TimeStep::at(NOW);
    let codes: Vec<_> = (-3..=3).map(|offset| TimeStep(current.0 + offset)).collect();
    for step in &codes {
        let text = code(&*passcodes, &seed, *step);
        assert_eq!(text.len(), Passcode::TIME_BASED_DIGITS);
        for second in [0, TimeStep::SECONDS - 1] {
            let now = current.begins_at().plus_seconds(second);
            let found = subject.passcodes().matching_step(ACCOUNT, &seed, &digits(&text), now).unwrap();
            // Two time steps may have the same code.
            let right = [current, current.previous()].into_iter().find(|one| code(&*passcodes, &seed, *one) == text);
            assert_eq!(found, right, "{step:?} at {second}");
        }
    }
    let different: HashSet<_> = codes.iter().map(|step| code(&*passcodes, &seed, *step)).collect();
    assert!(different.len() > 3, "codes hardly change");
}

/// A recovery code of twenty digits is not accepted as a TOTP code.
pub async fn recovery_code_is_not_time_based<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let passcodes = make().await.passcodes();
    let seed = new_seed(&*passcodes).sealed;
    let twice = code(&*passcodes, &seed, TimeStep::at(NOW)).repeat(4)[..Passcode::RECOVERY_DIGITS].to_owned();
    assert_eq!(passcodes.matching_step(ACCOUNT, &seed, &digits(&twice), NOW).unwrap(), None);
}

/// Each new TOTP secret has a unique id, secret and recovery codes.
pub async fn every_seed_has_unique_passcodes<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let passcodes = make().await.passcodes();
    let seeds: Vec<_> = (0..4).map(|_| new_seed(&*passcodes)).collect();
    let codes = |seed: &NewSeed| {
        let steps = (0..4).map(|step| TimeStep(TimeStep::at(NOW).0 + step));
        steps.map(|step| code(&*passcodes, &seed.sealed, step)).collect::<String>()
    };
    assert_eq!(seeds.iter().map(codes).collect::<HashSet<_>>().len(), 4);
    assert_eq!(seeds.iter().map(|seed| seed.secret.secret.expose_secret()).collect::<HashSet<_>>().len(), 4);
    assert_eq!(seeds.iter().map(|seed| *seed.sealed.id.as_bytes()).collect::<HashSet<_>>().len(), 4);
    for seed in &seeds {
        assert!(seed.secret.uri.expose_secret().contains(seed.secret.secret.expose_secret()), "the owner is shown it");
    }
}

/// A TOTP secret can be unsealed only for its account and ID.
pub async fn seed_opens_only_in_its_row<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let passcodes = make().await.passcodes();
    let (seed, next) = (new_seed(&*passcodes).sealed, new_seed(&*passcodes).sealed);
    assert!(!refused(&*passcodes, ACCOUNT, &seed));
    assert!(refused(&*passcodes, ANOTHER, &seed));
    assert!(refused(&*passcodes, ACCOUNT, &SealedSeed { id: SeedId::from_bytes([6; 16]), ..seed.clone() }));
    assert!(refused(&*passcodes, ACCOUNT, &SealedSeed { blob: next.blob, ..seed }));
}

/// A change of any byte or of the length is detected.
pub async fn every_flipped_byte_of_a_seed_is_refused<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let passcodes = make().await.passcodes();
    let seed = new_seed(&*passcodes).sealed;
    let sound = seed.blob.as_bytes();
    let altered = |bytes: Vec<u8>| SealedSeed { blob: Blob::from_bytes(bytes), ..seed.clone() };
    for place in 0..sound.len() {
        let mut bytes = sound.to_vec();
        bytes[place] ^= 1;
        assert!(refused(&*passcodes, ACCOUNT, &altered(bytes)), "byte {place}");
        assert!(refused(&*passcodes, ACCOUNT, &altered(sound[..place].to_vec())), "{place} bytes");
    }
    assert!(refused(&*passcodes, ACCOUNT, &altered([sound, &[0]].concat())));
}

/// An account has ten different recovery codes, found by the digest of account and digits, with or without hyphens;
/// also with the TOTP secret that replaces the one they were created with.
pub async fn ten_recovery_codes_are_found_by_digest<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let subject = make().await;
    let passcodes = subject.passcodes();
    let mut seen = HashSet::new();
    for account in [ACCOUNT, ACCOUNT, ANOTHER] {
        let seed = |account| passcodes.new_seed(account, &email()).unwrap().sealed;
        let first = seed(account);
        let next = passcodes.next_seed(account, &email(), &first).unwrap().sealed;
        assert_ne!(first, next);
        let other = AccountId::from_bytes([7; 16]);
        let new = passcodes.new_recovery_codes(account, &first).unwrap();
        assert_eq!((new.codes.len(), new.digests.len()), (10, 10));
        for (code, digest) in std::iter::zip(&new.codes, &new.digests) {
            let shown = code.0.expose_secret();
            assert_eq!(shown.split('-').map(str::len).collect::<Vec<_>>(), [5; 4]);
            assert!(seen.insert(shown.to_owned()), "it was made before");
            for presented in [shown.to_owned(), shown.replace('-', "")] {
                let digits = digits(&presented);
                let of = |account, seed| passcodes.recovery_code(account, seed, &digits).unwrap();
                assert_eq!(of(account, &first), *digest);
                assert_eq!(of(account, &next), *digest);
                assert_ne!(of(other, &seed(other)), *digest);
                assert!(passcodes.recovery_code(other, &first, &digits).is_err(), "sealed for another account");
            }
        }
    }
}
