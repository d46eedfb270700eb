use super::*;
use crate::testing::{NoEntropyLeft, id};

/// Secret of RFC 4226 appendix D and, for SHA-1, of RFC 6238 appendix B.
const RFC_SEED: &[u8; SEED] = b"12345678901234567890";

fn verifier() -> TotpVerifier {
    TotpVerifier::new(Arc::new(crate::OsEntropy))
}

fn account(number: u128) -> AccountId {
    AccountId::from_uuid(id(number))
}

fn email() -> EmailAddress {
    EmailAddress::parse("first+last@example.com").unwrap()
}

/// Returns a stored TOTP secret, with a recovery code key.
fn stored(seed: &[u8]) -> DocumentSecret {
    SecretString::from(STANDARD_NO_PAD.encode([seed, &[7; KEY]].concat())).into()
}

/// Returns the code of a step, as an authenticator app computes it.
fn code_at(seed: &[u8; SEED], step: i64) -> String {
    code(&totp(seed).unwrap(), step).to_string()
}

fn digits(text: &str) -> Digits {
    match Passcode::read(&text.into()) {
        Passcode::TimeBased(digits) | Passcode::Recovery(digits) => digits,
        Passcode::Impossible => panic!("{text}"),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn steps(verifier: &TotpVerifier, seed: &DocumentSecret, code: &str, now: Timestamp) -> Option<i64> {
    verifier.matching_step(Some(seed), &digits(code), now).unwrap().map(|step| step.0)
}

/// RFC 6238 appendix B, the six rows of SHA-1, with the adapter's code: the last six of eight digits.
#[test]
fn rfc_6238_sha_1() {
    let rows = [
        (59, "94287082"),
        (1_111_111_109, "07081804"),
        (1_111_111_111, "14050471"),
        (1_234_567_890, "89005924"),
        (2_000_000_000, "69279037"),
        (20_000_000_000, "65353130"),
    ];
    let verifier = verifier();
    let seed = stored(RFC_SEED);
    for (seconds, code) in rows {
        let step = TimeStep(seconds / 30);
        assert_eq!(code_at(RFC_SEED, step.0), code[2..]);
        assert_eq!(steps(&verifier, &seed, &code[2..], at(seconds)), Some(step.0));
    }
}

#[test]
fn displayed_secret_yields_passcodes_of_seed() {
    let shown = |secret: &str| PasscodeSecret { secret: secret.into(), uri: "".into() };
    let secret = Zeroizing::new(BASE32_NOPAD.encode(RFC_SEED));
    let code = passcode_of(&shown(&secret), TimeStep(59 / 30)).unwrap();
    assert_eq!(code.expose_secret(), "287082");
    for wrong in ["", "no base32!", "MZXW6"] {
        assert!(passcode_of(&shown(wrong), TimeStep(1)).is_none(), "{wrong}");
    }
}

/// RFC 4226 appendix D.
#[test]
fn rfc_4226() {
    let codes = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"];
    for (counter, code) in codes.iter().enumerate() {
        assert_eq!(code_at(RFC_SEED, counter as i64), *code);
    }
}

#[test]
fn distant_clock_does_not_panic() {
    let verifier = verifier();
    let seed = stored(RFC_SEED);
    for now in [i64::MIN, -1, 0, 29_999, i64::MAX] {
        assert_eq!(steps(&verifier, &seed, "000000", Timestamp::from_millis(now)), None);
    }
    assert_eq!(steps(&verifier, &seed, "755224", at(0)), Some(0));
    for step in [i64::MIN, -1, i64::MAX] {
        assert_eq!(code_at(RFC_SEED, step), "------");
    }
}

#[test]
fn new_seed_equals_displayed_secret() {
    let verifier = verifier();
    let new = verifier.new_seed(&email()).unwrap();
    let secret = new.secret.secret.expose_secret();
    assert_eq!(secret.len(), 32);
    assert_eq!(
        new.secret.uri.expose_secret(),
        format!(
            "otpauth://totp/OrgVault:first%2Blast%40example.com?secret={secret}&issuer=OrgVault&algorithm=SHA1\
             &digits=6&period=30"
        )
    );
    let totp = totp_of(secret);
    let code = totp.generate(1_795_176_000).to_string();
    assert_eq!(steps(&verifier, &new.seed, &code, at(1_795_176_000)), Some(1_795_176_000 / 30));
    let other = verifier.new_seed(&email()).unwrap();
    assert!(other.seed != new.seed && other.secret.secret.expose_secret() != secret);
}

fn totp_of(base32: &str) -> Totp {
    let mut bits = 0_u64;
    let mut bytes = Vec::new();
    for (index, digit) in base32.bytes().enumerate() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|letter| *letter == digit).unwrap();
        bits = bits << 5 | value as u64;
        if index % 8 == 7 {
            bytes.extend_from_slice(&bits.to_be_bytes()[3..]);
        }
    }
    totp(bytes.as_slice().try_into().unwrap()).unwrap()
}

#[test]
fn malformed_seed_is_refused() {
    let verifier = verifier();
    let texts = ["", "AAAA", "~"].map(|text| SecretString::from(text).into());
    for seed in [0, 19, 21].map(|length| stored(&vec![1; length])).into_iter().chain(texts) {
        let found = verifier.matching_step(Some(&seed), &digits("755224"), at(0));
        assert!(matches!(found, Err(SealError::Fault(_))), "{found:?}");
        assert!(verifier.new_recovery_codes(account(1), &seed).is_err());
    }
}

/// Without a TOTP secret, the work is the same and no code matches.
#[test]
fn decoy_accepts_no_code() {
    let verifier = verifier();
    let code = digits(&code_at(&[0; SEED], 0));
    assert_eq!(verifier.matching_step(None, &code, at(0)).unwrap(), None);
    assert!(verifier.recovery_code(account(1), None, &digits("01234567890123456789")).is_ok());
}

#[test]
fn current_and_previous_step_are_accepted() {
    let (verifier, now) = (verifier(), at(1_234_567_890));
    let (seed, current) = (stored(RFC_SEED), TimeStep::at(now).0);
    for offset in -3..=3 {
        let step = TimeStep(current + offset);
        let code = code_at(RFC_SEED, step.0);
        let expected = [0, -1].contains(&offset).then_some(step.0);
        assert_eq!(steps(&verifier, &seed, &code, now), expected, "{offset}");
        // A recovery code of twenty digits is no code of a step.
        assert_eq!(steps(&verifier, &seed, &code.repeat(4)[..Passcode::RECOVERY_DIGITS], now), None);
    }
}

/// An account has ten different recovery codes, found by the digest of account and digits, with or without hyphens, also
/// with the TOTP secret that replaces the one they were created with.
#[test]
fn ten_recovery_codes_are_found_by_digest() {
    let verifier = verifier();
    let seed = || verifier.new_seed(&email()).unwrap().seed;
    let mut seen = std::collections::HashSet::new();
    for number in [1, 1, 2] {
        let first = seed();
        let next = verifier.next_seed(&email(), &first).unwrap().seed;
        let new = verifier.new_recovery_codes(account(number), &first).unwrap();
        assert_eq!((new.codes.len(), new.digests.len()), (10, 10));
        for (code, digest) in std::iter::zip(&new.codes, &new.digests) {
            let shown = code.0.expose_secret();
            assert_eq!(shown.split('-').map(str::len).collect::<Vec<_>>(), [5; 4]);
            assert!(seen.insert(shown.to_owned()), "it was made before");
            for digits in [digits(shown), digits(&shown.replace('-', ""))] {
                let of = |number, seed| verifier.recovery_code(account(number), Some(seed), &digits).unwrap();
                assert_eq!((of(number, &first), of(number, &next)), (*digest, *digest));
                assert!(of(7, &first) != *digest && of(number, &seed()) != *digest);
            }
        }
    }
}

#[test]
fn passcode_digits_are_uniform() {
    let mut counts = [0_u32; 10];
    for _ in 0..5_000 {
        for digit in recovery::random_digits(&crate::OsEntropy).unwrap().bytes() {
            counts[usize::from(digit - b'0')] += 1;
        }
    }
    // 100,000 digits: 10,000 of each, with a standard deviation of 95; a difference of six deviations occurs once in
    // 10^8.
    assert!(counts.iter().all(|count| count.abs_diff(10_000) < 570), "{counts:?}");
}

/// Bytes from 250 on would make the digits 0 to 5 more likely than the others.
#[test]
fn biased_bytes_are_discarded() {
    struct Bytes;
    impl Entropy for Bytes {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), vault_core::port::NoEntropy> {
            bytes
                .iter_mut()
                .zip([250, 9, 251, 252, 9, 253, 254, 249, 255].iter().cycle())
                .for_each(|(to, from)| *to = *from);
            Ok(())
        }
    }
    assert_eq!(*recovery::random_digits(&Bytes).unwrap(), "9".repeat(20));
}

#[test]
fn creation_fails_without_entropy() {
    let seed = stored(RFC_SEED);
    let verifier = TotpVerifier::new(Arc::new(NoEntropyLeft));
    assert!(verifier.new_seed(&email()).is_err());
    assert!(verifier.next_seed(&email(), &seed).is_err());
    assert!(verifier.new_recovery_codes(account(1), &seed).is_err());
}
